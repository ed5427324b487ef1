"""What a refresh and a new view cost however small they are, in counts: opens, commits, reads."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from viewkeep import Keeper
from viewkeep.lake.catalog_store import CatalogStore
from viewkeep.lake.views import view as lake_view
from viewkeep.lake.views import view_plans
from viewkeep.tables.feed import Feed
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log import delta, durable, read_log

VIEWS = 12
SQL = "SELECT g, sum(n) AS s{0} FROM t WHERE n > {0} GROUP BY g"


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake")
    rows = [(n, n % 3, n) for n in range(20)]
    keeper.create_table("t", {"id": "int", "g": "int", "n": "int"}, key=["id"], rows=rows)
    return keeper


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often some functions are called, by their names."""
    counts: Counter[str] = Counter()
    lock = Lock()  # views are committed side by side

    def count(owner: Any, name: str) -> None:
        work: Callable[..., Any] = getattr(owner, name)

        def called(*given: Any, **named: Any) -> Any:
            with lock:
                counts[name] += 1
            return work(*given, **named)

        monkeypatch.setattr(owner, name, called)

    for owner, name in (
        (read_log, "DeltaTable"),
        (delta, "put_entry"),
        (delta, "commit_by_deltalake"),
        (durable, "_sync"),
        (os, "fsync"),
        (Feed, "read"),
        (CatalogStore, "_with_absolute_locations"),
        (view_plans, "parse_view"),
        (view_plans, "decide"),
        (lake_view, "generate"),
    ):
        count(owner, name)
    return counts


def test_views_over_one_table_read_its_changes_once(keeper: Keeper, calls: Counter[str]) -> None:
    for number in range(VIEWS):
        keeper.create_view(f"v{number}", SQL.format(number))
    caches = sum(len(keeper.script(f"v{number}").caches) for number in range(VIEWS))
    for number in (7, 8):
        keeper.apply("t", updates=[{"id": 19, "n": number * 100}])
        calls.clear()
        reports = keeper.refresh()
        assert {each.strategy for each in reports} == {"id"}
        assert calls["read"] == 1
        assert calls["put_entry"] <= VIEWS + caches
        # What an entry names and its text at once, then its folder. A view has a file of rows and
        # one of changed rows, a cache one file; each has a folder.
        assert calls["_sync"] == 2 * calls["put_entry"]
        assert calls["fsync"] <= 6 * VIEWS + 4 * caches
        assert calls["DeltaTable"] == calls["commit_by_deltalake"] == calls["parse_view"] == 0
    assert calls["generate"] == 0, "the script for these kinds of changes was made before"
    assert all(keeper.verify(f"v{number}").ok for number in range(VIEWS))


def test_a_new_view_is_planned_once(keeper: Keeper, calls: Counter[str]) -> None:
    """However many views there are: its name, its caches, its rows and that it is there."""
    for number in range(3):
        calls.clear()
        keeper.create_view(f"v{number}", SQL.format(number))
        caches = len(keeper.script(f"v{number}").caches)
        assert calls["put_entry"] == 3 + caches
        assert calls["parse_view"] == calls["decide"] == calls["generate"] == 1
        assert calls["DeltaTable"] == calls["commit_by_deltalake"] == 0


def test_views_with_the_same_query_share_their_plan(keeper: Keeper, calls: Counter[str]) -> None:
    keeper.create_view("v0", SQL.format(0))
    calls.clear()
    keeper.create_view("v1", SQL.format(0))
    assert calls["parse_view"] == calls["decide"] == calls["generate"] == 0
    keeper.create_view("v2", SQL.format(0), strategy="tuple")
    assert calls["decide"] == 1
    keeper.create_view("v1", SQL.format(1), replace=True)
    keeper.apply("t", inserts=[(30, 5, 1), (31, 5, 2)], deletes=[(4,)])
    keeper.refresh()
    rows = {name: keeper.read(name).to_pylist() for name in ("v0", "v1", "v2")}
    assert {"g": 5, "s0": 3} in rows["v0"]
    assert {"g": 5, "s1": 2} in rows["v1"]
    assert all(keeper.verify(name).ok for name in rows)


def test_a_plan_is_not_shared_when_a_source_changed(keeper: Keeper, calls: Counter[str]) -> None:
    keeper.create_view("low", "SELECT id, n FROM t")
    keeper.create_view("high", "SELECT id, n AS m FROM low")
    keeper.drop_view("high")
    keeper.create_view("low", "SELECT id, n + CAST(1 AS BIGINT) AS n FROM t", replace=True)
    calls.clear()
    keeper.create_view("high", "SELECT id, n AS m FROM low")
    assert calls["parse_view"] == calls["decide"] == 1
    assert str(keeper.operators("high").schema[1].type) == "bigint"
    assert keeper.verify("high").ok


def test_a_table_that_views_join_is_read_once(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.create_table("u", {"id": "int", "h": "int"}, ["id"], rows=[(n, n % 4) for n in range(9)])
    for number in range(VIEWS):
        sql = f"SELECT h, sum(n) AS s{number} FROM t JOIN u USING (id) GROUP BY h"
        keeper.create_view(f"v{number}", sql)
    keeper.apply("u", inserts=[(12, 1)])
    read: Counter[str] = Counter()
    read_file = ParquetFolder._read_stored

    def counted(self: ParquetFolder, *given: Any) -> Any:
        read[self.uri.rpartition("/")[2]] += 1
        return read_file(self, *given)

    monkeypatch.setattr(ParquetFolder, "_read_stored", counted)
    assert {each.strategy for each in keeper.refresh()} == {"id"}
    assert read["t"] == 1
    assert all(keeper.verify(f"v{number}").ok for number in range(VIEWS))


def test_definitions_are_read_once_however_many_views_are_computed_anew(
    keeper: Keeper, calls: Counter[str]
) -> None:
    """Each of them looks whether its definition is still the same, in the log alone."""
    for number in range(VIEWS):
        keeper.create_view(f"v{number}", SQL.format(number), strategy="recompute")
    keeper.apply("t", updates=[{"id": 19, "n": 700}])
    calls.clear()
    assert {each.strategy for each in keeper.refresh()} == {"recompute"}
    assert calls["_with_absolute_locations"] <= 1


def test_definitions_are_read_again_when_others_have_changed_them(
    keeper: Keeper, tmp_path: Path
) -> None:
    keeper.create_view("v", SQL.format(0))
    other = Keeper(tmp_path / "lake")
    assert list(other.views) == ["v"]
    keeper.drop_view("v")
    keeper.create_view("w", SQL.format(0))
    assert list(other.views) == ["w"]
