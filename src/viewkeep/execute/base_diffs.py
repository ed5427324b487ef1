"""The changes of tables as the diffs that a script reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.model import DELETE, INSERT, UPDATE, post, pre
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.diffs.schemas import base_diffs, update_sets
from viewkeep.query.algebra import Scan
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk
from viewkeep.tables.table_changes import TableChanges

Kinds = dict[str, list[tuple[str, frozenset[str]]]]


MOST_SETS = 1000
_SETS: dict[tuple[int, str], tuple[IdPlan, list[frozenset[str]]]] = {}


@dataclass(frozen=True)
class BaseDiffs:
    """The kinds of changes that concern a view, and the rows of each diff by its name."""

    kinds: Kinds
    diffs: Mapping[str, pa.Table]


def diff_inputs(plan: IdPlan, changes: Mapping[str, TableChanges]) -> BaseDiffs:
    """What a script for just these changes reads."""
    read = {node.name for node in walk(plan.root) if isinstance(node, Scan)}
    parts = [
        (name, kind, changed, rows)
        for name, each in changes.items()
        if name in read
        for kind, changed, rows in _diff_parts(plan, name, each)
    ]
    kinds: Kinds = {}
    for name, kind, changed, _ in parts:
        kinds.setdefault(name, []).append((kind, changed))
    named_rows = zip(base_diffs(plan, kinds), parts, strict=True)
    return BaseDiffs(kinds, {diff.name: rows for diff, (_, _, _, rows) in named_rows})


def _diff_parts(
    plan: IdPlan, name: str, changes: TableChanges
) -> Iterable[tuple[str, frozenset[str], pa.Table]]:
    table, nothing = changes.table, frozenset[str]()
    if changes.inserts.num_rows:
        yield INSERT, nothing, diff_rows(table, None, changes.inserts)
    if changes.deletes.num_rows:
        yield DELETE, nothing, diff_rows(table, changes.deletes, None)
    for changed, (before, after) in changes.by_changed(_plan_update_sets(plan, name)).items():
        yield UPDATE, changed, diff_rows(table, before, after)


def _plan_update_sets(plan: IdPlan, table: str) -> list[frozenset[str]]:
    """The update sets of a plan, found once: a view keeps its plan."""
    entry = _SETS.get((id(plan), table))
    if entry is None or entry[0] is not plan:
        if len(_SETS) >= MOST_SETS:
            _SETS.clear()
        entry = _SETS[id(plan), table] = plan, update_sets(plan, table)
    return entry[1]


def diff_rows(table: Table, before: pa.Table | None, after: pa.Table | None) -> pa.Table:
    """The rows of a diff of a base table: the key, then the values before and after."""
    others = [name for name in table.names if name not in table.key]
    columns = {
        name: rows[name] for rows in (before, after) if rows is not None for name in table.key
    }
    if before is not None:
        columns |= {pre(name): before[name] for name in others}
    if after is not None:
        columns |= {post(name): after[name] for name in others}
    return pa.table(columns)
