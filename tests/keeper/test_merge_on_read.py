"""Views whose changed rows are marked in deletion vectors: right after every refresh, for us and
for other readers; what is written grows with the changes only; what is not needed goes."""

import os
import shutil
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.diffs.random_tables import Database, apply_batches, random_batch, random_database
from tests.keeper.faults import TABLES, apply
from tests.keeper.lakes import check, check_verified, delta_rows, in_duckdb, location, rows
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute import few_rows
from viewkeep.execute.duckdb import relations
from viewkeep.execute.duckdb.scans import DuckdbScans
from viewkeep.lake.views import row_layout
from viewkeep.lake.views.reports import RefreshReport
from viewkeep.tables.files import mark, rewrite
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.scans import FILE, ROW
from viewkeep.tables.log import deletion_vectors, read_log
from viewkeep.tables.log.memory import RecentSnapshots
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import StoredRows

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
MARKED = "merge-on-read"
VIEWS = {
    "pairs": "SELECT did, pid, name, price FROM uses JOIN parts USING (pid) WHERE price > 1",
    "cost": "SELECT did, sum(price) AS cost, count(*) AS n FROM pairs GROUP BY did",
    "total": "SELECT sum(n) AS n, max(price) AS most FROM uses JOIN parts USING (pid)",
    "names": "SELECT DISTINCT name FROM parts",
}


def files_of(keeper: Keeper, name: str) -> tuple[DataFile, ...]:
    return keeper._lake.at(location(keeper, name)).snapshot().files


def create(keeper: Keeper, model: Database) -> None:
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(model[name].values()))
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, policy="incremental", layout=MARKED)


def polars_rows(keeper: Keeper, name: str) -> "Counter[tuple[Any, ...]]":
    import polars as pl

    found = pl.read_delta(location(keeper, name))
    return Counter(found.select([n for n in found.columns if not n.startswith("#")]).rows())


@pytest.mark.parametrize("seed", range(40 if LONG else 4))
def test_random_histories(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors in the log and in files, look-ups by Arrow and by DuckDB, files that are put
    together early, and processes that know nothing of those before."""
    rng = Random(seed)
    monkeypatch.setattr(deletion_vectors, "INLINE_BYTES", rng.choice([0, 2048]))
    monkeypatch.setattr(mark, "DRIVER_ROWS", rng.choice([-1, 1 << 20]))
    monkeypatch.setattr(mark, "DELETED_SHARE", rng.choice([0.2, 0.6, 1.0]))
    monkeypatch.setattr(rewrite, "SMALL_FILES", rng.choice([2, 4, 16]))
    monkeypatch.setattr(few_rows, "MOST_ROWS", rng.choice([-1, 10_000]))
    if seed % 2:  # rows of views are looked up, and their places are remembered
        monkeypatch.setattr(few_rows, "ALL_ROWS", -1)
        monkeypatch.setattr(few_rows, "WHOLE_ROWS", 0)
        monkeypatch.setattr(relations, "NEAR_SHARE", rng.choice([-1.0, 0.5]))
    model = random_database(TABLES, rng, 30)
    create(Keeper(tmp_path), model)
    marked = 0
    for _ in range(5):
        monkeypatch.setattr(read_log, "RECENT", RecentSnapshots(1000))
        keeper = Keeper(tmp_path)
        for batch in random_batch(model, TABLES, rng, 6).values():
            apply(keeper, batch)
            model = apply_batches(model, {batch.name: batch})
        keeper.refresh()
        check(keeper)
        marked += sum(f.vector is not None for name in VIEWS for f in files_of(keeper, name))
    check_verified(keeper)
    for name in VIEWS:
        own = keeper.read(name).to_pylist()
        assert Counter(tuple(row.values()) for row in own) == rows(keeper, name)
        if find_spec("polars"):
            assert polars_rows(keeper, name) == rows(keeper, name)
        for version in range(DeltaTable(location(keeper, name)).version() + 1):
            earlier = keeper.read(name, version).to_pylist()
            found = delta_rows(location(keeper, name), version)
            assert Counter(tuple(row.values()) for row in earlier) == found
    assert marked or seed > 3


def test_on_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked by Spark, read by both engines."""
    monkeypatch.setattr(mark, "DRIVER_ROWS", -1)
    monkeypatch.setattr(mark, "JOB_ROWS", -1)
    monkeypatch.setattr(mark, "DELETED_SHARE", 0.6)
    keeper = Keeper(tmp_path / "a lake", spark, backend="spark")
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(i, i) for i in range(50)])
    keeper.create_view("v", "SELECT id, n FROM t WHERE n > 0", layout=MARKED, policy="incremental")
    for step in range(2):
        keeper.apply("t", updates=[{"id": i, "n": -step} for i in range(5, 9)], deletes=[(step,)])
        keeper.refresh()
        keeper.apply("t", updates=[{"id": i, "n": 100 + i} for i in range(7, 30)])
        keeper.refresh()
        check(keeper)
    assert any(each.vector is not None for each in files_of(keeper, "v"))
    own = Counter(map(tuple, keeper.read("v").collect()))
    assert own == rows(keeper, "v")
    assert Keeper(tmp_path / "a lake").read("v").num_rows == sum(own.values())
    assert keeper.verify("v").ok


