"""Logs are cleaned by `vacuum` as far as nobody needs them, and stay readable whatever dies."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.diffs.random_tables import Database, apply_batches, random_batch, random_database
from tests.keeper.faults import TABLES, VIEWS, Died, apply, create
from viewkeep import Keeper, ViewkeepError
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log import clean_log as cleaning
from viewkeep.tables.log import delta, write_entry
from viewkeep.tables.log.delta import LakeTable

INTERVAL = 7
"""Entries between checkpoints, so that few commits make many."""


@pytest.fixture(autouse=True)
def many_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints after few entries: deltalake writes them only where it is asked to."""
    monkeypatch.setattr(cleaning, "CHECKPOINTS", INTERVAL)
    monkeypatch.setattr(cleaning, "GONE_FILES", 3)
    monkeypatch.setattr(write_entry, "CHECKPOINTS", INTERVAL)
    commit = delta.commit_by_deltalake

    def commit_and_check(table: DeltaTable, *given: Any) -> None:
        commit(table, *given)
        DeltaTable(table.table_uri).create_checkpoint()

    monkeypatch.setattr(delta, "commit_by_deltalake", commit_and_check)


def small_lake(place: Path) -> Keeper:
    keeper = Keeper(place, durable=False)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(n, n) for n in range(8)])
    keeper.create_view("sums", "SELECT id % 2 AS g, sum(n) AS n FROM t GROUP BY 1")
    keeper.create_view("above", "SELECT g, n FROM sums WHERE n > 3", layout="merge-on-read")
    return keeper


def change(keeper: Keeper, *numbers: int) -> None:
    for number in numbers:
        keeper.apply("t", updates=[{"id": number % 8, "n": number + 100}])


def entries(table: Path) -> list[int]:
    """The versions whose entries are there."""
    return sorted(int(each.stem) for each in (table / "_delta_log").glob("*.json"))


def check_tables(place: Path) -> None:
    """deltalake reads the newest version of everything, and the log has no gap."""
    for log in place.rglob("_delta_log"):
        table, there = DeltaTable(log.parent), entries(log.parent)
        assert there == list(range(there[0], table.version() + 1)), log
        pointer = log / "_last_checkpoint"
        if there[0] > 0:
            named = json.loads(pointer.read_text())["version"]
            assert named >= there[0]
            assert (log / f"{named:020d}.checkpoint.parquet").exists()


def test_logs_of_tables_views_and_caches(tmp_path: Path) -> None:
    keeper = small_lake(tmp_path)
    for number in range(40):
        change(keeper, number)
        keeper.refresh()
    time.sleep(0.01)  # commits of this millisecond count as new
    told = keeper.vacuum(0, dry_run=True, force=True)
    assert entries(tmp_path / "t")[0] == 0
    assert keeper.vacuum(0, force=True) == told
    check_tables(tmp_path)
    for name in ("t", "sums"):
        assert len(entries(tmp_path / name)) <= INTERVAL + 2
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 8
    other = Keeper(tmp_path, durable=False)  # knows nothing
    change(other, 50)
    assert not any(each.from_scratch for each in other.refresh())
    assert all(other.verify(each).ok for each in other.views)
    assert len(other.history("sums")) <= INTERVAL + 3
    other.create_view("sums", "SELECT id % 3 AS g, sum(n) AS n FROM t GROUP BY 1", replace=True)
    assert other.verify("sums").ok


def test_a_version_that_was_cleaned_up(tmp_path: Path) -> None:
    keeper = small_lake(tmp_path)
    change(keeper, *range(30))
    keeper.refresh()
    keeper.vacuum(0, force=True)
    first, newest = entries(tmp_path / "t")[0], DeltaTable(tmp_path / "t").version()
    with pytest.raises(ViewkeepError, match=f"version 3 is gone.*oldest.*{first}.*{newest}"):
        keeper.read("t", version=3)
    with pytest.raises(ViewkeepError, match=f"no version {newest + 1}; the newest is {newest}"):
        keeper.read("t", version=newest + 1)
    with pytest.raises(ViewkeepError, match=r"cannot be told.*changes\("):
        keeper.changes("t", since=2)
    assert keeper.changes("t", since=newest - 1).num_rows == 1


def test_a_view_that_is_behind_needs_the_log(tmp_path: Path) -> None:
    keeper = small_lake(tmp_path)
    change(keeper, *range(20))
    keeper.refresh("sums")
    seen = DeltaTable(tmp_path / "t").version()
    change(keeper, *range(20, 40))
    keeper.vacuum(0, force=True)
    assert seen - INTERVAL < entries(tmp_path / "t")[0] <= seen
    assert not any(each.from_scratch for each in keeper.refresh("sums"))
    assert keeper.verify("sums").ok


def test_the_hours_that_are_asked_for(tmp_path: Path) -> None:
    keeper = small_lake(tmp_path)
    change(keeper, *range(30))
    keeper.refresh()
    keeper.vacuum(24)
    assert entries(tmp_path / "t") == list(range(31))


def test_registered_tables_are_left_alone(tmp_path: Path) -> None:
    owner, keeper = Keeper(tmp_path / "own", durable=False), Keeper(tmp_path / "lake")
    owner.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(n, n) for n in range(8)])
    keeper.register_table("t", tmp_path / "own/t", key=["id"])
    keeper.create_view("sums", "SELECT sum(n) AS n FROM t")
    change(owner, *range(30))
    keeper.refresh()
    keeper.vacuum(0, force=True)
    assert entries(tmp_path / "own/t") == list(range(31))


def test_checkpoints_that_are_missing_and_pointers_that_are_wrong(tmp_path: Path) -> None:
    keeper = small_lake(tmp_path)
    change(keeper, *range(20))
    keeper.refresh()
    log = tmp_path / "t/_delta_log"
    for each in log.glob("*.checkpoint.parquet"):
        each.unlink()
    (log / "_last_checkpoint").unlink()
    keeper.vacuum(0, force=True)
    check_tables(tmp_path)
    assert len(entries(tmp_path / "t")) == 2
    change(keeper, *range(20, 40))
    keeper.refresh()
    (log / "_last_checkpoint").write_text('{"version": 3, "size": 4}')
    keeper.vacuum(0, force=True)
    check_tables(tmp_path)
    assert all(keeper.verify(each).ok for each in keeper.views)


def test_a_checkpoint_that_is_damaged(tmp_path: Path) -> None:
    """Nothing goes that stands in it alone."""
    keeper = small_lake(tmp_path)
    change(keeper, *range(30))
    keeper.refresh()
    for each in (tmp_path / "t/_delta_log").glob("*.checkpoint.parquet"):
        each.write_bytes(b"")
    keeper.vacuum(0, force=True)
    assert entries(tmp_path / "t") == list(range(31))


def test_checkpoints_forget_files_that_are_gone(tmp_path: Path) -> None:
    """A year of removed files would be in every checkpoint."""
    keeper = small_lake(tmp_path)
    for number in range(60):
        change(keeper, number)
        if number % 10 == 9:
            keeper.refresh()
            keeper.vacuum(0, force=True)
    assert json.loads((tmp_path / "t/_delta_log/_last_checkpoint").read_text())["size"] < 30
    check_tables(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_and_vacuums(tmp_path: Path, seed: int) -> None:
    """Views stay what their queries give, whatever is behind when a vacuum comes."""
    rng = Random(seed)
    model: Database = random_database(TABLES, rng, 12)
    keeper = Keeper(tmp_path, durable=False)
    create(keeper, model)
    for _ in range(60):
        for batch in random_batch(model, TABLES, rng, 4).values():
            if not batch.is_empty:
                apply(keeper, batch)
                model = apply_batches(model, {batch.name: batch})
        if rng.random() < 0.5:
            keeper.refresh(*rng.sample(sorted(VIEWS), rng.randint(1, 3)))
        if rng.random() < 0.2:
            keeper.vacuum(0, force=True)
            check_tables(tmp_path)
        if rng.random() < 0.2:
            keeper = Keeper(tmp_path, durable=False)
    keeper.refresh()
    for name in VIEWS:
        assert keeper.verify(name).ok, name
    for name, table in TABLES.items():
        stored = keeper.read(name).select(list(table.names)).to_pylist()
        assert sorted(map(str, (tuple(r.values()) for r in stored))) == sorted(
            map(str, model[name].values())
        )


# --- deaths ---------------------------------------------------------------------------------------


def _dying(monkeypatch: pytest.MonkeyPatch, at: int) -> Iterator[int]:
    """Every deletion and every write of a log counts; the `at`-th is the last."""
    calls = [0]

    def around(work: Any) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            calls[0] += 1
            if calls[0] == at:
                raise Died
            return work(*given, **named)

        return called

    for owner, name in (
        (ParquetFolder, "remove_file"),
        (ParquetFolder, "remove_paths"),
        (cleaning, "_replace_file"),
        (cleaning, "_write_checkpoint"),
    ):
        monkeypatch.setattr(owner, name, around(getattr(owner, name)))
    yield 0
    yield calls[0]


def test_a_vacuum_dies_at_every_deletion(tmp_path: Path) -> None:
    keeper = small_lake(tmp_path / "lake")
    for number in range(12):
        change(keeper, number)
        keeper.refresh()
    log = tmp_path / "lake/t/_delta_log"
    (log / "_last_checkpoint").unlink()
    at, deaths = 1, 0
    while True:
        place = tmp_path / f"copy{at}"
        shutil.copytree(tmp_path / "lake", place)
        victim = Keeper(place, durable=False)
        with pytest.MonkeyPatch.context() as patch:
            steps = _dying(patch, at)
            next(steps)
            try:
                victim.vacuum(0, force=True)
            except Died:
                deaths += 1
            else:
                break
        check_tables(place)
        survivor = Keeper(place, durable=False)
        change(survivor, 30)
        survivor.refresh()
        survivor.vacuum(0, force=True)
        check_tables(place)
        assert all(survivor.verify(each).ok for each in survivor.views)
        shutil.rmtree(place)
        at += 1
    assert deaths > 20


def test_a_log_from_its_checkpoint_on_is_read_as_before(tmp_path: Path) -> None:
    """The next version is found without opening the table anew, once it was."""
    keeper = small_lake(tmp_path)
    change(keeper, *range(30))
    keeper.refresh()
    keeper.vacuum(0, force=True)
    table = LakeTable(str(tmp_path / "t"))
    newest = table.version()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LakeTable, "_open_anew", None)
        assert table.version() == newest
        change(keeper, 31)
        assert table.version() == newest + 1
        assert table.exists()


def test_no_checkpoint_is_ever_replaced(tmp_path: Path) -> None:
    """deltalake lists a log, and then reads as many bytes of a checkpoint as were listed."""
    keeper = small_lake(tmp_path)
    seen: dict[Path, bytes] = {}
    for number in range(60):
        change(keeper, number)
        if number % 5 == 4:
            keeper.refresh()
            keeper.vacuum(0, force=True)
        for each in tmp_path.rglob("*.checkpoint.parquet"):
            assert each.read_bytes() == seen.setdefault(each, each.read_bytes()), each
    assert len(seen) > 10
    check_tables(tmp_path)


def test_a_checkpoint_that_another_process_has_written_stays(tmp_path: Path) -> None:
    keeper = small_lake(tmp_path)
    change(keeper, *range(10))
    table = LakeTable(str(tmp_path / "t"))
    DeltaTable(table.uri).create_checkpoint()
    [path] = (tmp_path / "t/_delta_log").glob(f"{table.version():020d}.checkpoint.parquet")
    before = path.read_bytes()
    cleaning._add_checkpoint(table, table.version(), pq.read_table(path).slice(0, 1))
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.tmp")), "no draft is left"
