"""Tables of PostgreSQL, captured: each committed change once, in whatever order they commit."""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from tests.cli.lakes import done, viewkeep
from tests.keeper.faults import fault
from tests.keeper.lakes import check, check_replayed
from tests.keeper.test_watch import wait_for
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake import transactions

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
PASSWORD = "s3cret-w0rd"
Row = tuple[Any, ...]

ORDERS = "CREATE TABLE orders (oid int PRIMARY KEY, account int NOT NULL, price int)"
ACCOUNTS = "CREATE TABLE accounts (aid int PRIMARY KEY, spent int NOT NULL)"
SPENT = "SELECT account, count(*) AS orders, sum(price) AS spent FROM orders GROUP BY account"
JOINED = (
    "SELECT a.aid, a.spent, count(o.oid) AS orders FROM accounts a "
    "LEFT JOIN orders o ON o.account = a.aid GROUP BY a.aid, a.spent"
)


@pytest.fixture
def dsn(server: str, request: pytest.FixtureRequest) -> str:
    """A database of its own for each test."""
    name = re.sub(r"\W", "_", request.node.name)[:60].lower()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    return server.replace("/postgres", f"/{name}")


@pytest.fixture
def database(dsn: str) -> Iterator[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(tmp_path / "lake", durable=False)


def rows(keeper: Keeper, name: str) -> list[Row]:
    return sorted(tuple(row.values()) for row in keeper.read(name).to_pylist())


def expect_equal(keeper: Keeper, database: Any, *names: str) -> None:
    for name in names:
        assert rows(keeper, name) == sorted(database.execute(f"SELECT * FROM {name}").fetchall())


# --- what changes ---------------------------------------------------------------------------------


def test_rows_then_changes_then_nothing(keeper: Keeper, database: Any, dsn: str) -> None:
    database.execute(ORDERS)
    database.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 1, 20), (3, 2, NULL)")
    with keeper.capture(dsn, ["orders"]) as capture:
        [report] = capture.catch_up()
        assert (report.rows, report.is_whole, report.changed) == (3, True, True)
        keeper.create_view("spent", SPENT)
        database.execute("UPDATE orders SET price = 11 WHERE oid = 1")
        database.execute("UPDATE orders SET oid = 4 WHERE oid = 2")
        database.execute("DELETE FROM orders WHERE oid = 3")
        database.execute("INSERT INTO orders VALUES (3, 3, 30)")
        [report] = capture.catch_up()
        assert (report.rows, report.is_whole) == (4, False)
        expect_equal(keeper, database, "orders")
        assert not capture.catch_up()[0].changed
        assert database.execute("SELECT count(*) FROM viewkeep.log").fetchone() == (0,)
        database.execute("TRUNCATE orders")
        database.execute("INSERT INTO orders VALUES (7, 7, 7)")
        assert capture.catch_up()[0].is_whole
    keeper.refresh()
    assert rows(keeper, "spent") == [(7, 1, 7)]
    check(keeper)
    check_replayed(keeper)


def test_transactions_that_commit_out_of_order(keeper: Keeper, database: Any, dsn: str) -> None:
    """The log entries of the first transaction are older than those that were read before it."""
    database.execute(ORDERS)
    capture = keeper.capture(dsn, ["orders"])
    capture.catch_up()
    with psycopg.connect(dsn) as early, psycopg.connect(dsn) as undone:
        early.execute("INSERT INTO orders VALUES (1, 1, 1)")
        undone.execute("INSERT INTO orders VALUES (9, 9, 9)")
        database.execute("INSERT INTO orders VALUES (2, 2, 2)")
        capture.catch_up()
        assert rows(keeper, "orders") == [(2, 2, 2)]
        database.execute("BEGIN")
        database.execute("SAVEPOINT s")
        database.execute("INSERT INTO orders VALUES (3, 3, 3)")
        database.execute("ROLLBACK TO s")
        database.execute("INSERT INTO orders VALUES (4, 4, 4)")
        database.execute("PREPARE TRANSACTION 'later'")
        capture.catch_up()
        early.commit()
        undone.rollback()
        capture.catch_up()
        assert rows(keeper, "orders") == [(1, 1, 1), (2, 2, 2)]
        database.execute("COMMIT PREPARED 'later'")
        assert capture.catch_up()[0].rows == 1
    expect_equal(keeper, database, "orders")
    capture.close()


