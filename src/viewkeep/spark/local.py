"""Small relations that were collected: Arrow tables on the driver, local relations to Spark.

A Spark job costs much more than a small diff is worth. So several results are collected by one
job, and selections and projections of collected rows are computed by Spark's optimizer, which
evaluates them over local relations without any job.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import reduce
from typing import Any, cast

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from viewkeep.diffs.sql_text import quote
from viewkeep.query.inference import Schema

_TAG = "viewkeep#tag"


@dataclass(frozen=True)
class Relation:
    """Rows as Spark reads them, and as a table on the driver where they were collected."""

    frame: DataFrame
    table: pa.Table | None = None

    @property
    def rows(self) -> int | None:
        """How many rows it has, where that is known."""
        return None if self.table is None else self.table.num_rows

    @property
    def is_empty(self) -> bool:
        """Whether it is known to have no rows."""
        return self.rows == 0


def local(spark: SparkSession, table: pa.Table, schema: StructType) -> Relation:
    """A collected table as a local relation; however it was collected, its types are the same."""
    table = table.cast(_arrow_schema(schema))
    return Relation(spark.createDataFrame(table, schema=schema), table)


def spark_schema(schema: Schema) -> StructType:
    """Columns as Spark declares them."""
    declared = StructType.fromDDL(", ".join(f"{quote(f.name)} {f.type}" for f in schema))
    return cast(StructType, declared)


def empty(spark: SparkSession, schema: Schema) -> Relation:
    """No rows."""
    declared = spark_schema(schema)
    return local(spark, _arrow_schema(declared).empty_table(), declared)


def with_types(frame: DataFrame, schema: Schema) -> DataFrame:
    """Exactly the columns of a schema, in its order and with its types."""
    found = {field.name: field.dataType for field in frame.schema}
    wanted = spark_schema(schema)
    if list(found.items()) == [(field.name, field.dataType) for field in wanted]:
        return frame
    columns = [
        quote(field.name)
        if found.get(field.name) == field.dataType
        else f"CAST({quote(field.name)} AS {field.dataType.simpleString()}) AS {quote(field.name)}"
        for field in wanted
    ]
    return frame.selectExpr(*columns)


def is_local(frame: DataFrame) -> bool:
    """Whether Spark has the rows on the driver after optimizing, so that no job is needed."""
    java = getattr(frame, "_jdf", None)
    if java is None:
        return False
    plan = java.queryExecution().optimizedPlan().getClass().getSimpleName()
    return bool(plan == "LocalRelation")


def collect_local(frame: DataFrame) -> pa.Table:
    """The rows of a local relation, without a job (`toArrow` would start one)."""
    schema = _arrow_schema(frame.schema)
    columns: Iterable[tuple[Any, ...]] = zip(*frame.collect(), strict=True)
    values = list(columns) or [()] * len(schema)
    arrays = [
        pa.array(_in_utc(column, field.type), field.type)
        for column, field in zip(values, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def collect(frames: Mapping[str, DataFrame], limit: int) -> dict[str, pa.Table]:
    """Several results by one job, at most one row more than `limit` of each."""
    if len(frames) == 1:
        return {name: frame.limit(limit + 1).toArrow() for name, frame in frames.items()}
    slots = _slots(frames.values())
    tagged = [
        _tagged(frame.limit(limit + 1), number, slots)
        for number, frame in enumerate(frames.values())
    ]
    found = reduce(DataFrame.union, tagged).toArrow() if tagged else None
    return {
        name: _untagged(found, number, frame, slots)
        for number, (name, frame) in enumerate(frames.items())
    }


def _arrow_schema(schema: StructType) -> pa.Schema:
    return to_arrow_schema(schema, timezone="UTC")


def _in_utc(values: Iterable[Any], kind: pa.DataType) -> list[Any]:
    """Spark collects moments as naive local times of this process; others have no time zone."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return list(values)
    return [value and value.astimezone(UTC) for value in values]


def _types(frame: DataFrame) -> list[tuple[str, int]]:
    """For each column its type, and how many columns of that type come before it."""
    seen: dict[str, int] = {}
    found = []
    for field in frame.schema:
        kind = field.dataType.simpleString()
        found.append((kind, seen.get(kind, 0)))
        seen[kind] = seen.get(kind, 0) + 1
    return found


def _slots(frames: Iterable[DataFrame]) -> list[tuple[str, int]]:
    """Columns that all frames share, so that a union of many is not wide."""
    return list(dict.fromkeys(slot for frame in frames for slot in _types(frame)))


def _tagged(frame: DataFrame, number: int, slots: list[tuple[str, int]]) -> DataFrame:
    own = dict(zip(_types(frame), frame.columns, strict=True))
    values = (
        quote(own[slot]) if slot in own else f"CAST(NULL AS {slot[0].upper()})" for slot in slots
    )
    named = [f"{value} AS s{i}" for i, value in enumerate(values)]
    return frame.selectExpr(f"{number} AS {quote(_TAG)}", *named)


def _untagged(
    found: pa.Table, number: int, frame: DataFrame, slots: list[tuple[str, int]]
) -> pa.Table:
    rows = found.filter(pc.equal(found[_TAG], number))
    return rows.select([f"s{slots.index(slot)}" for slot in _types(frame)]).rename_columns(
        frame.columns
    )
