"""Relations in Spark, and small ones that were collected to the driver.

A Spark job costs much more than a small diff is worth. So several results are collected by one
job; a collected relation becomes a DataFrame only when one is asked for; and selections and
projections of one are computed by Spark's optimizer, which evaluates them over local relations
without any job.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from viewkeep.execute.spark.versions import arrow_schema_of, frame_of_arrow, union
from viewkeep.query.evaluate.rows import Rows
from viewkeep.query.expressions import Call, back_quote
from viewkeep.query.expressions import Column as Reference
from viewkeep.query.types.data_types import Field, Type
from viewkeep.query.types.inference import Schema
from viewkeep.query.types.internal_functions import COMPARABLE
from viewkeep.sql.expression_text import expression
from viewkeep.tables.arrow_rows import arrow_schema, declared_fields, to_arrow, to_rows
from viewkeep.tables.spark_rows import frame_rows

_TAG = "viewkeep#tag"
_NUMBER = "viewkeep#number"
_IN_PARTITION = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that count the rows of one partition."""

_TYPES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "tinyint": ByteType(),
    "smallint": ShortType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "void": NullType(),
}


class Relation:
    """Rows that Spark has."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame: DataFrame | None = frame

    @property
    def frame(self) -> DataFrame:
        """The rows as Spark reads them."""
        assert self._frame is not None
        return self._frame

    @property
    def schema(self) -> Schema:
        """The columns."""
        return declared_fields(arrow_schema_of(self.frame.schema))

    @property
    def table(self) -> pa.Table | None:
        """The rows as an Arrow table, where they were collected."""
        return None

    @property
    def tuples(self) -> Rows | None:
        """The rows as tuples, where they were collected."""
        return None

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known."""
        return None

    @property
    def is_empty(self) -> bool:
        """Whether it is known to have no rows."""
        return self.rows == 0


class CollectedRows(Relation):
    """Rows on the driver, given as a table or as tuples; the other forms are made when needed."""

    def __init__(self, spark: SparkSession, schema: Schema, rows: pa.Table | Rows) -> None:
        self._schema, self._spark, self._size = schema, spark, len(rows)
        self._frame = None
        self._tuples: Rows | None = rows if isinstance(rows, list) else None
        self._table: pa.Table | None = None if isinstance(rows, list) else rows

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._schema

    @property
    def frame(self) -> DataFrame:
        """The rows as a local relation of Spark."""
        if self._frame is None:
            schema = spark_schema(self.schema)
            # Spark takes an empty chunk for the end, and would lose the rows of those behind it.
            self._frame = frame_of_arrow(self._spark, self.table, schema)
        return self._frame

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self._table is None:
            self._table = to_arrow(self.schema, self._tuples or [])
        return self._table

    @property
    def tuples(self) -> Rows:
        """The rows as tuples."""
        if self._tuples is None:
            self._tuples = to_rows(self._table)
        return self._tuples

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._size


