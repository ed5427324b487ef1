"""Column mapping of Delta tables: what columns are called in files, where the log names them anew.

A column that is renamed keeps its name in files, which it has for ever, and its number. Files of a
table with the mode `name` are read by these names, those of the mode `id` by the numbers of their
columns, whatever these are called there.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake import DeltaTable

from viewkeep.query.types.data_types import Field, Type

MODE = "delta.columnMapping.mode"
_NAME, _NUMBER = "delta.columnMapping.physicalName", "delta.columnMapping.id"
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class StoredColumn:
    """What a column is called in files, its number, and the same of the parts of its type: the
    element of an array, the key and the value of a map, the fields of a struct.

    `name` is that of the log for parts which files do not name: elements, keys and values.
    """

    name: str
    number: int | None = None
    parts: tuple["StoredColumn", ...] = ()

    @property
    def names(self) -> tuple[Any, ...]:
        """The names in files, of the column and of its parts."""
        return (self.name, *(each.names for each in self.parts))


@dataclass(frozen=True)
class ColumnMapping:
    """The columns of a version as files have them; `by_number` where names in files are free."""

    columns: Mapping[str, StoredColumn]
    by_number: bool = False

    def stored(self, name: str) -> StoredColumn:
        """What a column of the table is in files."""
        return self.columns.get(name) or StoredColumn(name)

    def names_in(self, schema: pa.Schema) -> dict[str, str]:
        """The columns of a file by their names in the table, of those that it has.

        >>> price = pa.field("col-7", pa.int32(), metadata={"PARQUET:field_id": "2"})
        >>> ColumnMapping({"price": StoredColumn("col-7", 2)}).names_in(pa.schema([price]))
        {'price': 'col-7'}
        """
        if self.by_number:
            numbers = {number_of(each): each.name for each in schema}
            places = {name: numbers.get(each.number) for name, each in self.columns.items()}
        else:
            present = set(schema.names)
            places = {n: c.name if c.name in present else None for n, c in self.columns.items()}
        return {name: place for name, place in places.items() if place is not None}

    def by_table_name(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What the log tells of columns by their names in files, by those in the table."""
        return {n: values[c.name] for n, c in self.columns.items() if c.name in values}

    def stored_field(self, field: Field) -> Field:
        """A column as files have it: under the names there, of the type in the table."""
        stored = self.stored(field.name)
        return Field(stored.name, _stored_type(field.type, stored.parts), field.nullable)

    def renames_parts(self, fields: Iterable[Field]) -> bool:
        """Whether parts of columns have other names in files."""
        return any(self.stored_field(each).type != each.type for each in fields)


def _stored_type(kind: Type, parts: Sequence[StoredColumn]) -> Type:
    if not parts:
        return kind
    pairs = zip(kind.parts, parts, strict=True)
    return replace(
        kind, parts=tuple(Field(s.name, _stored_type(part.type, s.parts)) for part, s in pairs)
    )


def number_of(field: pa.Field) -> int | None:
    """The number of a column in a Parquet file, if it has one."""
    number = (field.metadata or {}).get(_FIELD_ID)
    return None if number is None else int(number)


def column_mapping(table: DeltaTable) -> ColumnMapping | None:
    """The mapping of an open version; None if files name columns as the log does."""
    mode = table.metadata().configuration.get(MODE, "none")
    if mode == "none":
        return None
    fields = json.loads(table.schema().to_json())["fields"]
    return ColumnMapping(_stored_columns(fields), mode == "id")


def _stored_columns(fields: Iterable[Mapping[str, Any]]) -> dict[str, StoredColumn]:
    return {each["name"]: _stored_column(each) for each in fields}


def _stored_column(field: Mapping[str, Any]) -> StoredColumn:
    about = field.get("metadata") or {}
    number = about.get(_NUMBER)
    return StoredColumn(
        about.get(_NAME, field["name"]),
        None if number is None else int(number),
        _stored_parts(field["type"]),
    )


def _stored_parts(kind: Any) -> tuple[StoredColumn, ...]:
    match kind:
        case {"type": "struct", "fields": fields}:
            return tuple(map(_stored_column, fields))
        case {"type": "array", "elementType": element}:
            return (StoredColumn("element", None, _stored_parts(element)),)
        case {"type": "map", "keyType": key, "valueType": value}:
            parts = {"key": key, "value": value}
            return tuple(StoredColumn(n, None, _stored_parts(each)) for n, each in parts.items())
    return ()
