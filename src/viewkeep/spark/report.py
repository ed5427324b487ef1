"""What a refresh did, statement by statement; and how its errors are told."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
from pyspark.errors import PySparkException

from viewkeep.errors import ViewkeepError

SPARK_ERRORS = (PySparkException, Py4JError)


class RunError(ViewkeepError):
    """A statement of a script that failed; no DataFrame was changed."""


@dataclass(frozen=True)
class StatementReport:
    """What one statement did.

    `rows` are those of the diff that it computed or applied, `reads` those of the collected diffs
    that it read; None where they are not known because the rows stayed in Spark. `seconds` of
    statements that one job computed are equal shares of its time. `accesses` are index look-ups
    and tuple accesses (id_based_ivm, appendix A), where they were counted.
    """

    name: str
    kind: str
    rows: int | None
    seconds: float
    reads: int | None = None
    accesses: int | None = None


@dataclass(frozen=True)
class RunReport:
    """What a refresh did, and how many Spark jobs it took."""

    statements: tuple[StatementReport, ...]
    seconds: float
    jobs: int

    @property
    def accesses(self) -> int | None:
        """The accesses of all statements, where they were counted."""
        counts = [each.accesses for each in self.statements]
        return None if None in counts else sum(count or 0 for count in counts)


@contextmanager
def named(statement: str) -> Iterator[None]:
    """Errors of Spark with the statement's name."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise RunError(f"{statement}: {error}") from error