def test_random_transactions_one_after_the_other(keeper: Keeper, database: Any, dsn: str) -> None:
    database.execute(ORDERS)
    database.execute(ACCOUNTS)
    random = Random(18)
    capture = keeper.capture(dsn, ["orders", "accounts"])
    capture.catch_up()
    keeper.create_view("spent", SPENT)
    keeper.create_view("joined", JOINED)
    for _ in range(40 if LONG else 6):
        for _ in range(random.randrange(4)):
            with database.transaction(force_rollback=random.random() < 0.2):
                random_statements(database, random)
        capture.catch_up()
        expect_equal(keeper, database, "orders", "accounts")
    capture.close()
    keeper.refresh()
    check(keeper)
    check_replayed(keeper)


def random_statements(database: Any, random: Random) -> None:
    for _ in range(random.randrange(1, 5)):
        key, other, price = (random.randrange(12) for _ in range(3))
        match random.randrange(7):
            case 0 | 1:
                database.execute(
                    "INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT (oid) DO UPDATE "
                    "SET price = EXCLUDED.price",
                    (key, other, price),
                )
            case 2:
                database.execute("UPDATE orders SET price = %s WHERE oid > %s", (price, key))
            case 3:  # keys move
                database.execute(
                    "UPDATE orders SET oid = %s WHERE oid = %s AND NOT EXISTS "
                    "(SELECT FROM orders WHERE oid = %s)",
                    (key, other, key),
                )
            case 4:
                database.execute("DELETE FROM orders WHERE oid = %s", (key,))
            case 5:
                database.execute(
                    "INSERT INTO accounts SELECT DISTINCT account, 0 FROM orders "
                    "ON CONFLICT (aid) DO UPDATE SET spent = accounts.spent + 1"
                )
            case 6 if random.random() < 0.1:
                database.execute("TRUNCATE orders")


def test_triggers_that_change_other_rows_of_the_statement(
    keeper: Keeper, database: Any, dsn: str
) -> None:
    """Such changes are logged before those of the statement that causes them."""
    database.execute(ORDERS)
    database.execute("INSERT INTO orders VALUES (1, 1, 0), (2, 1, 0), (3, 1, 0)")
    database.execute(
        "CREATE FUNCTION raise_others() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF pg_trigger_depth() = 1 THEN UPDATE orders SET price = price + 10 WHERE oid <> NEW.oid; "
        "END IF; RETURN NULL; END $$"
    )
    database.execute(
        "CREATE TRIGGER a_first AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION raise_others()"
    )
    with keeper.capture(dsn, ["orders"]) as capture:
        capture.catch_up()
        database.execute("UPDATE orders SET price = price + 1")
        capture.catch_up()
    expect_equal(keeper, database, "orders")


def test_keys_that_swap_within_a_statement(keeper: Keeper, database: Any, dsn: str) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, name text)")
    database.execute("INSERT INTO t SELECT n, 'n' || n FROM generate_series(1, 5) n")
    with keeper.capture(dsn, ["t"]) as capture:
        capture.catch_up()
        database.execute("UPDATE t SET id = 6 - id")
        database.execute("UPDATE t SET id = id + 1")
        capture.catch_up()
    expect_equal(keeper, database, "t")


# --- writers --------------------------------------------------------------------------------------


def test_writers_at_the_same_time(
    keeper: Keeper, database: Any, dsn: str, monkeypatch: Any
) -> None:
    """Views are what PostgreSQL answers at the very snapshot that was captured."""
    from viewkeep.sources.postgres import capture as module

    writers, each_writes = (4, 2500) if LONG else (4, 30)
    database.execute(ORDERS)
    database.execute(ACCOUNTS)
    database.execute("INSERT INTO accounts SELECT n, 0 FROM generate_series(0, 19) n")
    answers = dict[str, Counter[Row]]()

    @contextmanager
    def asked_snapshot(connection: Any) -> Iterator[str]:
        with original(connection) as snapshot:
            for name, text in (("spent", SPENT), ("joined", JOINED)):
                answers[name] = Counter(map(plain, connection.execute(text).fetchall()))
            yield snapshot

    original: Callable[..., Any] = module.one_snapshot
    monkeypatch.setattr(module, "one_snapshot", asked_snapshot)
    capture = keeper.capture(dsn, ["orders", "accounts"])
    capture.catch_up()
    keeper.create_view("spent", SPENT)
    keeper.create_view("joined", JOINED)
    threads = [Thread(target=write_orders, args=(dsn, n, each_writes)) for n in range(writers)]
    for each in threads:
        each.start()
    rounds = 0
    while any(each.is_alive() for each in threads) or rounds < 2:
        rounds += any(each.changed for each in capture.catch_up())
        keeper.refresh()
        for name, expected in answers.items():
            assert Counter(map(plain, rows(keeper, name))) == expected
        assert sum(spent for _, spent in rows(keeper, "accounts")) == sum(
            price or 0 for _, _, price in rows(keeper, "orders")
        ), "half a transaction"
    for each in threads:
        each.join()
    capture.catch_up()
    capture.close()
    expect_equal(keeper, database, "orders", "accounts")
    count = database.execute("SELECT count(*) FROM viewkeep.log").fetchone()
    assert count == (0,)
    written = database.execute("SELECT sum(price) FROM orders").fetchone()
    assert written[0] > 0
    print(f"{writers * each_writes} transactions in {rounds} rounds")


