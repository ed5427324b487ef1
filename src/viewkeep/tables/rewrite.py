"""Copy on write: files that hold changed rows are written anew, the others stay.

Few bytes are rewritten on the driver, which takes no Spark job; many by one job. New rows come
into a file of their own where nothing has to be rewritten; when such files have become many, the
next change puts them together.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.execute.spark.collect import local
from viewkeep.execute.spark.key_filter import Keys, is_listable, meets
from viewkeep.query.expressions import quote
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.delta import DataFile, LakeTable, Snapshot
from viewkeep.tables.key_match import matches, may_hold, without
from viewkeep.tables.parquet import Folder, read_frame, write_frame

DRIVER_BYTES = 256 * 1024 * 1024
"""The most bytes that are rewritten on the driver."""
SMALL_FILES = 16
"""So many small files are put together."""
SMALL_BYTES = 4 * 1024 * 1024
FILE_BYTES = 128 * 1024 * 1024
"""About how large a rewritten file may become."""


@dataclass(frozen=True)
class Rewrite:
    """Files to add and files to remove, in one commit."""

    add: tuple[DataFile, ...] = ()
    remove: tuple[DataFile, ...] = ()


def find_rows(
    spark: SparkSession,
    table: LakeTable,
    snapshot: Snapshot,
    keys: pa.Table,
    driver_bytes: int = DRIVER_BYTES,
) -> pa.Table:
    """The rows of a version that have one of the keys."""
    files = [each for each in snapshot.files if may_hold(each, keys)]
    if sum(each.size for each in files) <= driver_bytes:
        rows = Folder(table).read(files, snapshot.fields)
    else:
        rows = _near_rows(spark, read_frame(spark, snapshot, files), keys).toArrow()
        rows = rows.cast(arrow_schema(snapshot.fields))
    return rows.filter(matches(rows, keys))


def rewrite(
    spark: SparkSession,
    table: LakeTable,
    snapshot: Snapshot,
    gone: pa.Table,
    came: pa.Table,
    driver_bytes: int = DRIVER_BYTES,
) -> Rewrite:
    """New files for a version without the rows that have a key of `gone`, and with `came`."""
    came = came.cast(arrow_schema(snapshot.fields))
    touched = [each for each in snapshot.files if may_hold(each, gone)]
    if sum(each.size for each in touched) > driver_bytes:
        return _on_spark(spark, table, snapshot, touched, gone, came)
    return _on_driver(table, snapshot, touched, gone, came)


def _on_driver(
    table: LakeTable,
    snapshot: Snapshot,
    touched: Sequence[DataFile],
    gone: pa.Table,
    came: pa.Table,
) -> Rewrite:
    """File by file, several at a time: Arrow works without Python's lock."""
    folder = Folder(table)

    def rest(each: DataFile) -> pa.Table | None:
        """The rows of a file that stay, or None if all do."""
        rows = folder.read([each], snapshot.fields)
        kept = without(rows, gone)
        return kept if kept.num_rows < rows.num_rows else None

    small = _small(snapshot, touched)
    with ThreadPoolExecutor() as pool:
        rests = list(zip(touched, pool.map(rest, touched), strict=True))
        hit = [(each, kept) for each, kept in rests if kept is not None]
        merged = [folder.read(small, snapshot.fields), came]
        merged += [kept for each, kept in hit if each.size < SMALL_BYTES]
        large = [kept for each, kept in hit if each.size >= SMALL_BYTES and kept.num_rows]
        if large:  # a large file takes the new rows in, so that no small one is needed
            large[0] = pa.concat_tables([large[0], *merged])
            merged = []
        together = [pa.concat_tables(merged)] if merged else []
        new = [rows for rows in (*large, *together) if rows.num_rows]
        add = tuple(pool.map(folder.write, new))
    return Rewrite(add, (*small, *(each for each, _ in hit)))


def _small(snapshot: Snapshot, touched: Sequence[DataFile]) -> list[DataFile]:
    """The small files that are left alone otherwise, once they are many."""
    small = [f for f in snapshot.files if f.size < SMALL_BYTES and f not in touched]
    return small if len(small) >= SMALL_FILES else []


def _on_spark(
    spark: SparkSession,
    table: LakeTable,
    snapshot: Snapshot,
    touched: Sequence[DataFile],
    gone: pa.Table,
    came: pa.Table,
) -> Rewrite:
    size = sum(each.size for each in touched)
    rows = anti_join(spark, read_frame(spark, snapshot, touched), gone)
    rows = rows.coalesce(max(1, -(-size // FILE_BYTES), spark.sparkContext.defaultParallelism))
    add = write_frame(rows, table)
    if came.num_rows:
        add.append(Folder(table).write(came))
    return Rewrite(tuple(add), tuple(touched))


def anti_join(spark: SparkSession, rows: DataFrame, keys: pa.Table) -> DataFrame:
    """The rows of a DataFrame that have none of the keys."""
    return _joined(spark, rows, keys, "left_anti")


def _near_rows(spark: SparkSession, rows: DataFrame, keys: pa.Table) -> DataFrame:
    """The rows that have one of the keys, and perhaps some others."""
    if keys.num_rows > 1000:
        return _joined(spark, rows, keys, "left_semi")
    for name in keys.column_names:
        if is_listable(keys.schema.field(name).type):
            rows = rows.where(meets(name, Keys(keys[name], True), null_safe=True)[0])
    return rows


def _joined(spark: SparkSession, rows: DataFrame, keys: pa.Table, kind: str) -> DataFrame:
    names = keys.column_names
    if not names:
        return rows if (kind == "left_semi") == bool(keys.num_rows) else rows.where(F.lit(False))
    fields = {field.name: field for field in rows.schema}
    schema = type(rows.schema)([fields[name] for name in names])
    small = local(spark, keys, schema).frame.toDF(*(f"viewkeep#key{i}" for i in range(len(names))))
    same = " AND ".join(f"{quote(name)} <=> `viewkeep#key{i}`" for i, name in enumerate(names))
    return rows.join(F.broadcast(small.distinct()), F.expr(same), kind)
