"""Queries on the driver give the rows that whole relations give, whichever they look up."""

import os
from collections import Counter
from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.diffs.harness import PlayedView, as_bag, expect
from tests.diffs.interpret import Rows, evaluate, run_script
from tests.diffs.random_tables import random_batch, random_database
from tests.diffs.test_random_views import CASES
from tests.diffs.test_random_views import TABLES as RANDOM_TABLES
from tests.diffs.views import TABLES, VIEWS
from viewkeep.diffs.script import Script
from viewkeep.execute.backend import Source
from viewkeep.execute.near_rows import MissingError
from viewkeep.execute.spark.driver.look_up import LookUps, NotHereError
from viewkeep.execute.spark.driver.possible_keys import Inputs
from viewkeep.execute.spark.driver.queries import Driver
from viewkeep.query.algebra import Node, Project, Scan, Select, Stored
from viewkeep.query.traversal import walk, with_children
from viewkeep.query.types.inference import Schema
from viewkeep.sql.parse import parse_view

BATCHES = 2
LONG = bool(os.environ.get("VIEWKEEP_LONG"))
ROUNDS = 10


class Played:
    """A script on the driver, statement by statement; what it asks for comes from memory."""

    def __init__(
        self, script: Script, relations: dict[Any, Rows], kept: dict[str, Rows], small: bool
    ) -> None:
        self.script, self.relations, self.kept = script, relations | kept, kept
        self.schemas: dict[Source, Schema] = {
            m.name: m.definition.schema for m in script.materialized
        }
        for statement in script.computes():
            scans = (n for n in walk(statement.query) if isinstance(n, Scan))
            self.schemas |= {(n.name, n.state): n.table.columns for n in scans}
        nothing = cast(Any, None)
        self.look_ups = LookUps(nothing, lambda source: nothing, self.schemas, limit=10_000)
        if small:  # relations of few rows are read as a whole
            self.look_ups._wholes = {source: self.relations[source] for source in self.schemas}
        self.computed: dict[str, Rows] = {}
        self.pending: dict[str, Node] = {s.name: s.query for s in script.computes()}
        self.counts: Counter[str] = Counter()

    def play(self) -> dict[str, Rows]:
        """All results; what has to be fetched comes for all statements at once."""
        for _ in range(ROUNDS):
            late = {n: q for n, q in self.pending.items() if not self._computes(n, q)}
            self.pending = late
            if not late:
                return self.computed
            self.counts["jobs"] += 1
            for name, (source, _) in self.look_ups.requests().items():
                self.look_ups.put(name, self.relations[source])
        raise AssertionError(f"never computed: {list(self.pending)}")

    def _computes(self, name: str, query: Node) -> bool:
        try:
            rows = Driver(self._inputs()).rows(query)
        except MissingError:
            return False
        except NotHereError:
            if any(each in self.pending for each in _reads(query)):
                return False
            self.counts["elsewhere"] += 1
            rows = evaluate(query, self.relations | self.computed)
        self.computed[name] = rows
        return True

    def _inputs(self) -> Inputs:
        def rows(name: str) -> Rows | None:
            return None if name in self.kept else self.computed.get(name, self.relations.get(name))

        pending = {n: q for n, q in self.pending.items() if n not in self.computed}
        return Inputs(
            self.look_ups,
            rows=rows,
            pending=pending.get,
            is_kept=self.kept.__contains__,
            has_frame=self.relations.__contains__,
            in_spark=self._in_spark,
            limit=10_000,
        )

    def _in_spark(self, node: Select | Project, rows: Rows) -> Rows:
        self.counts["expressions"] += 1
        over = with_children(node, (Stored("rows", node.child.schema),))
        return evaluate(over, {"rows": rows})


def _reads(query: Node) -> list[str]:
    return [each.name for each in walk(query) if hasattr(each, "name")]


def play(view: PlayedView, rng: Random, small: bool = False) -> Played:
    """The next batch, statement by statement; every result is compared."""
    script, relations = view.prepare(random_batch(view.database, view.tables, rng, 5))
    played = Played(script, cast(Any, relations), view.kept, small)
    view.kept, expected = run_script(script, relations, view.kept)
    for statement, rows in played.play().items():
        expect(statement, as_bag(rows), as_bag(expected[statement]))
    return played


@pytest.mark.slow
@pytest.mark.parametrize("tuple_based", [False, True], ids=["id", "tuple"])
@pytest.mark.parametrize("name", VIEWS)
def test_every_statement(name: str, tuple_based: bool) -> None:
    rng = Random(list(VIEWS).index(name))
    database = random_database(TABLES, rng, rows=8)
    view = PlayedView(parse_view(VIEWS[name], TABLES), TABLES, database, tuple_based)
    for number in range(BATCHES):
        play(view, rng, small=bool(number % 2))


@pytest.mark.slow
@settings(max_examples=400 if LONG else 60, suppress_health_check=list(HealthCheck))
@given(tuple_based=st.booleans(), **CASES)
def test_every_statement_of_a_random_view(
    node: Node, seed: int, rows: int, tuple_based: bool
) -> None:
    note(str(node))
    rng = Random(seed)
    database = random_database(RANDOM_TABLES, rng, rows=rows)
    view = PlayedView(node, RANDOM_TABLES, database, tuple_based)
    for number in range(BATCHES):
        play(view, rng, small=bool(number % 2))


@pytest.mark.parametrize("name", ["join on a key", "chain of joins", "sum and count", "left join"])
def test_nothing_is_left_to_spark(name: str) -> None:
    """Joins by key, groups and outer joins of them look up what they need, and soon."""
    rng = Random(3)
    database = random_database(TABLES, rng, rows=8)
    view = PlayedView(parse_view(VIEWS[name], TABLES), TABLES, database)
    for _ in range(BATCHES):
        counts = play(view, rng).counts
        assert counts["elsewhere"] == counts["expressions"] == 0
        assert counts["jobs"] <= 2


@pytest.mark.parametrize("name", VIEWS)
def test_small_relations_are_never_asked_for(name: str) -> None:
    """Where all relations are small, what Python computes exactly is computed in one go."""
    rng = Random(5)
    view = PlayedView(parse_view(VIEWS[name], TABLES), TABLES, random_database(TABLES, rng, rows=8))
    counts = play(view, rng, small=True).counts
    assert not counts["jobs"]
