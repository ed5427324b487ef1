"""Files of Delta tables in Spark: one job each, whose rows do not pass through the driver."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.execute.spark.driver.collect import group_rows, local
from viewkeep.execute.spark.driver.key_filter import Keys, is_listable, meets
from viewkeep.execute.spark.files import numbered_rows, read_frame, write_frame
from viewkeep.execute.spark.report import name_in_errors
from viewkeep.execute.spark.user_frames import write_user_frame
from viewkeep.execute.spark.versions import parallelism
from viewkeep.query.expressions import back_quote
from viewkeep.query.tables import COPY, Table
from viewkeep.query.types.data_types import BIGINT, Field
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.rewrite import FILE_BYTES
from viewkeep.tables.files.scans import FILE, ROW, SIDE
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import StoredRows
from viewkeep.tables.spark_rows import frame_rows


class SparkScans:
    """Implements `tables.scans.Scans`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def rows_near(self, rows: StoredRows, keys: pa.Table) -> pa.Table:
        """The rows that have one of the keys, and perhaps some others."""
        near = frame_rows(_frame_near_keys(self._spark, self._frame_of_rows(rows), keys))
        return near.cast(arrow_schema(rows.fields))

    def write_without(self, rows: StoredRows, keys: pa.Table) -> list[DataFile]:
        """Write the rows that have none of the keys into new files of their table."""
        remaining = anti_join(self._spark, self._frame_of_rows(rows), keys)
        tasks = parallelism(self._spark)
        return write_frame(
            remaining.coalesce(max(1, -(-rows.size // FILE_BYTES), tasks)), rows.table
        )

    def row_places(self, rows: StoredRows, keys: pa.Table) -> pa.Table:
        """The places of the rows that have one of the keys: `FILE` and `ROW`, and the keys."""
        frame = numbered_rows(self._spark, rows.snapshot, rows.files, FILE, ROW)
        near = _frame_by_keys(self._spark, frame, keys, "left_semi")
        with name_in_errors(rows.table.uri):
            names = [*keys.column_names, FILE, ROW]
            return frame_rows(near.select(*(F.col(back_quote(name)) for name in names)))

    def unpaired(self, old: StoredRows, new: StoredRows, most: int | None) -> pa.Table:
        """The rows of each side that the other one lacks, with copies, and their `SIDE`."""
        changed = _unpaired_frame(self._frame_of_rows(old), self._frame_of_rows(new))
        rows = frame_rows(changed if most is None else changed.limit(most))
        schema = arrow_schema(new.fields).append(pa.field(SIDE, pa.string()))
        return rows.cast(schema)

    def count_copies(self, rows: StoredRows, values: pa.Table) -> pa.Table:
        """The rows that are one of the values, once each, and their number as `COPY`."""
        near = _frame_by_keys(self._spark, self._frame_of_rows(rows), values, "left_semi")
        columns = [F.col(back_quote(name)) for name in rows.names]
        with name_in_errors(rows.table.uri):
            copy_counts = frame_rows(near.groupBy(*columns).agg(F.count("*").alias(COPY)))
        return copy_counts.cast(arrow_schema([*rows.fields, Field(COPY, BIGINT)]))

    def repeated_key(self, rows: StoredRows, key: Sequence[str]) -> tuple[Any, ...] | None:
        """A key that two rows have, if there is one."""
        keys = [F.col(back_quote(each)) for each in key]
        with name_in_errors(rows.table.uri):
            counts = self._frame_of_rows(rows).groupBy(*keys).count()
            [*twice] = counts.where("count > 1").limit(1).collect()
        return tuple(twice[0])[:-1] if twice else None

    def null_columns(self, rows: StoredRows, names: Sequence[str]) -> list[str]:
        """Those of the columns that have a NULL."""
        if not names:
            return []
        flags = [F.expr(f"coalesce(bool_or({back_quote(name)} IS NULL), FALSE)") for name in names]
        with name_in_errors(rows.table.uri):
            [has_nulls] = self._frame_of_rows(rows).agg(*flags).collect()
        return [name for name, has_null in zip(names, has_nulls, strict=True) if has_null]

    def write_frame(
        self, name: str, declared: Table, frame: Any, table: LakeTable
    ) -> list[DataFile] | None:
        """Write the rows of a user's DataFrame, checked, into files of a new table."""
        return write_user_frame(name, declared, frame, table)

    def _frame_of_rows(self, rows: StoredRows) -> DataFrame:
        frame = read_frame(self._spark, rows.table, rows.snapshot, rows.files)
        return frame.selectExpr(
            *(f"{back_quote(o)} AS {back_quote(n)}" for n, o in rows.names.items())
        )


def _unpaired_frame(before: DataFrame, after: DataFrame) -> DataFrame:
    """The rows of each side without those that are the same in both, as EXCEPT ALL would give.

    EXCEPT does not take maps.
    """
    names = before.columns
    both = before.withColumn(SIDE, F.lit(-1)).union(after.withColumn(SIDE, F.lit(1)))
    counts = group_rows(both, names, F.sum(back_quote(SIDE)).alias(SIDE))
    side = f"if({back_quote(SIDE)} < 0, 'old', 'new')"
    copies = (
        f"explode(array_repeat({side}, CAST(abs({back_quote(SIDE)}) AS INT))) AS {back_quote(SIDE)}"
    )
    return counts.where(f"{back_quote(SIDE)} <> 0").selectExpr(*map(back_quote, names), copies)


def anti_join(spark: SparkSession, rows: DataFrame, keys: pa.Table) -> DataFrame:
    """The rows of a DataFrame that have none of the keys."""
    return _frame_by_keys(spark, rows, keys, "left_anti")


def _frame_near_keys(spark: SparkSession, rows: DataFrame, keys: pa.Table) -> DataFrame:
    """The rows that have one of the keys, and perhaps some others."""
    if keys.num_rows > 1000:
        return _frame_by_keys(spark, rows, keys, "left_semi")
    for name in keys.column_names:
        if is_listable(keys.schema.field(name).type):
            rows = rows.where(meets(name, Keys(keys[name], True), null_safe=True)[0])
    return rows


def _frame_by_keys(spark: SparkSession, rows: DataFrame, keys: pa.Table, kind: str) -> DataFrame:
    names = keys.column_names
    if not names:
        return rows if (kind == "left_semi") == bool(keys.num_rows) else rows.where(F.lit(False))
    fields = {field.name: field for field in rows.schema}
    schema = type(rows.schema)([fields[name] for name in names])
    small = local(spark, keys, schema).frame.toDF(*(f"viewkeep#key{i}" for i in range(len(names))))
    same = " AND ".join(f"{back_quote(name)} <=> `viewkeep#key{i}`" for i, name in enumerate(names))
    return rows.join(F.broadcast(small.distinct()), F.expr(same), kind)
