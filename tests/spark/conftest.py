"""One Spark session for all tests: it takes longer to start than most tests take."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from viewkeep.spark.sessions import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    spark = session(name="viewkeep tests", spark__driver__memory="2g")
    yield spark
    spark.stop()
