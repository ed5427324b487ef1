"""What versions of Spark differ in, and what Spark Connect has in place of the driver's objects.

A session of Spark Connect is a client of a server: there is no context, no Java beside it, and its
classes are others than those of a classic session up to Spark 3.5.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from importlib import import_module
from inspect import signature
from typing import Any, cast
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

DEFAULT_PARALLELISM = 8
"""Tasks at a time where a server does not tell."""
_GROUP = "spark.jobGroup.id"


def aggregate_kinds() -> frozenset[int]:
    """The kinds of user-defined functions that compute one value of a group."""
    module = import_module("pyspark.util" if hasattr(DataFrame, "toArrow") else "pyspark.rdd")
    kinds = vars(module.PythonEvalType).items()
    return frozenset(value for name, value in kinds if name.startswith("SQL_GROUPED_AGG"))


def is_connect(session: object) -> bool:
    """Whether a session is one of Spark Connect, which has no Java beside it."""
    return not hasattr(session, "_jsparkSession")


def new_session(spark: SparkSession) -> SparkSession:
    """A session beside another one; of Spark Connect, with its functions since Spark 4.1."""
    if not is_connect(spark):
        return spark.newSession()
    user: Any = spark
    user = user.unwrapped() if hasattr(type(user), "unwrapped") else user
    if hasattr(type(user), "cloneSession"):
        return cast(SparkSession, user.cloneSession())
    return cast(SparkSession, type(user)(user.client._builder))


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time, or about so many."""
    if not is_connect(spark):
        return spark.sparkContext.defaultParallelism
    cores = spark.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    return int(cores or DEFAULT_PARALLELISM)


def frame_of_arrow(
    spark: SparkSession, rows: pa.Table, schema: StructType | None = None
) -> DataFrame:
    """The rows of an Arrow table as a DataFrame, which Spark makes of one since version 4."""
    # Spark takes an empty chunk for the end, and would lose the rows of those behind it.
    whole = rows.combine_chunks()
    if hasattr(DataFrame, "toArrow"):
        return cast(Any, spark).createDataFrame(whole, schema=schema)  # type: ignore[no-any-return]
    from pyspark.sql.pandas.types import from_arrow_schema

    types = from_arrow_schema(whole.schema) if schema is None else schema
    columns = [_python_values(column) for column in whole.columns]
    tuples = list(zip(*columns, strict=True)) if columns else [()] * whole.num_rows
    return spark.createDataFrame(tuples, types)


def reads_narrower_types() -> bool:
    """Whether files whose columns have narrower types than their table are read: since Spark 4."""
    return hasattr(DataFrame, "toArrow")


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The schema of Arrow for columns of Spark, moments in UTC: before 4.3 no zone is asked for.

    >>> from pyspark.sql.types import TimestampType
    >>> print(arrow_schema_of(StructType().add("at", TimestampType())))
    at: timestamp[us, tz=UTC]
    """
    translate: Any = import_module("pyspark.sql.pandas.types").to_arrow_schema
    asks = "timezone" in signature(translate).parameters
    return translate(schema, timezone="UTC") if asks else translate(schema)


def _python_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as Spark takes them; maps are dicts there."""
    values: list[Any] = column.to_pylist()
    return (
        [_python_value(each, column.type) for each in values] if _has_map(column.type) else values
    )


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(i).type) for i in range(kind.num_fields))


def _python_value(value: Any, kind: pa.DataType) -> Any:
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_map(kind):
        return {_python_value(k, kind.key_type): _python_value(v, kind.item_type) for k, v in value}
    if pa.types.is_struct(kind):
        return {each.name: _python_value(value[each.name], each.type) for each in kind}
    return [_python_value(each, kind.value_type) for each in value]


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """All rows of several DataFrames, of one session of any kind."""
    return reduce(lambda left, right: left.union(right), frames)


@contextmanager
def cancellable(spark: SparkSession) -> Iterator[Callable[[], None]]:
    """Work whose jobs can be cancelled by the function that is given."""
    tag = f"viewkeep-{uuid4()}"
    if is_connect(spark):
        session: Any = spark
        session.addTag(tag)
        try:
            yield lambda: session.interruptTag(tag)
        finally:
            session.removeTag(tag)
        return
    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield lambda: context.cancelJobsWithTag(tag)
    finally:
        context.removeJobTag(tag)


class Jobs:
    """The jobs of a group; a server of Spark Connect tells none."""

    def __init__(self, spark: SparkSession, group: str | None) -> None:
        self._spark, self._group = spark, group

    @property
    def count(self) -> int:
        """How many were started so far."""
        if self._group is None:
            return 0
        tracker = self._spark.sparkContext.statusTracker()
        return len(tracker.getJobIdsForGroup(self._group))


@contextmanager
def counted_jobs(spark: SparkSession) -> Iterator[Jobs]:
    """Work whose jobs are counted; jobs of a group inside it are not."""
    if is_connect(spark):
        yield Jobs(spark, None)
        return
    context = spark.sparkContext
    before, group = context.getLocalProperty(_GROUP), f"viewkeep {uuid4()}"
    context.setLocalProperty(_GROUP, group)
    try:
        yield Jobs(spark, group)
    finally:
        context.setLocalProperty(_GROUP, before)  # type: ignore[arg-type]  # None removes it
