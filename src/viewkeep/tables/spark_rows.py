"""DataFrames of Spark as rows: of any version, classic or of Spark Connect.

Spark itself is not needed here: a DataFrame brings what it takes.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.errors import SchemaError
from viewkeep.query.types.data_types import ARRAY, MAP, STRUCT, Field, Type, parse_type
from viewkeep.tables.arrow_rows import arrow_schema


def is_spark_frame(data: Any) -> bool:
    """Whether it is a DataFrame of Spark; one of Spark Connect takes any name for a column."""
    return hasattr(type(data), "selectExpr") and hasattr(type(data), "sparkSession")


def is_spark_schema(data: Any) -> bool:
    """Whether it is a schema of Spark."""
    return hasattr(data, "fieldNames") and hasattr(data, "jsonValue")


def frame_rows(frame: Any) -> pa.Table:
    """The rows of a DataFrame; before Spark 4, by what its conversion to pandas is made of."""
    if hasattr(type(frame), "toArrow"):
        return frame.toArrow()
    if ".connect." in type(frame).__module__:
        client = frame.sparkSession.client
        rows, _ = client.to_table(frame._plan.to_proto(client))
        return rows
    batches = frame._collect_as_arrow()
    if batches:
        return pa.Table.from_batches(batches)
    return arrow_schema(spark_columns(frame.schema).values()).empty_table()


def spark_columns(schema: Any) -> dict[str, Field]:
    """The columns of a schema of Spark."""
    return dict(map(_spark_column, schema.jsonValue()["fields"]))


def _spark_column(field: Mapping[str, Any]) -> tuple[str, Field]:
    try:
        type_ = _spark_type(field["type"])
    except SchemaError as error:
        raise SchemaError(f'column "{field["name"]}": {error}') from None
    return field["name"], Field(field["name"], type_, field["nullable"])


def _spark_type(kind: Any) -> Type:
    """A type as Spark writes it in JSON."""
    match kind:
        case {"type": "array", "elementType": element}:
            return ARRAY(_spark_type(element))
        case {"type": "map", "keyType": key, "valueType": value}:
            return MAP(_spark_type(key), _spark_type(value))
        case {"type": "struct", "fields": fields}:
            return STRUCT(*(Field(each["name"], _spark_type(each["type"])) for each in fields))
    return parse_type(str(kind))
