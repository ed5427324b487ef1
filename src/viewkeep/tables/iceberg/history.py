"""The snapshots of an Iceberg table as versions, and the files of each.

A version is the sequence number of a snapshot of the main branch. A number that no snapshot of the
branch has, since a commit to another branch took it, is the version before it once more.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.failures import (
    MissingEntryError,
    StorageError,
    UnsupportedTableError,
    error_text,
)
from viewkeep.tables.iceberg.columns import bounded_columns, declared_columns, numbered_columns
from viewkeep.tables.iceberg.place import SCHEME
from viewkeep.tables.log.column_mapping import number_of
from viewkeep.tables.log.durable import local_path
from viewkeep.tables.log.entries import Commit
from viewkeep.tables.log.snapshots import DataFile, Snapshot

HARMLESS = "OPTIMIZE"
"""What the log of a Delta table calls a commit that leaves rows as they are."""
_IMPORTED = "schema.name-mapping.default"
"""The property of tables that have taken in files of others."""
_NUMBERED: set[str] = set()
"""Files of such tables whose columns have numbers."""


@dataclass(frozen=True)
class History:
    """A table as it is now, and the snapshots of its main branch, newest first."""

    place: str
    table: Any
    snapshots: tuple[Any, ...]

    @property
    def newest(self) -> int:
        """The newest version; 0 if nothing was ever written."""
        return int(self.snapshots[0].sequence_number) if self.snapshots else 0

    def at(self, version: int) -> Any:
        """The snapshot of a version; None for the empty table before the first."""
        if version > self.newest:
            raise StorageError(
                f"{self.place}: there is no version {version}, the newest is {self.newest}"
            )
        for each in self.snapshots:
            if each.sequence_number <= version:
                return each
        if self.snapshots and self.snapshots[-1].parent_snapshot_id is not None:
            raise MissingEntryError(f"{self.place}: the snapshot of version {version} has expired")
        return None

    def commit(self, version: int) -> Commit:
        """What made a version."""
        made = self.at(version)
        self.at(version - 1)  # changes since it are asked for
        if made is None or made.sequence_number != version:
            return Commit(version, 0 if made is None else made.timestamp_ms, HARMLESS, None)
        operation = made.summary.operation.value if made.summary is not None else ""
        name = HARMLESS if operation == "replace" else operation.upper()
        return Commit(version, made.timestamp_ms, name, None)

    def schema(self, version: int) -> Any:
        """The columns that a version was written with."""
        snapshot, metadata = self.at(version), self.table.metadata
        number = None if snapshot is None else snapshot.schema_id
        return metadata.schema() if number is None else metadata.schema_by_id(number)

    def snapshot(self, version: int) -> Snapshot:
        """The columns and files of a version."""
        schema, snapshot = self.schema(version), self.at(version)
        mapping, bounded = numbered_columns(schema), bounded_columns(schema)
        with iceberg_errors(self.place):
            tasks = (
                []
                if snapshot is None
                else list(self.table.scan(snapshot_id=snapshot.snapshot_id).plan_files())
            )
        files = tuple(
            _data_file(self.place, task, bounded, mapping)
            for task in sorted(tasks, key=lambda each: str(each.file.file_path))
        )
        if _IMPORTED in self.table.metadata.properties:
            for each in files:
                _check_numbers(self.place, each)
        fields, identity = declared_columns(self.place, schema), str(self.table.metadata.table_uuid)
        is_wide = len(self.table.metadata.schemas) > 1
        return Snapshot(
            *(self.place, version, fields, files, (), identity), mapping=mapping, is_widened=is_wide
        )


def read_history(place: str) -> History:
    """The table at a place: `iceberg://CATALOG/NAMESPACE.TABLE`, as pyiceberg is configured, or
    `iceberg:///FILE`, a metadata file or the folder of a table that has a version hint."""
    name, _, rest = place.removeprefix(SCHEME).partition("/")
    with iceberg_errors(place):
        if name:
            from pyiceberg.catalog import load_catalog

            table: Any = load_catalog(name).load_table(rest)
        else:
            from pyiceberg.table import StaticTable

            table = StaticTable.from_metadata(f"/{rest}")
    if table.metadata.format_version < 2:
        raise UnsupportedTableError(
            f"{place}: tables of format version 1 do not number their snapshots; upgrade it to 2"
        )
    chain, each = [], table.metadata.current_snapshot()
    while each is not None:
        chain.append(each)
        parent = each.parent_snapshot_id
        each = None if parent is None else table.metadata.snapshot_by_id(parent)
    return History(place, table, tuple(chain))


def _data_file(place: str, task: Any, bounded: dict[int, str], mapping: Any) -> DataFile:
    file = task.file
    if task.delete_files:
        raise UnsupportedTableError(
            f"{place}: rows of {file.file_path} are deleted by files of deletes (merge-on-read), "
            "which cannot be read here; let its writers use copy-on-write, and rewrite such files"
        )
    if file.file_format.value != "PARQUET":
        raise UnsupportedTableError(
            f"{place}: {file.file_path} is a file of {file.file_format.value}, and only Parquet is "
            "read here"
        )
    # Writers in Java name local files with one stroke.
    path = local_path(re.sub("^file:/+", "file:///", str(file.file_path)))
    if path is None:
        raise UnsupportedTableError(
            f"{place}: {file.file_path} is on an object store, and Iceberg tables are read from "
            "disks only"
        )

    def bounds(values: dict[int, bytes] | None) -> dict[str, int]:
        return {
            bounded[number]: int.from_bytes(value, "little", signed=True)
            for number, value in (values or {}).items()
            if number in bounded
        }

    return DataFile(
        quote(path), file.file_size_in_bytes, file.record_count, {},
        bounds(file.lower_bounds), bounds(file.upper_bounds), modified=0, mapping=mapping,
    )  # fmt: skip


def _check_numbers(place: str, file: DataFile) -> None:
    """Refuse a file of another writer, whose columns are known by their names only."""
    path = file.location("")
    if path not in _NUMBERED:
        with iceberg_errors(place):
            schema = pq.read_schema(path)
        if any(number_of(each) is None for each in schema):
            raise UnsupportedTableError(
                f"{place}: the columns of {path} have no numbers (it was taken in by add_files), "
                "so that they cannot be told apart here; rewrite the file"
            )
        _NUMBERED.add(path)


@contextmanager
def iceberg_errors(place: str) -> Iterator[None]:
    """Errors of pyiceberg, which have no class in common, as a `StorageError`."""
    try:
        yield
    except StorageError:
        raise
    except NotImplementedError as error:
        raise UnsupportedTableError(f"{place}: {error_text(error)}") from error
    except Exception as error:
        name = type(error).__name__
        raise StorageError(f"{place}: {error_text(error) or name}") from error