def plain(row: Row) -> Row:
    return tuple(int(value) if value is not None else None for value in row)


def write_orders(dsn: str, writer: int, count: int) -> None:
    """Transactions over both tables that keep the sum of prices what accounts have spent."""
    random = Random(writer)
    with psycopg.connect(dsn) as connection:
        for number in range(count):
            price, account = random.randrange(100), random.randrange(20)
            oid = writer * 1_000_000 + number
            undone = random.random() < 0.1
            with (
                suppress(psycopg.errors.DeadlockDetected),  # of two writers: one is rolled back
                connection.transaction(force_rollback=undone),
            ):
                connection.execute("INSERT INTO orders VALUES (%s, %s, %s)", (oid, account, price))
                connection.execute(
                    "UPDATE accounts SET spent = spent + %s WHERE aid = %s", (price, account)
                )
                if random.random() < 0.3:
                    gone = connection.execute(
                        "DELETE FROM orders WHERE oid = %s RETURNING account, price",
                        (writer * 1_000_000 + random.randrange(number + 1),),
                    ).fetchone() or (0, 0)
                    connection.execute(
                        "UPDATE accounts SET spent = spent - %s WHERE aid = %s", gone[::-1]
                    )


def test_writers_wait_for_nobody(keeper: Keeper, database: Any, dsn: str) -> None:
    """Neither in a round, nor while triggers wait for a transaction that is open."""
    database.execute(ORDERS)
    with psycopg.connect(dsn) as slow:
        slow.execute("INSERT INTO orders VALUES (1, 1, 1)")
        opened = list[Any]()
        thread = Thread(target=lambda: opened.append(keeper.capture(dsn, ["orders"])))
        thread.start()
        database.execute("SET lock_timeout = '20s'")
        for number in range(2, 30):
            database.execute("INSERT INTO orders VALUES (%s, 1, 1)", (number,))
        assert not opened
        slow.commit()
        thread.join()
    [capture] = opened
    capture.catch_up()
    with psycopg.connect(dsn) as slow:
        slow.execute("UPDATE orders SET price = 2")
        assert not capture.catch_up()[0].changed
        slow.commit()
    capture.catch_up()
    capture.close()
    expect_equal(keeper, database, "orders")


def test_a_changed_schema_stops_no_writer(keeper: Keeper, database: Any, dsn: str) -> None:
    database.execute(ORDERS)
    database.execute("INSERT INTO orders VALUES (1, 1, 1)")
    capture = keeper.capture(dsn, ["orders"])
    capture.catch_up()
    database.execute("ALTER TABLE orders ADD COLUMN note text")
    database.execute("INSERT INTO orders VALUES (2, 2, 2, 'new')")
    assert capture.catch_up()[0].left_out == ("note",)
    assert rows(keeper, "orders") == [(1, 1, 1), (2, 2, 2)]
    database.execute("ALTER TABLE orders RENAME COLUMN price TO cost")
    database.execute("INSERT INTO orders VALUES (3, 3, 3)")
    with pytest.raises(ViewkeepError, match='has no column "price" any more'):
        capture.catch_up()
    database.execute("ALTER TABLE orders RENAME COLUMN cost TO price")
    database.execute("ALTER TABLE orders RENAME COLUMN oid TO id")
    database.execute("INSERT INTO orders VALUES (4, 4, 4)")
    database.execute("DELETE FROM orders WHERE id = 1")
    with pytest.raises(ViewkeepError, match='has no column "oid" any more'):
        capture.catch_up()
    database.execute("ALTER TABLE orders RENAME COLUMN id TO oid")
    assert capture.catch_up()[0].is_whole, "which keys changed meanwhile is not known"
    assert rows(keeper, "orders") == [(2, 2, 2), (3, 3, 3), (4, 4, 4)]
    database.execute("ALTER TABLE orders ALTER COLUMN price TYPE text")
    with pytest.raises(ViewkeepError, match=r"it is text in .*, which does not fit"):
        capture.catch_up()
    capture.close()


