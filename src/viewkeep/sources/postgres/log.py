"""The log of changed keys in PostgreSQL: a schema of its own, and triggers on captured tables.

viewkeep.tables    captured tables; a table that is captured anew has another `install`
viewkeep.readers   the lakes that follow a table, and how far each has told to have come
viewkeep.log       the keys that a transaction has changed; no key: any row may have changed

An entry has the number of its transaction. A position is a snapshot of PostgreSQL (the transactions
that it sees), so that transactions which commit later than others with greater numbers are neither
missed nor read twice. Rows are not in the log: who reads a key reads its row at the same snapshot,
so that neither the order of triggers nor changed columns matter. Triggers never fail because of
the table's columns, and wait for nobody.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from psycopg import Error, errors, sql

from viewkeep.sources.postgres.server import (
    TEXT_FORMS,
    Connection,
    SourceError,
    Text,
    one_row,
    told_errors,
)
from viewkeep.sources.postgres.source import SourceTable

Result = TypeVar("Result")

TRIGGERS = ("viewkeep_rows", "viewkeep_truncate")
LOCK_MILLISECONDS = 200
"""A lock on a table that writers use is waited for that long at once: they queue behind it."""
LOCK_TRIES = 50
LOCK_PAUSE = 0.2

_SCHEMA = """
CREATE SCHEMA viewkeep;
CREATE TABLE viewkeep.tables (
    tab int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation oid NOT NULL UNIQUE,
    install uuid NOT NULL DEFAULT gen_random_uuid());
CREATE TABLE viewkeep.readers (
    reader text NOT NULL,
    tab int NOT NULL REFERENCES viewkeep.tables ON DELETE CASCADE,
    round bigint NOT NULL,
    position pg_snapshot NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tab, reader));
CREATE TABLE viewkeep.log (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(), tab int NOT NULL, key text[]);
CREATE INDEX log_by_position ON viewkeep.log (tab, xid);
"""
_FIND = """
SELECT tab, format('%%s/%%s/%%s', (SELECT system_identifier FROM pg_control_system()),
                   (SELECT oid FROM pg_database WHERE datname = current_database()), install)
FROM viewkeep.tables WHERE relation = %s
AND (SELECT count(*) FROM pg_trigger
     WHERE tgrelid = relation AND tgenabled = 'A' AND tgname = ANY (%s)) = %s
"""
_FUNCTION = """
DECLARE old_key text[]; new_key text[];
BEGIN
    IF TG_LEVEL = 'ROW' THEN
        BEGIN
            IF TG_OP <> 'INSERT' THEN old_key := ARRAY[{old}]; END IF;
            IF TG_OP <> 'DELETE' THEN new_key := ARRAY[{new}]; END IF;
        EXCEPTION WHEN others THEN  -- a column of the key has another name now
            old_key := NULL; new_key := NULL;
        END;
    END IF;
    INSERT INTO viewkeep.log (tab, key) VALUES ({tab}, coalesce(new_key, old_key));
    IF old_key <> new_key THEN
        INSERT INTO viewkeep.log (tab, key) VALUES ({tab}, old_key);
    END IF;
    RETURN NULL;
END
"""
_UNREAD = """
FROM viewkeep.log WHERE tab = {tab} AND xid >= pg_snapshot_xmin({position}::pg_snapshot)
AND NOT pg_visible_in_snapshot(xid, {position}::pg_snapshot)
"""
_PRUNE = """
DELETE FROM viewkeep.log WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM viewkeep.log AS l WHERE tab = %(tab)s
    AND NOT EXISTS (SELECT FROM viewkeep.readers AS r
                    WHERE r.tab = l.tab AND NOT pg_visible_in_snapshot(l.xid, r.position))
    FOR UPDATE SKIP LOCKED))
