"""The engines of a lake, and which of them does a piece of work.

Results are those of Spark in ANSI mode. DuckDB, on the driver, does what it is known to compute
in the same way (`duckdb/exact.py`) and what has at most `limit` bytes to read; Spark does the rest.
A lake without Spark has no limit, and refuses by name what DuckDB is not known to compute so.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any, Protocol

from viewkeep.errors import ArgumentError, QueryError
from viewkeep.execute.backend import Backend
from viewkeep.execute.errors import NeedsSparkError
from viewkeep.execute.scans import SizedScans
from viewkeep.query.types.data_types import Type
from viewkeep.query.types.inference import Schema
from viewkeep.query.verbatim import Query, Verbatim
from viewkeep.tables.files.rewrite import DRIVER_BYTES as REWRITE_BYTES
from viewkeep.tables.files.rewrite import JOB_BYTES
from viewkeep.tables.files.scans import Scans

CHOICES = ("auto", "spark", "duckdb")
DRIVER_BYTES = 1 << 30
"""The most bytes of files that DuckDB reads on the driver of a lake that has Spark."""


@dataclass(frozen=True)
class Choice:
    """The engine of a piece of work that reads so many bytes, and why it is this one."""

    backend: str
    reason: str
    size: int = 0


class JobCount(Protocol):
    """Spark jobs."""

    @property
    def count(self) -> int:
        """How many were started so far."""


class NoJobs:
    """Work without Spark."""

    count = 0


@dataclass(frozen=True)
class Engines:
    """The engines of a lake; `spark` is a session, started when it is first used."""

    spark: Any = None
    forced: str = "auto"
    limit: int = DRIVER_BYTES
    _problems: dict[int, tuple[tuple[Query, ...], str | None]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def forcing(self, backend: str | None) -> "Engines":
        """The same engines, one of which is to be used; None leaves the choice."""
        if backend is None or backend == self.forced:
            return self
        return replace(self, forced=check_choice(backend, self.spark))

    def choose(self, queries: tuple[Query, ...], size: int) -> Choice:
        """The engine of some queries that read so many bytes."""
        if self.forced == "spark":
            return Choice("spark", "backend=spark", size)
        problem = self.problem(queries)
        if problem is not None:
            if self.spark is None or self.forced == "duckdb":
                raise NeedsSparkError(
                    f"{problem}, so it needs Spark: "
                    + ('use backend="auto"' if self.spark is not None else "Keeper(path, spark)")
                )
            return Choice("spark", problem, size)
        if self.spark is None or self.forced == "duckdb":
            why = "backend=duckdb" if self.spark is not None else "no Spark"
            return Choice("duckdb", why, size)
        if size > self.limit:
            return Choice("spark", f"{size:,} bytes to read, more than {self.limit:,}", size)
        return Choice("duckdb", f"{size:,} bytes to read", size)

    def problem(self, queries: tuple[Query, ...]) -> str | None:
        """Why DuckDB would not compute some queries as Spark does; found once for a view's."""
        entry = self._problems.get(id(queries))
        if entry is None or entry[0] is not queries:
            entry = self._problems[id(queries)] = (queries, self._problem_of_queries(queries))
        return entry[1]

    def _problem_of_queries(self, queries: Iterable[Query]) -> str | None:
        inexact = import_module("viewkeep.execute.duckdb.exact").inexact
        for each in queries:
            if isinstance(each, Verbatim):
                return each.reason
            reason: str | None = inexact(each)
            if reason is not None:
                return f"DuckDB is not known to compute this as Spark does: {reason}"
        return None

    @property
    def reads_any_sql(self) -> bool:
        """Whether SQL outside the front end can be computed here."""
        return self.spark is not None and self.forced != "duckdb"

    def columns(self, query: Verbatim) -> Schema:
        """The columns that Spark gives a query; an error that tells what Spark says against it."""
        self._share_functions()
        analyze = import_module("viewkeep.execute.spark.verbatim").analyzed_columns
        columns: Schema = analyze(self.spark, query)
        return columns

    def expression_type(self, text: str, arguments: Sequence[Type]) -> str | None:
        """The type that Spark gives an expression over columns `a0`, `a1`, ...; None if none."""
        self._share_functions()
        analyze = import_module("viewkeep.execute.spark.verbatim").expression_type
        type_text: str | None = analyze(self.spark, text, arguments)
        return type_text

    def __getitem__(self, name: str) -> Backend:
        if name == "duckdb":
            return self._duckdb_backend
        self._share_functions()
        return self._spark_backend

    def _share_functions(self) -> None:
        """Let the lake's session know the functions that the user's has got since."""
        share = getattr(type(self.spark), "share_functions", None)
        if share is not None:
            share(self.spark)

    @cached_property
    def _duckdb_backend(self) -> Backend:
        module = import_module("viewkeep.execute.duckdb.backend")
        engine: Backend = module.DuckdbBackend(few_rows=self.forced != "duckdb")
        return engine

    @cached_property
    def _spark_backend(self) -> Backend:
        if self.spark is None:
            raise NeedsSparkError("this lake was opened without Spark: Keeper(path, spark)")
        engine: Backend = import_module("viewkeep.execute.spark.backend").SparkBackend(self.spark)
        return engine

    @cached_property
    def scans(self) -> Scans:
        """What reads and writes files that are too large for the driver's memory."""
        small: Scans = import_module("viewkeep.execute.duckdb.scans").DuckdbScans()
        if self.spark is None or self.forced == "duckdb":
            return small
        large: Scans = import_module("viewkeep.execute.spark.scans").SparkScans(self.spark)
        return large if self.forced == "spark" else SizedScans(small, large, self.limit)

    @property
    def rewrite_bytes(self) -> int:
        """The most bytes of a table's files that are rewritten in memory, and not by a job."""
        return JOB_BYTES if self.forced == "spark" else REWRITE_BYTES

    @contextmanager
    def counted_jobs(self) -> Iterator[JobCount]:
        """Work whose Spark jobs are counted."""
        if self.spark is None or not vars(self.spark).get("is_started", True):
            yield NoJobs()
            return
        with import_module("viewkeep.execute.spark.versions").counted_jobs(self.spark) as jobs:
            yield jobs


def open_engines(spark: Any, backend: str, driver_bytes: int) -> Engines:
    """The engines of a lake, as a user asks for them."""
    if driver_bytes < 0:
        raise ArgumentError(f"driver_bytes={driver_bytes}: expected a number from 0")
    return Engines(spark, check_choice(backend, spark), driver_bytes)


def check_choice(backend: str, spark: Any) -> str:
    """Refuse the name of no engine, and Spark where there is none."""
    if backend not in CHOICES:
        raise QueryError(f'backend="{backend}": give one of {", ".join(CHOICES)}')
    if backend == "spark" and spark is None:
        raise NeedsSparkError('backend="spark" needs a session: Keeper(path, spark)')
    return backend