def test_rows_are_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The places of the rows that a script has looked up are those that are marked, also in files
    of which rows are deleted already."""
    monkeypatch.setattr(few_rows, "ALL_ROWS", -1)
    monkeypatch.setattr(few_rows, "WHOLE_ROWS", 0)
    monkeypatch.setattr(relations, "NEAR_SHARE", -1.0)
    monkeypatch.setattr(mark, "DRIVER_ROWS", -1)
    monkeypatch.setattr(mark, "DELETED_SHARE", 1.0)
    monkeypatch.setattr(DuckdbScans, "row_places", None)
    keeper, rng = Keeper(tmp_path), Random(3)
    columns = {"id": "int", "c": "int", "n": "int"}
    new = [(i, i % 40, rng.randrange(50)) for i in range(400)]
    keeper.create_table("t", columns, ["id"], rows=new)
    sql = "SELECT id, c, row_number() OVER (PARTITION BY c ORDER BY n, id) AS place FROM t"
    keeper.create_view("v", sql, layout=MARKED, policy="incremental")
    for step in range(4):
        some = rng.sample(range(400), 6)
        keeper.apply("t", updates=[{"id": i, "n": rng.randrange(50)} for i in some if i % 9])
        keeper.apply("t", inserts=[(1000 + step, rng.randrange(40), 7)])
        keeper.refresh()
        check(keeper)
    assert any(each.vector is not None for each in files_of(keeper, "v"))


@pytest.mark.parametrize("layout", [MARKED, "auto"])
def test_rows_of_an_update_are_looked_up_once(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement that computes what an update changes tells where the rows are, also in small
    files that stand before large ones."""
    monkeypatch.setattr(few_rows, "ALL_ROWS", -1)
    monkeypatch.setattr(few_rows, "MOST_CHANGES", -1)
    monkeypatch.setattr(rewrite, "DRIVER_BYTES", -1)
    monkeypatch.setattr(relations, "NEAR_SHARE", -1.0)
    monkeypatch.setattr(mark, "DRIVER_ROWS", -1)
    monkeypatch.setattr(mark, "DELETED_SHARE", 1.0)
    monkeypatch.setattr(rewrite, "FEWEST_ROWS", 1)
    monkeypatch.setattr(DuckdbScans, "row_places", None)
    keeper, rng = Keeper(tmp_path), Random(3)
    keeper.create_table(
        "t", {"id": "int", "p": "int"}, ["id"], rows=[(i, i % 20) for i in range(400)]
    )
    keeper.create_table("u", {"p": "int", "n": "int"}, ["p"], rows=[(i, i) for i in range(20)])
    sql = "SELECT t.id, t.p, u.n FROM t JOIN u ON t.p = u.p"
    keeper.create_view("v", sql, layout=layout, policy="incremental")
    for _ in range(4):
        some = rng.sample(range(20), 3)
        keeper.apply("u", updates=[{"p": i, "n": rng.randrange(500)} for i in some])
        keeper.refresh()
        check(keeper)
    if layout == MARKED:
        assert {each.rows < 100 for each in files_of(keeper, "v")} == {True, False}


