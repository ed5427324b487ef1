"""Scans of storage, each by the engine that its bytes ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.query.tables import Table
from viewkeep.tables.files.scans import Scans
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import StoredRows


@dataclass(frozen=True)
class SizedScans:
    """Implements `tables.scans.Scans` by two of them: up to `limit` bytes, and beyond."""

    small: Scans
    large: Scans
    limit: int

    def _scans_by_size(self, *rows: StoredRows) -> Scans:
        return self.small if sum(each.size for each in rows) <= self.limit else self.large

    def rows_near(self, rows: StoredRows, keys: pa.Table) -> pa.Table:
        """The rows that have one of the keys, and perhaps some others."""
        return self._scans_by_size(rows).rows_near(rows, keys)

    def write_without(self, rows: StoredRows, keys: pa.Table) -> list[DataFile]:
        """Write the rows that have none of the keys into new files of their table."""
        return self._scans_by_size(rows).write_without(rows, keys)

    def row_places(self, rows: StoredRows, keys: pa.Table) -> pa.Table:
        """The places of the rows that have one of the keys."""
        return self._scans_by_size(rows).row_places(rows, keys)

    def unpaired(self, old: StoredRows, new: StoredRows, most: int | None) -> pa.Table:
        """The rows of each side that the other one lacks."""
        return self._scans_by_size(old, new).unpaired(old, new, most)

    def count_copies(self, rows: StoredRows, values: pa.Table) -> pa.Table:
        """The rows that are one of the values, once each, and their number."""
        return self._scans_by_size(rows).count_copies(rows, values)

    def repeated_key(self, rows: StoredRows, key: Sequence[str]) -> tuple[Any, ...] | None:
        """A key that two rows have, if there is one."""
        return self._scans_by_size(rows).repeated_key(rows, key)

    def null_columns(self, rows: StoredRows, names: Sequence[str]) -> list[str]:
        """Those of the columns that have a NULL."""
        return self._scans_by_size(rows).null_columns(rows, names)

    def write_frame(
        self, name: str, declared: Table, frame: Any, table: LakeTable
    ) -> list[DataFile] | None:
        """A DataFrame of Spark is written by Spark."""
        return self.large.write_frame(name, declared, frame, table)
