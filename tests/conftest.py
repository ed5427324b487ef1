"""Settings for all tests, and one Spark session: it takes longer to start than most tests take."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Machines are noisy: a slow example is not a wrong one. The blob repeats a failure elsewhere.
settings.register_profile("viewkeep", deadline=None, print_blob=True)
settings.load_profile("viewkeep")


def pytest_runtest_call() -> None:
    """Scripts do not give way to recomputation: that would hide what is wrong with them."""
    refresh = sys.modules.get("viewkeep.refresh.plan")
    if refresh is not None:
        refresh.FALLS_BACK = False  # type: ignore[attr-defined]


def connect_session(settings: dict[str, str]) -> "SparkSession":
    """A client of a Spark Connect server that is started beside the tests."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]")
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    from viewkeep.execute.spark.session import session

    # Compiling the code of a query takes longer than running it on a few rows.
    settings = {
        "spark__driver__memory": "4g" if os.environ.get("VIEWKEEP_LONG") else "2g",
        # Plans of thousands of queries would fill the memory.
        "spark__sql__ui__retainedExecutions": "10",
        "spark__ui__retainedJobs": "10",
        "spark__ui__retainedStages": "10",
        "spark__sql__codegen__wholeStage": "false",
        "spark__sql__codegen__factoryMode": "NO_CODEGEN",
        "spark__sql__leafNodeDefaultParallelism": "1",
        "spark__sql__shuffle__partitions": "1",
        "spark__sql__constraintPropagation__enabled": "false",
    }
    if os.environ.get("VIEWKEEP_CONNECT"):
        spark = connect_session(settings)
    else:
        spark = session(name="viewkeep tests", **settings)
    yield spark
    spark.stop()
