"""Delta scripts over tables of a DuckDB connection: computations, then all changes at once.

    create        the caches and the view, from their definitions over the tables as they are now
    run           one refresh: every Compute in order, then every Apply, in one transaction
    read          the view as its definition asked for it

    prepare       a script, to be run often: its text is made once
    run_prepared  one refresh by a prepared script

`sources` says where relations are: a base table by (name, "pre") and (name, "post"), everything
else (base diffs, caches, the view) by its name. Its values are DuckDB's text for a relation, with
names quoted. What is not given is looked for under its own name, but for tables before the
changes: there is no name that they would have of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import perf_counter

import duckdb

from viewkeep.diffs.script import Script
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.connection import duckdb_errors
from viewkeep.execute.duckdb.dialect.python_functions import register_python_functions
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.prepared import PreparedNames, PreparedScript, Sources
from viewkeep.execute.duckdb.run import StatementRunner
from viewkeep.execute.errors import RunError
from viewkeep.execute.report import RunReport


def create(connection: duckdb.DuckDBPyConnection, script: Script, sources: Sources) -> None:
    """Create the caches and the view, filled, in one transaction."""
    names = PreparedNames(script, sources)
    register_python_functions(connection)
    with _connection_transaction(connection):
        for relation in script.materialized:
            rows = statements.query(relation.definition, names.resolve)
            with duckdb_errors(f"CREATE {relation.name}"):
                connection.execute(f"CREATE TABLE {names.stored(relation.name)} AS {rows}")


def run_in_connection(
    connection: duckdb.DuckDBPyConnection,
    script: Script,
    sources: Sources,
    count_accesses: bool = False,
) -> RunReport:
    """Refresh the caches and the view; an error leaves everything as it was."""
    return run_prepared(connection, prepare(script, sources), count_accesses)


def prepare(script: Script, sources: Sources) -> PreparedScript:
    """The script for relations that stay where they are; any number of refreshes can use it."""
    return PreparedScript(script, sources)


def run_prepared(
    connection: duckdb.DuckDBPyConnection, prepared: PreparedScript, count_accesses: bool = False
) -> RunReport:
    """What `run_in_connection` does, by a prepared script."""
    start = perf_counter()
    this = StatementRunner(connection, prepared, count_accesses)
    with _connection_transaction(connection):
        this.count_inputs()
        computed = [this.compute(statement) for statement in prepared.computes]
        applied = [this.apply(change) for change in prepared.changes]
        this.drop()
    return RunReport((*computed, *applied), perf_counter() - start)


def read(
    connection: duckdb.DuckDBPyConnection, script: Script, sources: Sources | None = None
) -> duckdb.DuckDBPyRelation:
    """The view with the columns that its definition asked for, under the user's names."""
    columns = ", ".join(
        f"{quote_name(stored)} AS {quote_name(name)}" for name, stored in script.visible
    )
    view = PreparedNames(script, sources or {}).stored(script.view.name)
    return connection.sql(f"SELECT {columns} FROM {view}")


@contextmanager
def _connection_transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    if _is_in_transaction(connection):  # DuckDB has no nested ones, and an error would end this one
        raise RunError("the connection is inside a transaction; commit it first")
    connection.begin()
    try:
        yield
        with duckdb_errors("COMMIT"):
            connection.commit()
    except BaseException:
        with suppress(duckdb.TransactionException):  # a commit that failed has rolled back
            connection.rollback()
        raise


def _is_in_transaction(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether two statements share a transaction, as they only do inside an explicit one."""
    first, second = (connection.execute("SELECT txid_current()").fetchone() for _ in range(2))
    return first == second