# --- values ---------------------------------------------------------------------------------------

TYPES = """CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN cents AS numeric(12, 2);
CREATE TABLE "Odd ""one"" x" ("Key a" text, "b" timestamptz, tiny int2, mid int4, big int8,
    single float4, dbl float8, price cents, words text, code varchar(9), fixed char(4), ident uuid,
    doc jsonb, raw bytea, day date, moment timestamp, zoned timestamptz, feeling mood, flag bool,
    tags text[], numbers int[], PRIMARY KEY (b, "Key a"))"""


def test_types_and_names(keeper: Keeper, database: Any, dsn: str) -> None:
    database.execute(TYPES.replace('"Key a"', '"Key_a"'))
    values = (
        """('a''"b\\', '2020-02-29 12:00:00.000001+02', -32768, 2147483647, -9223372036854775808,
            0.1, 1e-308, 12.30, E'two\\nlines, "quoted"', '', 'ab', gen_random_uuid(),
            '{"a": [1.10, null]}', '\\x00ff', '0001-01-01', '9999-12-31 23:59:59.999999',
            '1970-01-01 00:00+00', 'glad', true, '{a,NULL,"b,c"}', '{1,2}')""",
        """('nulls', '2020-01-01 00:00+00')""",
        """('odd', '2020-01-01 00:00+00', 0, 0, 0, 'NaN', '-Infinity', 0.00, '', 'NULL', '',
            NULL, 'null', '', '2024-02-29', '2024-02-29', '2024-02-29', 'sad', false, '{}',
            '{}')""",
    )
    for each in values:
        database.execute(f'INSERT INTO "Odd ""one"" x" VALUES {each}')
    with keeper.capture(dsn, {"odd": '"Odd ""one"" x"'}) as capture:
        assert capture.catch_up()[0].rows == 3
        snapshot = keeper.read("odd").to_pylist()
        assert {str(v) for v in keeper._lake.catalog.read().tables["odd"].table.columns} >= {
            "price decimal(12, 2)", "moment timestamp_ntz", "tags array<string>", "raw binary",
        }  # fmt: skip
        database.execute('UPDATE "Odd ""one"" x" SET "Key_a" = "Key_a" || 1')
        assert capture.catch_up()[0].rows == 6
        changed = keeper.read("odd").to_pylist()
        database.execute('UPDATE "Odd ""one"" x" SET "Key_a" = left("Key_a", -1)')
        capture.catch_up()
    found = {row["Key_a"]: row for row in snapshot}
    assert set(found) == {"a'\"b\\", "nulls", "odd"}
    whole = found["a'\"b\\"]
    assert (whole["big"], str(whole["price"]), whole["raw"]) == (-(2**63), "12.30", b"\0\xff")
    assert (whole["words"], whole["code"]) == ('two\nlines, "quoted"', "")
    assert (whole["fixed"], whole["doc"]) == ("ab", '{"a": [1.10, null]}')
    assert (whole["tags"], whole["numbers"]) == (["a", None, "b,c"], [1, 2])
    assert str(whole["b"]) == "2020-02-29 10:00:00.000001+00:00"
    assert (str(whole["day"]), str(whole["moment"])) == ("0001-01-01", "9999-12-31 23:59:59.999999")
    assert all(found["nulls"][n] is None for n in found["nulls"] if n not in ("Key_a", "b"))
    by_change = {row["Key_a"][:-1]: {**row, "Key_a": row["Key_a"][:-1]} for row in changed}
    assert repr(by_change) == repr({key: found[key] for key in by_change}), "both read alike"
    assert sorted(map(repr, keeper.read("odd").to_pylist())) == sorted(map(repr, snapshot))


