"""Logs that are remembered within one piece of work: opened once, and read again after a commit."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from viewkeep import Keeper
from viewkeep.query.types.data_types import INT, Field
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log import read_log
from viewkeep.tables.log.delta import ConflictError, LakeTable
from viewkeep.tables.log.memory import RecentSnapshots, remembered_logs

FIELDS = (Field("id", INT),)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that deltalake opens."""
    places: list[str] = []

    class Counted(read_log.DeltaTable):  # type: ignore[misc]  # of a library without types
        def __init__(self, uri: str, **options: object) -> None:
            places.append(uri)
            super().__init__(uri, **options)

    monkeypatch.setattr(read_log, "DeltaTable", Counted)
    return places


def test_a_version_is_opened_once(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = LakeTable(str(tmp_path / "t"))
    table.create(FIELDS, [], {}, "")
    monkeypatch.setattr(read_log, "RECENT", RecentSnapshots(10))  # as in another process
    with remembered_logs():
        for _ in range(3):
            assert (table.version(), table.snapshot().version, table.snapshot(0).version) == (
                0,
                0,
                0,
            )
            assert table.identity(0)
            assert table.fingerprint(0)
    assert len(opened) == 1
    assert (table.version(), table.snapshot().version) == (0, 0)
    assert len(opened) == 1, "its entry is the same, and has no successor"
    LakeTable(table.uri).commit(0, [], [], {"n": 1})
    assert (table.version(), table.snapshot().version) == (1, 1)


def test_a_version_of_another_history_is_read_again(tmp_path: Path) -> None:
    """A table that is put back from a backup has the same numbers, and other entries."""
    place, backup = tmp_path / "t", tmp_path / "backup"
    table = LakeTable(str(place))
    table.create(FIELDS, [], {}, "")
    shutil.copytree(place, backup)
    rows = pa.table({"id": pa.array([1, 2], pa.int32())})
    table.commit(0, [ParquetFolder(table).write(rows)], [], {})
    assert table.snapshot().rows == 2
    shutil.rmtree(place)
    shutil.copytree(backup, place)
    assert (table.version(), table.snapshot().rows) == (0, 0)
    table.commit(0, [ParquetFolder(table).write(rows.slice(0, 1))], [], {})
    assert (table.version(), table.snapshot().rows, table.snapshot(1).rows) == (1, 1, 1)


def test_an_own_commit_is_seen_and_one_of_others_is_a_conflict(tmp_path: Path) -> None:
    table, other = LakeTable(str(tmp_path / "t")), LakeTable(str(tmp_path / "t"))
    table.create(FIELDS, [], {}, "")
    with remembered_logs():
        assert table.version() == 0
        table.commit(0, [], [], {"n": 1})
        assert table.version() == 1
        with remembered_logs():
            other.commit(1, [], [], {"n": 2})
        assert table.version() == 1, "the version that was seen first"
        with pytest.raises(ConflictError):
            table.commit(1, [], [], {"n": 3})
    assert table.version() == 2


def test_a_process_opens_each_table_once(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it applies changes and refreshes; what it wrote itself, it need not read."""
    keeper = Keeper(tmp_path / "lake")
    keeper.create_table("t", {"id": "int", "g": "int"}, key=["id"], rows=[(1, 1), (2, 1)])
    keeper.create_view("v", "SELECT g, sum(id) AS n FROM t WHERE id > 0 GROUP BY g")
    assert opened == []
    monkeypatch.setattr(read_log, "RECENT", RecentSnapshots(1000))  # as in another process
    for number in range(3, 6):
        keeper.apply("t", inserts=[(number, 1)])
        keeper.refresh()
    # Versions before the newest one are read where changes are taken between two of them.
    versions = {place: opened.count(place) for place in opened}
    assert max(versions.values()) <= 2, versions
