"""How values are spread over the rows of a table: counted in all row groups, or in some."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.stored_columns import file_names
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import Snapshot

MOST_ROWS = 2_000_000
"""Of a table with more rows, some row groups are looked at."""


@dataclass(frozen=True)
class ValueCounts:
    """About how many values a column has, and how likely two of its rows have the same one."""

    distinct: float
    agreement: float


def value_counts(
    table: LakeTable, snapshot: Snapshot, columns: Iterable[str]
) -> dict[str, ValueCounts]:
    """The spread of columns whose values can be counted; deleted rows of files count as well."""
    partitioned = _counts_of_partitions(snapshot)
    stored = {each.name for each in snapshot.fields} - partitioned.keys()
    names = sorted(stored.intersection(columns))
    counts_by_column = {name: partitioned[name] for name in columns if name in partitioned}
    rows = _sampled_columns(table, snapshot, names) if names and snapshot.rows else pa.table({})
    for name in rows.column_names:
        try:
            counts = pc.value_counts(rows[name]).field("counts").to_numpy()
        except pa.ArrowNotImplementedError:  # of values inside of values
            continue
        counts_by_column[name] = _estimated_counts(counts.astype(np.float64), snapshot.rows)
    return counts_by_column


def _sampled_columns(table: LakeTable, snapshot: Snapshot, names: Sequence[str]) -> pa.Table:
    """Some columns of row groups that lie evenly apart."""
    step = -(-snapshot.rows // MOST_ROWS)
    folder, parts, place = ParquetFolder(table), [], 0
    for each in snapshot.files:
        with folder.opened(each) as (file, _):
            own = file_names(each, file.schema_arrow)
            groups = [n for n in range(file.num_row_groups) if (place + n) % step == 0]
            place += file.num_row_groups
            columns = [own[name] for name in names if name in own]
            if groups and len(columns) == len(names):  # older files may lack a column
                rows = file.read_row_groups(groups, columns=columns)
                parts.append(rows.select(columns).rename_columns(list(names)))
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _estimated_counts(counts: np.ndarray, rows: int) -> ValueCounts:
    """The spread in a table of so many rows, of which some were counted: values seen once stand
    for others that were not seen (the estimator of Charikar and others)."""
    seen = float(counts.sum())
    once = float((counts == 1).sum())
    distinct = min(float(rows), sqrt(max(rows, seen) / seen) * once + len(counts) - once)
    if seen >= rows:
        agreement = float((counts**2).sum()) / seen**2
    else:
        agreement = float((counts * (counts - 1)).sum()) / max(1.0, seen * (seen - 1))
    return ValueCounts(distinct, max(agreement, 1 / max(1.0, distinct)))


def _counts_of_partitions(snapshot: Snapshot) -> Mapping[str, ValueCounts]:
    counts_by_column = {}
    for name in snapshot.partitions:
        rows: dict[object, int] = {}
        for each in snapshot.files:
            value = each.partition.get(name)
            rows[value] = rows.get(value, 0) + each.rows
        counts = np.array([n for n in rows.values() if n], np.float64)
        if len(counts):
            counts_by_column[name] = _estimated_counts(counts, int(counts.sum()))
    return counts_by_column
