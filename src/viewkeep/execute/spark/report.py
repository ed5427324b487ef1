"""What a refresh did, statement by statement; and how its errors are told."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import PySparkException

from viewkeep.errors import reason
from viewkeep.execute.errors import RunError
from viewkeep.execute.report import RunReport


def _spark_errors() -> tuple[type[Exception], ...]:
    """Errors of Spark, and those of its driver; a client of Spark Connect has no driver here."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
    except ImportError:
        return (PySparkException,)
    return (PySparkException, Py4JError)


SPARK_ERRORS = _spark_errors()


@dataclass(frozen=True)
class SparkReport(RunReport):
    """What a refresh did, and how many Spark jobs it took.

    What a statement reads is known if it was computed on the driver: the rows of the diffs, and
    those that it looked up. `seconds` of statements that wait for the same job are equal shares of
    its time. The rows that a change writes are known if the run was asked to find them, or had
    them at hand.
    """

    jobs: int = 0


@contextmanager
def name_in_errors(statement: str) -> Iterator[None]:
    """Errors of Spark with the statement's name."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise RunError(f"{statement}: {reason(error)}") from error
