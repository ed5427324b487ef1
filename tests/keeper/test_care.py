"""Status, verify and repair: what is wrong with a view is seen, said and mended."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, check_verified, rows
from viewkeep import Keeper, ViewkeepError

COST = "SELECT did, sum(price) AS cost FROM uses JOIN parts USING (pid) GROUP BY did"


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", spark)
    parts = [(n, 10 * n) for n in range(6)]
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=parts)
    keeper.create_table(
        "uses", {"did": "int", "pid": "int"}, ["did", "pid"], rows=[(n % 3, n) for n in range(6)]
    )
    keeper.create_view("cost", COST)
    keeper.create_view("dear", "SELECT did FROM cost WHERE cost > 60")
    return keeper


def test_status(keeper: Keeper) -> None:
    fresh = keeper.status()
    assert [(each.name, each.rows, each.is_fresh) for each in fresh] == [
        ("cost", 3, True),
        ("dear", 1, True),
    ]
    keeper.apply("parts", updates=[{"pid": 1, "price": 11}])
    keeper.apply("parts", updates=[{"pid": 1, "price": 12}, {"pid": 2, "price": 0}])
    cost, dear = keeper.status()
    assert cost.behind == dear.behind == {"parts": 3}
    assert not cost.is_fresh
    assert 0 < cost.waiting < 600
    keeper.refresh()
    cost, dear = keeper.status()
    assert cost.is_fresh
    assert cost.last is not None
    assert cost.last.strategy == "id"
    assert cost.speed_up is None  # the first computation is no refresh to compare with


def test_rows_that_others_wrote(keeper: Keeper, tmp_path: Path) -> None:
    """A view whose table was changed is not believed any more, until it is repaired."""
    place = tmp_path / "lake/cost"
    DeltaTable(place).delete("did = 1")
    for attempt in (
        lambda: keeper.verify("cost"),
        lambda: keeper.refresh(),
        lambda: keeper.read("cost"),
    ):
        with pytest.raises(ViewkeepError, match=r"written by something else .* repair"):
            attempt()
    assert "repair" in keeper.status()[0].problem
    with pytest.raises(ViewkeepError, match="since it reads cost"):
        keeper.refresh()
    report = keeper.repair("cost")
    assert (report.strategy, report.reason) == ("recompute", "repaired")
    check_verified(keeper)
    keeper.apply("parts", updates=[{"pid": 1, "price": 1000}])
    keeper.refresh()
    check(keeper)


def test_files_put_together_by_others(keeper: Keeper, tmp_path: Path) -> None:
    """No rows change: the view goes on, also after the old files are gone."""
    place = tmp_path / "lake/cost"
    for price in range(3):
        keeper.apply("parts", updates=[{"pid": price, "price": price}])
        keeper.refresh()
    DeltaTable(place).optimize.compact()
    DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)
    check_verified(keeper)
    keeper.apply("parts", updates=[{"pid": 5, "price": 1000}])
    keeper.refresh()
    check(keeper)
    assert all(each.is_fresh for each in keeper.status())


def test_a_file_with_other_rows(keeper: Keeper, tmp_path: Path) -> None:
    """`verify` reads the rows themselves, and tells what is wrong with them."""
    (file,) = DeltaTable(tmp_path / "lake/cost").file_uris()
    stored = pq.read_table(file)
    wrong = stored["cost"].to_pylist()
    wrong[stored["did"].to_pylist().index(1)] = 7
    place = stored.column_names.index("cost")
    pq.write_table(stored.set_column(place, "cost", pa.array(wrong, stored["cost"].type)), file)
    (Path(file).parent / f".{Path(file).name}.crc").unlink(missing_ok=True)
    found = keeper.verify("cost")
    assert not found.ok
    assert (found.missing, found.extra) == ([(1, 50)], [(1, 7)])
    assert (found.missing_rows, found.extra_rows, found.columns) == (1, 1, ["did", "cost"])
    keeper.repair("cost")
    assert keeper.verify("cost").ok
    keeper.refresh()
    check_verified(keeper)


def test_a_file_that_is_gone(keeper: Keeper, tmp_path: Path) -> None:
    (file,) = DeltaTable(tmp_path / "lake/cost").file_uris()
    Path(file).unlink()
    with pytest.raises(ViewkeepError, match=r"gone.*repair"):
        keeper.verify("cost")
    keeper.apply("parts", updates=[{"pid": 1, "price": 11}])
    with pytest.raises(ViewkeepError, match=r"gone.*repair"):
        keeper.refresh()
    keeper.repair("cost")  # and what reads it: the version that it has seen is gone
    check(keeper)
    assert {each.strategy for each in keeper.refresh()} == {"none"}


def test_a_cache_that_is_gone(keeper: Keeper, tmp_path: Path) -> None:
    keeper.create_view("mean", "SELECT did, avg(price) AS m, max(pid) AS p FROM uses JOIN parts"
                       " USING (pid) GROUP BY did")  # fmt: skip
    assert keeper.script("mean").caches
    keeper.create_view("strict", keeper.views["mean"], policy="strict")
    shutil.rmtree(tmp_path / "lake/_viewkeep/shared_caches")
    keeper.apply("parts", updates=[{"pid": 1, "price": 11}])
    with pytest.raises(
        ViewkeepError, match=r'view "strict": the cache .* (is gone|was put back).*repair'
    ):
        keeper.refresh()
    check(keeper, ["cost", "dear", "mean"])
    last = keeper.status("mean")[0].last
    assert last is not None
    assert (last.strategy, "is gone" in last.reason) == ("recompute", True)
    keeper.repair("strict")
    keeper.apply("parts", updates=[{"pid": 2, "price": 11}])
    keeper.refresh()
    check(keeper)


def test_a_table_of_a_view_that_is_gone(keeper: Keeper, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "lake/cost")
    with pytest.raises(ViewkeepError, match="there is no Delta table"):
        keeper.refresh()
    assert "no Delta table" in keeper.status()[0].problem
    keeper.repair("cost")
    check(keeper)
    assert {each.strategy for each in keeper.refresh()} == {"none"}


def test_a_log_of_a_view_that_is_corrupt(keeper: Keeper, tmp_path: Path) -> None:
    entry = tmp_path / "lake/cost/_delta_log/00000000000000000000.json"
    entry.write_text(entry.read_text()[:-30])
    with pytest.raises(ViewkeepError, match=r'view "cost": .*lake/cost'):
        keeper.refresh()
    with pytest.raises(ViewkeepError, match="lake/cost"):
        keeper.read("cost")
    keeper.repair("cost")
    keeper.apply("parts", updates=[{"pid": 2, "price": 11}])
    keeper.refresh()
    check(keeper)


def test_a_view_without_differences_in_floats(spark: SparkSession, tmp_path: Path) -> None:
    """NULL, NaN, infinities and zeros of both signs are compared as values."""
    keeper = Keeper(tmp_path / "floats", spark)
    odd = [None, float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-300, 1 / 3, 1e300]
    keeper.create_table("x", {"id": "int", "v": "double", "f": "float"}, ["id"],
                        rows=[(n, v, v if v not in (1e300, 1e-300) else 0.5)
                              for n, v in enumerate(odd)])  # fmt: skip
    keeper.create_view("same", "SELECT * FROM x")
    keeper.create_view("sums", "SELECT id % 3 AS g, sum(v) AS s, avg(f) AS a FROM x GROUP BY 1")
    check_verified(keeper)
    nan = float("nan")
    keeper.apply("x", updates=[{"id": 1, "v": 0.1, "f": nan}, {"id": 7, "v": nan, "f": None}])
    keeper.refresh()
    check_verified(keeper)


def test_a_registered_table_made_anew(keeper: Keeper, tmp_path: Path) -> None:
    """The same folder with another table in it: its versions say nothing about the old ones."""
    place = tmp_path / "orders"
    write_deltalake(place, pa.table({"oid": [1, 2], "n": [1, 2]}))
    write_deltalake(place, pa.table({"oid": [3], "n": [3]}), mode="append")
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM orders")
    for appended in (0, 3):
        shutil.rmtree(place)
        write_deltalake(place, pa.table({"oid": [1], "n": [10 + appended]}))
        for number in range(appended):
            more = pa.table({"oid": [2 + number], "n": [1]})
            write_deltalake(place, more, mode="append")
        with pytest.raises(ViewkeepError, match=r"made anew.*repair"):
            keeper.refresh()
        check(keeper, ["cost"])
        keeper.repair("total")
        keeper.refresh()
        check(keeper)
    assert rows(keeper, "total") == {(16,): 1}
