"""Spark on a cluster: queries, scripts and comparisons as jobs over the files of the lake."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.diffs.script import Script
from viewkeep.execute.backend import Counted, Relations, Source, Target, WrittenFiles, source_of
from viewkeep.execute.budget import interruptible
from viewkeep.execute.spark.driver import collect
from viewkeep.execute.spark.driver.layered import LayeredRows
from viewkeep.execute.spark.driver.scanned import ScannedFiles
from viewkeep.execute.spark.files import write_frame
from viewkeep.execute.spark.frames import FrameBuilder
from viewkeep.execute.spark.report import name_in_errors
from viewkeep.execute.spark.run import Run, changed_rows, run_script
from viewkeep.execute.spark.script_relations import Input
from viewkeep.execute.spark.session import lake_session
from viewkeep.execute.spark.verbatim import verbatim_frame
from viewkeep.execute.spark.versions import cancellable, counted_jobs
from viewkeep.query.algebra import Leaf
from viewkeep.query.expressions import back_quote
from viewkeep.query.tables import COPY
from viewkeep.query.types.data_types import DOUBLE, FLOAT, Field
from viewkeep.query.verbatim import Query, Verbatim
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import NumberedRows, OverlaidRows, Relation, StoredRows
from viewkeep.tables.spark_rows import frame_rows, is_spark_frame

_SIDE, _COUNT = "#side", "#count"


class SparkBackend:
    """Implements `execute.backend.Backend`."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.is_warm = False

    def write(self, place: str, query: Query, relations: Relations, target: Target) -> WrittenFiles:
        """Write the rows of a query; errors name the place."""
        with counted_jobs(self._spark) as jobs, name_in_errors(place):
            files = _write_sorted(
                _query_frame(self._query_session(query), query, relations), target
            )
        self.is_warm = True
        return WrittenFiles(files, jobs.count)

    @contextmanager
    def run(self, script: Script, relations: Relations) -> Iterator["SparkRun"]:
        """Run a script; jobs until its rows are written can be ended."""
        frames = SparkRelations(self._spark, relations)
        with (
            cancellable(self._spark) as cancel,
            interruptible(cancel),
            run_script(self._spark, script, frames, find_changed=True) as done,
        ):
            yield SparkRun(done)

    def compare(
        self, place: str, query: Query, relations: Relations, table_rows: StoredRows, most: int
    ) -> Counted:
        """Rows that a table lacks (> 0), or has too many of (< 0)."""
        with name_in_errors(place):
            spark = self._query_session(query)
            expected = _spark_comparable_columns(
                _query_frame(spark, query, relations), query.schema
            )
            rows = SparkRelations(spark, {"shown": table_rows})["shown"]
            assert isinstance(rows, ScannedFiles)
            differences = _count_differences(
                expected, _spark_comparable_columns(rows.frame, query.schema), most
            ).collect()
        return {tuple(map(_hashable_value, row))[:-1]: row[_COUNT] for row in differences}

    def answer(
        self, place: str, query: Query, relations: Relations, order: str | None, most: int | None
    ) -> pa.Table:
        """The first rows of a query, or all of them, in the order of a column."""
        spark = self._query_session(query)
        with name_in_errors(place), cancellable(spark) as cancel, interruptible(cancel):
            frame = _query_frame(spark, query, relations)
            fields = [field for field in query.schema if field.name != order]
            if order is not None:
                names = [back_quote(field.name) for field in fields]
                frame = frame.orderBy(back_quote(order)).selectExpr(*names)
            rows = frame_rows(frame if most is None else frame.limit(most))
        return rows.cast(arrow_schema(fields))

    def _query_session(self, query: Query) -> SparkSession:
        """A session in which SQL text finds the tables of its query and no others."""
        return lake_session(self._spark) if isinstance(query, Verbatim) else self._spark


