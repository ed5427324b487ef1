"""Keeps a view in DuckDB through batches, by ID-based scripts and by tuple-based ones at once."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from tests.diffs.diff_columns import delete_columns, insert_columns, update_columns
from tests.diffs.harness import (
    Bag,
    as_bag,
    expect,
    is_determined,
    plain,
    rounded,
    states,
    without_reserve,
)
from tests.diffs.interpret import Rows, evaluate
from tests.diffs.random_tables import Database, apply_batches, as_arrow, diff_as_arrow
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.generate import GeneratedScript, generate
from viewkeep.diffs.model import DELETE, INSERT, UPDATE
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import IdPlan, identify
from viewkeep.diffs.schemas import base_diffs, every_change, update_sets
from viewkeep.diffs.script import BaseDiff
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.prepared import PreparedScript
from viewkeep.execute.duckdb.run_in_connection import create, prepare, read, run_prepared
from viewkeep.query.algebra import Node, Scan
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk

Connection = duckdb.DuckDBPyConnection
Class = tuple[str, str, frozenset[str]]
"""A table, a kind of change, and for updates the columns that they may change."""

Kinds = Mapping[str, list[tuple[str, frozenset[str]]]]
Sets = Mapping[str, list[frozenset[str]]]
"""By table: the sets of columns that updates are told apart by."""


def tables_of(node: Node, tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables that a view reads."""
    read = {each.name for each in walk(node) if isinstance(each, Scan)}
    return {name: table for name, table in tables.items() if name in read}


class KeptInDuckdb:
    """A view and its caches in both modes, with the tables before and after the last batch."""

    def __init__(
        self,
        node: Node,
        tables: Mapping[str, Table],
        database: Database,
        connection: Connection,
        expected: str,
        exact: int = 1,
        determined: bool | None = None,
    ) -> None:
        """`expected` is the view in DuckDB's own words; so many scripts as `exact` says are made
        for just the changes of a batch, all others for every kind of change. Unless its answer is
        `determined`, the view is only compared with its plan."""
        self._determined = is_determined(node) if determined is None else determined
        self.tables, self.database = tables, database
        self._connection, self._node, self._expected = connection, node, expected
        self._plan, self._exact = identify(optimize(node)), exact
        self._sets = {name: update_sets(self._plan, name) for name in tables}
        self._every = every_kind(self._plan)
        self._known: list[Kinds] = []
        self._batches = 0
        connection.execute("SET threads = 1")
        self._load("", database, tables)
        self._load("@pre", database, tables)
        self._modes = [Mode(node, tables, connection, tuple_based) for tuple_based in (False, True)]

    def refresh(self, batches: Mapping[str, ChangeBatch], minimized: bool = True) -> None:
        """Change the tables, and the view by scripts that fit the changes.

        On tables this small, much of the time goes into plans: three batches of four have plain
        ones.
        """
        self._batches += 1
        better_plans = self._batches % 4 == 0
        self._connection.execute(f"PRAGMA {'enable' if better_plans else 'disable'}_optimizer")
        after = apply_batches(self.database, batches)
        self._load("@pre", self.database, self.tables)
        self._load("", after, [n for n, batch in batches.items() if batch.size])
        self.database = after
        kinds = self._kinds(classes(self._sets, batches))
        diffs = base_diffs(self._plan, kinds)
        for name, rows in diff_rows(self._sets, diffs, batches).items():
            self._connection.register(name, rows)
        for mode in self._modes:
            mode.refresh(kinds, minimized)

    def check(self) -> None:
        """The view and all caches equal their definitions, and the view DuckDB's own answer."""
        current = states(self.database, "post")
        rows = [_in_tuples(row) for row in self._connection.execute(self._expected).fetchall()]
        for mode in self._modes:
            mode.check(dict(current), plain(Counter(rows)) if self._determined else None)

    def _kinds(self, wanted: list[Class]) -> Kinds:
        """For the first batches exactly the changes that there are, then all kinds of changes."""
        exact: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for table, kind, changed in wanted:
            exact.setdefault(table, []).append((kind, changed))
        if exact not in self._known and len(self._known) < self._exact:
            self._known.append(exact)
        return exact if exact in self._known else self._every

    def _load(self, suffix: str, database: Database, names: Iterable[str]) -> None:
        for name in names:
            rows = as_arrow(self.tables[name], database[name].values())
            self._connection.register(f"{name}{suffix}", rows)


