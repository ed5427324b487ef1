"""Small views and caches are written whole, as if changes were brought into their files."""

from pathlib import Path
from typing import Any

import pytest

from viewkeep import Keeper
from viewkeep.refresh import write_changes
from viewkeep.tables.log.delta import LakeTable

STEPS: list[dict[str, Any]] = [
    {"updates": [{"id": 3, "n": 100}]},
    {"inserts": [(30, 7, 1), (31, 0, None)], "deletes": [(1,), (2,)]},
    {"deletes": [(n,) for n in range(3, 20)]},
    {"deletes": [(0,), (30,), (31,)]},
    {"inserts": [(1, 1, 1)]},
]
VIEWS = {
    "plain": "SELECT id, n FROM t",
    "extremes": "SELECT g, min(n) AS low, max(n) AS high, count(*) AS c FROM t GROUP BY g",
    "joined": "SELECT a.g, sum(b.n) AS s FROM t a JOIN t b ON a.g = b.id GROUP BY a.g",
    "above": "SELECT c, count(*) AS groups FROM extremes GROUP BY c",
}


def lake(folder: Path) -> Keeper:
    keeper = Keeper(folder)
    rows = [(n, n % 3, n) for n in range(20)]
    keeper.create_table("t", {"id": "int", "g": "int", "n": "int"}, key=["id"], rows=rows)
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, policy="incremental")
    return keeper


@pytest.mark.parametrize("small", [0, 2, 1000])
def test_views_are_the_same_however_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(write_changes, "SMALL_ROWS", small)
    keeper = lake(tmp_path / "lake")
    for step in STEPS:
        before = {name: keeper.version(name) for name in VIEWS}
        old = {name: _bag(keeper.read(name).to_pylist()) for name in VIEWS}
        keeper.apply("t", **step)
        assert {each.strategy for each in keeper.refresh()} <= {"id", "none"}
        assert all(keeper.verify(name).ok for name in VIEWS)
        for name in VIEWS:
            table = keeper.read(name)
            assert _bag(table.to_pylist()) == _replayed(keeper, name, old[name], before[name])


def _bag(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def _replayed(keeper: Keeper, name: str, old: list[str], since: int) -> list[str]:
    """The rows of a version with the changes that are told since then."""
    rows = list(old)
    for change in keeper.changes(name, since=since).to_pylist():
        for gone in _bag([change["before"]] if change["before"] else []):
            rows.remove(gone)
        rows += _bag([change["after"]] if change["after"] else [])
    return sorted(rows)


def test_a_small_view_has_one_file_and_its_caches_too(tmp_path: Path) -> None:
    keeper = lake(tmp_path / "lake")
    for price in range(100, 120):
        keeper.apply("t", updates=[{"id": 3, "n": price}], inserts=[(price, 1, price)])
        keeper.refresh()
    files = [LakeTable(str(each.parent)).snapshot().files for each in _logs(tmp_path, "lake")]
    assert len(files) > len(VIEWS)
    assert {len(each) for each in files} == {1}


def _logs(folder: Path, name: str) -> list[Path]:
    """The logs of views and caches."""
    below = (folder / name).rglob("_delta_log")
    return [each for each in below if "catalog" not in str(each) and each.parent.name != "t"]


def test_changes_that_change_no_row_of_a_view_leave_its_files(tmp_path: Path) -> None:
    keeper = lake(tmp_path / "lake")
    table = LakeTable(str(tmp_path / "lake" / "extremes"))
    before = table.snapshot()
    keeper.apply("t", updates=[{"id": 9, "n": 10}])
    keeper.refresh()
    after = table.snapshot()
    assert after.version == before.version + 1
    assert after.files == before.files
    assert keeper.verify("extremes").ok
