"""The functions of Spark: none is called unknown, and what changes by itself is told apart."""

import re
from typing import TYPE_CHECKING

import pytest

from tests.sql.database import TABLES
from viewkeep.errors import ViewkeepError
from viewkeep.query.types.aggregates import AGGREGATES
from viewkeep.query.types.functions import BARE_FUNCTIONS, FUNCTIONS, NON_DETERMINISTIC
from viewkeep.sql.parse import parse_view
from viewkeep.sql.spark_functions import SPARK_FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Written between their arguments, or with keywords.
OPERATORS = {"and", "or", "not", "in", "between", "case", "when", "cast", "div"}
OPERATORS |= {"like", "rlike", "ilike", "regexp"}


def test_the_list_is_that_of_spark(spark: "SparkSession") -> None:
    listed = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    words = {name for name in listed if re.fullmatch(r"\w+", name)}
    assert words - OPERATORS == SPARK_FUNCTIONS


def _refusal(sql: str) -> str:
    try:
        parse_view(sql, TABLES)
    except ViewkeepError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("arguments", ["", "a", "a, a"])
def test_no_function_of_spark_is_unknown(arguments: str) -> None:
    for name in SPARK_FUNCTIONS:
        refusal = _refusal(f"SELECT {name}({arguments}) AS x FROM r")
        assert "unknown function" not in refusal, name
        now = name == "unix_timestamp" and not arguments
        assert ("non-deterministic" in refusal) == (name in NON_DETERMINISTIC or now), name


def test_the_lists_fit_together() -> None:
    assert NON_DETERMINISTIC <= SPARK_FUNCTIONS
    assert BARE_FUNCTIONS <= NON_DETERMINISTIC
    assert not NON_DETERMINISTIC & {*FUNCTIONS, *AGGREGATES}
