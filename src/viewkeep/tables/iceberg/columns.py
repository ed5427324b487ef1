"""Columns of Iceberg tables: types, and the numbers by which files know them."""

from collections.abc import Iterable
from typing import Any

from pyiceberg import types as iceberg

from viewkeep.query.types.data_types import ARRAY, MAP, STRUCT, Field, Type, parse_type
from viewkeep.tables.failures import UnsupportedTableError
from viewkeep.tables.log.column_mapping import ColumnMapping, StoredColumn

_TYPES = {
    iceberg.BooleanType: "boolean",
    iceberg.IntegerType: "int",
    iceberg.LongType: "bigint",
    iceberg.FloatType: "float",
    iceberg.DoubleType: "double",
    iceberg.DateType: "date",
    iceberg.TimestamptzType: "timestamp",
    iceberg.TimestampType: "timestamp_ntz",
    iceberg.StringType: "string",
    iceberg.BinaryType: "binary",
}


def declared_columns(place: str, schema: Any) -> tuple[Field, ...]:
    """The columns of a schema; one that cannot be read is refused by its name."""
    columns = []
    for each in schema.fields:
        if getattr(each, "initial_default", None) is not None:
            raise UnsupportedTableError(
                f'{place}: column "{each.name}" has a default for rows from before it was added, '
                "which cannot be read here; write the table anew"
            )
        columns.append(
            Field(each.name, _type(place, each.name, each.field_type), not each.required)
        )
    return tuple(columns)


def _type(place: str, column: str, kind: Any) -> Type:
    match kind:
        case iceberg.DecimalType():
            return parse_type(f"decimal({kind.precision}, {kind.scale})")
        case iceberg.ListType():
            return ARRAY(_type(place, column, kind.element_type))
        case iceberg.MapType():
            key, value = (_type(place, column, e) for e in (kind.key_type, kind.value_type))
            return MAP(key, value)
        case iceberg.StructType():
            parts = (Field(e.name, _type(place, column, e.field_type)) for e in kind.fields)
            return STRUCT(*parts)
    if type(kind) not in _TYPES:
        raise UnsupportedTableError(
            f'{place}: column "{column}" has the type {kind}, which cannot be read here; drop it, '
            "or give it another type"
        )
    return parse_type(_TYPES[type(kind)])


def numbered_columns(schema: Any) -> ColumnMapping:
    """Files know columns by their numbers, whatever they were called when a file was written."""
    return ColumnMapping({e.name: _stored_column(e) for e in schema.fields}, by_number=True)


def _stored_column(field: Any) -> StoredColumn:
    return StoredColumn(field.name, field.field_id, _stored_parts(field.field_type))


def _stored_parts(kind: Any) -> tuple[StoredColumn, ...]:
    match kind:
        case iceberg.StructType():
            return tuple(map(_stored_column, kind.fields))
        case iceberg.ListType():
            return (StoredColumn("element", None, _stored_parts(kind.element_type)),)
        case iceberg.MapType():
            parts = {"key": kind.key_type, "value": kind.value_type}
            return tuple(StoredColumn(n, None, _stored_parts(each)) for n, each in parts.items())
    return ()


def bounded_columns(schema: Any) -> dict[int, str]:
    """The columns by number whose bounds are taken from the metadata: whole numbers."""
    whole: Iterable[type] = (iceberg.IntegerType, iceberg.LongType)
    return {e.field_id: e.name for e in schema.fields if type(e.field_type) in whole}
