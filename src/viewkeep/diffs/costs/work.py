"""How much a delta script has to do for so many changes of tables, by estimates of sizes."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from viewkeep.diffs.costs.sizes import JoinBlock, Size, SizeEstimates
from viewkeep.diffs.model import post, pre
from viewkeep.diffs.script import BaseDiff, Compute, Script
from viewkeep.query.algebra import AntiJoin, Join, Node, Scan, SemiJoin, Stored
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.expressions import columns_of
from viewkeep.query.traversal import children, walk

GROUP_ROWS = 5_000
"""The rows that are read to find those of one key."""


@dataclass(frozen=True)
class Work:
    """Statements that run, rows of all their operators, values of tables and caches that are read,
    and rows that change, by kept relation."""

    statements: int = 0
    rows: float = 0.0
    values: float = 0.0
    changed: Mapping[str, float] = field(default_factory=dict)


def kept_sizes(script: Script, tables: Mapping[str, Size]) -> dict[str, Size]:
    """The sizes of a script's caches and of its view."""
    sizes, kept = SizeEstimates(tables), {}
    for each in script.materialized:
        kept[each.name] = sizes.of(each.definition)
        sizes.store(each.name, kept[each.name])
    return kept


def work_of(script: Script, tables: Mapping[str, Size], changes: Mapping[str, float]) -> Work:
    """The work for so many changed rows of tables: inserts, updates and deletes alike."""
    sizes = SizeEstimates(tables)
    for name, size in kept_sizes(script, tables).items():
        sizes.store(name, size)
    active = set[str]()
    for diff in script.diffs:
        alike = sum(each.table == diff.table for each in script.diffs)
        rows = changes.get(diff.table, 0.0) / alike
        sizes.store(diff.name, _diff_size(diff, tables, rows))
        active |= {diff.name} if rows else set()
    statements, all_rows, values = 0, 0.0, 0.0
    for each in script.computes():
        deltas = [n for n in walk(each.query) if isinstance(n, Stored) and n.name in active]
        if not deltas:
            continue
        result, keys = sizes.of(each.query), max(sizes.of(delta).rows for delta in deltas)
        statements += 1
        all_rows += sum(_rows_through_operators(each.query, sizes, active))
        values += sum(_values_read(each, sizes, active, keys))
        sizes.store(each.name, result)
        active.add(each.name)
    changed: dict[str, float] = {}
    for apply in script.applies():
        if apply.diff in active:
            rows = sizes.stored(apply.diff).rows
            changed[apply.target] = changed.get(apply.target, 0.0) + rows
    return Work(statements, all_rows, values, changed)


def _diff_size(diff: BaseDiff, tables: Mapping[str, Size], rows: float) -> Size:
    """A diff of a table, whose values are spread as those of the table."""
    table, schema = tables.get(diff.table, Size(1.0)), diff.schema
    names = {**{x: x for x in schema.ids}, **{pre(x): x for x in schema.before}}
    names |= {post(x): x for x in schema.after}
    spreads = {name: table.spread(column) for name, column in names.items()}
    return Size(rows, spreads, frozenset([frozenset(schema.ids)]))


def _rows_through_operators(
    query: Node, sizes: SizeEstimates, active: Collection[str]
) -> Iterator[float]:
    """The rows of each operator that changes pass through; nested joins are one operator."""
    nested = {c for n in walk(query) if isinstance(n, Join) for c in children(n)}
    changing = set[Node]()
    for node in walk(query):
        if isinstance(node, Stored) and node.name in active:
            changing.add(node)
        if changing.isdisjoint(children(node)):
            continue
        changing.add(node)
        if not isinstance(node, Join):
            yield sizes.of(node).rows
        elif node not in nested:
            yield JoinBlock.of(node).intermediate_rows(sizes)


def _values_read(
    each: Compute, sizes: SizeEstimates, active: Collection[str], keys: float
) -> Iterator[float]:
    """The values of tables and caches that a statement reads, to find the rows of some keys: caches
    are sorted by what is looked up, tables by their keys."""
    compared = _columns_compared(each.query)
    for node, columns in needed_columns(each.query, never_none=True).items():
        rows = sizes.of(node).rows
        if isinstance(node, Scan):
            first = f"{node.alias}.{node.table.key[0]}" if node.table.key else ""
            yield (min(rows, keys * GROUP_ROWS) if first in compared else rows) * len(columns)
        elif isinstance(node, Stored) and node.name not in active:
            yield min(rows, keys * GROUP_ROWS) * len(columns)


def _columns_compared(query: Node) -> frozenset[str]:
    conditions = (n.condition for n in walk(query) if isinstance(n, Join | SemiJoin | AntiJoin))
    return frozenset[str]().union(*map(columns_of, conditions))
