"""The columns of new tables, from text and from schemas of Spark."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from viewkeep.errors import SchemaError
from viewkeep.lake.create_table import declared_table, has_rows

TEXTS = [
    "k int",
    "k INT NOT NULL, name STRING, price DECIMAL(10, 2)",
    "k: bigint, `a b` array<struct<x:int,`y z`:map<string,decimal(4,1)>>>",
    "k LONG COMMENT 'a, b (c', b boolean not null comment 'd'",
    "k smallint, `tick``ed` binary, t timestamp, n timestamp_ntz, d date, f float, x double",
    "k tinyint, v varchar(10), c char(3), de dec(5), nu numeric(7,3), i integer",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.usefixtures("spark")
def test_text_is_read_as_spark_reads_it(text: str) -> None:
    schema = StructType.fromDDL(text)
    assert declared_table(text, ["k"], {}) == declared_table(schema, ["k"], {})
    assert not has_rows(text)
    assert not has_rows(schema)


def test_a_frame_of_spark_has_columns_and_rows(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, [None])], TEXTS[2])
    assert declared_table(frame, ["k"], {}) == declared_table(TEXTS[2], ["k"], {})
    assert has_rows(frame)


@pytest.mark.parametrize("text", ["", "k", "int", "k int,", "k int k2 int", "kint", "k whatever"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"no list of columns|unknown type"):
        declared_table(text, ["k"], {})


def test_a_column_stands_once() -> None:
    with pytest.raises(SchemaError, match='"k" stands twice'):
        declared_table("k int, k string", ["k"], {})
