"""The Spark session of a user, which rows are handed to; loaded when there is one."""

import os
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.errors import ArgumentError
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.relations import StoredRows

_PART = r"(?:[A-Za-z_]\w*|`[^`]+`)"
_CATALOG_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{1,2}}")
"""`schema.table` or `catalog.schema.table`."""


@dataclass(frozen=True)
class UserSession:
    """A session, or a function that starts one; None in an embedded lake."""

    spark: Any = None

    def beside(self) -> Any:
        """A session for the lake itself beside the user's, started when it is first used."""
        return None if self.spark is None else _spark_sessions().own_session(self.spark)

    def frame(self, rows: pa.Table, backend: str | None) -> Any:
        """Rows as a DataFrame, or as they are where the answer is to be an Arrow table."""
        return (
            rows
            if self._answers_in_arrow(backend)
            else _spark_sessions().arrow_frame(self.spark, rows)
        )

    def read(self, rows: StoredRows, backend: str | None) -> Any:
        """Rows of files as a DataFrame, or as an Arrow table."""
        names = tuple(rows.names.values())
        if not self._answers_in_arrow(backend):
            return _spark_sessions().read_version(self.spark, rows.table, rows.snapshot, names)
        return ParquetFolder(rows.table).read(rows.files, rows.snapshot.fields).select(list(names))

    def table_place(self, location: str | os.PathLike[str]) -> str | os.PathLike[str]:
        """A folder or URI as it is, and that of a table by its name in a catalog of Spark."""
        text = os.fspath(location)
        if not _CATALOG_NAME.fullmatch(text) or os.path.exists(text):
            return location
        if self.spark is None:
            raise ArgumentError(
                f'"{text}" is no folder here; if it is a table of a catalog, Spark finds it: '
                "Keeper(path, spark)"
            )
        module = import_module("viewkeep.execute.spark.table_location")
        place: str = module.table_location(self.spark, text)
        return place

    def _answers_in_arrow(self, backend: str | None) -> bool:
        return self.spark is None or backend == "duckdb"


def _spark_sessions() -> Any:
    return import_module("viewkeep.execute.spark.session")
