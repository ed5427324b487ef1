"""Spark sessions: a small local one, and one that is started when it is first used."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from viewkeep.errors import ArgumentError
from viewkeep.execute.errors import SparkStartError
from viewkeep.execute.spark.files import WRITE_SETTINGS, read_frame
from viewkeep.execute.spark.user_functions import register_functions
from viewkeep.execute.spark.versions import frame_of_arrow, is_connect, new_session, parallelism
from viewkeep.query.expressions import back_quote
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import Snapshot

Frame = DataFrame
Session = SparkSession | Callable[[], SparkSession]
"""A session, or what starts one."""

_CONTEXT_LOGGER = "SQLQueryContextLogger"
"""Where pyspark writes every error once more, with its plan and all calls of Java."""

NEEDED_JAVA = 17
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(cores: int = 2, name: str = "viewkeep", **settings: str) -> SparkSession:
    """A session on this machine: few shuffle partitions, no pages, errors only in the log.

    A name of a setting is written with `__` for every dot: `spark__sql__codegen__wholeStage`.
    """
    _run_workers_in_this_python()
    builder = SparkSession.Builder()
    for key, value in _session_settings(cores, name, settings).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _run_workers_in_this_python() -> None:
    """User-defined functions run in the Python that has what this process has."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def local_session(
    log: str = os.devnull, functions: Mapping[str, Any] | None = None
) -> SparkSession:
    """The session that is active, or one with all cores and half of the memory of this machine,
    with some user-defined functions.

    What Spark itself has to say goes to the file `log`.
    """
    spark = _start_local_session(log)
    register_functions(spark, functions or {})
    return spark


def _start_local_session(log: str) -> SparkSession:
    _context_logger().setLevel(logging.CRITICAL)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    from pyspark import SparkConf, SparkContext  # clients of Spark Connect have none
    from pyspark.java_gateway import launch_gateway

    _run_workers_in_this_python()
    cores, memory = os.cpu_count() or 2, {"spark__driver__memory": f"{_memory_megabytes() // 2}m"}
    conf = SparkConf().setAll(list(_session_settings(cores, "viewkeep", memory).items()))
    try:
        with open(log, "ab") as file:
            gateway = launch_gateway(conf, {"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]
        SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, OSError) as error:
        raise SparkStartError(
            f"Spark could not be started. It needs Java {NEEDED_JAVA} or newer: install it, "
            f"e.g. apt-get install openjdk-{NEEDED_JAVA}-jre-headless (Debian, Ubuntu) or "
            f"brew install openjdk@{NEEDED_JAVA} (macOS), and set JAVA_HOME if there are "
            f"several ({str(error).splitlines()[0]})"
        ) from error
    return session(cores, **memory)


@contextmanager
def quiet_errors() -> Iterator[None]:
    """Errors that are expected are not written to the log of pyspark."""
    logger = _context_logger()
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _context_logger() -> logging.Logger:
    """The logger of pyspark 4, which takes fields besides its text: a plain one of the same name,
    if it were there first, would fail with them."""
    with suppress(ImportError):
        from pyspark.logger import PySparkLogger

        return PySparkLogger.getLogger(_CONTEXT_LOGGER)
    return logging.getLogger(_CONTEXT_LOGGER)


def _session_settings(cores: int, name: str, more: Mapping[str, str]) -> dict[str, str]:
    return {
        **_SETTINGS,
        "spark.master": f"local[{cores}]",
        "spark.app.name": name,
        "spark.sql.shuffle.partitions": str(cores),
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def checked_session(spark: Session) -> Session:
    """The session, or an error if it is none and starts none."""
    if callable(spark) or hasattr(type(spark), "createDataFrame"):
        return spark
    raise ArgumentError(
        f"spark={spark!r}: expected a SparkSession, or a function that starts one, such as "
        "viewkeep.keeper.local_session"
    )


def own_session(spark: Session) -> SparkSession:
    """A lake's own session beside the user's; what starts one is called when work asks for it."""
    user = checked_session(spark)
    start = (lambda: user()) if callable(user) else (lambda: user)
    return cast(SparkSession, _LakeSession(start))


def read_version(
    spark: Session, table: LakeTable, snapshot: Snapshot, names: Sequence[str]
) -> DataFrame:
    """Some columns of a version, as a DataFrame of the user's session."""
    user = spark() if callable(spark) else spark
    return read_frame(user, table, snapshot, snapshot.files).select(*map(back_quote, names))


def arrow_frame(spark: Session, rows: Any) -> DataFrame:
    """The rows of an Arrow table, as a DataFrame of the user's session."""
    user = spark() if callable(spark) else spark
    return frame_of_arrow(user, rows)


def lazy_session(start: Callable[[], SparkSession]) -> SparkSession:
    """A proxy of a session that is started when an attribute of it is first read."""
    return cast(SparkSession, _LazySession(start))


class _LazySession:
    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start, self.is_started = start, False
        self._session: SparkSession | None = None

    def __getattr__(self, name: str) -> Any:
        if self._session is None:
            self._session, self.is_started = self._start(), True
        return getattr(self._session, name)

    def unwrapped(self) -> SparkSession:
        """The session itself."""
        self.__getattr__("conf")
        assert self._session is not None
        return self._session


class _LakeSession(_LazySession):
    """A lake's own session, which knows the functions of the user's."""

    def __init__(self, user: Callable[[], SparkSession]) -> None:
        super().__init__(self._start_session)
        self._user = user

    def _start_session(self) -> SparkSession:
        self._begun_from = self._user()
        return lake_session(self._begun_from)

    def share_functions(self) -> None:
        """Take over the functions that the user has registered since."""
        if self._session is not None:
            share_functions(self._begun_from, self._session)


def share_functions(user: SparkSession, own: SparkSession) -> None:
    """Give a session the functions of another that are of that session only, as they are now.

    Sessions of Spark Connect have no way to do that, but to begin with them (`new_session`).
    """
    if is_connect(user):
        return
    try:
        theirs, ours = (
            cast(Any, each)._jsparkSession.sessionState().functionRegistry() for each in (user, own)
        )
        names = theirs.listFunction().diff(_builtin_functions(own))
    except AttributeError:
        return
    for name in (names.apply(place) for place in range(names.size())):
        information, builder = theirs.lookupFunction(name), theirs.lookupFunctionBuilder(name)
        if information.isDefined() and builder.isDefined():
            ours.registerFunction(name, information.get(), builder.get())


def _builtin_functions(spark: SparkSession) -> Any:
    """The names of the functions that every session has."""
    catalyst = cast(Any, spark)._jvm.org.apache.spark.sql.catalyst
    return catalyst.analysis.FunctionRegistry.builtin().listFunction()


def _memory_megabytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)
    except (ValueError, OSError, AttributeError):  # not on every system
        return 4096


_LAKE_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    **WRITE_SETTINGS,
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Listing a few hundred files is faster here than by a job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # What Spark infers from the conditions of a long script grows exponentially with its joins.
    "spark.sql.constraintPropagation.enabled": "false",
}
"""What results depend on, and whether they come at all, whatever the user has set."""


def lake_session(spark: SparkSession) -> SparkSession:
    """A session beside the user's, so that settings of the user change no results."""
    own = new_session(spark)
    share_functions(spark, own)
    for name, value in _LAKE_SETTINGS.items():
        own.conf.set(name, value)
    # Small diffs gain nothing from the many partitions that a cluster's tables may need.
    requested = int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
    cores = parallelism(spark)
    own.conf.set("spark.sql.shuffle.partitions", str(min(requested, max(8, 4 * cores))))
    return own