def test_places_count_files_as_they_are_given(tmp_path: Path) -> None:
    """DuckDB is told of a typical file first, which need not be the first one."""
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int"}, ["id"], rows=[(0,)])
    for count in (2, 50, 3, 400):
        top = max(row["id"] for row in keeper.read("t").to_pylist())
        keeper.apply("t", inserts=[(top + 1 + i,) for i in range(count)])
    table = keeper._lake.at(location(keeper, "t"))
    stored = StoredRows.whole(table, table.snapshot())
    keys = pa.table({"id": pa.array(range(456), pa.int32())})
    places = DuckdbScans().row_places(stored, keys).sort_by("id")
    assert places["id"].to_pylist() == list(range(456))
    whole = [
        table_rows["id"].to_pylist()
        for table_rows in (
            ParquetFolder(table).read([each], stored.fields) for each in stored.files
        )
    ]
    found = [whole[p[FILE]][p[ROW]] for p in places.to_pylist()]
    assert found == list(range(456))


def written_since(place: Path, seen: dict[Path, int]) -> tuple[int, int]:
    """The bytes of files that are new below a folder, and how many they are."""
    new = {p: p.stat().st_size for p in place.rglob("*") if p.is_file() and p not in seen}
    seen |= new
    return sum(new.values()), len(new)


def test_what_is_written_does_not_grow_with_the_view(tmp_path: Path) -> None:
    """The same changes of views of two sizes; before, ten times as many bytes were written."""
    found: dict[int, list[tuple[int, int]]] = {}
    for count in (5_000, 50_000):
        place = tmp_path / str(count)
        keeper = Keeper(place)
        keeper.create_table(
            "t", {"id": "int", "n": "int"}, ["id"], rows=[(i, i) for i in range(count)]
        )
        keeper.create_view("v", "SELECT id, n FROM t WHERE n >= 0", layout=MARKED)
        seen: dict[Path, int] = {}
        written_since(place / "v", seen)
        found[count] = []
        for step in range(6):
            changed = [i * (count // 50) + step for i in range(50)]
            keeper.apply("t", updates=[{"id": i, "n": i + 10**6} for i in changed])
            [report] = keeper.refresh()
            assert (report.strategy, report.rows_changed, report.rows) == ("id", 50, count)
            found[count].append(written_since(place / "v", seen))
        check(keeper)
    for small, large in zip(*found.values(), strict=True):
        assert large[1] == small[1]
        assert large[0] < 1.3 * small[0] + 1000


def test_files_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a view changes, few files and few deleted rows are left, and over time each
    changed row has cost a few others."""
    monkeypatch.setattr(rewrite, "SMALL_BYTES", 3000)
    keeper, count, steps = Keeper(tmp_path), 2000, 60
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(i, i) for i in range(count)])
    keeper.create_view("v", "SELECT id, n FROM t WHERE n >= 0", layout=MARKED)
    written, before, rng = 0, {f.path for f in files_of(keeper, "v")}, Random(3)
    for step in range(steps):
        changed = rng.sample(range(count), 40)
        keeper.apply("t", updates=[{"id": i, "n": 5000 * (step + 1) + i} for i in changed])
        keeper.refresh()
        files = files_of(keeper, "v")
        written += sum(f.stored_rows for f in files if f.path not in before)
        before |= {f.path for f in files}
        assert sum(f.size < rewrite.SMALL_BYTES for f in files) <= rewrite.SMALL_FILES
        assert all(f.stored_rows - f.rows <= mark.DELETED_SHARE * f.stored_rows for f in files)
        assert sum(f.rows for f in files) == count
    check(keeper)
    assert written < 12 * 40 * steps


def test_vacuum_and_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of vectors are kept as long as a version that is needed names them."""
    monkeypatch.setattr(deletion_vectors, "INLINE_BYTES", 0)
    keeper = Keeper(tmp_path / "lake")
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(i, i) for i in range(99)])
    keeper.create_view("v", "SELECT id, n FROM t WHERE n >= 0", layout=MARKED)
    keeper.create_view("w", "SELECT n % 3 AS g, sum(n) AS s FROM v GROUP BY 1", layout=MARKED)

    def vectors() -> set[str]:
        return {each.name for each in (tmp_path / "lake/v").glob("deletion_vector_*.bin")}

    for step in range(3):
        keeper.apply("t", updates=[{"id": step, "n": 100 + step}])
        keeper.refresh("v")
    assert len(vectors()) == 3
    keeper.vacuum(0, force=True)
    assert len(vectors()) == 1  # the view above has not seen the second and third version yet,
    keeper.refresh()  # but finds its changes in files of their own
    check(keeper)
    check_verified(keeper)
    keeper.vacuum(0, force=True)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "lake", copy)
    shutil.rmtree(tmp_path / "lake")
    moved = Keeper(copy)
    moved.apply("t", deletes=[(50,)])
    moved.refresh()
    check(moved)
    moved.drop_view("w")
    moved.drop_view("v")
    assert not (copy / "v").exists()


