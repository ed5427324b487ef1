"""Runs a case: the view through its history, compared with recomputation after every refresh."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from tests.diffs.harness import Bag, KeptView, PlayedView, as_bag, expect, plain
from tests.diffs.in_duckdb import KeptInDuckdb, tables_of
from tests.diffs.interpret import evaluate
from tests.diffs.random_tables import Database, as_arrow
from tests.generated.cases import Case
from tests.generated.tables import TABLES
from tests.transpile import to_duckdb
from viewkeep.sql.parse import parse_view


class InvalidCaseError(Exception):
    """SQL that the oracle does not take: no failure of the package."""


Runner = Callable[[Case], None]


def recomputed(case: Case, number: int) -> dict[str, Bag]:
    """DuckDB's answers to the views at one of the states."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        register(connection, case.history.states[number])
        return answers(connection, case.views)


def register(connection: duckdb.DuckDBPyConnection, state: Database) -> None:
    """The tables of a state."""
    for name, rows in state.items():
        connection.register(name, as_arrow(TABLES[name], rows.values()))


def answers(
    connection: duckdb.DuckDBPyConnection, views: Iterable[tuple[str, str]]
) -> dict[str, Bag]:
    """What views hold, the lower ones first."""
    found = {}
    for name, sql in views:
        try:
            connection.execute(f"CREATE OR REPLACE VIEW {name} AS {to_duckdb(sql)}")
            rows = connection.execute(f"SELECT * FROM {name}").fetchall()
        except duckdb.Error as error:
            raise InvalidCaseError(f"{name}: {error}") from error
        found[name] = Counter(map(frozen, rows))
    return found


def frozen(value: Any) -> Any:
    """A row of DuckDB, with tuples for lists and structs."""
    inside = value.values() if isinstance(value, dict) else value
    return tuple(map(frozen, inside)) if isinstance(value, dict | list | tuple) else value


def play(case: Case, tuple_based: bool = False) -> None:
    """In Python, by scripts for just the changes that there are."""
    [(_, sql)] = case.views
    node = parse_view(sql, TABLES)
    history = case.history.only(list(tables_of(node, TABLES)))
    view = PlayedView(node, history.tables, history.states[0], tuple_based)

    def check(number: int) -> None:
        view.check()
        relations: Any = {(n, "post"): list(r.values()) for n, r in history.states[number].items()}
        oracle = plain(recomputed(case, number)["v"])
        expect("the oracle", plain(as_bag(evaluate(node, relations))), oracle)
        expect("the view beside the oracle", plain(as_bag(view.visible())), oracle)

    _through(view, case, check)


def run_in_duckdb(case: Case) -> None:
    """In DuckDB, by ID-based and by tuple-based scripts, some for every kind of change."""
    [(_, sql)] = case.views
    node = parse_view(sql, TABLES)
    history = case.history.only(list(tables_of(node, TABLES)))
    recomputed(case, 0)
    with duckdb.connect() as connection:
        view = KeptInDuckdb(
            node, history.tables, history.states[0], connection, to_duckdb(sql), exact=2
        )
        _through(view, case, lambda _: view.check())


def _through(view: KeptView, case: Case, check: Callable[[int], None]) -> None:
    history = case.history.only(list(view.tables))
    check(0)
    for number in range(1, len(history.states)):
        batches = history.batches(number)
        if not all(batch.is_empty for batch in batches.values()):
            with at_refresh(number):
                view.refresh(batches, minimized=bool((case.seed + number) % 3))
                check(number)


@contextmanager
def at_refresh(number: int) -> Iterator[None]:
    """Errors tell at which refresh they came."""
    with noted(f"at refresh {number}"):
        yield


@contextmanager
def noted(text: str) -> Iterator[None]:
    """Errors with a note."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise
