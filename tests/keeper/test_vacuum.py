"""Old files are removed, beside writers and refreshes; what is needed or about to be stays."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, check_verified
from viewkeep import Keeper, ViewkeepError, live_view
from viewkeep.lake import apply
from viewkeep.lake import marks as running
from viewkeep.lake import vacuum as cleaning
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.memory import remembered_logs

DAY = 24 * 3600


def no_spark() -> SparkSession:
    raise AssertionError("Spark is not needed for this")


def lake_without_views(place: Path) -> Keeper:
    keeper = Keeper(place, no_spark)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(n, 0) for n in range(8)])
    return keeper


def data_files(place: Path) -> set[str]:
    return {path.name for path in place.glob("*.parquet")}


def shift(patch: pytest.MonkeyPatch, hours: float) -> None:
    """Clean later than it is."""
    now = time.time
    patch.setattr(cleaning.time, "time", lambda: now() + hours * 3600)


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf"), "3", None, True])
def test_times_that_are_none(tmp_path: Path, hours: Any) -> None:
    with pytest.raises(ViewkeepError, match="hours"):
        lake_without_views(tmp_path).vacuum(hours, force=True)


@pytest.mark.parametrize("hours", [0, 0.4, 1, 23.99])
def test_short_times_need_force(tmp_path: Path, hours: float) -> None:
    keeper = lake_without_views(tmp_path)
    keeper.apply("t", updates=[{"id": 1, "n": 1}])
    with pytest.raises(ViewkeepError, match=r"fewer than 24.*force=True, --force"):
        keeper.vacuum(hours)
    assert len(data_files(tmp_path / "t")) == 2
    assert keeper.vacuum(24) == {"t": 0}


def test_hours_are_not_rounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = lake_without_views(tmp_path)
    keeper.apply("t", updates=[{"id": 1, "n": 1}])
    for later, hours, removed in ((0.3, 0.4, 0), (0.5, 0.6, 0), (0.5, 0.4, 1)):
        with monkeypatch.context() as patch:
            shift(patch, later)
            assert keeper.vacuum(hours, dry_run=True, force=True) == {"t": removed}


def test_files_that_no_entry_names(tmp_path: Path) -> None:
    """A new one may be about to be committed; an old one is what a dead process left."""
    keeper = lake_without_views(tmp_path)
    table = keeper._lake.at(str(tmp_path / "t"))
    snapshot = table.snapshot()
    rows = ParquetFolder(table).read(snapshot.files, snapshot.fields)
    new, old = (tmp_path / "t" / ParquetFolder(table).write(rows).path for _ in range(2))
    nested = tmp_path / "t/spark-1-x/part-1.parquet"
    nested.parent.mkdir()
    shutil.copy(old, nested)
    for each in (old, nested):
        os.utime(each, (time.time() - 2 * DAY,) * 2)
    assert keeper.vacuum(0, force=True) == {"t": 2}
    assert new.exists()
    assert not old.exists()
    assert not nested.exists()
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 8


def test_files_that_are_gone_are_not_committed(tmp_path: Path) -> None:
    """Whoever removed them: the table stays readable."""
    keeper = lake_without_views(tmp_path)
    table = keeper._lake.at(str(tmp_path / "t"))
    snapshot = table.snapshot()
    file = ParquetFolder(table).write(ParquetFolder(table).read(snapshot.files, snapshot.fields))
    (tmp_path / "t" / file.path).unlink()
    with pytest.raises(ViewkeepError, match=r"is gone.*nothing was changed"):
        table.commit(0, [file])
    assert table.version() == 0


def test_a_version_that_is_vacuumed_while_it_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer has replaced its files since: the change starts from the newer version."""
    keeper, find = lake_without_views(tmp_path), apply.find_rows_by_key

    def late(*given: Any) -> Any:
        monkeypatch.setattr(apply, "find_rows_by_key", find)
        keeper.apply("t", updates=[{"id": 1, "n": 70}])
        time.sleep(0.01)
        with remembered_logs():  # as in another process
            assert keeper.vacuum(0, force=True)["t"] == 1
        return find(*given)

    monkeypatch.setattr(apply, "find_rows_by_key", late)
    keeper.apply("t", updates=[{"id": 0, "n": 60}])
    found = DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    assert {row["id"]: row["n"] for row in found if row["id"] < 2} == {0: 60, 1: 70}


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_beside_writers(tmp_path: Path, processes: bool) -> None:
    """Every change that was acknowledged is there, and every file of the newest version."""
    keeper, stop = lake_without_views(tmp_path), Event()

    def write(row: int) -> int:
        own = Keeper(tmp_path, no_spark)
        for number in range(12):
            own.apply("t", updates=[{"id": row, "n": number + 1}])
        return row

    def clean() -> int:
        removed = 0
        while not stop.is_set():
            removed += keeper.vacuum(0, force=True)["t"]
        return removed

    with ThreadPoolExecutor(4) as pool:
        cleaner = pool.submit(clean)
        try:
            if processes:
                _run_writers(tmp_path)
            else:
                list(pool.map(write, range(2)))
        finally:
            stop.set()
        assert cleaner.result() > 10
    found = DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    assert {row["id"]: row["n"] for row in found if row["id"] < 2} == {0: 12, 1: 12}
    keeper.vacuum(0, force=True)
    assert len(data_files(tmp_path / "t")) <= 2 + 24  # the newest, and what lost a race


def _run_writers(place: Path) -> None:
    code = """if True:
        import sys
        from viewkeep import Keeper
        keeper = Keeper(sys.argv[1], lambda: 1 / 0)
        for number in range(12):
            keeper.apply("t", updates=[{"id": int(sys.argv[2]), "n": number + 1}])"""
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(place), str(row)]) for row in range(2)
    ]
    assert [each.wait(300) for each in writers] == [0, 0]


def lake_with_views(spark: SparkSession, place: Path) -> Keeper:
    keeper = Keeper(place, spark)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(n, n) for n in range(8)])
    keeper.create_view("best", "SELECT id % 2 AS g, max(n) AS m, avg(n) AS a FROM t GROUP BY 1")
    keeper.create_view("above", "SELECT g, m FROM best WHERE m > 3")
    return keeper


def test_beside_writers_and_refreshes(spark: SparkSession, tmp_path: Path) -> None:
    """The versions that a refresh has pinned stay until it has ended."""
    keeper, stop = lake_with_views(spark, tmp_path), Event()

    def until_stopped(work: Callable[[], object]) -> Callable[[], None]:
        def loop() -> None:
            while not stop.is_set():
                work()

        return loop

    other = Keeper(tmp_path, spark)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(until_stopped(lambda: Keeper(tmp_path, spark).vacuum(0, force=True))),
            pool.submit(until_stopped(other.refresh)),
        ]
        try:
            for number in range(25):
                keeper.apply("t", updates=[{"id": number % 8, "n": number}])
        finally:
            stop.set()
        for job in jobs:
            job.result()
    check_verified(keeper)
    keeper.refresh()
    check(keeper)
    check_verified(keeper)


def test_a_view_that_is_behind_and_one_that_is_broken(spark: SparkSession, tmp_path: Path) -> None:
    keeper = lake_with_views(spark, tmp_path)
    keeper.create_view("broken", "SELECT id FROM t WHERE n > 2")
    for number in range(3):
        keeper.apply("t", updates=[{"id": 1, "n": 10 + number}])
    entry = next((tmp_path / "broken/_delta_log").glob("*.json"))
    entry.write_bytes(b"")
    removed = keeper.vacuum(0, force=True)
    assert removed["t"] == 2  # the newest version, and the one that the views have seen
    assert "broken" not in removed
    check_verified_but(keeper, "broken")
    keeper.repair("broken")
    keeper.refresh()
    check(keeper)


def check_verified_but(keeper: Keeper, broken: str) -> None:
    for name in keeper.views:
        if name != broken:
            assert keeper.verify(name).ok


def test_marks_of_dead_processes(tmp_path: Path) -> None:
    """A refresh that runs keeps what was current when it began; one that died does not."""
    now, lake = time.time(), str(tmp_path)
    with running.marked_block(lake):
        (mark,) = (tmp_path / running.FOLDER).iterdir()
        os.utime(mark, (now - 100, now - 100))
        assert running.earliest(lake, now) == pytest.approx(now - 100)
        os.utime(mark, (now - 2 * DAY, now - 2 * DAY))
        assert running.earliest(lake, now) == now
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                           capture_output=True, text=True, check=True)  # fmt: skip
    dead = tmp_path / running.FOLDER / f"{running.host_name()}-{ended.stdout.strip()}-1"
    elsewhere = tmp_path / running.FOLDER / "other-1-1"
    dead.touch()
    assert running.earliest(lake, now + 5) == now + 5
    assert not dead.exists()
    elsewhere.touch()
    assert running.earliest(lake, now + 5) < now + 5


# --- files of changes -----------------------------------------------------------------------------


@pytest.fixture
def keeper_of_changes(tmp_path: Path) -> Keeper:
    """An embedded lake whose changes are too large for entries of the log."""
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(n, n) for n in range(400)])
    keeper.create_view("total", "SELECT id % 3 AS g, sum(n) AS n FROM t GROUP BY id % 3")
    return keeper


def change_many(keeper: Keeper, *numbers: int) -> None:
    for number in numbers:
        keeper.apply("t", updates=[{"id": n, "n": number} for n in range(300)])


def change_files(keeper: Keeper) -> int:
    return len(list((Path(keeper._lake.uri) / "t" / "_changes").glob("*.parquet")))


def test_changes_stay_until_views_have_seen_them(keeper_of_changes: Keeper) -> None:
    keeper = keeper_of_changes
    change_many(keeper, 1, 2)
    keeper.refresh()
    change_many(keeper, 3, 4)
    assert (change_files(keeper), keeper.vacuum(24)["t"]) == (4, 0)
    keeper.vacuum(0, force=True)
    assert change_files(keeper) == 2
    told = keeper.changes("t", since=2)
    assert (told.num_rows, set(told["version"].to_pylist())) == (600, {3, 4})
    [report] = keeper.refresh()
    assert not report.from_scratch
    assert keeper.verify("total").ok
    keeper.vacuum(0, force=True)
    assert change_files(keeper) == 1  # the last one: a transaction might be open
    assert keeper.changes("t", since=3).num_rows == 300
    with pytest.raises(ViewkeepError, match=r'version 3 changed.*changes\("t", since=3\)'):
        keeper.changes("t")


def test_changes_stay_while_a_view_is_behind_for_long(
    keeper_of_changes: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of commits that are older than the hours that are kept."""
    keeper = keeper_of_changes
    change_many(keeper, 1, 2, 3)
    for file in (Path(keeper._lake.uri) / "t" / "_changes").iterdir():
        os.utime(file, (time.time() - 1,) * 2)
    with monkeypatch.context() as patch:
        shift(patch, 1000)
        keeper.vacuum(168)
    assert change_files(keeper) == 3
    [report] = keeper.refresh()
    assert not report.from_scratch
    with monkeypatch.context() as patch:
        shift(patch, 1000)
        keeper.vacuum(168)
    assert change_files(keeper) == 1


def test_changes_stay_until_kept_states_of_live_views_have_seen_them(
    keeper_of_changes: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = keeper_of_changes
    keeper.create_view("sums", "SELECT n, count(*) AS c FROM t GROUP BY n")
    change_many(keeper, 1, 2)
    keeper.live("sums").save()
    change_many(keeper, 3, 4)
    keeper.refresh()
    keeper.vacuum(0, force=True)
    assert change_files(keeper) == 2
    with monkeypatch.context() as patch:
        patch.setattr(live_view, "_build_live_view", None)  # it is resumed
        assert keeper.live("sums").lookup((4,)) == (300,)
    keeper.create_view("sums", "SELECT n, count(*) AS c FROM t GROUP BY n", replace=True)
    keeper.vacuum(0, force=True)
    assert change_files(keeper) == 1  # the state is of another definition
