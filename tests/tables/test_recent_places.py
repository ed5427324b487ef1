"""Places of rows that were looked up are taken only for the same files and for keys among those."""

from collections.abc import Iterable

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.query.tables import Table
from viewkeep.tables.files.recent_places import RecentPlaces
from viewkeep.tables.files.scans import FILE, ROW
from viewkeep.tables.log.delta import DataFile, LakeTable
from viewkeep.tables.log.snapshots import Snapshot
from viewkeep.tables.relations import StoredRows

COLUMNS = Table({"k": "int", "x": "int"}).columns


def rows(*paths: str, version: int = 3, only: Iterable[str] | None = None) -> StoredRows:
    """A version of these files, of which some are asked for."""
    table, files = LakeTable("/no/such/folder"), tuple(DataFile(path, 9, 9) for path in paths)
    snapshot = Snapshot(table.uri, version, COLUMNS, files)
    chosen = files if only is None else tuple(each for each in files if each.path in only)
    return StoredRows(table, snapshot, chosen, {"k": "k", "x": "x"})


def keys(*values: int | None, name: str = "k") -> pa.Table:
    return pa.table({name: pa.array(values, pa.int32())})


def test_places_of_keys_that_were_looked_up() -> None:
    places = RecentPlaces(1)
    found = pa.table({"k": pa.array([2, None, 7], pa.int32()), FILE: [1, 1, 0], ROW: [5, 6, 0]})
    places.add(rows("a", "b"), keys(2, None, 7, 8), found)

    def get(of: StoredRows, wanted: pa.Table) -> list[tuple[int, int]] | None:
        answer = places.get(of, wanted)
        return answer and list(zip(answer[FILE].to_pylist(), answer[ROW].to_pylist(), strict=True))

    assert get(rows("a", "b"), keys(2, None, 8)) == [(1, 5), (1, 6)]
    assert get(rows("a", "b", only=["b"]), keys(2)) == [(0, 5)], "by the files that are asked for"
    assert get(rows("a", "b", only=["b"]), keys(7)) is None, "in another file"
    assert get(rows("a", "b"), keys(2, 3)) is None, "a key that was not looked up"
    assert get(rows("a", "b"), keys(2, name="x")) is None
    assert get(rows("a", "b", version=4), keys(2)) is None
    assert get(rows("c"), keys(8)) is None, "another table in the same folder"
    places.add(rows("z", version=9), keys(1), found.slice(0, 0))
    assert get(rows("a", "b"), keys(2)) is None, "forgotten"
    assert places.get(rows("z", version=9), keys(1)) is not None
