"""Rows of tables as values that any engine can read: files of a version, perhaps overlaid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.query.types.data_types import Field
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import DataFile, Snapshot
from viewkeep.tables.table_changes import TableChanges


@dataclass(frozen=True)
class StoredRows:
    """The rows of some files of one version; `names` maps names of columns to the stored ones.

    `changes` are those since the version before, of a script that reads both.
    """

    table: LakeTable
    snapshot: Snapshot
    files: Sequence[DataFile]
    names: Mapping[str, str]
    changes: TableChanges | None = None

    @staticmethod
    def whole(table: LakeTable, snapshot: Snapshot) -> "StoredRows":
        """All rows of a version, under the names of its columns."""
        names = {field.name: field.name for field in snapshot.fields}
        return StoredRows(table, snapshot, snapshot.files, names)

    @property
    def fields(self) -> list[Field]:
        """The columns, under their names here."""
        fields_by_name = {field.name: field for field in self.snapshot.fields}
        return [Field(new, fields_by_name[old].type) for new, old in self.names.items()]

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(each.size for each in self.files)


@dataclass(frozen=True)
class OverlaidRows:
    """Stored rows but those whose IDs are in `covered`, and the rows of `live`."""

    base: StoredRows
    live: pa.Table
    covered: pa.Table

    @property
    def size(self) -> int:
        """The bytes of its files, and of the rows in memory."""
        return self.base.size + int(self.live.nbytes)


@dataclass(frozen=True)
class NumberedRows:
    """Stored rows, and as `COPY` the number of each among its equals, from 1."""

    base: StoredRows

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return self.base.size


Relation: TypeAlias = StoredRows | OverlaidRows | NumberedRows | pa.Table
"""Rows that a query reads; an Arrow table is a diff."""
