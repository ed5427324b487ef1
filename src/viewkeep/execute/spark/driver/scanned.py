"""A version of a Delta table, or some files of it: read by Spark or, for few keys, by the driver.

To look a few keys up, a Spark job takes a tenth of a second and more before it reads anything;
Arrow reads tens of megabytes in that time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession

from viewkeep.execute.spark.files import read_frame
from viewkeep.query.expressions import back_quote
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import Schema
from viewkeep.tables.arrow_rows import arrow_column, arrow_schema
from viewkeep.tables.files.key_match import may_hold
from viewkeep.tables.files.look_up import look_up
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import DataFile, LakeTable, Snapshot

DRIVER_BYTES = 256 * 1024 * 1024
"""The most bytes of files that are read on the driver."""
WHOLE_BYTES = 16 * 1024 * 1024
"""The most bytes of a relation that is read as a whole on the driver."""


@dataclass(frozen=True)
class ScannedFiles:
    """Files of one version; `names` are other names for its columns."""

    spark: SparkSession
    table: LakeTable
    snapshot: Snapshot
    files: Sequence[DataFile]
    names: Mapping[str, str]

    @staticmethod
    def whole(spark: SparkSession, table: LakeTable, snapshot: Snapshot) -> "ScannedFiles":
        """All rows of a version."""
        names = {field.name: field.name for field in snapshot.fields}
        return ScannedFiles(spark, table, snapshot, snapshot.files, names)

    @cached_property
    def frame(self) -> DataFrame:
        """All rows, as Spark reads them."""
        rows = read_frame(self.spark, self.table, self.snapshot, self.files)
        return rows.selectExpr(
            *(f"{back_quote(o)} AS {back_quote(n)}" for n, o in self.names.items())
        )

    def look_up(
        self, schema: Schema, key_sets: Mapping[tuple[str, ...], set[tuple[object, ...]]]
    ) -> pa.Table | None:
        """Rows with these columns that have one of the keys, and perhaps some others; None if
        Spark should read them."""
        fields = {field.name: field for field in self.snapshot.fields}
        columns = self._file_columns(schema)
        if columns is None:
            return None
        keys = [self._key_table(fields, names, values) for names, values in key_sets.items()]
        files = [each for each in self.files if any(may_hold(each, some) for some in keys)]
        if sum(each.size for each in files) > DRIVER_BYTES:
            return None
        return _typed_rows(look_up(ParquetFolder(self.table), files, columns, keys), schema)

    def read(self, schema: Schema, most_rows: int) -> pa.Table | None:
        """All rows with these columns; None if they are more, or Spark should read them."""
        columns = self._file_columns(schema)
        counts = [each.rows for each in self.files]
        size = sum(each.size for each in self.files)
        if columns is None or min(counts, default=0) < 0 or size > min(DRIVER_BYTES, WHOLE_BYTES):
            return None
        if sum(counts) > most_rows:
            return None
        return _typed_rows(ParquetFolder(self.table).read(self.files, columns), schema)

    def _file_columns(self, schema: Schema) -> list[Field] | None:
        """The columns as the files have them; Spark takes names of another case, too."""
        fields = {field.name: field for field in self.snapshot.fields}
        own = [fields.get(self.names.get(field.name, "")) for field in schema]
        columns = [field for field in own if field is not None]
        return columns if len(columns) == len(own) else None

    def _key_table(
        self, fields: Mapping[str, Field], names: tuple[str, ...], values: set[tuple[object, ...]]
    ) -> pa.Table:
        own = [fields[self.names[name]] for name in names]
        columns = zip(*values, strict=True) if values else [()] * len(own)
        arrays = [arrow_column(f.type, c) for c, f in zip(columns, own, strict=True)]
        return pa.Table.from_arrays(arrays, [field.name for field in own])


def _typed_rows(rows: pa.Table, schema: Schema) -> pa.Table:
    return rows.rename_columns([field.name for field in schema]).cast(arrow_schema(schema))
