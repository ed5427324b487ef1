"""How much a delta script has to do for so many changes of tables, by estimates of sizes."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from viewkeep.diffs.costs.sizes import JoinBlock, Size, SizeEstimates
from viewkeep.diffs.model import post, pre
from viewkeep.diffs.script import BaseDiff, Script
from viewkeep.query.algebra import AntiJoin, Join, Node, Scan, SemiJoin, Stored, UnionAll
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.expressions import columns_of
from viewkeep.query.traversal import inputs_of, walk

EMPTY = Size(0.0)
GROUP_ROWS = 5_000
"""The rows that are read to find those of one key."""


@dataclass(frozen=True)
class Work:
    """Statements that run, rows of all their operators and of the largest one, values of tables and
    caches that are read, and rows that change, by kept relation."""

    statements: int = 0
    rows: float = 0.0
    largest: float = 0.0
    values: float = 0.0
    changed: Mapping[str, float] = field(default_factory=dict)


class ScriptWork:
    """The work of a script for any changes: its statements, and the sizes of what it keeps, are
    looked through once."""

    def __init__(self, script: Script, tables: Mapping[str, Size]) -> None:
        self._script, self._tables = script, tables
        self._statements = [_StatementWork(each.name, each.query) for each in script.computes()]
        self.kept = _kept_sizes(script, tables)

    def after(self, changes: Mapping[str, float], kind: str) -> Work:
        """The work for so many rows of tables that are all inserted, updated or deleted."""
        sizes = SizeEstimates(self._tables)
        for name, size in self.kept.items():
            sizes.store(name, size)
        active = self._store_diffs(changes, kind, sizes)
        statements, all_rows, largest, values = 0, 0.0, 0.0, 0.0
        for each in self._statements:
            deltas = [node for node in each.stored if node.name in active]
            if not deltas:
                sizes.store(each.name, EMPTY)
                continue
            result, keys = sizes.of(each.query), max(sizes.of(delta).rows for delta in deltas)
            if not result.rows:
                sizes.store(each.name, EMPTY)
                continue
            statements += 1
            rows = list(each.operator_rows(sizes, active))
            all_rows, largest = all_rows + sum(rows), max(largest, *rows, 0.0)
            values += sum(each.values_read(sizes, active, keys))
            sizes.store(each.name, result)
            active.add(each.name)
        return Work(statements, all_rows, largest, values, self._changed(sizes, active))

    def _store_diffs(
        self, changes: Mapping[str, float], kind: str, sizes: SizeEstimates
    ) -> set[str]:
        """Note the sizes of the diffs of tables; those that have rows. Of the updates of a table,
        which differ in the columns that change, the first ones change what conditions read."""
        active, tables = set[str](), set[str]()
        for diff in self._script.diffs:
            rows = changes.get(diff.table, 0.0)
            if diff.schema.kind != kind or diff.table in tables or not rows:
                sizes.store(diff.name, EMPTY)
                continue
            sizes.store(diff.name, _diff_size(diff, self._tables, rows))
            tables.add(diff.table)
            active.add(diff.name)
        return active

    def _changed(self, sizes: SizeEstimates, active: Collection[str]) -> dict[str, float]:
        """The rows that change, by kept relation."""
        changed: dict[str, float] = {}
        for apply in self._script.applies():
            if apply.diff in active:
                rows = sizes.stored(apply.diff).rows
                changed[apply.target] = changed.get(apply.target, 0.0) + rows
        return changed


@dataclass(frozen=True)
class _StatementWork:
    """A statement of a script, with what its query tells whatever changes."""

    name: str
    query: Node

    @cached_property
    def _operators(self) -> tuple[Node, ...]:
        return tuple(walk(self.query))

    @cached_property
    def stored(self) -> tuple[Stored, ...]:
        """The diffs, caches and earlier results that it reads."""
        return tuple(node for node in self._operators if isinstance(node, Stored))

    @cached_property
    def _nested(self) -> frozenset[Node]:
        """The inputs of joins."""
        joins = (node for node in self._operators if isinstance(node, Join))
        return frozenset(child for join in joins for child in inputs_of(join))

    @cached_property
    def _reads(self) -> tuple[tuple[Scan | Stored, int], ...]:
        """The tables and stored relations that it reads, each with the number of columns."""
        needs = needed_columns(self.query, never_none=True).items()
        return tuple((n, len(columns)) for n, columns in needs if isinstance(n, Scan | Stored))

    @cached_property
    def _compared(self) -> frozenset[str]:
        """The columns that its joins compare."""
        joins = (n for n in self._operators if isinstance(n, Join | SemiJoin | AntiJoin))
        return frozenset[str]().union(*(columns_of(each.condition) for each in joins))

    def operator_rows(self, sizes: SizeEstimates, active: Collection[str]) -> Iterator[float]:
        """The rows of each operator that changes pass through; nested joins are one operator. What
        changes are only taken away from, or put beside, is read and goes through no operator."""
        changing: dict[Node, float] = {}
        for node in self._operators:
            rows = self._changing_rows(node, sizes, active, changing)
            if rows is None:
                continue
            changing[node] = rows
            if isinstance(node, Join):
                yield JoinBlock.of(node).intermediate_rows(sizes) if node not in self._nested else 0
            elif not isinstance(node, Stored):
                yield rows

    def _changing_rows(
        self,
        node: Node,
        sizes: SizeEstimates,
        active: Collection[str],
        changing: Mapping[Node, float],
    ) -> float | None:
        """The rows of an operator that come from changes, given those below it; None if none do."""
        below = [changing[each] for each in inputs_of(node) if each in changing]
        match node:
            case Stored():
                return sizes.of(node).rows if node.name in active else None
            case AntiJoin():
                return changing.get(node.left)
            case UnionAll() if below:
                return sum(below)
            case Join() | SemiJoin() if below:
                return sizes.of(node).rows
        return min(sizes.of(node).rows, sum(below)) if below else None

    def values_read(
        self, sizes: SizeEstimates, active: Collection[str], keys: float
    ) -> Iterator[float]:
        """The values of tables and caches that it reads to find the rows of some keys: caches are
        sorted by what is looked up, tables by their keys."""
        for node, columns in self._reads:
            rows = sizes.of(node).rows
            if isinstance(node, Scan):
                first = f"{node.alias}.{node.table.key[0]}" if node.table.key else ""
                matches = min(rows, keys * GROUP_ROWS) if first in self._compared else rows
                yield matches * columns
            elif node.name not in active:
                yield min(rows, keys * GROUP_ROWS) * columns


def _kept_sizes(script: Script, tables: Mapping[str, Size]) -> dict[str, Size]:
    """The sizes of a script's caches and of its view."""
    sizes, kept = SizeEstimates(tables), dict[str, Size]()
    for each in script.materialized:
        kept[each.name] = sizes.of(each.definition)
        sizes.store(each.name, kept[each.name])
    return kept


def _diff_size(diff: BaseDiff, tables: Mapping[str, Size], rows: float) -> Size:
    """A diff of a table, whose values are spread as those of the table."""
    table, schema = tables.get(diff.table, Size(1.0)), diff.schema
    names = {**{x: x for x in schema.ids}, **{pre(x): x for x in schema.before}}
    names |= {post(x): x for x in schema.after}
    spreads = {name: table.spread(column) for name, column in names.items()}
    return Size(rows, spreads, frozenset([frozenset(schema.ids)]))
