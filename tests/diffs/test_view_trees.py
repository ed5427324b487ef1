"""View trees: random conjunctive views, kept by maps, against recomputation."""

import os
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from tests.diffs.harness import (
    PlayedView,
    as_bag,
    base_changes,
    expect,
    keep_through_batches,
    states,
)
from tests.diffs.interpret import Rows, evaluate, run_script
from tests.diffs.random_tables import Database, apply_batches, random_database
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import identify
from viewkeep.diffs.programs.recursive_maps import generate_maps
from viewkeep.diffs.programs.view_tree import with_view_trees
from viewkeep.diffs.script import Script
from viewkeep.query.algebra import Node, Scan
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


class PlayedMaps:
    """A view kept by recursive maps, whose tables change one after the other."""

    def __init__(self, view: Node, tables: Mapping[str, Table], database: Database) -> None:
        self.view, self.tables, self.database = optimize(view), tables, database
        self._plan = identify(self.view)
        scans = [each.name for each in self._plan.nodes if isinstance(each, Scan)]
        self._changing = sorted(set(scans))
        self._scripts: dict[str, Script] = {}
        self._kept = self._recomputed()
        layouts = [self._layout(self._script(name)) for name in self._changing]
        assert all(each == layouts[0] for each in layouts)

    @staticmethod
    def _layout(script: Script) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        return [(each.name, each.ids, each.definition.names) for each in script.materialized]

    def refresh(self, batches: Mapping[str, ChangeBatch], minimized: bool = True) -> None:
        """Change table by table, each seeing those before it changed."""
        for name in self._changing:
            changes = base_changes(self._plan, {name: batches[name]})
            before = self.database
            self.database = apply_batches(before, {name: batches[name]})
            if changes.kinds:
                script = self._script(name, changes.kinds[name])
                diffs = {
                    n: list(zip(*c.values(), strict=True)) for n, (_, c) in changes.diffs.items()
                }
                relations = {**states(before, "pre"), **states(self.database, "post"), **diffs}
                self._kept, _ = run_script(script, relations, self._kept)

    def check(self) -> None:
        """All maps equal their definitions, and the view the answer of its own query."""
        for name, expected in self._recomputed().items():
            expect(name, as_bag(self._kept[name]), as_bag(expected))
        script = self._script(self._changing[0])
        names = script.view.definition.names
        places = [names.index(stored) for _, stored in script.visible]
        visible = [tuple(row[i] for i in places) for row in self._kept["view"]]
        answer = evaluate(self.view, states(self.database, "post"))
        expect("visible", as_bag(visible), as_bag(answer))

    def _script(self, table: str, kinds: list[tuple[str, frozenset[str]]] | None = None) -> Script:
        key = str((table, kinds))
        if key not in self._scripts:
            self._scripts[key] = generate_maps(self.view, table, self._changing, kinds)
        return self._scripts[key]

    def _recomputed(self) -> dict[str, Rows]:
        found: dict[Any, Any] = dict(states(self.database, "post"))
        kept = self._script(self._changing[0]).materialized
        return {m.name: found.setdefault(m.name, evaluate(m.definition, found)) for m in kept}


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


def _never_null(rng: Random, atoms: list[tuple[str, str]]) -> str:
    numbers = [f"{alias}.n" for alias, table in atoms if table == "t"]
    return rng.choice(numbers or ["3"])


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
            f"sum(case when {one} > 1 then {_never_null(rng, atoms)} else 0 end)",
            f"min({one})",
            f"max({one})",
        ]
    )


@pytest.mark.parametrize("kept", [PlayedTree, PlayedMaps])
@pytest.mark.parametrize("seed", range(400 if LONG else 12))
def test_random_views_equal_recomputation(
    seed: int, kept: type[PlayedTree] | type[PlayedMaps]
) -> None:
    rng = Random(seed)
    sql = random_view(rng)
    view = parse_view(sql, TABLES)
    try:
        played = kept(view, TABLES, random_database(TABLES, rng, rows=8))
        keep_through_batches(played, seed, batches=3)
    except Exception as error:
        error.add_note(sql)
        raise


def test_dependencies_that_do_not_hold_do_no_harm() -> None:
    """They tell which variables stand on top, but groups are told apart by their keys."""
    columns = {"id": "int", "a": "int", "b": "int"}
    tables = {
        "r": Table(columns, key=["id"], fds=["a -> b"]),
        "s": Table({"id": "int", "b": "int"}, key=["id"]),
    }
    sql = "select r.a, count(*) as n, sum(s.id) as x from r join s on r.b = s.b group by r.a"
    database = random_database(tables, Random(2), rows=20)
    values = {(row[1], row[2]) for row in database["r"].values()}
    assert len(values) > len({a for a, _ in values})
    keep_through_batches(PlayedTree(parse_view(sql, tables), tables, database), 2, batches=4)
