"""A lake that is copied or moved: the copy never reaches into the original, the rest goes on."""

import hashlib
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, location
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake import catalog_store

VIEWS = {
    "best": "SELECT g, max(n) AS m, avg(n) AS a FROM t JOIN names USING (g) GROUP BY g",
    "above": "SELECT g, m FROM best WHERE m > 2",
    "total": "SELECT sum(x) AS s FROM outside",
}


def made(spark: SparkSession, place: Path, outside: Path) -> Keeper:
    """A lake with tables of its own, and tables of others inside and outside of it."""
    keeper = Keeper(place, spark)
    keeper.create_table("t", {"id": "int", "g": "int", "n": "int"}, ["id"],
                        rows=[(n, n % 2, n) for n in range(6)])  # fmt: skip
    write_deltalake(place / "theirs/names", pa.table({"g": [0, 1], "name": ["a", "b"]}))
    write_deltalake(outside, pa.table({"oid": [1, 2], "x": [1, 2]}))
    keeper.register_table("names", place / "theirs/names", key=["g"])
    keeper.register_table("outside", outside, key=["oid"])
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql)
    return keeper


def tree(place: Path) -> dict[str, str]:
    """Everything in a folder."""
    files = [each for each in place.rglob("*") if each.is_file()]
    return {str(f.relative_to(place)): hashlib.sha1(f.read_bytes()).hexdigest() for f in files}


def use(keeper: Keeper, place: Path, outside: Path) -> None:
    """Everything that writes."""
    keeper.apply("t", updates=[{"id": 1, "n": 50}])
    write_deltalake(place / "theirs/names", pa.table({"g": [2], "name": ["c"]}), mode="append")
    write_deltalake(outside, pa.table({"oid": [3], "x": [30]}), mode="append")
    keeper.refresh()
    check(keeper)
    keeper.vacuum(0, force=True)
    keeper.repair("best")
    keeper.create_view("above", "SELECT g, a FROM best", replace=True)
    keeper.refresh()
    check(keeper)
    keeper.drop_view("above")
    keeper.drop_view("best")
    keeper.create_table("u", {"id": "int"}, ["id"])
    for name in ("t", "names", "total", "u"):
        assert location(keeper, name).startswith(f"{place}/")
    assert location(keeper, "outside") == str(outside)


@pytest.mark.parametrize("old", [False, True], ids=["relative", "absolute"])
def test_a_copy(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    """Also of a lake whose catalog has absolute paths, as earlier releases wrote them."""
    place, copy, outside = tmp_path / "lake", tmp_path / "copy", tmp_path / "outside"
    with monkeypatch.context() as patch:
        if old:
            patch.setattr(catalog_store, "stored_location", lambda lake, location: location)
        made(spark, place, outside)
    assert (str(place) in (place / "_viewkeep/catalog.json").read_text()) == old
    shutil.copytree(place, copy)
    before = tree(place)
    use(Keeper(copy, spark), copy, outside)
    assert tree(place) == before
    kept = json.loads((copy / "_viewkeep/catalog.json").read_text())
    assert kept["tables"]["names"]["location"] == "theirs/names"
    assert kept["views"]["total"]["location"] == "total"
    original = Keeper(place, spark)
    original.apply("t", updates=[{"id": 3, "n": 70}])
    original.refresh()
    check(original)


def test_a_lake_that_was_moved(spark: SparkSession, tmp_path: Path) -> None:
    """Also one that is reached by a link, with a table that was registered by its real path."""
    real, link, outside = tmp_path / "real", tmp_path / "link", tmp_path / "outside"
    real.mkdir()
    link.symlink_to(real)
    keeper = made(spark, link, outside)
    write_deltalake(real / "more", pa.table({"mid": [1]}))
    keeper.register_table("more", real / "more", key=["mid"])
    keeper.apply("t", updates=[{"id": 2, "n": 7}])
    moved = tmp_path / "a/b"
    moved.parent.mkdir()
    real.rename(moved)
    link.unlink()
    found = Keeper(moved, spark)
    assert location(found, "more") == str(moved / "more")
    assert found.status("best")[0].behind == {"t": 1}
    use(found, moved, outside)


def test_a_folder_that_a_link_leads_out_of_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    place, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    keeper = Keeper(place, spark)
    keeper.create_table("t", {"id": "int"}, ["id"], rows=[(1,)])
    keeper.create_table("u", {"id": "int"}, ["id"], rows=[(1,)])
    keeper.create_view("v", "SELECT id FROM t")
    keeper.create_view("w", "SELECT id FROM u")
    write_deltalake(elsewhere / "x", pa.table({"id": [1]}))
    for name in ("x", "y"):
        (place / name).symlink_to(elsewhere / name)
    (elsewhere / "y").mkdir()
    (place / "v").rename(elsewhere / "v")
    (place / "v").symlink_to(elsewhere / "v")
    (place / "t").rename(elsewhere / "t")
    (place / "t").symlink_to(elsewhere / "t")
    before = tree(elsewhere)
    for attempt in (
        lambda: keeper.create_table("y", {"id": "int"}, ["id"]),
        lambda: keeper.create_view("y", "SELECT id FROM u"),
        lambda: keeper.register_table("x", place / "x", key=["id"]),
        lambda: keeper.apply("t", inserts=[(2,)]),
        lambda: keeper.read("v"),
        lambda: keeper.repair("v"),
        lambda: keeper.drop_view("v"),
        lambda: keeper.refresh(),
    ):
        with pytest.raises(ViewkeepError, match="is a link out of the lake"):
            attempt()
    assert "v" in keeper.views
    assert "link" in keeper.status("v")[0].problem
    keeper.apply("u", inserts=[(2,)])
    with pytest.raises(ViewkeepError, match="link"):
        keeper.refresh()
    check(keeper, ["w"])
    assert set(keeper.vacuum(0, force=True)) == {"u", "w", "_viewkeep/catalog"}
    assert tree(elsewhere) == before
    keeper.register_table("x", elsewhere / "x", key=["id"])
    assert DeltaTable(location(keeper, "x")).version() == 0
