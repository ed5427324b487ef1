"""Rows of a declared table as Arrow tables, and back.

Timestamps are moments: in Arrow with the time zone UTC, in rows as naive times in UTC, which is
how `changes` compares them.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.query.types import DATE, INTEGRAL, STRING, Field, Type

Row = tuple[Any, ...]

_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
_NAMES = {kind: name for name, kind in _ARROW.items()}
_SAME = {pa.large_string(): "string", pa.string_view(): "string", pa.large_binary(): "binary"}


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type of a type.

    >>> from viewkeep.query.types import DECIMAL
    >>> arrow_type(DECIMAL(10, 2))
    Decimal128Type(decimal128(10, 2))
    """
    if type_.name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    return _ARROW[type_.name]


def declared_type(kind: pa.DataType) -> Type | None:
    """The type of an Arrow column, or None if views cannot read it."""
    if pa.types.is_decimal128(kind):
        return Type("decimal", kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return Type("timestamp")
    name = _NAMES.get(kind) or _SAME.get(kind)
    return None if name is None else Type(name)


def has_bounds(type_: Type | None) -> bool:
    """Whether the least and greatest values of a column mean the same to all engines."""
    return type_ in (*INTEGRAL, STRING, DATE)


def arrow_schema(fields: Iterable[Field]) -> pa.Schema:
    """Columns as Arrow declares them."""
    return pa.schema([pa.field(f.name, arrow_type(f.type), f.nullable) for f in fields])


def declared_fields(schema: pa.Schema) -> tuple[Field, ...]:
    """Arrow columns as declared ones; those of types that views cannot read are left out."""
    found = ((f, declared_type(f.type)) for f in schema)
    return tuple(Field(f.name, type_, f.nullable) for f, type_ in found if type_ is not None)


def to_arrow(fields: Sequence[Field], rows: Sequence[Row]) -> pa.Table:
    """Rows as a table with these columns.

    >>> fields = [Field("pid", Type("int")), Field("at", Type("timestamp"))]
    >>> to_rows(to_arrow(fields, [(1, datetime(2026, 1, 2))]))
    [(1, datetime.datetime(2026, 1, 2, 0, 0))]
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [arrow_column(f.type, column) for f, column in zip(fields, columns, strict=True)]
    return pa.Table.from_arrays(arrays, [field.name for field in fields])


def arrow_column(type_: Type, values: Iterable[Any]) -> pa.Array:
    """Values that fit a type as a column."""
    found = map(_as_moment, values) if type_.name == "timestamp" else values
    return pa.array(found, arrow_type(type_))


def to_rows(table: pa.Table) -> list[Row]:
    """The rows of a table, in its columns' order."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(_values(column) for column in table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return [value and value.astimezone(UTC).replace(tzinfo=None) for value in values]
    return values


def _as_moment(value: datetime | None) -> datetime | None:
    if value is None or value.tzinfo is not None:
        return value
    return value.replace(tzinfo=UTC)