class Mode:
    """The view and its caches by one kind of scripts, under names of their own."""

    def __init__(
        self, node: Node, tables: Mapping[str, Table], connection: Connection, tuple_based: bool
    ) -> None:
        self._node, self._connection, self._tuple_based = node, connection, tuple_based
        self._name = "tuple" if tuple_based else "id"
        self._sources: dict[Any, str] = {
            (name, "pre"): quote_name(f"{name}@pre") for name in tables
        }
        self._scripts: dict[str, Scripts] = {}
        self._kept = generate(node, {}, tuple_based).script
        for kept in self._kept.materialized:
            self._sources[kept.name] = quote_name(f"{self._name} {kept.name}")
        create(connection, self._kept, self._sources)

    def refresh(self, kinds: Kinds, minimized: bool) -> None:
        """Run the script for some kinds of changes."""
        if str(kinds) not in self._scripts:
            made = generate(self._node, kinds, self._tuple_based)
            self._scripts[str(kinds)] = Scripts.of(made, self._sources)
        scripts = self._scripts[str(kinds)]
        run_prepared(self._connection, scripts.minimized if minimized else scripts.composed)

    def check(self, relations: dict[Any, Any], expected: Bag | None) -> None:
        """All that is kept equals its definition in Python, but for rows of a reserve."""
        for kept in self._kept.materialized:
            columns = ", ".join(map(quote_name, kept.definition.names))
            text = f"SELECT {columns} FROM {self._sources[kept.name]}"
            found = [_in_tuples(row) for row in self._connection.execute(text).fetchall()]
            rows: Rows = evaluate(kept.definition, relations)
            relations[kept.name] = without_reserve(kept.definition, rows, found)
            expected_rows = as_bag(relations[kept.name])
            expect(f"{self._name} {kept.name}", rounded(Counter(found)), expected_rows)
        if expected is None:
            return
        answer = read(self._connection, self._kept, self._sources).fetchall()
        visible = [_in_tuples(row) for row in answer]
        expect(f"{self._name} visible", plain(Counter(visible)), expected)


def _in_tuples(value: Any) -> Any:
    """Rows with arrays and structs as tuples, which can be counted."""
    inside = value.values() if isinstance(value, dict) else value
    return tuple(map(_in_tuples, inside)) if isinstance(value, dict | list | tuple) else value


@dataclass(frozen=True)
class Scripts:
    """The scripts of some kinds of changes, before and after minimization."""

    composed: PreparedScript
    minimized: PreparedScript

    @classmethod
    def of(cls, made: GeneratedScript, sources: Mapping[Any, str]) -> "Scripts":
        return cls(prepare(made.composed, sources), prepare(made.script, sources))


def classes(sets: Sets, batches: Mapping[str, ChangeBatch]) -> list[Class]:
    """The kinds of changes that there are, with updates by what they change."""
    found: list[Class] = []
    for name, batch in batches.items():
        if batch.inserts:
            found.append((name, INSERT, frozenset()))
        if batch.deletes:
            found.append((name, DELETE, frozenset()))
        found += [(name, UPDATE, each) for each in batch.by_changed(sets[name])]
    return found


def every_kind(plan: IdPlan) -> Kinds:
    """All changes; updates that fit into no other class fit into that of all columns."""
    found = every_change(plan)
    for table, kinds in found.items():
        sets = update_sets(plan, table)
        if len(sets) > 1:
            kinds.append((UPDATE, frozenset[str]().union(*sets)))
    return found


def diff_rows(
    sets: Sets, diffs: Iterable[BaseDiff], batches: Mapping[str, ChangeBatch]
) -> dict[str, Any]:
    """The rows of every diff as Arrow tables; an update goes to the smallest class it fits into."""
    left = {name: batch.by_changed(sets[name]) for name, batch in batches.items()}
    found = {}
    for diff in sorted(diffs, key=lambda each: len(each.schema.changed)):
        batch, fitting = batches[diff.table], set(diff.schema.changed)
        if diff.schema.kind == INSERT:
            columns = insert_columns(batch.table, batch.inserts)
        elif diff.schema.kind == DELETE:
            columns = delete_columns(batch.table, batch.deletes)
        else:
            taken = [each for each in left[diff.table] if each <= fitting]
            updates = [update for each in taken for update in left[diff.table].pop(each)]
            columns = update_columns(batch.table, updates)
        found[diff.name] = diff_as_arrow(batch.table, columns)
    assert not any(left.values()), f"updates that no diff takes: {left}"
    return found
