"""View trees: random conjunctive views, kept by maps, against recomputation."""

import os
from collections.abc import Mapping
from random import Random

import pytest

from tests.diffs.harness import PlayedView, as_bag, expect, keep_through_batches
from tests.diffs.interpret import evaluate
from tests.diffs.random_tables import Database, random_database
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.programs.view_tree import with_view_trees
from viewkeep.query.algebra import Node
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
TABLES = {
    "r": Table({"id": "int", "a": "int", "b": "int", "v": "int"}, key=["id"]),
    "s": Table({"b": "int", "c": "int", "w": "decimal(8, 2)", "d": "int"}, key=["b", "c"]),
    "t": Table({"c": "int", "a": "int", "n": "bigint not null"}, key=["c"]),
    "u": Table(
        {"id": "int", "a": "int", "c": "int", "v": "int"},
        key=["id"],
        foreign_keys=["c -> t.c"],
    ),
}
INTEGERS = {"r": "abv", "s": "bcd", "t": "ca", "u": "acv"}
VALUES = {"r": ["v", "a", "b"], "s": ["w", "d", "c"], "t": ["n", "a"], "u": ["v", "c"]}


class PlayedTree(PlayedView):
    """A view kept by its view tree, compared with the query that it is made from."""

    def __init__(self, view: Node, tables: Mapping[str, Table], database: Database) -> None:
        self.view = view
        super().__init__(with_view_trees(optimize(view)), tables, database, True, False)

    def check(self) -> None:
        """All maps equal their definitions, and the view the answer of its own query."""
        self.check_kept()
        answer = evaluate(self.view, self._current())
        expect("visible", as_bag(self.visible()), as_bag(answer))


def random_view(rng: Random) -> str:
    """A conjunctive view: tables, equalities that tie them, conditions, keys and aggregates."""
    atoms = [(f"x{i}", rng.choice(sorted(TABLES))) for i in range(rng.choice([2, 2, 3, 3, 4]))]
    conditions = []
    for i in range(1, len(atoms)):
        for _ in range(rng.choice([1, 1, 1, 2])):
            other = atoms[rng.randrange(i)]
            conditions.append(f"{_column(rng, atoms[i])} = {_column(rng, other)}")
    if rng.random() < 0.15:
        conditions.pop()
    for atom in atoms:
        if rng.random() < 0.3:
            conditions.append(f"{_column(rng, atom)} {rng.choice(['<', '>', '<>'])} 1")
    keys = {_column(rng, rng.choice(atoms)) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))}
    aggregates = [_aggregate(rng, atoms) for _ in range(rng.randint(1, 4))]
    columns = [f"{key} as k{i}" for i, key in enumerate(sorted(keys))]
    columns += [f"{each} as m{i}" for i, each in enumerate(aggregates)]
    source = ", ".join(f"{table} {alias}" for alias, table in atoms)
    where = f" where {' and '.join(conditions)}" if conditions else ""
    if rng.random() < 0.1 and keys:
        return f"select distinct {', '.join(columns[: len(keys)])} from {source}{where}"
    group = f" group by {', '.join(sorted(keys))}" if keys else ""
    having = f" having {aggregates[0]} > 1" if rng.random() < 0.3 else ""
    return f"select {', '.join(columns)} from {source}{where}{group}{having}"


def _column(rng: Random, atom: tuple[str, str]) -> str:
    return f"{atom[0]}.{rng.choice(INTEGERS[atom[1]])}"


def _value(rng: Random, atom: tuple[str, str]) -> str:
    return f"{atom[0]}.{rng.choice(VALUES[atom[1]])}"


def _aggregate(rng: Random, atoms: list[tuple[str, str]]) -> str:
    one, two = (_value(rng, rng.choice(atoms)) for _ in range(2))
    return rng.choice(
        [
            "count(*)",
            f"count({one})",
            f"sum({one})",
            f"sum({one} * {two})",
            f"sum({one} - 2 * {two})",
            f"avg({one})",
            f"min({one})",
            f"max({one})",
        ]
    )


@pytest.mark.parametrize("seed", range(400 if LONG else 16))
def test_random_views_equal_recomputation(seed: int) -> None:
    rng = Random(seed)
    sql = random_view(rng)
    view = parse_view(sql, TABLES)
    try:
        played = PlayedTree(view, TABLES, random_database(TABLES, rng, rows=8))
        keep_through_batches(played, seed, batches=3)
    except Exception as error:
        error.add_note(sql)
        raise
