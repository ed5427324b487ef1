"""The views after the templates of TPC-DS: their texts are valid, and none stops at an error."""

import os

import duckdb
import pytest
from pyspark.sql import SparkSession

from bench.coverage import FOLDERS, coverage, read_queries, read_tables
from tests.transpile import to_duckdb
from viewkeep.execute.spark.driver.collect import spark_schema

TPCDS = FOLDERS["TPC-DS"]
NOT_FOR_DUCKDB = ("q36", "q70", "q86")
"""Windows over grouping(), which DuckDB does not order by."""


def test_there_is_a_view_for_each_template() -> None:
    assert list(read_queries(TPCDS)) == [f"q{number:02}" for number in range(1, 100)]
    assert len(read_tables(TPCDS)) == 24


def test_the_sql_is_valid() -> None:
    """Another engine runs schema and queries, on empty tables."""
    with duckdb.connect() as connection:
        connection.execute((TPCDS / "schema.sql").read_text())
        for name, sql in read_queries(TPCDS).items():
            if name not in NOT_FOR_DUCKDB:
                assert connection.execute(to_duckdb(sql)).description, name


@pytest.mark.skipif(not os.environ.get("VIEWKEEP_LONG"), reason="half a minute of analysis")
def test_spark_takes_every_query(spark: SparkSession) -> None:
    """So what the front end does not read is left to Spark, and not refused there."""
    own = spark.newSession()
    for name, table in read_tables(TPCDS).items():
        own.createDataFrame([], spark_schema(table.visible)).createOrReplaceTempView(name)
    for name, sql in read_queries(TPCDS).items():
        assert own.sql(sql).columns, name


@pytest.mark.parametrize("benchmark", FOLDERS)
def test_every_query_is_accepted(benchmark: str) -> None:
    folder = FOLDERS[benchmark]
    lines = coverage(read_queries(folder), read_tables(folder))
    assert [line for line in lines if not line.strategy] == []
