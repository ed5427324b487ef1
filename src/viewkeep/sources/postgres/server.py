"""A connection to PostgreSQL whose settings fix how values are written, and whose errors tell no
secrets."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
from psycopg import conninfo, sql

from viewkeep.errors import ViewkeepError

Connection: TypeAlias = psycopg.Connection[Any]
Text: TypeAlias = sql.Composable

TEXT_FORMS = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
}
"""How values are written: exactly, and alike by the log's triggers and by those who read it."""
OLDEST_SERVER = 130000
"""PostgreSQL 13 tells positions in 64 bits, which never come again."""
_SETTINGS = {**TEXT_FORMS, "row_security": "off", "client_encoding": "UTF8"}
_SECRET_LENGTH = 3
"""Parts of a password that are shorter stand in any message."""


class SourceError(ViewkeepError):
    """A database that cannot be read, or that is not the one that a table has followed."""


def connect(dsn: str) -> Connection:
    """A connection that commits each statement by itself, outside of transactions."""
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise SourceError(
            "the DSN cannot be read; write postgresql://user@host:5432/database, or "
            "host=... dbname=... user=..."
        ) from None
    try:
        connection = psycopg.connect(dsn, autocommit=True, application_name="viewkeep")
    except psycopg.Error as error:
        raise SourceError(_connection_problem(str(error), dsn, parts)) from None
    if connection.info.server_version < OLDEST_SERVER:
        connection.close()
        raise SourceError("the server is older than PostgreSQL 13, which is the oldest that works")
    for name, value in _SETTINGS.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    return connection


def _connection_problem(problem: str, dsn: str, parts: dict[str, Any]) -> str:
    """What libpq says, unless it quotes a part of a password: one that is not escaped in a URI is
    read as a host."""
    user_part = dsn.partition("://")[2].rpartition("@")[0]
    secrets = {str(parts.get("password") or ""), *re.split(r"[:@/?]", user_part)[1:]}
    if any(len(each) >= _SECRET_LENGTH and each in problem for each in secrets):
        return (
            "PostgreSQL cannot be reached with this DSN (why is not told, since the message quotes "
            "a part of the password; write %40 for @ and %2F for / in it)"
        )
    return f"PostgreSQL cannot be reached: {' '.join(problem.split())}"


@contextmanager
def told_errors(doing: str) -> Iterator[None]:
    """A block in which errors of PostgreSQL are told as those of a source."""
    try:
        yield
    except psycopg.Error as error:
        raise SourceError(f"{doing}: {' '.join(str(error).split()) or 'no answer'}") from None


@contextmanager
def one_snapshot(connection: Connection) -> Iterator[str]:
    """A transaction in which all queries see the same moment, which it tells."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield one_row(connection, sql.SQL("SELECT pg_current_snapshot()::text"))[0]


def one_row(connection: Connection, query: Text, *values: Any) -> tuple[Any, ...]:
    """The only row of a query."""
    row = connection.execute(query, values or None).fetchone()
    assert row is not None, "a query that has one row"
    return tuple(row)
