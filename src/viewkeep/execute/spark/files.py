"""Parquet files of Delta tables as Spark reads and writes them."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.errors import reason
from viewkeep.execute.spark.driver.collect import empty, local, spark_schema
from viewkeep.execute.spark.report import SPARK_ERRORS
from viewkeep.execute.spark.versions import reads_narrower_types, union
from viewkeep.query.expressions import back_quote
from viewkeep.query.types.data_types import BIGINT, BOOLEAN, STRING, Field
from viewkeep.tables.arrow_rows import to_arrow
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import (
    DataFile,
    LakeTable,
    Snapshot,
    StorageError,
    UnsupportedTableError,
)

PAGE_ROWS = "4000"
"""Rows of a page in files that Spark writes: keys that are looked up cost a page each."""
_FILE, _KNOWN = "viewkeep#file", "viewkeep#known"
_NUMBER, _ROW = "viewkeep#number", "viewkeep#row"
_LOCAL = re.compile("^file:/+")
"""Spark writes it with one stroke or with three."""


def read_frame(
    spark: SparkSession, table: LakeTable, snapshot: Snapshot, files: Sequence[DataFile]
) -> DataFrame:
    """Some files of a version as a DataFrame with the columns of the version."""
    if not files:
        return empty(spark, snapshot.fields).frame
    _check_names(table, snapshot, files)
    if snapshot.is_widened and not reads_narrower_types():
        raise UnsupportedTableError(
            f"{snapshot.uri}: types of columns were widened, and Spark before version 4 does not "
            'read the files from before that; use backend="duckdb", a newer Spark, or write the '
            "table anew"
        )
    whole = [each for each in files if each.vector is None]
    marked = [each for each in files if each.vector is not None]
    frames = [_read_files(spark, snapshot, whole)[0]] if whole else []
    if marked:
        frames.append(_live_rows_frame(spark, table, snapshot, marked))
    names = [back_quote(each.name) for each in snapshot.fields]
    return union(each.selectExpr(*names) for each in frames)


def _check_names(table: LakeTable, snapshot: Snapshot, files: Sequence[DataFile]) -> None:
    """Refuse files whose columns are known by their numbers only: Spark reads them by the names
    that writers of Delta give them, and would take others for missing."""
    mapping = snapshot.mapping
    if mapping is None or not mapping.by_number:
        return
    folder = ParquetFolder(table)
    for each in files:
        place = f"{snapshot.uri}#{each.path}"
        if place not in _CHECKED:
            with folder.opened(each) as (file, _):
                by_number = mapping.names_in(file.schema_arrow)
                by_name = replace(mapping, by_number=False).names_in(file.schema_arrow)
            if by_number != by_name:
                raise UnsupportedTableError(
                    f"{snapshot.uri}: columns of the file {each.path} have other names than the "
                    "log tells (columnMapping by id), which Spark cannot read here; copy the table"
                )
            _CHECKED.add(place)


_CHECKED: set[str] = set()
"""Files of tables with column mapping by number that have the names of the log as well."""


def _read_files(
    spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile]
) -> tuple[DataFrame, dict[str, DataFile]]:
    """Files as a DataFrame, with rows that are deleted; and the files by their names in Spark."""
    own = [each for each in snapshot.fields if each.name not in snapshot.partitions]
    stored = own if snapshot.mapping is None else list(map(snapshot.mapping.stored_field, own))
    places = {each.location(snapshot.uri): each for each in files}
    reader = spark.read.schema(spark_schema(stored)).option("__globPaths__", "false")
    try:
        rows = reader.parquet(*places)
    except AnalysisException as error:
        raise _missing_file_error(snapshot, str(error)) from error
    readable = {_log_path(each): each for each in rows.inputFiles()}
    # Spark may take a file that is not there for an empty one.
    missing = [each for each in places if _log_path(each) not in readable]
    if missing:
        raise _missing_file_error(snapshot, missing[0])
    paths = {_LOCAL.sub("file:/", readable[_log_path(p)]): each for p, each in places.items()}
    if snapshot.mapping is not None:
        rows = rows.selectExpr(*map(_renamed_sql, stored, own))
    if len(own) < len(snapshot.fields):
        rows = _with_partitions(spark, rows, snapshot, paths)
    return rows, paths


def _renamed_sql(stored: Field, own: Field) -> str:
    """A column of files under the names of the table; Spark casts parts of values by place."""
    value = back_quote(stored.name)
    value = value if stored.type == own.type else f"CAST({value} AS {own.type})"
    return f"{value} AS {back_quote(own.name)}"


def _live_rows_frame(
    spark: SparkSession, table: LakeTable, snapshot: Snapshot, files: Sequence[DataFile]
) -> DataFrame:
    """Files without the rows in their deletion vectors."""
    folder = ParquetFolder(table)
    deleted = [folder.deleted_rows(each) for each in files]
    numbers = np.repeat(np.arange(len(deleted)), [len(each) for each in deleted])
    listed = pa.table({_NUMBER: numbers, _ROW: np.concatenate(deleted)})
    schema = spark_schema([Field(_NUMBER, BIGINT), Field(_ROW, BIGINT)])
    deleted_rows = F.broadcast(local(spark, listed, schema).frame)
    return numbered_rows(spark, snapshot, files, _NUMBER, _ROW).join(
        deleted_rows, [_NUMBER, _ROW], "left_anti"
    )


def numbered_rows(
    spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile], file: str, row: str
) -> DataFrame:
    """Files with the numbers of files and of rows in them, also of rows that are deleted."""
    rows, by_name = _read_files(spark, snapshot, files)
    numbers = {each.path: number for number, each in enumerate(files)}
    schema = [Field(_FILE, STRING), Field(file, BIGINT)]
    numbered = to_arrow(schema, [(name, numbers[each.path]) for name, each in by_name.items()])
    listed = local(spark, numbered, spark_schema(schema)).frame
    return _joined_files(rows.withColumn(row, F.col("_metadata.row_index")), listed, file)


def _missing_file_error(snapshot: Snapshot, which: str) -> StorageError:
    return StorageError(
        f"{snapshot.uri}: files of version {snapshot.version} are gone, probably vacuumed; "
        f"repair the views that need this version ({which})"
    )


def write_frame(
    frame: DataFrame, table: LakeTable, order: Sequence[str] = (), group_rows: int | None = None
) -> list[DataFile]:
    """Write a DataFrame into new files of a table, by one Spark job; not committed yet."""
    folder = f"spark-{int(time.time())}-{uuid4()}"
    if order:
        frame = frame.sortWithinPartitions(*(F.col(back_quote(name)) for name in order))
    writer = frame.write.mode("error")
    for option, value in _WRITE_OPTIONS.items():
        writer = writer.option(option, value)
    if group_rows is not None:
        writer = writer.option("parquet.block.row.count.limit", str(group_rows))
    try:
        writer.parquet(f"{table.uri}/{folder}")
    except SPARK_ERRORS as error:
        if "java.io." in reason(error) or "java.nio." in reason(error):
            raise StorageError(f"{table.uri}: {reason(error)}") from error
        raise
    return ParquetFolder(table).described(folder)


WRITE_SETTINGS = {
    # Moments as all engines read them; Spark's own form is deprecated.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""The settings of a session under which files are written."""

