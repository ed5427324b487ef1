"""The one DuckDB of a process: in memory, with the settings that results depend on."""

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.errors import cause
from viewkeep.execute.budget import interruptible
from viewkeep.execute.duckdb.dialect.python_functions import register_python_functions
from viewkeep.execute.errors import RunError


@lru_cache(maxsize=1)
def _process_database(process: int) -> duckdb.DuckDBPyConnection:
    """A database of a process: a fork has its own."""
    spill = os.path.join(tempfile.gettempdir(), f"viewkeep-duckdb-{process}")
    database = duckdb.connect(
        ":memory:", config={"temp_directory": spill, "autoinstall_known_extensions": "false"}
    )
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    register_python_functions(database)
    atexit.register(database.close)  # what is open at the end keeps the functions alive
    return database


@contextmanager
def open_connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose temporary tables and registered rows nobody else sees."""
    with (
        closing(_process_database(os.getpid()).cursor()) as connection,
        interruptible(connection.interrupt),
    ):
        yield connection


def arrow_rows(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """The rows of a query."""
    rows = connection.sql(query).to_arrow_table()
    assert rows is not None, "a query has rows, be they none"
    return rows


@contextmanager
def duckdb_errors(place: str) -> Iterator[None]:
    """Errors of DuckDB without the text that it ran, with the place where they happened."""
    try:
        yield
    except duckdb.Error as error:
        raise RunError(f"{place}: {cause(error)}") from error