def test_values_that_no_type_holds_go_to_quarantine(
    keeper: Keeper, database: Any, dsn: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, day date, n numeric(6, 2))")
    database.execute("INSERT INTO t VALUES (1, 'infinity', 1), (2, '2020-01-01', 2)")
    with keeper.capture(dsn, ["t"]) as capture:
        assert capture.catch_up()[0].rejected == 1
        database.execute("INSERT INTO t VALUES (3, '2020-01-01', 'NaN')")
        database.execute("UPDATE t SET day = '0044-03-15 BC' WHERE id = 2")
        database.execute("UPDATE t SET day = '2021-01-01' WHERE id = 1")
        assert capture.catch_up()[0].rejected == 2
    assert [row[0] for row in rows(keeper, "t")] == [1], "no row that is no longer so"
    reasons = [each["reason"] for each in keeper.quarantine("t").to_pylist()]
    assert len(reasons) == 3
    assert all(reason.startswith('column "') for reason in reasons)
    with keeper.capture(dsn, ["t"], anew=True) as capture:
        assert capture.catch_up()[0].rejected == 2
    assert [row[0] for row in rows(keeper, "t")] == [1]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE TABLE t (id int, n int)", "has no primary key"),
        ("CREATE TABLE t (id int PRIMARY KEY, n numeric)", '"n": numeric has no fixed digits'),
        ("CREATE TABLE t (id int PRIMARY KEY, p point)", '"p": no type of a lake holds a point'),
        ("CREATE TABLE t (id int PRIMARY KEY) PARTITION BY LIST (id)", "is partitioned"),
        ("CREATE VIEW t AS SELECT 1 AS id", "is no table"),
        ("CREATE TABLE s (id int PRIMARY KEY)", 'has no table "t"'),
        ('CREATE TABLE t (id int PRIMARY KEY, "a b" int)', 'column "a b": Delta tables allow no'),
    ],
)  # fmt: skip
def test_what_cannot_be_captured(
    keeper: Keeper, server: str, statement: str, problem: str, tmp_path: Path
) -> None:
    with psycopg.connect(server, autocommit=True) as database:
        database.execute(statement)
        try:
            with pytest.raises(ViewkeepError, match=re.escape(problem)):
                keeper.capture(server, ["t"])
            found = database.execute("SELECT to_regclass('viewkeep.tables')").fetchone()
            assert found == (None,) or "Delta" in problem
        finally:
            name = statement.split()[2]
            database.execute(f"DROP {statement.split()[1]} {name}")
            database.execute("DROP SCHEMA IF EXISTS viewkeep CASCADE")
    assert not keeper.tables


def test_a_table_that_was_made_before_leaves_columns_out(
    keeper: Keeper, database: Any, dsn: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, n numeric, p point, i interval)")
    database.execute("INSERT INTO t VALUES (1, 1.5, '(1,2)', '1 day 02:00')")
    database.execute("INSERT INTO t VALUES (2, 1.555)")
    keeper.create_table("mine", {"id": "bigint", "n": "decimal(9,2)", "i": "string"}, ["id"])
    keeper.apply("mine", inserts=[(7, None, None)])
    with keeper.capture(dsn, {"mine": "t"}) as capture:
        [report] = capture.catch_up()
    assert (report.rejected, report.left_out) == (1, ("p",))
    assert [(i, str(n), text) for i, n, text in rows(keeper, "mine")] == [
        (1, "1.50", "1 day 02:00:00")
    ]
    keeper.create_table("other", {"id": "int", "n": "int"}, ["id"])
    with pytest.raises(ViewkeepError, match=r"it is numeric in .*, which does not fit"):
        keeper.capture(dsn, {"other": "t"})


# --- positions ------------------------------------------------------------------------------------


def test_every_crash_leaves_each_change_once(
    keeper: Keeper, database: Any, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "is_dead", lambda writer: True)
    database.execute(ORDERS)
    database.execute(ACCOUNTS)
    keeper.capture(dsn, ["orders", "accounts"]).catch_up()
    place, number = keeper._lake.uri, 0
    while True:
        number += 1
        with database.transaction():
            database.execute("INSERT INTO orders VALUES (%s, 1, %s)", (number, number))
            database.execute("DELETE FROM orders WHERE oid = %s", (number - 2,))
            database.execute(
                "INSERT INTO accounts VALUES (1, 1) ON CONFLICT (aid) DO UPDATE SET spent = "
                "accounts.spent + 1"
            )
        at = number if LONG else 3 * number
        with (
            fault(at, after=number % 2 == 0) as died,
            Keeper(place, durable=False).capture(dsn, ["orders", "accounts"]) as capture,
        ):
            capture.catch_up()
        keeper = Keeper(place, durable=False)
        with keeper.capture(dsn, ["orders", "accounts"]) as capture:
            capture.catch_up()
        expect_equal(keeper, database, "orders", "accounts")
        if not died.dead:
            break
    assert number > 3
    check_replayed(keeper)


