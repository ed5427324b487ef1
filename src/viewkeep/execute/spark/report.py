"""What a refresh did, statement by statement; and how its errors are told."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
from pyspark.errors import PySparkException

from viewkeep.diffs.report import RunReport
from viewkeep.errors import ViewkeepError, brief, cause

SPARK_ERRORS = (PySparkException, Py4JError)


class RunError(ViewkeepError):
    """A statement of a script that failed; no DataFrame was changed."""


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
def named(statement: str) -> Iterator[None]:
    """Errors of Spark with the statement's name."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise RunError(f"{statement}: {reason(error)}") from error


def problem_of(error: Exception) -> str:
    """An error as one view's problem; one that nobody foresaw has its type before it.

    >>> problem_of(KeyError("x"))
    "unexpected KeyError: 'x'"
    """
    if isinstance(error, (ViewkeepError, *SPARK_ERRORS)):
        return reason(error)
    return f"unexpected {type(error).__name__}: {reason(error)}"


def reason(error: Exception) -> str:
    """What Spark complains of: the innermost cause, without the calls that led to it.

    >>> reason(ValueError("calling o1\\n: aborted\\n\\tat A\\nCaused by: B: full\\n\\tat C"))
    'B: full'
    """
    if not isinstance(error, ViewkeepError):
        return cause(error)
    lines = brief(error).split("\n")
    causes = [each.removeprefix("Caused by: ") for each in lines if each.startswith("Caused by: ")]
    return causes[-1] if causes else "\n".join(each for each in lines if each[:4] != "\tat ")