def test_checkpoints_keep_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """deltalake writes the checkpoints, also of entries that Viewkeep has written."""
    monkeypatch.setattr("viewkeep.tables.log.write_entry.CHECKPOINTS", 3)
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(i, i) for i in range(40)])
    keeper.create_view("v", "SELECT id, n FROM t WHERE n >= 0", layout=MARKED)
    for step in range(7):
        keeper.apply("t", updates=[{"id": step, "n": 100 + step}])
        keeper.refresh()
    log = tmp_path / "v/_delta_log"
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    for version in range(5):  # what a checkpoint stands for
        (log / f"{version:020d}.json").unlink()
    monkeypatch.setattr(read_log, "RECENT", RecentSnapshots(10))
    again = Keeper(tmp_path)
    assert again.verify("v").ok
    again.apply("t", deletes=[(20,)])
    again.refresh()
    check(again)


def test_other_layouts(tmp_path: Path) -> None:
    """A view that is defined anew may change its layout and its columns, in both directions."""
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(i, i) for i in range(40)])
    sql = "SELECT id, n FROM t WHERE n >= 0"
    keeper.create_view("v", sql)
    steps = [(sql, MARKED), (f"{sql} AND id > 1", "auto"), ("SELECT n, id FROM t", MARKED)]
    for step, (text, layout) in enumerate([*steps, (sql, "copy-on-write"), (sql, MARKED)]):
        keeper.create_view("v", text, replace=True, layout=layout)
        keeper.apply("t", updates=[{"id": step, "n": 90 + step}], deletes=[(20 + step,)])
        keeper.refresh()
        check(keeper)
        has_vectors = any(each.vector is not None for each in files_of(keeper, "v"))
        assert has_vectors == (layout == MARKED)
        assert ("merge-on-read" in keeper.explain("v")) == (layout == MARKED)
    keeper.repair("v")
    check(keeper)


def test_a_view_that_is_always_computed_anew_has_nothing_to_mark(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(1, 1)])
    keeper.create_view("v", "SELECT id, n FROM t", "recompute", layout=MARKED)
    assert "nothing to mark" in keeper.explain("v")
    assert not DeltaTable(tmp_path / "v").protocol().reader_features


def test_layouts_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(1, 1)])
    with pytest.raises(ViewkeepError, match=r'expected one of auto.*mean "merge-on-read"'):
        keeper.create_view("v", "SELECT id FROM t", layout="merge-on-red")
    with pytest.raises(ViewkeepError, match="local disks only"):
        row_layout.check_layout(MARKED, is_local=False)
    refused = OSError(1, "Operation not permitted")  # a file system without links

    def link(*given: object) -> None:
        raise refused

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(ViewkeepError, match='use the layout "copy-on-write"'):
        keeper.create_view("v", "SELECT id FROM t", layout=MARKED)


def test_auto_proposes_it_where_it_pays() -> None:
    """Large views of which refreshes change a little, and mostly write files."""

    def reports(**changed: Any) -> list[RefreshReport]:
        about = {"rows": 5_000_000, "rows_changed": 100, "seconds": 1.0, "phases": {"write": 0.7}}
        return [RefreshReport("v", "id", **{**about, **changed}) for _ in range(4)]

    assert 'layout="merge-on-read" would mark' in row_layout.advice(reports())
    for other in (
        reports(rows=1000),
        reports(rows_changed=500_000),
        reports(phases={"write": 0.1}),
        reports(from_scratch=True),
        reports()[:2],
    ):
        assert row_layout.advice(other) == ""


def test_rows_marked_by_others_are_not_lost(tmp_path: Path) -> None:
    """deltalake puts files together without the rows that are marked; the view goes on."""
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(i, i) for i in range(40)])
    keeper.create_view("v", "SELECT id, n FROM t WHERE n >= 0", layout=MARKED)
    for step in range(3):
        keeper.apply("t", updates=[{"id": step, "n": 100 + step}])
        keeper.refresh()
        DeltaTable(tmp_path / "v").optimize.compact()
        check(keeper)
    with in_duckdb(keeper) as connection:
        assert connection.execute("SELECT count(*) FROM v").fetchall() == [(40,)]