def test_positions_of_others_are_refused(
    keeper: Keeper, database: Any, dsn: str, server: str, tmp_path: Path
) -> None:
    """Of another database, of a table that was made anew, of a lake that was put back."""
    database.execute(ORDERS)
    with keeper.capture(dsn, ["orders"]) as capture:
        capture.catch_up()
    with psycopg.connect(server, autocommit=True) as other:
        other.execute("DROP TABLE IF EXISTS orders")
        other.execute(ORDERS)
        with pytest.raises(ViewkeepError, match="has followed another log"):
            keeper.capture(server, ["orders"])
        assert other.execute("SELECT to_regclass('viewkeep.log')").fetchone() == (None,)
        other.execute("DROP TABLE orders")
    capture = keeper.capture(dsn, ["orders"])
    database.execute("INSERT INTO orders VALUES (1, 1, 1)")
    database.execute("UPDATE viewkeep.readers SET round = round + 5")
    with pytest.raises(ViewkeepError, match="put back to an earlier state"):
        capture.catch_up()
    assert rows(keeper, "orders") == []
    keeper.capture(dsn, ["orders"], anew=True).catch_up()
    expect_equal(keeper, database, "orders")
    database.execute("INSERT INTO orders VALUES (2, 2, 2)")
    capture.catch_up()
    expect_equal(keeper, database, "orders")
    database.execute("DROP TABLE orders")
    database.execute(ORDERS)
    database.execute("INSERT INTO orders VALUES (3, 3, 3)")
    for capturing in (capture.catch_up, lambda: keeper.capture(dsn, ["orders"])):
        with pytest.raises(ViewkeepError, match="made anew, or triggers that were removed"):
            capturing()
    keeper.capture(dsn, ["orders"], anew=True).catch_up()
    assert rows(keeper, "orders") == [(3, 3, 3)]


def test_two_lakes_follow_one_table(
    keeper: Keeper, database: Any, dsn: str, tmp_path: Path
) -> None:
    database.execute(ORDERS)
    other = Keeper(tmp_path / "other", durable=False)
    first, second = keeper.capture(dsn, ["orders"]), other.capture(dsn, ["orders"])
    first.catch_up()
    database.execute("INSERT INTO orders VALUES (1, 1, 1)")
    first.catch_up()
    second.catch_up()
    database.execute("UPDATE orders SET price = 2")
    first.catch_up()
    assert database.execute("SELECT count(*) FROM viewkeep.log").fetchone() == (1,)
    assert keeper.stop_capture(dsn, ["orders"]) == {"orders": False}
    second.catch_up()
    expect_equal(other, database, "orders")
    assert database.execute("SELECT count(*) FROM viewkeep.log").fetchone() == (0,)
    assert other.stop_capture(dsn, ["orders"]) == {"orders": True}
    assert database.execute("SELECT to_regnamespace('viewkeep')").fetchone() == (None,)
    triggers = database.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal")
    assert triggers.fetchone() == (0,)
    database.execute("INSERT INTO orders VALUES (2, 2, 2)")
    with keeper.capture(dsn, ["orders"]) as capture:
        assert capture.catch_up()[0].is_whole
    expect_equal(keeper, database, "orders")


