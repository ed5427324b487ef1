"""Rows that users give, in whatever form they have them, as Arrow tables with declared types."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.errors import SchemaError, did_you_mean
from viewkeep.query.tables import Table
from viewkeep.query.types import Field
from viewkeep.spark.rows import arrow_type


def given_rows(name: str, what: str, rows: Any, table: Table, needed: Sequence[str]) -> pa.Table:
    """The rows with the columns that they have, checked: `needed` are there, others are known.

    `rows` is a Spark or pandas DataFrame, an Arrow table, or a list of mappings or tuples; tuples
    have the columns of the table in order.
    """
    place = f'table "{name}", {what}'
    found = _as_arrow(place, rows, table, needed)
    _check_columns(place, found.column_names, table, needed)
    columns = [
        _cast(place, found[field.name], field)
        for field in table.columns
        if field.name in found.column_names
    ]
    names = [field.name for field in table.columns if field.name in found.column_names]
    return pa.Table.from_arrays(columns, names)


def _as_arrow(place: str, rows: Any, table: Table, needed: Sequence[str]) -> pa.Table:
    if rows is None:
        return pa.table({each: pa.array([], pa.null()) for each in needed})
    if isinstance(rows, pa.Table):
        return rows
    if hasattr(rows, "toArrow"):  # a DataFrame of Spark
        return rows.toArrow()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if hasattr(rows, "iterrows"):  # a DataFrame of pandas
        return pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping):
        return _listed(place, list(rows), table, needed)
    raise SchemaError(
        f"{place}: {type(rows).__name__} is no rows; "
        "give a DataFrame, an Arrow table, or a list of dicts or tuples"
    )


def _listed(place: str, rows: list[Any], table: Table, needed: Sequence[str]) -> pa.Table:
    if not rows:
        return _as_arrow(place, None, table, needed)
    if all(isinstance(row, Mapping) for row in rows):
        names = list(rows[0])
        if any(set(row) != set(names) for row in rows):
            raise SchemaError(f"{place}: all rows name the same columns; these do not")
        columns = [[row[name] for row in rows] for name in names]
    else:
        names = list(needed)
        if any(not isinstance(row, tuple | list) or len(row) != len(names) for row in rows):
            raise SchemaError(f"{place}: a row is a tuple of {len(names)}: ({', '.join(names)})")
        columns = [list(column) for column in zip(*rows, strict=True)]
    types = {field.name: field for field in table.columns}
    arrays = [_array(place, c, types.get(n)) for n, c in zip(names, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names)


def _array(place: str, values: list[Any], field: Field | None) -> pa.Array:
    try:
        wanted = arrow_type(field.type) if field is not None else None
        if wanted is not None and pa.types.is_timestamp(wanted):
            return pa.array(values)
        return pa.array(values, wanted)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        column = f'column "{field.name}" ({field.type})' if field else "a column"
        raise SchemaError(f"{place}: {column}: {error}") from error


def _check_columns(place: str, names: Iterable[str], table: Table, needed: Sequence[str]) -> None:
    names = list(names)
    for name in names:
        if name not in table.names:
            hint = did_you_mean(name, table.names)
            raise SchemaError(f'{place}: no column "{name}" ({", ".join(table.names)}){hint}')
    missing = [name for name in needed if name not in names]
    if missing:
        raise SchemaError(f"{place}: no column {', '.join(missing)}; give it")


def _cast(place: str, column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    wanted = arrow_type(field.type)
    if column.type == wanted:
        return column
    problem = f'{place}: column "{field.name}" is {field.type}, but {column.type} was given'
    if not _fits(column.type, wanted):
        raise SchemaError(f"{problem}; convert it first")
    try:
        if pa.types.is_timestamp(column.type) and column.type.tz is None:
            return pc.assume_timezone(column, "UTC").cast(wanted)
        return column.cast(wanted)
    except pa.ArrowException as error:
        raise SchemaError(f"{problem}: {error}") from error


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type can mean values of another; a cast still checks each of them."""
    kinds = pa.types
    if kinds.is_null(found):
        return True
    if kinds.is_integer(found):
        return bool(
            kinds.is_integer(wanted) or kinds.is_decimal(wanted) or kinds.is_floating(wanted)
        )
    same = (
        kinds.is_floating,
        kinds.is_decimal,
        kinds.is_timestamp,
        lambda kind: kind in (pa.string(), pa.large_string(), pa.string_view()),
        lambda kind: kind in (pa.binary(), pa.large_binary(), pa.binary_view()),
    )
    if any(is_kind(found) and is_kind(wanted) for is_kind in same):
        return True
    # pandas has no integers with NULLs, and makes floats of them.
    return bool(kinds.is_floating(found) and kinds.is_integer(wanted))
