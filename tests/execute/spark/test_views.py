"""Views of every operator on Spark: after each batch equal to what Spark and DuckDB recompute."""

import os
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.diffs.random_tables import random_batch, random_database
from tests.diffs.views import TABLES, VIEWS
from tests.execute.spark.kept import KeptView, Tables, check, check_created, told
from viewkeep.execute.spark.run import LOCAL_ROWS

BATCHES = 3
TOGETHER = 8
"""How many views share tables, batches, and the job that asks Spark for its answers."""

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
CHOSEN = list(VIEWS) if LONG else list(VIEWS)[::2]
GROUPS = [CHOSEN[i : i + TOGETHER] for i in range(0, len(CHOSEN), TOGETHER)]
FEW = ["computed columns", "join on a key", "not exists", "sum and count"]
IN_SPARK = CHOSEN[::4] if LONG else FEW
"""Views that are also kept without the driver computing anything."""


def keep(
    spark: SparkSession, names: list[str], batches: int, seed: int, local_rows: int = LOCAL_ROWS
) -> None:
    """Keep views through batches, with ID-based and with tuple-based diffs."""
    rng = Random(seed)
    tables = Tables(spark, TABLES, random_database(TABLES, rng, rows=8))
    views = [
        KeptView(name, VIEWS[name], tables, mode == "tuple", local_rows, find_changed)
        for name in names
        for mode, find_changed in (("id", True), ("tuple", False))
    ]
    for _ in range(batches):
        changes = random_batch(tables.database, TABLES, rng, 6)
        tables.change(changes)
        for view in views:
            with told(view):
                view.refresh(changes)
        check(views)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_views_stay_what_recomputation_gives(spark: SparkSession, number: int) -> None:
    keep(spark, GROUPS[number], BATCHES, seed=number)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_SPARK)
def test_large_diffs_stay_in_spark(spark: SparkSession, name: str) -> None:
    keep(spark, [name], batches=1, seed=list(VIEWS).index(name), local_rows=0)


@pytest.mark.slow
def test_caches_and_views_are_created_as_they_are_defined(spark: SparkSession) -> None:
    tables = Tables(spark, TABLES, random_database(TABLES, Random(5), rows=8))
    names = [name for i, name in enumerate(VIEWS) if LONG or i % 6 == 0]
    check_created([KeptView(name, VIEWS[name], tables) for name in names])
