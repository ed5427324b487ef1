"""Versions of Delta tables as values: their files, with what the log tells about them."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake import DeltaTable

from viewkeep.query.types.data_types import Field
from viewkeep.tables.log.column_mapping import ColumnMapping
from viewkeep.tables.log.deletion_vectors import DeletionVector


@dataclass(frozen=True)
class DataFile:
    """A file of a table: its path below the table's folder, and bounds of its columns.

    `rows` are those that are there: the others of the file are in its deletion vector. `mapping`
    tells what columns are called in the file, where that is not as in the table.
    """

    path: str
    size: int
    rows: int
    partition: Mapping[str, Any] = field(default_factory=dict)
    least: Mapping[str, Any] = field(default_factory=dict)
    greatest: Mapping[str, Any] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    modified: int = field(default_factory=lambda: int(time.time() * 1000))
    vector: DeletionVector | None = None
    mapping: ColumnMapping | None = None

    def location(self, uri: str) -> str:
        """Where it is; paths in the log are encoded, and may lead out of the table's folder.

        >>> DataFile("day=a%20b/1.parquet", 0, 0).location("/lake/parts")
        '/lake/parts/day=a b/1.parquet'
        """
        path = unquote(self.path)
        return path if "://" in path or path.startswith("/") else f"{uri}/{path}"

    @property
    def identity(self) -> str:
        """What tells it from other files, and from itself with other rows deleted."""
        return self.path if self.vector is None else f"{self.path}#{self.vector.identity}"

    @property
    def stored_rows(self) -> int:
        """Its rows, also those that are deleted."""
        return self.rows + (self.vector.rows if self.vector is not None else 0)

    def with_null_columns(self, names: Iterable[str]) -> "DataFile":
        """The file in a version with columns that it does not have: they are NULL in all rows."""
        return replace(self, nulls={**self.nulls, **dict.fromkeys(names, self.stored_rows)})

    def stats(self) -> str:
        """The statistics as Delta writes them; deleted rows count, and make bounds wide."""
        stats: dict[str, Any] = {
            "numRecords": self.stored_rows,
            "minValues": {name: _plain_value(value) for name, value in self.least.items()},
            "maxValues": {name: _plain_value(value) for name, value in self.greatest.items()},
            "nullCount": dict(self.nulls),
        }
        if self.vector is not None:
            stats["tightBounds"] = False
        return json.dumps(stats)


@dataclass(frozen=True)
class Snapshot:
    """One version of a table; `is_plain` if it asks nothing of writers but to add and remove files
    (`write_entry.is_plain`), `has_feed` if commits tell their changed rows, `has_vectors` if files
    may have deletion vectors, `mapping` if files call columns otherwise, `is_widened` if columns
    may have narrower types in files."""

    uri: str
    version: int
    fields: tuple[Field, ...]
    files: tuple[DataFile, ...]
    partitions: tuple[str, ...] = ()
    identity: str = ""
    is_plain: bool = False
    has_feed: bool = False
    has_vectors: bool = False
    mapping: ColumnMapping | None = None
    is_widened: bool = False

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(each.rows for each in self.files)

    @property
    def size(self) -> int:
        """How many bytes its files have."""
        return sum(each.size for each in self.files)

    @cached_property
    def identities(self) -> frozenset[str]:
        """What its files are told apart by."""
        return frozenset(each.identity for each in self.files)


def files_of(
    table: DeltaTable,
    vectors: Mapping[str, DeletionVector | None],
    mapping: ColumnMapping | None = None,
) -> tuple[DataFile, ...]:
    """The files of an open version, with their deletion vectors and the names of their columns."""
    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return tuple(_file_of_row(row, vectors.get(row["path"]), mapping) for row in rows)


def _file_of_row(
    row: Mapping[str, Any], vector: DeletionVector | None, mapping: ColumnMapping | None
) -> DataFile:
    def part(prefix: str) -> dict[str, Any]:
        return {n.removeprefix(prefix): v for n, v in row.items() if n.startswith(prefix)}

    def statistics(prefix: str) -> dict[str, Any]:
        """Unlike partitions, these are told by the names of columns in files."""
        values = part(prefix) if mapping is None else mapping.by_table_name(part(prefix))
        return {name: value for name, value in values.items() if value is not None}

    stored_rows = row["num_records"] if row["num_records"] is not None else -1
    return DataFile(
        row["path"],
        row["size_bytes"],
        stored_rows if vector is None else stored_rows - vector.rows,
        part("partition."),
        statistics("min."),
        statistics("max."),
        statistics("null_count."),
        row["modification_time"],
        vector,
        mapping,
    )


def _plain_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
