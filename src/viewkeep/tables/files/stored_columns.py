"""Columns of Parquet files as columns of their table: renamed, of wider types, or missing."""

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.log.column_mapping import StoredColumn, number_of
from viewkeep.tables.log.snapshots import DataFile


def file_names(each: DataFile, schema: pa.Schema) -> dict[str, str]:
    """The columns that a file has, by their names in the table."""
    if each.mapping is None:
        return {name: name for name in schema.names}
    return each.mapping.names_in(schema)


def conform(rows: pa.Table, schema: pa.Schema, each: DataFile) -> pa.Table:
    """Rows of a file with the columns of a schema; what the file does not have is NULL."""
    if not each.partition and each.mapping is None and rows.schema.equals(schema):
        is_same = rows.schema.equals(schema, check_metadata=True)
        return rows if is_same else pa.Table.from_arrays(rows.columns, schema=schema)
    names, columns = file_names(each, rows.schema), []
    for field in schema:
        if field.name in each.partition:
            value = each.partition[field.name]
            columns.append(pa.array([value] * rows.num_rows, field.type))
        elif field.name in names:
            columns.append(_table_column(rows[names[field.name]], field, each))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _table_column(column: pa.ChunkedArray, field: pa.Field, each: DataFile) -> pa.ChunkedArray:
    if each.mapping is None or not pa.types.is_nested(field.type):
        return column.cast(field.type)
    stored, by_number = each.mapping.stored(field.name), each.mapping.by_number
    chunks = [_nested(chunk, field.type, stored, by_number) for chunk in column.chunks]
    return pa.chunked_array(chunks, field.type)


def _nested(array: pa.Array, kind: pa.DataType, stored: StoredColumn, by_number: bool) -> pa.Array:
    """Values inside of values, whose parts have other names in the file."""
    if not pa.types.is_nested(kind):
        return array.cast(kind)
    if array.offset:
        array = array.take(pa.array(np.arange(len(array))))
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            [_part(array, f, s, by_number) for f, s in zip(kind, stored.parts, strict=True)],
            fields=list(kind),
            mask=nulls,
        )
    if pa.types.is_map(kind):
        parts = ((array.keys, kind.key_type), (array.items, kind.item_type))
        keys, items = (
            _nested(values, each, s, by_number)
            for (values, each), s in zip(parts, stored.parts, strict=True)
        )
        return pa.MapArray.from_arrays(array.offsets, keys, items, kind, mask=nulls)
    values = _nested(array.values, kind.value_type, stored.parts[0], by_number)
    return pa.ListArray.from_arrays(array.offsets, values, kind, mask=nulls)


def _part(array: pa.Array, field: pa.Field, stored: StoredColumn, by_number: bool) -> pa.Array:
    """A field of structs; NULL where the file does not have it."""
    for place, each in enumerate(array.type):
        if (number_of(each) == stored.number) if by_number else each.name == stored.name:
            return _nested(array.field(place), field.type, stored, by_number)
    return pa.nulls(len(array), field.type)
