"""Generated views kept by the keeper through generated histories, with Spark and without."""

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest
from pyspark.sql import SparkSession

from tests.generated.cases import LONG, Case
from tests.generated.lakes import alone, concerning, failures_in_lake, random_lake
from tests.generated.shrink import failure_of, shrink
from tests.generated.without_spark import run_without_spark

LAKES = 12 if LONG else 1
VIEWS = 8 if LONG else 4
STEPS = 4 if LONG else 2
BLOCKS = 20 if LONG else 1
BLOCK = 20 if LONG else 5
"""Lakes without Spark of one test."""
SECONDS = 300.0
"""Time to make a failure small: each try is a lake of its own."""


def fail(case: Case, run: Callable[[Case], object]) -> None:
    """Tell a failure in its smallest form."""
    small, failure = shrink(case, run, SECONDS)
    raise AssertionError(f"{small}\n{type(failure).__name__}: {failure}") from failure


@pytest.mark.slow
@pytest.mark.parametrize("number", range(BLOCKS))
def test_views_of_lakes_without_spark_stay_right(tmp_path: Path, number: int) -> None:
    """One view a lake, or two of which one may read the other; few of them need Spark."""
    finished = 0

    def run(case: Case) -> None:
        nonlocal finished
        finished += run_without_spark(case, Path(mkdtemp(dir=tmp_path)) / "lake")

    for seed in range(number * BLOCK, (number + 1) * BLOCK):
        case = random_lake(seed, views=1 + (seed % 3 == 0), steps=4)
        if failure_of(case, run) is not None:
            fail(case, run)
    assert finished >= BLOCK / 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(LAKES))
def test_views_of_a_lake_stay_right(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """By DuckDB after every refresh, and by Spark after the last."""
    case = random_lake(seed + 10_000, VIEWS, STEPS)
    for name in failures_in_lake(spark, case, tmp_path / "lake", with_spark=True):
        fail(concerning(case, name), lambda each: alone(spark, each, tmp_path))