_WRITE_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "parquet.page.row.count.limit": PAGE_ROWS,
}


def _with_partitions(
    spark: SparkSession, rows: DataFrame, snapshot: Snapshot, files: Mapping[str, DataFile]
) -> DataFrame:
    """Rows with the values of their partitions, which stand in the log and not in the files."""
    fields = [each for each in snapshot.fields if each.name in snapshot.partitions]
    values = [(name, True, *(f.partition[e.name] for e in fields)) for name, f in files.items()]
    schema = [Field(_FILE, STRING), Field(_KNOWN, BOOLEAN), *fields]
    partitions = local(spark, to_arrow(schema, values), spark_schema(schema)).frame
    return _joined_files(rows, partitions, _KNOWN)


def _joined_files(rows: DataFrame, files: DataFrame, mark: str) -> DataFrame:
    """Rows with what the log tells of their files, where the column `mark` is never NULL."""
    placed = rows.withColumn(_FILE, F.col("_metadata.file_path"))
    joined = placed.join(F.broadcast(files), _FILE, "left")
    error_text = f"raise_error(concat('not in the log: ', {back_quote(_FILE)}))"
    is_known = f"CASE WHEN {back_quote(mark)} IS NOT NULL THEN TRUE ELSE {error_text} END"
    return joined.where(is_known).drop(_FILE)


def _log_path(uri: str) -> str:
    """A file as the log names it; Spark encodes what it answers.

    >>> _log_path("file:///lake/a%20b"), _log_path("/lake/a b")
    ('/lake/a b', '/lake/a b')
    """
    if not uri.startswith("file:"):
        return uri if uri.startswith("/") else unquote(uri)
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/")
