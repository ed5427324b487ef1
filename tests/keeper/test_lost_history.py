"""Tables put back from a backup, lost log entries, and entries that say nothing."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, check_verified
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake import ViewState
from viewkeep.tables.log import durable
from viewkeep.tables.log.entries import entry_path

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
COST = """SELECT did, sum(price) AS cost, max(price) AS most
          FROM uses JOIN parts USING (pid) GROUP BY did"""
VIEWS = {"cost": COST, "dear": "SELECT did, cost FROM cost WHERE cost > 60"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def keeper(spark: SparkSession, place: Path) -> Keeper:
    keeper = Keeper(place, spark)
    keeper.create_table(
        "parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(n, 10 * n) for n in range(6)]
    )
    keeper.create_table(
        "uses", {"did": "int", "pid": "int"}, ["did", "pid"], rows=[(n % 3, n) for n in range(6)]
    )
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql)
    return keeper


def change(keeper: Keeper, pid: int, price: int) -> None:
    keeper.apply("parts", updates=[{"pid": pid, "price": price}])


def newest(folder: Path) -> Path:
    return Path(entry_path(str(folder), DeltaTable(folder).version()))


# --- put back ------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [0, 2, 3] if LONG else [2])
def test_a_table_put_back(keeper: Keeper, place: Path, tmp_path: Path, later: int) -> None:
    """The numbers go on from the backup: before, at and after the one that the views have seen."""
    shutil.copytree(place / "parts", tmp_path / "backup")
    change(keeper, 1, 100)
    change(keeper, 2, 200)
    keeper.refresh()
    shutil.rmtree(place / "parts")
    shutil.copytree(tmp_path / "backup", place / "parts")
    for number in range(later):
        change(keeper, 3, 1000 + number)
    assert all("put back" in each.problem for each in keeper.status())
    with pytest.raises(ViewkeepError, match=r"put back.*refresh"):
        keeper.verify("cost")
    reports = keeper.refresh()
    assert (reports[0].strategy, "put back" in reports[0].reason) == ("recompute", True)
    check(keeper)
    check_verified(keeper)
    assert all(each.is_fresh for each in keeper.status())
    change(keeper, 4, 7)
    assert keeper.refresh()[0].strategy == "id"
    check(keeper)


def test_a_view_and_its_caches_put_back(keeper: Keeper, place: Path, tmp_path: Path) -> None:
    """Any part of a lake may come from a backup that is older than the rest."""
    parts = ("parts", "cost", "dear", "_viewkeep/caches")
    rng = Random(1)
    for number in range(8 if LONG else 4):
        backup = tmp_path / f"backup{number}"
        for name in parts:
            if (place / name).exists():
                shutil.copytree(place / name, backup / name)
        for _ in range(2):
            change(keeper, rng.randrange(6), rng.randrange(200))
            keeper.refresh()
        for name in rng.sample([n for n in parts if (place / n).exists()], rng.randint(1, 2)):
            shutil.rmtree(place / name)
            shutil.copytree(backup / name, place / name)
        for _ in range(rng.randrange(3)):
            change(keeper, rng.randrange(6), rng.randrange(200))
        keeper.refresh()
        check(keeper)
    check_verified(keeper)


@pytest.mark.parametrize("refreshed", [False, True])
def test_the_last_entry_is_lost(keeper: Keeper, place: Path, refreshed: bool) -> None:
    change(keeper, 1, 100)
    keeper.refresh()
    newest(place / "parts").unlink()
    if refreshed:
        keeper.refresh()
        check(keeper)
    change(keeper, 2, 200)
    keeper.refresh()
    check(keeper)


def test_a_registered_table_put_back(keeper: Keeper, tmp_path: Path) -> None:
    place, backup = tmp_path / "orders", tmp_path / "backup"
    write_deltalake(place, pa.table({"oid": [1, 2], "n": [1, 2]}))
    shutil.copytree(place, backup)
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM orders")
    keeper.create_view("strict", "SELECT oid, n FROM orders", policy="strict")
    write_deltalake(place, pa.table({"oid": [3], "n": [3]}), mode="append")
    keeper.refresh()
    shutil.rmtree(place)
    shutil.copytree(backup, place)
    write_deltalake(place, pa.table({"oid": [4], "n": [40]}), mode="append")
    with pytest.raises(ViewkeepError, match=r'"strict": .*put back.*strict.*repair\("strict"\)'):
        keeper.refresh()
    check(keeper, ["total"])
    keeper.repair("strict")
    keeper.refresh()
    check(keeper)


def test_an_entry_that_was_cleaned_up(keeper: Keeper, tmp_path: Path) -> None:
    """Nothing tells any more whether the version is the one that was seen: computed anew, once."""
    place = tmp_path / "orders"
    write_deltalake(place, pa.table({"oid": [1, 2], "n": [1, 2]}))
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM orders")
    DeltaTable(place).create_checkpoint()
    entry = newest(place)
    write_deltalake(place, pa.table({"oid": [5], "n": [5]}), mode="append")
    entry.unlink()
    (report,) = keeper.refresh("total")
    assert (report.strategy, "lost the log entry" in report.reason) == ("recompute", True)
    assert [each.strategy for each in keeper.refresh("total")] == ["none"]
    write_deltalake(place, pa.table({"oid": [3], "n": [3]}), mode="append")
    assert [each.strategy for each in keeper.refresh("total")] == ["id"]
    check(keeper)


def test_states_of_older_releases_have_no_fingerprints() -> None:
    notes = ViewState("b", {"t": 1}, {"t": 1}, {}, {"t": "x"}, "p", {"t": "entry:1"}).notes()
    del notes["fingerprints"], notes["cache_fingerprints"]
    assert ViewState.from_notes(notes).fingerprints == {}


def test_a_view_whose_state_has_no_fingerprint_goes_on(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def old(state: ViewState) -> dict[str, object]:
        return {k: v for k, v in notes(state).items() if not k.endswith("fingerprints")}

    notes = ViewState.notes
    with monkeypatch.context() as patch:
        patch.setattr(ViewState, "notes", old)
        change(keeper, 1, 5)
        keeper.refresh()
    change(keeper, 2, 6)
    assert {each.strategy for each in keeper.refresh()} == {"id"}
    check(keeper)


# --- entries that say nothing --------------------------------------------------------------------

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda text: b"",
    "blank": lambda text: b"\n\n",
    "no actions": lambda text: b"{}\n",
    "unknown": lambda text: b'{"other": {"path": "x"}}\n',
    "null": lambda text: b"null\n",
    "zeros": lambda text: b"\0" * len(text),
    "half": lambda text: text[: len(text) // 2],
    "no text": lambda text: b"\xff\xfe" + text,
}


@pytest.mark.parametrize("back", [0, 1])
def test_an_entry_that_says_nothing(keeper: Keeper, place: Path, back: int) -> None:
    """The last one or one before it: refused with the name of the file, and nothing goes on."""
    change(keeper, 1, 100)
    entry = newest(place / "parts")
    if back:
        change(keeper, 2, 200)
    whole = entry.read_bytes()
    for damage in DAMAGE.values():
        entry.write_bytes(damage(whole))
        for attempt in (
            lambda: keeper.refresh(),
            lambda: keeper.read("parts"),
            lambda: change(keeper, 3, 1),
        ):
            with pytest.raises(ViewkeepError, match=f"{entry.name}: the log entry is damaged"):
                attempt()
        assert entry.name in keeper.describe_tables()[0].problem
    entry.write_bytes(whole)
    keeper.refresh()
    check(keeper)


def test_an_entry_that_is_missing_in_the_middle(keeper: Keeper, place: Path) -> None:
    change(keeper, 1, 100)
    entry = newest(place / "parts")
    change(keeper, 2, 200)
    entry.unlink()
    with pytest.raises(ViewkeepError, match=f"{entry.name}: the log entry .* missing"):
        keeper.refresh()


def test_a_view_with_a_damaged_log_is_repaired(keeper: Keeper, place: Path) -> None:
    change(keeper, 1, 100)
    keeper.refresh()
    newest(place / "cost").write_bytes(b"")
    with pytest.raises(ViewkeepError, match=r'view "cost": .*damaged.*repair'):
        keeper.refresh()
    keeper.repair("cost")
    keeper.refresh()
    check(keeper)


# --- durable -------------------------------------------------------------------------------------


def test_data_is_on_the_disk_before_the_entry_that_names_it(
    keeper: Keeper, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every commit of an apply and a refresh: files, folders and the entry, then its name, then
    the folder of the log; views that do not read each other are committed side by side."""
    told: set[str] = set()
    sync, link = os.fsync, os.link

    def synced(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        sync(descriptor)
        told.add(path)

    def named(draft: str, entry: str) -> None:
        folder = Path(entry).parent.parent
        actions = [json.loads(line) for line in Path(draft).read_text().splitlines()]
        before = set(told)
        assert draft in before
        for path in [each["add"]["path"] for each in actions if "add" in each]:
            added = folder / path
            assert {str(added), str(added.parent), str(folder)} <= before
        changes = actions[0]["commitInfo"]["viewkeep"].get("changes")
        assert not isinstance(changes, str) or str(folder / changes) in before
        told.difference_update({str(folder), *(p for p in before if p.startswith(f"{folder}/"))})
        link(draft, entry)
        pending.append((str(folder), int(Path(entry).stem)))

    def settled(base: str, version: int, is_written: bool) -> None:
        settle(base, version, is_written)
        assert f"{base}/_delta_log" in told
        # An entry before it that another process wrote may not be on the disk.
        assert (entry_path(base, version - 1) in told) == is_anothers
        assert is_written
        done.append((base, version))

    pending: list[tuple[str, int]] = []
    done: list[tuple[str, int]] = []
    settle = durable.sync_commit
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", named)
    monkeypatch.setattr(durable, "sync_commit", settled)
    for is_anothers in (False, True):
        if is_anothers:
            durable._SETTLED.clear()
        change(keeper, 1, 100 + is_anothers)
        keeper.refresh()
    assert sorted(pending) == sorted(done)
    assert len(done) >= 6
