"""How many Spark jobs a piece of work takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import SparkSession

_GROUP = "spark.jobGroup.id"


class Jobs:
    """The jobs of a group."""

    def __init__(self, spark: SparkSession, group: str) -> None:
        self._spark, self._group = spark, group

    @property
    def count(self) -> int:
        """How many were started so far."""
        tracker = self._spark.sparkContext.statusTracker()
        return len(tracker.getJobIdsForGroup(self._group))


@contextmanager
def counted_jobs(spark: SparkSession) -> Iterator[Jobs]:
    """Work whose jobs are counted; jobs of a group inside it are not."""
    context = spark.sparkContext
    before, group = context.getLocalProperty(_GROUP), f"viewkeep {uuid4()}"
    context.setLocalProperty(_GROUP, group)
    try:
        yield Jobs(spark, group)
    finally:
        context.setLocalProperty(_GROUP, before)  # type: ignore[arg-type]  # None removes it
