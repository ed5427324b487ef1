"""The changes of tables as the diffs that a script reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes import ChangeBatch, delete_columns, insert_columns, update_columns
from viewkeep.diffs.model import DELETE, INSERT, UPDATE, post, pre
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.diffs.schemas import base_diffs, update_sets
from viewkeep.query.algebra import Scan, walk
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_arrow

Kinds = dict[str, list[tuple[str, frozenset[str]]]]
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Inputs:
    """The kinds of changes that concern a view, and the columns of each diff by its name."""

    kinds: Kinds
    diffs: Mapping[str, tuple[Table, Columns]]

    def tables(self) -> dict[str, pa.Table]:
        """The diffs as Arrow tables."""
        return {name: _diff(*diff) for name, diff in self.diffs.items()}


def diff_inputs(plan: IdPlan, batches: Mapping[str, ChangeBatch]) -> Inputs:
    """What a script for just these changes reads."""
    read = {node.name for node in walk(plan.root) if isinstance(node, Scan)}
    found = [
        (name, kind, changed, columns)
        for name, batch in batches.items()
        if name in read
        for kind, changed, columns in _parts(plan, name, batch)
    ]
    kinds: Kinds = {}
    for name, kind, changed, _ in found:
        kinds.setdefault(name, []).append((kind, changed))
    named = zip(base_diffs(plan, kinds), found, strict=True)
    diffs = {diff.name: (batches[name].table, columns) for diff, (name, _, _, columns) in named}
    return Inputs(kinds, diffs)


def _parts(
    plan: IdPlan, name: str, batch: ChangeBatch
) -> Iterable[tuple[str, frozenset[str], Columns]]:
    nothing = frozenset[str]()
    if batch.inserts:
        yield INSERT, nothing, insert_columns(batch.table, batch.inserts)
    if batch.deletes:
        yield DELETE, nothing, delete_columns(batch.table, batch.deletes)
    for changed, updates in batch.by_changed(update_sets(plan, name)).items():
        yield UPDATE, changed, update_columns(batch.table, updates)


def _diff(table: Table, columns: Columns) -> pa.Table:
    typed = {name: f for f in table.columns for name in (f.name, pre(f.name), post(f.name))}
    fields = [replace(typed[name], name=name) for name in columns]
    return to_arrow(fields, list(zip(*columns.values(), strict=True)))
