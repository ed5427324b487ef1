"""Wrong input: an error that says what, where and what to do; and nothing has changed."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, rows, versions
from viewkeep import Keeper, ViewkeepError

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(scope="module")
def keeper(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Keeper:
    """A lake that all tests share: none of them may change it."""
    keeper = Keeper(tmp_path_factory.mktemp("lake"), spark)
    keeper.create_table(
        "parts",
        {"pid": "int", "price": "decimal(6, 2) not null", "name": "string", "at": "timestamp"},
        key=["pid"],
        rows=[(1, 10, "a", None), (2, 20, None, None)],
    )
    keeper.create_view("dear", "SELECT pid, name FROM parts WHERE price > 15")
    keeper.create_view("over", "SELECT count(*) AS n FROM dear")
    return keeper


Attempt = Callable[[Keeper], Any]

CHANGES: dict[str, tuple[Attempt, str]] = {
    "a column that is not there": (
        lambda k: k.apply("parts", inserts=[{"pid": 3, "prize": 1, "name": "", "at": None}]),
        r'table "parts", inserts: no column "prize" .*did you mean "price"',
    ),
    "a column that is missing": (
        lambda k: k.apply("parts", inserts=[{"pid": 3, "price": 1}]),
        r'table "parts", inserts: no column name, at; give it',
    ),
    "a type that is another": (
        lambda k: k.apply("parts", inserts=pa.table({"pid": ["x"], "price": [1], "name": ["a"],
                                                     "at": [datetime(2026, 1, 1)]})),
        r"key \(pid = 'x'\): column \"pid\" \(int\): 'x' is of type str; give an int",
    ),
    "a number that is too large": (
        lambda k: k.apply("parts", inserts=[(3, 123456, "a", None)]),
        r'column "price".*decimal\(6, 2\)',
    ),
    "digits that would be lost": (
        lambda k: k.apply("parts", inserts=pa.table({
            "pid": [3], "price": pa.array([1.005]), "name": ["a"],
            "at": pa.array([None], pa.timestamp("us"))})),
        r'key \(pid = 3\): column "price" \(decimal\(6, 2\)\): 1.005 is of type float; give',
    ),
    "a key that is not whole": (
        lambda k: k.apply("parts", deletes=[(1.7,)]),
        r'deletes, key \(pid = 1.7\): column "pid" \(int\): 1.7 is no whole number; round it',
    ),
    "an integer out of range": (
        lambda k: k.apply("parts", deletes=[(2**40,)]),
        r'table "parts", deletes, key \(pid = \d+\): column "pid" \(int\): .* out of range',
    ),
    "NULL in a key": (
        lambda k: k.apply("parts", inserts=[(None, 1, "a", None)]),
        r'table "parts", inserts, key \(pid = None\): column "pid" \(int\): NULL in a key; give',
    ),
    "NULL where there must be none": (
        lambda k: k.apply("parts", updates=[{"pid": 1, "price": None}]),
        r'key \(pid = 1\): column "price".*NULL in a NOT NULL column; give a value',
    ),
    "an insert of a key that is there": (
        lambda k: k.apply("parts", inserts=[(3, 1, "c", None), (1, 1, "a", None)]),
        r'key \(pid = 1\): insert, but the key is there; update the row instead',
    ),
    "two inserts of one key": (
        lambda k: k.apply("parts", inserts=[(3, 1, "c", None), (3, 1, "c", None)]),
        r'key \(pid = 3\): the inserts name this key twice',
    ),
    "an update of a row that is not there": (
        lambda k: k.apply("parts", updates=[{"pid": 1, "price": 5}, {"pid": 9, "price": 5}]),
        r'key \(pid = 9\): update, but no row has this key; insert it first',
    ),
    "a delete of a row that is not there": (
        lambda k: k.apply("parts", inserts=[(3, 1, "c", None)], deletes=[(9,)]),
        r'key \(pid = 9\): delete, but no row has this key',
    ),
    "an update without values": (
        lambda k: k.apply("parts", updates=[(1,)]),
        r"only keys are given; name what changes",
    ),
    "rows of different columns": (
        lambda k: k.apply("parts", updates=[{"pid": 1, "price": 1}, {"pid": 2, "name": "x"}]),
        r"all rows name the same columns; these do not",
    ),
    "rows that are none": (
        lambda k: k.apply("parts", inserts="pid=3"),
        r"str is no rows; give a DataFrame, an Arrow table, or a list of dicts or tuples",
    ),
    "rows that are too short": (
        lambda k: k.apply("parts", inserts=[(3, 1)]),
        r"a row is a tuple of 4: \(pid, price, name, at\)",
    ),
    "changes of a view": (
        lambda k: k.apply("dear", deletes=[(1,)]),
        r'"dear" is a view; apply changes to the tables that it reads',
    ),
    "changes of nothing": (
        lambda k: k.apply("part", deletes=[(1,)]),
        r'there is no table "part" in this lake \(parts\); did you mean "parts"',
    ),
}  # fmt: skip

DEFINITIONS: dict[str, tuple[Attempt, str]] = {
    "a name that is none": (
        lambda k: k.create_table("a b", {"x": "int"}, ["x"]),
        r'"a b" is not a name: give a letter from a to z, then such letters, digits and',
    ),
    "a name that leads out of the lake": (
        lambda k: k.create_view("../dear", "SELECT pid FROM parts"),
        r"is not a name",
    ),
    "a name that is a number": (lambda k: k.create_table(5, {"x": "int"}, ["x"]), r"not a name"),
    "a name of Viewkeep's own": (
        lambda k: k.create_table("_viewkeep", {"x": "int"}, ["x"]),
        r"is not a name",
    ),
    "a name that is taken, in other case": (
        lambda k: k.create_table("Parts", {"x": "int"}, ["x"]),
        r'there is a table "parts" already; choose another name',
    ),
    "a table without a key": (
        lambda k: k.create_table("t", {"x": "int"}),
        r'table "t" needs a key, as in key=\["id"\]',
    ),
    "a key that is no column": (
        lambda k: k.create_table("t", {"part": "int"}, ["parts"]),
        r'no column "parts" \(part\); did you mean "part"',
    ),
    "a key that is text": (
        lambda k: k.create_table("t", {"x": "int"}, "x"),
        r'key="x": give a list, as in key=\["x"\]',
    ),
    "a type that is none": (
        lambda k: k.create_table("t", {"x": "intt"}, ["x"]),
        r'column "x"',
    ),
    "an Arrow type that views cannot read": (
        lambda k: k.create_table(
            "t", pa.table({"x": [1], "y": pa.array([1], pa.time64("us"))}), ["x"]
        ),
        r'column "y" has the type time64.*which views cannot read; convert it or leave it out',
    ),
    "a key that cannot be compared": (
        lambda k: k.create_table("t", {"x": "int", "y": "map<int,int>"}, ["y"]),
        r'key column "y" is map<int,int>: .* only carried, not compared; choose other columns',
    ),
    "a column name of Viewkeep's own": (
        lambda k: k.create_table("t", {"x": "int", "x#pre": "int"}, ["x"]),
        r'table "t", column "x#pre": names with # are Viewkeep\'s own; rename it',
    ),
    "a column name that Delta refuses": (
        lambda k: k.create_table("t", {"x": "int", "a b": "int"}, ["x"]),
        r"column \"a b\": Delta tables allow no ' ' in names",
    ),
    "two rows with one key": (
        lambda k: k.create_table("t", {"x": "int"}, ["x"], rows=[(1,), (1,)]),
        r'table "t", key \(x = 1\): two rows have this key; keep one of them',
    ),
    "NULL in a key of a new table": (
        lambda k: k.create_table("t", pa.table({"x": [1, None]}), ["x"]),
        r'table "t", rows, key \(x = None\): column "x" \(bigint\): NULL in a key; give a value',
    ),
    "no Delta table": (
        lambda k: k.register_table("t", "/nowhere/at/all", ["x"]),
        r"/nowhere/at/all: there is no Delta table",
    ),
    "SQL that is none": (lambda k: k.create_view("v", "SELEC pid FROM parts"), r"line 1"),
    "a table that is not there": (
        lambda k: k.create_view("v", "SELECT pid FROM part"),
        r'"part"',
    ),
    "a column that the SQL names wrongly": (
        lambda k: k.create_view("v", "SELECT prize FROM parts"),
        r'"prize".*did you mean "price"',
    ),
    "two columns of one name": (
        lambda k: k.create_view("v", "SELECT pid, name AS pid FROM parts"),
        r"pid",
    ),
    "a column of a view with Viewkeep's own name": (
        lambda k: k.create_view("v", "SELECT pid, name AS `#n` FROM parts"),
        r"names with # are Viewkeep's own; rename it with AS",
    ),
    "a strategy that is none": (
        lambda k: k.create_view("v", "SELECT pid FROM parts", strategy="idd"),
        r'strategy="idd": expected one of .*did you mean "id"',
    ),
    "a policy that is none": (
        lambda k: k.create_view("v", "SELECT pid FROM parts", policy="fast"),
        r'policy="fast": expected one of',
    ),
    "a view that reads itself": (
        lambda k: k.create_view("v", "SELECT pid FROM v"),
        r'"v"',
    ),
    "a view that would read itself through another": (
        lambda k: k.create_view("dear", "SELECT n AS pid, '' AS name FROM over", replace=True),
        r"views read each other: ",
    ),
    "a view that fails": (
        lambda k: k.create_view("v", "SELECT pid, 1 / (pid - 1) AS x FROM parts"),
        r"division by zero|DIVIDE_BY_ZERO",
    ),
    "dropping what is read": (
        lambda k: k.drop_view("dear"),
        r'"dear" is read by over; drop these views first',
    ),
    "dropping nothing": (lambda k: k.drop_view("deer"), r'no view "deer".*did you mean "dear"'),
    "dropping a table as a view": (lambda k: k.drop_view("parts"), r'no view "parts"'),
}

UNKNOWN: dict[str, Attempt] = {
    "refresh": lambda k: k.refresh("deer"),
    "read": lambda k: k.read("deer"),
    "history": lambda k: k.history("deer"),
    "script": lambda k: k.script("deer"),
    "explain": lambda k: k.explain("deer"),
    "verify": lambda k: k.verify("deer"),
    "repair": lambda k: k.repair("deer"),
    "status": lambda k: k.status("deer"),
}


@pytest.mark.parametrize(
    ("attempt", "said"), (CHANGES | DEFINITIONS).values(), ids=CHANGES | DEFINITIONS
)
def test_nothing_is_changed(keeper: Keeper, attempt: Attempt, said: str) -> None:
    before = versions(keeper), rows(keeper, "parts"), keeper.tables, keeper.views
    with pytest.raises(ViewkeepError, match=said):
        attempt(keeper)
    assert (versions(keeper), rows(keeper, "parts"), keeper.tables, keeper.views) == before


@pytest.mark.parametrize("attempt", UNKNOWN.values(), ids=UNKNOWN)
def test_a_view_that_is_not_there(keeper: Keeper, attempt: Attempt) -> None:
    with pytest.raises(ViewkeepError, match=r'view "deer".*dear.*did you mean "dear"'):
        attempt(keeper)


def test_what_is_not_right_is_not_there(keeper: Keeper) -> None:
    """After all that, the lake has what it had."""
    assert set(keeper.tables) == {"parts"}
    assert set(keeper.views) == {"dear", "over"}
    assert all(each.is_fresh for each in keeper.status())
    check(keeper)


# --- registered tables ---------------------------------------------------------------------------


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    place = tmp_path / "orders"
    write_deltalake(place, pa.table({"oid": [1, 2], "n": [1, 2]}))
    return place


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, orders: Path) -> Keeper:
    lake = Keeper(tmp_path / "lake", spark)
    lake.register_table("orders", orders, key=["oid"])
    lake.create_table("parts", {"pid": "int"}, ["pid"], rows=[(1,)])
    lake.create_view("total", "SELECT sum(n) AS s FROM orders")
    lake.create_view("others", "SELECT pid FROM parts")
    return lake


def refused(lake: Keeper, said: str) -> None:
    """A refresh says what is wrong, keeps the view as it is, and refreshes the others."""
    table = lake._lake.at(f"{lake._lake.uri}/total")
    before = table.version(), rows(lake, "total")
    lake.apply("parts", inserts=[(2,)])
    with pytest.raises(ViewkeepError, match=said):
        lake.refresh()
    assert (table.version(), rows(lake, "total")) == before
    assert rows(lake, "others") == {(1,): 1, (2,): 1}


def test_a_column_with_another_type(lake: Keeper, orders: Path) -> None:
    other = pa.table({"oid": [1], "n": ["one"]})
    write_deltalake(orders, other, mode="overwrite", schema_mode="overwrite")
    refused(lake, r'"total" reads column "n" of table "orders", which is string now, .* bigint')


def test_a_column_that_is_gone(lake: Keeper, orders: Path) -> None:
    write_deltalake(orders, pa.table({"oid": [1]}), mode="overwrite", schema_mode="overwrite")
    refused(lake, r'"total" reads column "n" of table "orders", which is gone; its rows stay')


def test_a_column_that_comes_is_no_problem(lake: Keeper, orders: Path) -> None:
    more = pa.table({"oid": [3], "n": [3], "more": [1]})
    write_deltalake(orders, more, mode="append", schema_mode="merge")
    assert lake.refresh()[0].strategy == "id"
    check(lake)


def test_two_rows_with_one_key(lake: Keeper, orders: Path) -> None:
    write_deltalake(orders, pa.table({"oid": [3, 3], "n": [1, 2]}), mode="append")
    refused(lake, r'table "orders", key \(oid = 3\): two rows have this key; keep one of them')


def test_two_rows_with_one_key_in_the_feed(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "fed"
    write_deltalake(place, pa.table({"oid": [1], "n": [1]}), configuration=FEED)
    lake = Keeper(tmp_path / "lake", spark)
    lake.register_table("fed", place, key=["oid"])
    lake.create_view("total", "SELECT sum(n) AS s FROM fed")
    write_deltalake(place, pa.table({"oid": [3, 3], "n": [1, 2]}), mode="append")
    with pytest.raises(ViewkeepError, match=r"key \(oid = 3\): two rows have this key"):
        lake.refresh()


def test_null_in_a_key_of_another_writer(lake: Keeper, orders: Path) -> None:
    more = pa.table({"oid": pa.array([None], pa.int64()), "n": [3]})
    write_deltalake(orders, more, mode="append")
    refused(lake, r'table "orders", key \(oid = None\): column "oid".*NULL in a key')


def test_registering_rows_with_one_key(lake: Keeper, tmp_path: Path) -> None:
    place = tmp_path / "twice"
    write_deltalake(place, pa.table({"id": [1, 1]}))
    with pytest.raises(ViewkeepError, match=r"key \(id = 1\): two rows have this key"):
        lake.register_table("twice", place, key=["id"])
    assert "twice" not in lake.tables


def test_versions_that_were_vacuumed(lake: Keeper, orders: Path) -> None:
    DeltaTable(orders).update(updates={"n": "5"}, predicate="oid = 1")
    DeltaTable(orders).vacuum(0, dry_run=False, enforce_retention_duration=False)
    refused(lake, r"files of version 0 are gone, probably vacuumed; repair the views")
    lake.repair("total")
    lake.refresh()
    check(lake)


def test_a_log_that_was_cleaned_up(lake: Keeper, orders: Path) -> None:
    """The version that the view reflects cannot be read any more."""
    for n in range(3):
        DeltaTable(orders).update(updates={"n": str(n)}, predicate="oid = 1")
    DeltaTable(orders).create_checkpoint()
    for entry in (orders / "_delta_log").glob("*[012].json"):
        entry.unlink()
    refused(lake, r'"orders": version 0.*cannot be read.*repair\("total"\)')
    lake.repair("total")
    lake.refresh()
    check(lake)


def test_a_log_that_is_corrupt(lake: Keeper, orders: Path) -> None:
    write_deltalake(orders, pa.table({"oid": [3], "n": [3]}), mode="append")
    (orders / "_delta_log/00000000000000000001.json").write_text('{"add": {"pa')
    refused(
        lake, r'view "total": table "orders": .*01.json: the log entry is damaged: it is no JSON'
    )


def test_a_table_that_is_gone(lake: Keeper, orders: Path) -> None:
    (orders / "_delta_log/00000000000000000000.json").unlink()
    refused(lake, r'view "total": table "orders": .*orders: there is no Delta table')
    with pytest.raises(ViewkeepError, match="there is no Delta table"):
        lake.repair("total")


def test_a_catalog_that_is_damaged(lake: Keeper) -> None:
    table = lake._lake.at(f"{lake._lake.uri}/_viewkeep/catalog")
    (file,) = table.snapshot().files
    other = {"kind": ["view"], "name": ["total"], "definition": [json.dumps({"sql": "SELECT"})]}
    pq.write_table(pa.table(other), file.location(table.uri))
    with pytest.raises(ViewkeepError, match=r"_viewkeep/catalog: the catalog is damaged"):
        lake.refresh()