def test_other_users_write_without_rights_on_the_log(
    keeper: Keeper, database: Any, dsn: str
) -> None:
    database.execute(ORDERS)
    capture = keeper.capture(dsn, ["orders"])
    capture.catch_up()
    database.execute("DROP ROLE IF EXISTS clerk")
    database.execute("CREATE ROLE clerk")
    database.execute("GRANT INSERT ON orders TO clerk")
    database.execute("SET ROLE clerk")
    database.execute("SET DateStyle = 'German'")
    database.execute("INSERT INTO orders VALUES (1, 1, 1)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.execute("DELETE FROM viewkeep.log")
    database.execute("RESET ROLE")
    capture.catch_up()
    capture.close()
    expect_equal(keeper, database, "orders")


# --- people ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda dsn: dsn.replace(PASSWORD, "wr0ng-w0rd"),
        lambda dsn: dsn.replace(PASSWORD, "wr0ng-w0rd/with@slash"),
        lambda dsn: dsn.replace(f"{PASSWORD}@127.0.0.1", "wr0ng-w0rd@no.such.host.invalid"),
        lambda dsn: "host=127.0.0.1 password='wr0ng-w0rd",
        lambda dsn: "wr0ng-w0rd",
    ],
)
def test_passwords_are_not_told(
    keeper: Keeper, server: str, change: Callable[[str], str], capsys: Any
) -> None:
    with pytest.raises(ViewkeepError) as problem:
        keeper.capture(change(server), ["orders"])
    assert "wr0ng" not in str(problem.value)
    assert "wr0ng" not in viewkeep("capture", "postgres", change(server), "t", "--debug").err


def test_passwords_are_not_kept(keeper: Keeper, database: Any, dsn: str, tmp_path: Path) -> None:
    database.execute(ORDERS)
    capture = keeper.capture(dsn, ["orders"])
    capture.catch_up()
    assert PASSWORD not in repr(capture) + str(vars(keeper))
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes(), file


def test_the_command(database: Any, dsn: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("VIEWKEEP_LAKE", str(tmp_path / "lake"))
    Keeper(tmp_path / "lake", durable=False)
    database.execute(ORDERS)
    database.execute("INSERT INTO orders VALUES (1, 1, 1)")
    told = done("capture", "postgres", dsn, "bought=public.orders").out
    assert told.startswith("bought: version 1, all 1 rows read, ")
    database.execute("INSERT INTO orders VALUES (2, 1, 1)")
    document = done("capture", "postgres", dsn, "bought=public.orders", "--json").json
    assert (document["rows"], document["is_whole"], document["error"]) == (1, False, None)
    told = done("capture", "postgres", dsn, "bought=public.orders", "--remove").out
    assert told == "bought: the log and its triggers are gone\n"
    assert "is no table" in viewkeep("capture", "postgres", dsn, "=orders").err


def test_a_watcher_captures(keeper: Keeper, database: Any, dsn: str) -> None:
    database.execute(ORDERS)
    capture, stop, told = keeper.capture(dsn, ["orders"]), Event(), list[Any]()
    capture.catch_up()
    keeper.create_view("spent", SPENT)

    def tell(report: Any) -> None:
        told.append(report)
        if getattr(report, "view", "") == "spent":
            stop.set()

    thread = Thread(target=lambda: keeper.watch(stop=stop, tell=tell, capture=capture))
    thread.start()
    database.execute("INSERT INTO orders VALUES (1, 1, 7)")
    assert stop.wait(60)
    thread.join()
    assert rows(keeper, "spent") == [(1, 1, 7)]


def test_a_command_that_is_killed_again_and_again(keeper: Keeper, database: Any, dsn: str) -> None:
    database.execute(ORDERS)
    arguments = ["capture", "postgres", dsn, "orders", "--follow", "--every", "0.01"]
    command = [sys.executable, "-m", "viewkeep", *arguments, "--lake", keeper._lake.uri]
    stop, random = Event(), Random(5)

    def write() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not stop.wait(0.002):
                with connection.transaction():
                    random_orders(connection, random)

    writer = Thread(target=write)
    writer.start()
    try:
        for _ in range(10 if LONG else 1):
            seen = newest_version(keeper)
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as victim:
                wait_for(lambda: newest_version(keeper) > seen + 2, 120)  # noqa: B023
                time.sleep(random.random() / 5)
                victim.kill()
    finally:
        stop.set()
        writer.join()
    with keeper.capture(dsn, ["orders"]) as capture:
        capture.catch_up()
    expect_equal(keeper, database, "orders")
    check_replayed(keeper)


def newest_version(keeper: Keeper) -> int:
    return keeper.version("orders") if "orders" in keeper.tables else -1


def random_orders(database: Any, random: Random) -> None:
    key = random.randrange(30)
    database.execute("DELETE FROM orders WHERE oid = %s", (key,))
    database.execute("INSERT INTO orders VALUES (%s, 1, %s)", (key, random.randrange(100)))
    database.execute("UPDATE orders SET price = price + 1 WHERE oid > %s", (random.randrange(30),))