class SparkRun:
    """A script that was run on Spark."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.rows = changed_rows(run)

    @property
    def jobs(self) -> int:
        """The jobs of the script."""
        return self._run.report.jobs

    @property
    def accesses(self) -> int | None:
        """Look-ups and rows written, unless something stayed in Spark."""
        rows_written = [each.rows for each in self._run.report.statements if each.kind != "compute"]
        if None in rows_written:
            return None
        return self._run.look_ups.accesses + sum(rows or 0 for rows in rows_written)

    def held_rows(self, name: str) -> int | None:
        """None: rows that stay as they are are not read."""
        return None

    def write_whole(self, name: str, target: Target) -> list[DataFile]:
        """Write all rows of a changed relation as they are after the changes."""
        return _write_sorted(self._run.changed[name].after, target)


class SparkRelations(Mapping[Source, Input]):
    """The relations of a lake as a script on Spark reads them, made when they are asked for."""

    def __init__(self, spark: SparkSession, relations: Relations) -> None:
        self._spark, self._relations = spark, relations
        self._inputs: dict[Source, Input] = {}

    def __getitem__(self, source: Source) -> Input:
        if source not in self._inputs:
            self._inputs[source] = self._input_of_relation(self._relations[source])
        return self._inputs[source]

    def __contains__(self, source: object) -> bool:
        return source in self._relations

    def __iter__(self) -> Iterator[Source]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    def of_leaf(self, leaf: Leaf) -> DataFrame:
        """The rows of a leaf of a query."""
        return self._source_frame(source_of(leaf))

    def of_table(self, name: str) -> DataFrame:
        """The rows of a table after the changes."""
        return self._source_frame((name, "post"))

    def _source_frame(self, source: Source) -> DataFrame:
        rows = self[source]
        if isinstance(rows, ScannedFiles | LayeredRows):
            return rows.frame
        return rows if is_spark_frame(rows) else collect.local(self._spark, rows).frame

    def _input_of_relation(self, relation: Relation) -> Input:
        match relation:
            case StoredRows():
                return self._scanned_rows(relation)
            case OverlaidRows():
                base = self._scanned_rows(relation.base)
                return LayeredRows(self._spark, base, relation.live, relation.covered)
            case NumberedRows():
                return self._numbered_frame(relation)
        return relation

    def _numbered_frame(self, rows: NumberedRows) -> DataFrame:
        """Spark filters by columns before it numbers, and numbers nothing that is not read."""
        names = [back_quote(name) for name in rows.base.names]
        over = f"OVER (PARTITION BY {', '.join(names)} ORDER BY {names[0]})"
        number = f"CAST(row_number() {over} AS BIGINT) AS {back_quote(COPY)}"
        return self._scanned_rows(rows.base).frame.selectExpr(*names, number)

    def _scanned_rows(self, rows: StoredRows) -> ScannedFiles:
        return ScannedFiles(self._spark, rows.table, rows.snapshot, rows.files, rows.names)


def _query_frame(spark: SparkSession, query: Query, relations: Relations) -> DataFrame:
    frames = SparkRelations(spark, relations)
    if isinstance(query, Verbatim):
        inputs = {name: frames.of_table(name) for name, _ in query.tables}
        return collect.with_schema(verbatim_frame(spark, query, inputs), query.schema)
    builder = FrameBuilder(spark, lambda leaf: collect.Relation(frames.of_leaf(leaf)))
    return collect.with_schema(builder.frame(query), query.schema)


def _write_sorted(frame: DataFrame, target: Target) -> list[DataFile]:
    """Write rows, sorted by the look-up columns so that each file holds a range of keys; a quick
    target leaves them in the order in which they are computed."""
    order = [F.col(back_quote(name)) for name in target.order]
    if order and not target.is_quick:
        frame = frame.repartitionByRange(*order).sortWithinPartitions(*order)
    columns = [f"{back_quote(stored)} AS {back_quote(public)}" for public, stored in target.columns]
    group_rows = None if target.is_quick else target.group_rows
    return write_frame(frame.selectExpr(*columns), target.table, (), group_rows)


def _spark_comparable_columns(rows: DataFrame, schema: tuple[Field, ...]) -> DataFrame:
    columns = []
    for name, field in zip(rows.columns, schema, strict=True):
        value = back_quote(name)
        if field.type in (DOUBLE, FLOAT):
            # The exponent decides how many digits after the point are sure.
            nine = f"CAST(format_string('%.9e', CAST({value} AS DOUBLE)) AS DOUBLE) + 0.0D"
            value = f"CASE WHEN {value} IS NOT NULL THEN {nine} END"
        columns.append(f"{value} AS {back_quote(field.name)}")
    return rows.selectExpr(*columns)


def _count_differences(expected: DataFrame, table_rows: DataFrame, most: int) -> DataFrame:
    """Rows with how many more of them there should be; few, if any."""
    both = expected.withColumn(_SIDE, F.lit(1)).union(table_rows.withColumn(_SIDE, F.lit(-1)))
    columns = [F.col(back_quote(name)) for name in expected.columns]
    counts = both.groupBy(*columns).agg(F.sum(back_quote(_SIDE)).alias(_COUNT))
    return counts.where(f"{back_quote(_COUNT)} <> 0").limit(most)


def _hashable_value(value: Any) -> Any:
    """Nested values as tuples, which can be differences."""
    match value:
        case dict():
            return tuple(
                (_hashable_value(key), _hashable_value(each)) for key, each in value.items()
            )
        case list() | tuple():
            return tuple(map(_hashable_value, value))
        case bytearray():
            return bytes(value)
    return value
