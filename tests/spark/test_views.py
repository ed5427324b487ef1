"""Views of every operator on Spark: after each batch equal to what Spark and DuckDB recompute."""

from random import Random
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from tests.diffs.random_tables import random_batch, random_database
from tests.diffs.views import TABLES, VIEWS
from tests.spark.kept import KeptView, check

BATCHES = 3
CHOSEN = (
    "selection with null logic",
    "computed columns",
    "dropped key",
    "case and functions of dates",
    "join on a key",
    "join on non-keys",
    "join with null-safe equality",
    "theta join",
    "cross join",
    "chain of joins",
    "self-join on non-keys",
    "in",
    "not in with nulls",
    "exists with an inequality",
    "not exists",
    "left join",
    "full join",
    "outer joins in a chain",
    "union all of different ids",
    "union",
    "except of several columns",
    "intersect",
    "distinct over a join",
    "averages",
    "sum of decimals",
    "minimum and maximum",
    "group keys that are null",
    "count distinct",
    "global aggregates",
    "having",
    "join and aggregate",
    "self-join and aggregate",
    "aggregate of an aggregate",
    "aggregate below a left join",
    "semijoin below an aggregate",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_a_view_stays_what_recomputation_gives(spark: SparkSession, name: str) -> None:
    """With ID-based and with tuple-based diffs."""
    rng = Random(crc32(name.encode()))
    database = random_database(TABLES, rng, rows=8)
    views = {
        mode: KeptView(spark, VIEWS[name], TABLES, database, tuple_based=mode == "tuple")
        for mode in ("id", "tuple")
    }
    check(views)
    for _ in range(BATCHES):
        changes = random_batch(views["id"].database, TABLES, rng, 6)
        for view in views.values():
            view.refresh(changes)
        check(views)
