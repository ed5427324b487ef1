"""Which rows have one of some keys, on the driver. NULL is a value of a key, and so is NaN."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.query.evaluate.order import normal
from viewkeep.tables.arrow_rows import column_values
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
        if _is_float_type(keys[name].type) or pa.types.is_nested(keys[name].type):
            continue  # Arrow takes 0.0 and -0.0 for different values, and looks no nested ones up
        values = keys[name].combine_chunks().cast(rows[name].type)
        mask = pc.is_in(rows[name], value_set=values)
        near = mask if near is None else pc.and_(near, mask)
    if near is None:
        return pa.array([True] * rows.num_rows, pa.bool_())
    return near.combine_chunks() if isinstance(near, pa.ChunkedArray) else near


def key_tuples(keys: pa.Table) -> list[Key]:
    """Keys as tuples that are equal where the keys are."""
    columns = [_key_values(column) for column in keys.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * keys.num_rows


def _key_values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_nested(column.type):
        return list(map(normal, column_values(column)))
    values: list[Any] = column.to_pylist()
    return list(map(normal, values)) if _is_float_type(column.type) else values


def may_hold(file: DataFile, keys: pa.Table) -> bool:
    """Whether a file can have one of the keys, as far as its bounds tell."""
    return bool(keys.num_rows) and all(
        _file_may_hold(file, name, keys[name]) for name in keys.column_names
    )


def _file_may_hold(file: DataFile, name: str, values: pa.ChunkedArray) -> bool:
    if name not in file.least or name not in file.nulls:
        return True
    if values.null_count and file.nulls[name]:
        return True
    least, greatest = file.least[name], file.greatest[name]
    return bool(_any_key_between(values.drop_null(), least, greatest))


def _any_key_between(values: pa.ChunkedArray, least: Any, greatest: Any) -> bool:
    low, high = pa.scalar(least, values.type), pa.scalar(greatest, values.type)
    inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return bool(pc.any(inside, min_count=0).as_py())


def without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows that have none of the keys."""
    return rows.filter(pc.invert(matches(rows, keys)))


def _is_float_type(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind))
