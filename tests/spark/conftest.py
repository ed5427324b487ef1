"""One Spark session for all tests: it takes longer to start than most tests take."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from viewkeep.spark.sessions import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Compiling the code of a query takes longer than running it on a few rows.
    settings = {
        "spark__driver__memory": "2g",
        "spark__sql__codegen__wholeStage": "false",
        "spark__sql__codegen__factoryMode": "NO_CODEGEN",
    }
    spark = session(name="viewkeep tests", **settings)
    yield spark
    spark.stop()
