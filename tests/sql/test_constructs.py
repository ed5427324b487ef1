"""The page of constructs is what the planner answers, and nothing that has an answer is refused."""

import os

import pytest
from pyspark.sql import SparkSession

from bench.constructs import CONSTRUCTS, PAGE, TABLES, lines, page
from viewkeep.execute.spark.driver.collect import spark_schema
from viewkeep.sql.schema import read_schema
from viewkeep.sql.view_statement import read_view_statement


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text() == page(), "run python -m bench.constructs --docs"


def test_only_what_has_no_stable_answer_is_refused() -> None:
    for part in CONSTRUCTS:
        for line in lines(part):
            assert line.kept.startswith("refused") == (part == "Never"), line


@pytest.mark.skipif(not os.environ.get("VIEWKEEP_LONG"), reason="half a minute of analysis")
def test_spark_takes_every_construct(spark: SparkSession) -> None:
    own = spark.newSession()
    for name, table in read_schema(TABLES).items():
        own.createDataFrame([], spark_schema(table.visible)).createOrReplaceTempView(name)
    for part in CONSTRUCTS.keys() - {"Never"}:
        for name, sql in CONSTRUCTS[part].items():
            assert own.sql(read_view_statement(sql).query).columns, name
