"""Rows of a declared table as Arrow tables, and back.

Timestamps are moments: in Arrow with the time zone UTC, in rows as naive times in UTC, which is
how `changes` compares them.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes import converter
from viewkeep.query.types.data_types import (
    ARRAY,
    DATE,
    INTEGRAL,
    MAP,
    STRING,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Field,
    Type,
)

Row = tuple[Any, ...]
Form = Callable[[Any], Any]

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
    "timestamp_ntz": pa.timestamp("us"),
}
_ARROW_OF_NULL = pa.int32()
"""Columns of bare NULLs, as DuckDB has them: Parquet and Delta have no type without values."""

_NAMES = {kind: name for name, kind in _ARROW.items()}
_SAME = {
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type of a type.

    >>> from viewkeep.query.types.data_types import DECIMAL
    >>> arrow_type(DECIMAL(10, 2))
    Decimal128Type(decimal128(10, 2))
    """
    if type_.name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    parts = [pa.field(part.name, arrow_type(part.type)) for part in type_.parts]
    if type_.name == "array":
        return pa.list_(parts[0])
    if type_.name == "map":
        return pa.map_(parts[0].type, parts[1])
    if type_.name == "struct":
        return pa.struct(parts)
    return _ARROW_OF_NULL if type_.name == "void" else _ARROW[type_.name]


def declared_type(kind: pa.DataType) -> Type | None:
    """The type of an Arrow column, or None if views cannot read it."""
    if pa.types.is_decimal128(kind):
        return Type("decimal", kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
    if pa.types.is_nested(kind):
        return _declared_nested(kind)
    name = _NAMES.get(kind) or _SAME.get(kind)
    return None if name is None else Type(name)


def _declared_nested(kind: pa.DataType) -> Type | None:
    kinds = pa.types
    if kinds.is_map(kind):
        key, value = declared_type(kind.key_type), declared_type(kind.item_type)
        return None if key is None or value is None else MAP(key, value)
    if kinds.is_struct(kind):
        fields = declared_fields(pa.schema(list(kind)))
        return STRUCT(*fields) if len(fields) == kind.num_fields else None
    element = declared_type(kind.value_type) if hasattr(kind, "value_type") else None
    return None if element is None else ARRAY(element)


def has_bounds(type_: Type | None) -> bool:
    """Whether the least and greatest values of a column mean the same to all engines."""
    return type_ in (*INTEGRAL, STRING, DATE)


def arrow_schema(fields: Iterable[Field]) -> pa.Schema:
    """Columns as Arrow declares them."""
    return pa.schema([pa.field(f.name, arrow_type(f.type), f.nullable) for f in fields])


def declared_fields(schema: pa.Schema) -> tuple[Field, ...]:
    """Arrow columns as declared ones; those of types that views cannot read are left out."""
    types = ((f, declared_type(f.type)) for f in schema)
    return tuple(Field(f.name, type_, f.nullable) for f, type_ in types if type_ is not None)


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
    thaw = _form_of_arrow(type_)
    thawed = values if thaw is None else [None if v is None else thaw(v) for v in values]
    return pa.array(thawed, arrow_type(type_))


def to_rows(table: pa.Table) -> list[Row]:
    """The rows of a table, in its columns' order."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(column_values(column) for column in table.columns), strict=True))


def column_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column in the form of rows."""
    values: list[Any] = column.to_pylist()
    freeze = _form_of_rows(column.type)
    return values if freeze is None else [None if v is None else freeze(v) for v in values]


def _form_of_rows(kind: pa.DataType) -> Form | None:
    """From the Python values of Arrow to those of rows; None where they are the same."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _time_in_utc
    type_ = declared_type(kind) if pa.types.is_nested(kind) else None
    return None if type_ is None else converter(type_)


def _form_of_arrow(type_: Type) -> Form | None:
    """From the Python values of rows to what Arrow takes; None where they are the same."""
    if type_.name == "timestamp":
        return _as_moment
    parts = [_form_or_null(_form_of_arrow(part.type)) for part in type_.parts]
    match type_.name:
        case "array":
            return lambda value: [parts[0](each) for each in value]
        case "map":
            return lambda value: [(parts[0](key), parts[1](each)) for key, each in value]
        case "struct":
            names = [part.name for part in type_.parts]
            return lambda value: {
                n: thaw(v) for n, thaw, v in zip(names, parts, value, strict=True)
            }
    return None


def _form_or_null(form: Form | None) -> Form:
    return lambda value: value if value is None or form is None else form(value)


def _time_in_utc(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(tzinfo=None)


def _as_moment(value: datetime) -> datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