def local(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> CollectedRows:
    """A table, with the types of a schema; however it was collected, its types are the same."""
    arrow = table.schema if schema is None else arrow_schema_of(schema)
    fields = declared_fields(arrow)
    return CollectedRows(spark, fields, table.cast(arrow_schema(fields)))


def empty(spark: SparkSession, schema: Schema) -> CollectedRows:
    """No rows."""
    return CollectedRows(spark, schema, [])


def spark_type(type_: Type) -> DataType:
    """A type as Spark declares it."""
    if type_.name == "decimal":
        return DecimalType(type_.precision or 0, type_.scale or 0)
    parts = [spark_type(part.type) for part in type_.parts]
    match type_.name:
        case "array":
            return ArrayType(parts[0])
        case "map":
            return MapType(parts[0], parts[1])
        case "struct":
            return spark_schema(type_.parts)
    return _TYPES[type_.name]


def type_text(kind: DataType) -> str:
    """A type of Spark as SQL writes it; Spark's own text does not quote the names of parts.

    >>> type_text(ArrayType(StructType([StructField("a b", IntegerType())])))
    'array<struct<`a b`:int>>'
    """
    fields = declared_fields(arrow_schema_of(StructType([StructField("it", kind)])))
    return str(fields[0].type) if fields else kind.simpleString()


def distinct_frame(frame: DataFrame) -> DataFrame:
    """Every row once, also of maps, which Spark does not take for DISTINCT."""
    if not any(field.type.has_map for field in Relation(frame).schema):
        return frame.distinct()
    return group_rows(frame, frame.columns)


def group_rows(frame: DataFrame, names: Sequence[str], *aggregates: Column) -> DataFrame:
    """Rows that are the same in these columns as one, with aggregates; maps stay as they are."""
    maps = {field.name for field in Relation(frame).schema if field.type.has_map}
    keys = [_map_key(name) if name in maps else F.col(back_quote(name)) for name in names]
    values = [F.first(F.col(back_quote(name))).alias(name) for name in names if name in maps]
    groups = frame.groupBy(*keys).agg(*values, *aggregates)
    others = [each for each in groups.columns if each not in names and not each.startswith(_TAG)]
    return groups.selectExpr(*map(back_quote, (*names, *others)))


def _map_key(name: str) -> Column:
    """Spark groups by maps as well, but then sorts them."""
    return F.expr(expression(Call(COMPARABLE, (Reference(name),)))).alias(f"{_TAG}{name}")


def spark_schema(schema: Iterable[Field]) -> StructType:
    """Columns as Spark declares them; all may be NULL."""
    return StructType([StructField(field.name, spark_type(field.type)) for field in schema])


def with_schema(frame: DataFrame, schema: Schema) -> DataFrame:
    """Exactly the columns of a schema, in its order and with its types."""
    types = {field.name: field.dataType for field in frame.schema}
    schema = tuple(schema)
    targets = spark_schema(schema)
    if list(types.items()) == [(field.name, field.dataType) for field in targets]:
        return frame
    columns = [
        back_quote(field.name)
        if types.get(field.name) == kind.dataType
        else f"CAST({back_quote(field.name)} AS {field.type}) AS {back_quote(field.name)}"
        for field, kind in zip(schema, targets, strict=True)
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
    """The rows of a local relation, without a job (`frame_rows` would start one)."""
    schema = arrow_schema_of(frame.schema)
    if any(pa.types.is_nested(field.type) for field in schema):
        return frame_rows(frame)  # a job, but its nested values need no reading
    columns: Iterable[tuple[Any, ...]] = zip(*frame.collect(), strict=True)
    values = list(columns) or [()] * len(schema)
    arrays = [
        pa.array(_in_utc(column, field.type), field.type)
        for column, field in zip(values, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def collect(frames: Mapping[str, DataFrame], limit: int) -> dict[str, pa.Table]:
    """Several results by one job; of a result with more than `limit` rows, more than `limit`.

    The rows are limited partition by partition: to limit them all together takes a shuffle.
    """
    if len(frames) == 1:
        return {n: frame_rows(_limited_frame(each, limit)) for n, each in frames.items()}
    slots = _union_slots(frames.values())
    tagged = [
        _tagged_frame(_limited_frame(frame, limit), number, slots)
        for number, frame in enumerate(frames.values())
    ]
    together = frame_rows(union(tagged)) if tagged else None
    return {
        name: _rows_of_tag(together, number, frame, slots)
        for number, (name, frame) in enumerate(frames.items())
    }


def _limited_frame(frame: DataFrame, limit: int) -> DataFrame:
    number = f"monotonically_increasing_id() & {_IN_PARTITION}L AS {back_quote(_NUMBER)}"
    return frame.selectExpr("*", number).where(f"{back_quote(_NUMBER)} <= {limit}").drop(_NUMBER)


def _in_utc(values: Iterable[Any], kind: pa.DataType) -> list[Any]:
    """Spark collects moments as naive local times of this process; others have no time zone."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return list(values)
    return [value and value.astimezone(UTC) for value in values]


def _column_types(frame: DataFrame) -> list[tuple[str, int]]:
    """For each column its type, and how many columns of that type come before it."""
    counts_by_kind: dict[str, int] = {}
    types = []
    for field in frame.schema:
        kind = type_text(field.dataType)
        types.append((kind, counts_by_kind.get(kind, 0)))
        counts_by_kind[kind] = counts_by_kind.get(kind, 0) + 1
    return types


def _union_slots(frames: Iterable[DataFrame]) -> list[tuple[str, int]]:
    """Columns that all frames share, so that a union of many is not wide."""
    return list(dict.fromkeys(slot for frame in frames for slot in _column_types(frame)))


def _tagged_frame(frame: DataFrame, number: int, slots: list[tuple[str, int]]) -> DataFrame:
    own = dict(zip(_column_types(frame), frame.columns, strict=True))
    values = (
        back_quote(own[slot]) if slot in own else f"CAST(NULL AS {slot[0]})" for slot in slots
    )
    slot_columns = [f"{value} AS s{i}" for i, value in enumerate(values)]
    return frame.selectExpr(f"{number} AS {back_quote(_TAG)}", *slot_columns)


def _rows_of_tag(
    union: pa.Table, number: int, frame: DataFrame, slots: list[tuple[str, int]]
) -> pa.Table:
    rows = union.filter(pc.equal(union[_TAG], number))
    return rows.select([f"s{slots.index(slot)}" for slot in _column_types(frame)]).rename_columns(
        frame.columns
    )
