"""Views that a refresh cannot bring on: it is said, `status` shows it, `repair` mends it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.keeper.lakes import check
from viewkeep import Keeper, ViewkeepError

VIEWS = {
    "all_orders": "SELECT oid, n FROM orders",
    "best": "SELECT g, max(n) AS m, avg(n) AS a FROM orders JOIN parts USING (oid) GROUP BY g",
    "above": "SELECT g, m FROM best",
    "other": "SELECT id FROM t",
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    place = tmp_path / "orders"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(place, pa.table({"oid": [1, 2, 3], "n": [1, 2, 3]}), configuration=feed)
    return place


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path, orders: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("orders", orders, key=["oid"])
    keeper.create_table("t", {"id": "int"}, ["id"], rows=[(1,)])
    parts = [(n, n % 2) for n in range(10)]
    keeper.create_table("parts", {"oid": "bigint", "g": "int"}, ["oid"], rows=parts)
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql)
    return keeper


def append(orders: Path, *rows: tuple[int, int]) -> None:
    table = pa.table({"oid": [oid for oid, _ in rows], "n": [n for _, n in rows]})
    write_deltalake(orders, table, mode="append")


def test_a_key_that_stood_twice_for_a_while(keeper: Keeper, orders: Path) -> None:
    append(orders, (7, 7), (7, 70))
    with pytest.raises(ViewkeepError, match=r'oid = 7.*keep one of them.*repair\("all_orders"\)'):
        keeper.refresh()
    assert [bool(each.problem) for each in keeper.status()] == [True, True, True, False]
    assert 'repair("best")' in keeper.status("best")[0].problem
    assert "reads best" in keeper.status("above")[0].problem
    assert not keeper.status("best")[0].is_fresh
    keeper.apply("t", inserts=[(2,)])
    with pytest.raises(ViewkeepError, match="oid = 7"):
        keeper.refresh()
    check(keeper, ["other"])
    keeper.vacuum(0, force=True)
    DeltaTable(orders).delete("n = 70")
    keeper.refresh()
    check(keeper)
    assert not any(each.problem for each in keeper.status())


def test_a_version_with_a_key_that_stands_twice(keeper: Keeper, orders: Path) -> None:
    """A view that was computed from it says so, and is computed anew when the key is one again."""
    append(orders, (7, 7), (7, 70))
    for name in ("all_orders", "best"):
        keeper.repair(name)
    DeltaTable(orders).delete("oid = 7")
    reports = {each.view: each for each in keeper.refresh()}
    assert reports["all_orders"].strategy == "recompute"
    assert "two rows have this key" in reports["all_orders"].reason
    check(keeper)
    append(orders, (9, 9))
    assert {each.strategy for each in keeper.refresh("all_orders")} == {"id"}
    check(keeper, ["all_orders"])


@pytest.mark.parametrize("entries", ["all", "before"])
def test_repair_after_the_log_was_cleaned_up(
    keeper: Keeper, orders: Path, tmp_path: Path, entries: str
) -> None:
    """All entries of a view and its cache but the checkpoint, or those before the newest."""
    append(orders, (4, 40))
    keeper.refresh()
    folders = [tmp_path / "lake/best", *(tmp_path / "lake/_viewkeep/shared_caches").glob("*")]
    assert len(folders) > 1
    for folder in folders:
        table = DeltaTable(folder)
        table.create_checkpoint()
        if entries == "before":
            table.alter.set_table_properties({"delta.appendOnly": "false"})
        for entry in sorted((folder / "_delta_log").glob("*.json"))[: table.version() + 1]:
            if entries == "all" or entry.name < f"{DeltaTable(folder).version():020d}":
                entry.unlink()
    append(orders, (5, 50))
    with pytest.raises(ViewkeepError, match=r'"best": .*missing.*repair\("best"\)'):
        keeper.refresh()
    assert 'repair("best")' in keeper.status("best")[0].problem
    keeper.apply("t", inserts=[(2,)])
    assert {"t", "other"} <= set(keeper.vacuum(0, force=True))
    assert keeper.repair("best").reason == "repaired"
    assert not any(each.problem for each in keeper.status("best", "above"))
    check(keeper, ["best", "above"])
    append(orders, (6, 60))
    keeper.refresh()
    check(keeper)
    assert len(keeper.history("best")) >= 2


# --- names ---------------------------------------------------------------------------------------

REFUSED: list[Any] = [
    "", " ", "\t", "\n", "  ", "a ", " a", "a\n", "a\0", "\x7f", "\u00a0", "\u200b", "a\u200b",
    "a\ufeff", "\u2028", "a\ud800", "a b", "a,b", "a;b", "a{b", "a}", "a(b", "a)", "a=b", "#",
]  # fmt: skip
ACCEPTED = [
    "a", "_", "A1", "é", "数", "a.b", ".", "a`b", "`", "a'b", 'a"b', "a\\b", "a/b", "a%b", "%20",
    "a:b", "a-b", "a+b", "select", "order", "true", "0", "a[0]", "a*", "@x", "$y", "a|b", "~",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_names_of_columns_that_are_refused(
    keeper_without_spark: Keeper, name: str, tmp_path: Path
) -> None:
    for columns in ({"id": "int", name: "int"}, {name: "int"}):
        with pytest.raises(ViewkeepError, match=r'table "n"|key='):
            keeper_without_spark.create_table("n", columns, ["id"] if "id" in columns else [name])
    assert not (tmp_path / "names/n").exists()


@pytest.fixture
def keeper_without_spark(tmp_path: Path) -> Keeper:
    def start() -> SparkSession:
        raise AssertionError("Spark is not needed for this")

    return Keeper(tmp_path / "names", start)


def test_names_that_differ_in_case(keeper: Keeper, tmp_path: Path) -> None:
    with pytest.raises(ViewkeepError, match="the same name"):
        keeper.create_table("n", {"id": "int", "ID": "int"}, ["id"])
    for sql in (
        "SELECT id AS a, id AS A FROM t",
        "SELECT id AS `` FROM t",
        "SELECT id AS `  ` FROM t",
        "SELECT id AS `x y` FROM t",
    ):
        with pytest.raises(ViewkeepError):
            keeper.create_view("n", sql)
    assert "n" not in keeper.views
    assert not (tmp_path / "lake/n").exists()
    write_deltalake(tmp_path / "blank", pa.table({"id": [1], " ": [1]}))
    with pytest.raises(ViewkeepError, match="has no name"):
        keeper.register_table("blank", tmp_path / "blank", key=["id"])


def test_names_that_are_accepted_work(keeper: Keeper) -> None:
    """All that is not refused can be written, changed, read by views and refreshed."""
    columns = {"id": "int", **dict.fromkeys(ACCEPTED, "int")}
    rows = [(n, *range(n, n + len(ACCEPTED))) for n in range(3)]
    keeper.create_table("n", columns, ["id"], rows=rows)
    keeper.create_view("m", "SELECT * FROM n WHERE id > 0")
    keeper.apply("n", updates=[{"id": 1, **dict.fromkeys(ACCEPTED, 9)}], deletes=[(2,)])
    keeper.refresh("m")
    found = keeper.read("m").toArrow().to_pylist()
    assert found == [{"id": 1, **dict.fromkeys(ACCEPTED, 9)}]
