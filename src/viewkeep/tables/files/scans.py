"""What storage asks of an engine: work over files that are too large for the driver's memory."""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.query.tables import Table
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import StoredRows

SIDE = "#side"
"""The column that tells where an unpaired row stands: "old" or "new"."""
FILE, ROW = "#file", "#row"


class Scans(Protocol):
    """Files of Delta tables, read and written by an engine; `duckdb/` and `spark/` implement it."""

    def rows_near(self, rows: StoredRows, keys: pa.Table) -> pa.Table:
        """The rows that have one of the keys, and perhaps some others."""

    def write_without(self, rows: StoredRows, keys: pa.Table) -> list[DataFile]:
        """Write the rows that have none of the keys into new files of their table."""

    def row_places(self, rows: StoredRows, keys: pa.Table) -> pa.Table:
        """The places of the rows that have one of the keys, also of deleted ones: the number of
        the file among `rows.files` as `FILE`, that of the row in it as `ROW`, and the keys."""

    def unpaired(self, old: StoredRows, new: StoredRows, most: int | None) -> pa.Table:
        """The rows of each side that the other one lacks, with copies, and their `SIDE`; with
        `most`, no more than so many."""

    def count_copies(self, rows: StoredRows, values: pa.Table) -> pa.Table:
        """The rows that are one of the values, once each, and their number as `COPY`."""

    def repeated_key(self, rows: StoredRows, key: Sequence[str]) -> tuple[Any, ...] | None:
        """A key that two rows have, if there is one."""

    def null_columns(self, rows: StoredRows, names: Sequence[str]) -> list[str]:
        """Those of the columns that have a NULL."""

    def write_frame(
        self, name: str, declared: Table, frame: Any, table: LakeTable
    ) -> list[DataFile] | None:
        """Write the rows of a user's Spark DataFrame, checked, into files of a new table; None if
        they are to be brought to the driver."""
