"""SQL text on Spark: analyzed over empty relations, run over the rows of pinned versions.

Its tables are temporary views of a session of its own, gone once the text is analyzed: nothing
else that the user's catalogs hold has a name there that the text was not checked for.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField

from viewkeep.errors import ParseError, SchemaError, cause
from viewkeep.execute.spark.driver.collect import spark_schema, type_text
from viewkeep.execute.spark.session import lake_session, quiet_errors
from viewkeep.query.expressions import back_quote
from viewkeep.query.types.data_types import Field, Type, parse_type
from viewkeep.query.types.inference import Schema
from viewkeep.query.verbatim import Verbatim

_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_CODE = re.compile(r"^\[[A-Z0-9_.]+\]\s*")


def analyzed_columns(spark: SparkSession, query: Verbatim) -> Schema:
    """The columns of a query by Spark's analysis, which runs nothing."""
    own = lake_session(spark)
    empty = {
        name: own.createDataFrame([], spark_schema(table.visible)) for name, table in query.tables
    }
    with _readable_errors(query):
        fields = _frame_of_text(own, query, empty).schema.fields
    return tuple(map(_field_of_spark, fields))


def expression_type(spark: SparkSession, text: str, arguments: Sequence[Type]) -> str | None:
    """The type of an expression over columns `a0`, `a1`, ... by Spark's analysis; None if it is
    refused, or if tables of a lake hold no such values."""
    columns = ", ".join(f"CAST(NULL AS {kind}) AS `a{i}`" for i, kind in enumerate(arguments))
    try:
        with quiet_errors():
            frame = spark.sql(f"SELECT {text} AS `value` FROM (SELECT {columns or 'NULL'})")
            [field] = frame.schema.fields
    except PySparkException:
        return None
    try:
        is_variant = '"variant"' in field.dataType.json()  # Arrow would call it a struct
        return None if is_variant else str(_field_of_spark(field).type)
    except SchemaError:
        return None


def verbatim_frame(
    spark: SparkSession, query: Verbatim, rows: Mapping[str, DataFrame]
) -> DataFrame:
    """The rows of a query, under the names of its columns; `spark` is a session of its own."""
    shown = {
        name: rows[name].select(*(back_quote(field.name) for field in table.visible))
        for name, table in query.tables
    }
    return _frame_of_text(spark, query, shown).toDF(*query.names)


def _frame_of_text(
    spark: SparkSession, query: Verbatim, rows: Mapping[str, DataFrame]
) -> DataFrame:
    for name, frame in rows.items():
        frame.createOrReplaceTempView(back_quote(name))
    try:
        frame = spark.sql(query.text)
        _ = frame.schema  # analyzed now, while the names are there
        return frame
    finally:
        for name in rows:
            spark.catalog.dropTempView(name)


def _field_of_spark(field: StructField) -> Field:
    try:
        return Field(field.name, parse_type(type_text(field.dataType)))
    except (SchemaError, TypeError, PySparkException):
        kind = field.dataType.simpleString()
        problem = f'column "{field.name}" is {kind}, which tables of a lake do not hold'
        raise SchemaError(f"{problem}; CAST it to another type") from None


@contextmanager
def _readable_errors(query: Verbatim) -> Iterator[None]:
    """Raise Spark's analysis error as one line with its position in the text."""
    try:
        yield
    except PySparkException as error:
        message = str(error)
        place = _PLACE.search(message)
        line, column = (int(place[1]), int(place[2])) if place else (1, 0)
        starts = [0, *(match.end() for match in re.finditer("\n", query.text))]
        position = starts[min(line, len(starts)) - 1] + column
        problem = _CODE.sub("", cause(error)).partition(" SQLSTATE")[0].rstrip(". ")
        raise ParseError(f"Spark: {problem}", query.text, min(position, len(query.text))) from None