"""


@dataclass(frozen=True)
class TableLog:
    """The log of a table: its number, and the identity that positions in it belong to."""

    tab: int
    identity: str


@dataclass(frozen=True)
class Reader:
    """What a lake has told of its position in the log of a table."""

    round: int
    position: str


# --- installed and removed ------------------------------------------------------------------------


def find_log(connection: Connection, source: SourceTable) -> TableLog | None:
    """The log of a table; None if there is none, or if one of its triggers is gone or disabled."""
    with told_errors("cannot look for the log"):
        if one_row(connection, sql.SQL("SELECT to_regclass('viewkeep.tables')"))[0] is None:
            return None
        values = source.oid, list(TRIGGERS), len(TRIGGERS)
        row = connection.execute(_FIND, values).fetchone()
    return None if row is None else TableLog(row[0], f"postgres {row[1]}")


def install_log(connection: Connection, source: SourceTable) -> TableLog:
    """The log of a table, made with its triggers where it is not there."""
    found = find_log(connection, source)
    if found is None:
        _patiently(connection, source, lambda: _create_log(connection, source))
        found = find_log(connection, source)
    if found is None:
        raise SourceError(f"the log of {source} was removed meanwhile; try again")
    return found


def _create_log(connection: Connection, source: SourceTable) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('viewkeep'))")
    if one_row(connection, sql.SQL("SELECT to_regnamespace('viewkeep')"))[0] is None:
        connection.execute(_SCHEMA)
    if find_log(connection, source) is not None:
        return
    _drop_triggers(connection, source)
    connection.execute("DELETE FROM viewkeep.tables WHERE relation = %s", (source.oid,))
    insert = sql.SQL("INSERT INTO viewkeep.tables (relation) VALUES (%s) RETURNING tab")
    [tab] = one_row(connection, insert, source.oid)
    connection.execute(_function(tab, source))
    function = sql.Identifier("viewkeep", f"note_{tab}")
    events = ("INSERT OR UPDATE OR DELETE", "TRUNCATE")
    for trigger, event, level in zip(TRIGGERS, events, ("ROW", "STATEMENT"), strict=True):
        connection.execute(
            sql.SQL(
                f"CREATE TRIGGER {{}} AFTER {event} ON {{}} FOR EACH {level} "
                "EXECUTE FUNCTION {}()"
            ).format(sql.Identifier(trigger), source.identifier, function)
        )
        connection.execute(
            sql.SQL("ALTER TABLE {} ENABLE ALWAYS TRIGGER {}").format(
                source.identifier, sql.Identifier(trigger)
            )
        )


def _function(tab: int, source: SourceTable) -> Text:
    """The function of a table's triggers: it runs with the rights of who made the log. Settings
    cost every row a few microseconds, so that only keys whose text depends on them have any."""
    keys = {
        which: sql.SQL(", ").join(
            sql.SQL("{}.{}::text").format(sql.SQL(which), sql.Identifier(each.name))
            for each in source.key
        )
        for which in ("OLD", "NEW")
    }
    body = sql.SQL(_FUNCTION).format(old=keys["OLD"], new=keys["NEW"], tab=sql.Literal(tab))
    settings = [
        sql.SQL("SET {} = {}").format(sql.SQL(name), sql.Literal(value))
        for name, value in (TEXT_FORMS if source.key_needs_settings else {}).items()
    ]
    name = sql.Identifier("viewkeep", f"note_{tab}")
    return sql.SQL(
        "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
        "SET search_path = pg_catalog, pg_temp {settings} AS {body}; "
        "REVOKE ALL ON FUNCTION {name}() FROM PUBLIC"
    ).format(
        name=name, settings=sql.SQL(" ").join(settings), body=sql.Literal(body.as_string(None))
    )


def remove_log(connection: Connection, source: SourceTable, reader: str) -> bool:
    """Forget a reader of a table; without others, its triggers go, and the schema with the last
    table. Whether the triggers are gone."""
    return _patiently(connection, source, lambda: _remove_log(connection, source, reader))


def _remove_log(connection: Connection, source: SourceTable, reader: str) -> bool:
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('viewkeep'))")
    if one_row(connection, sql.SQL("SELECT to_regclass('viewkeep.tables')"))[0] is None:
        return True
    row = connection.execute(
        "SELECT tab FROM viewkeep.tables WHERE relation = %s", (source.oid,)
    ).fetchone()
    if row is None:
        return True
    [tab] = row
    connection.execute("DELETE FROM viewkeep.readers WHERE tab = %s AND reader = %s", (tab, reader))
    others = sql.SQL("SELECT count(*) FROM viewkeep.readers WHERE tab = %s")
    if one_row(connection, others, tab)[0]:
        return False
    _drop_triggers(connection, source)
    function = sql.Identifier("viewkeep", f"note_{tab}")
    connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}()").format(function))
    connection.execute("DELETE FROM viewkeep.log WHERE tab = %s", (tab,))
    connection.execute("DELETE FROM viewkeep.tables WHERE tab = %s", (tab,))
    if not one_row(connection, sql.SQL("SELECT count(*) FROM viewkeep.tables"))[0]:
        connection.execute("DROP SCHEMA viewkeep CASCADE")
    return True


def _drop_triggers(connection: Connection, source: SourceTable) -> None:
    for trigger in TRIGGERS:
        connection.execute(
            sql.SQL("DROP TRIGGER IF EXISTS {} ON {}").format(
                sql.Identifier(trigger), source.identifier
            )
        )


def _patiently(connection: Connection, source: SourceTable, run: Callable[[], Result]) -> Result:
    """A transaction that needs a lock on a table, tried until no writer is in the way: it gives up
    waiting at once, since other writers queue behind it."""
    for _ in range(LOCK_TRIES):
        try:
            with connection.transaction():
                connection.execute(
                    "SELECT set_config('lock_timeout', %s, true)", (f"{LOCK_MILLISECONDS}ms",)
                )
                return run()
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            time.sleep(LOCK_PAUSE)
        except Error as error:
            problem = " ".join(str(error).split())
            raise SourceError(f"cannot change the triggers of {source}: {problem}") from None
    raise SourceError(
        f"{source} is written by transactions that take long, and its triggers cannot be changed "
        "between them; try again later"
    )


# --- readers --------------------------------------------------------------------------------------


def find_reader(connection: Connection, log: TableLog, reader: str) -> Reader | None:
    """What a lake has told of its position; None if it has not."""
    row = connection.execute(
        "SELECT round, position::text FROM viewkeep.readers WHERE tab = %s AND reader = %s",
        (log.tab, reader),
    ).fetchone()
    return None if row is None else Reader(*row)


def add_reader(connection: Connection, log: TableLog, reader: str) -> None:
    """Keep what comes into the log from now on for a lake."""
    connection.execute(
        "INSERT INTO viewkeep.readers (reader, tab, round, position)"
        " VALUES (%s, %s, 0, pg_current_snapshot()) ON CONFLICT DO NOTHING",
        (reader, log.tab),
    )


def acknowledge(connection: Connection, log: TableLog, reader: str, come: Reader) -> None:
    """Note that a lake has what its position sees, and drop entries that no lake needs."""
    connection.execute(
        "UPDATE viewkeep.readers SET round = %s, position = %s::pg_snapshot, at = now()"
        " WHERE tab = %s AND reader = %s AND round < %s",
        (come.round, come.position, log.tab, reader, come.round),
    )
    connection.execute(_PRUNE, {"tab": log.tab})


def unread(log: TableLog, position: str) -> Text:
    """The entries that a position does not see, as the FROM and WHERE of a query."""
    return sql.SQL(_UNREAD).format(tab=sql.Literal(log.tab), position=sql.Literal(position))


def has_unread(connection: Connection, log: TableLog, position: str) -> bool:
    """Whether there are entries that a position does not see."""
    query = sql.SQL("SELECT EXISTS (SELECT {})").format(unread(log, position))
    return bool(one_row(connection, query)[0])


def is_ahead(connection: Connection, position: str) -> bool:
    """Whether a position knows transactions that the server has not begun: it is of a server that
    went another way, or that was put back."""
    query = "SELECT pg_snapshot_xmax(%s::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot())"
    return bool(one_row(connection, sql.SQL(query), position)[0])
