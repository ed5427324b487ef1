"""Which rows have one of some keys, on the driver. NULL is a value of a key, and so is NaN."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.log.delta import DataFile

Key = tuple[Any, ...]


def matches(rows: pa.Table, keys: pa.Table) -> pa.Array:
    """For each row, whether its columns named as those of `keys` are one of the keys.

    >>> rows = pa.table({"a": [1, 1, None], "b": [1, 2, 3]})
    >>> matches(rows, pa.table({"a": [1, None], "b": [2, 3]})).to_pylist()
    [False, True, True]
    """
    return pa.array(KeyIndex(keys).places(rows) >= 0)


def near_rows(rows: pa.Table, keys: pa.Table) -> pa.Array:
    """Whether each column for itself has one of the values; cheap, and often enough."""
    near = None
    for name in keys.column_names:
        if _is_float(keys[name].type):  # Arrow takes 0.0 and -0.0 for different values
            continue
        values = keys[name].combine_chunks().cast(rows[name].type)
        met = pc.is_in(rows[name], value_set=values)
        near = met if near is None else pc.and_(near, met)
    if near is None:
        return pa.array([True] * rows.num_rows, pa.bool_())
    return near.combine_chunks() if isinstance(near, pa.ChunkedArray) else near


def key_tuples(keys: pa.Table) -> list[Key]:
    """Keys as tuples that are equal where the keys are."""
    columns = [column.to_pylist() for column in keys.columns]
    floats = [_is_float(column.type) for column in keys.columns]
    if any(floats):
        columns = [
            ["NaN" if is_float and value != value else value for value in column]
            for column, is_float in zip(columns, floats, strict=True)
        ]
    return list(zip(*columns, strict=True)) if columns else [()] * keys.num_rows


def may_hold(file: DataFile, keys: pa.Table) -> bool:
    """Whether a file can have one of the keys, as far as its bounds tell."""
    return bool(keys.num_rows) and all(
        _may_hold(file, name, keys[name]) for name in keys.column_names
    )


def _may_hold(file: DataFile, name: str, values: pa.ChunkedArray) -> bool:
    if name not in file.least or name not in file.nulls:
        return True
    if values.null_count and file.nulls[name]:
        return True
    least, greatest = file.least[name], file.greatest[name]
    return bool(_any_between(values.drop_null(), least, greatest))


def _any_between(values: pa.ChunkedArray, least: Any, greatest: Any) -> bool:
    low, high = pa.scalar(least, values.type), pa.scalar(greatest, values.type)
    inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return bool(pc.any(inside, min_count=0).as_py())


def without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows that have none of the keys."""
    return rows.filter(pc.invert(matches(rows, keys)))


def _is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind))
