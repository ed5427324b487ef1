"""Files after a change: exactly the rows that are meant, in the places of those they replace."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeep.execute.duckdb.scans import DuckdbScans
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.rewrite import Rewrite, find_rows_by_key, rewrite_files, write_files
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import Snapshot

NAN = float("nan")
T = Table({"k": "int", "j": "string", "x": "double", "a": "array<int>", "s": "string"})
KEYS = st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, "a"]))
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2, 3]),
        st.sampled_from([None, "a"]),
        st.sampled_from([None, NAN, 1.0]),
        st.sampled_from([None, (), (1, None)]),
        st.sampled_from([None, "", "b"]),
    ),
    max_size=5,
)
Rows = Sequence[tuple[Any, ...]]


def bag(rows: Rows) -> Counter[str]:
    return Counter(map(repr, rows))


def written(table: LakeTable, *files: Rows) -> Snapshot:
    """A version of these files."""
    found = [ParquetFolder(table).write(to_arrow(T.columns, list(rows))) for rows in files if rows]
    return Snapshot(table.uri, 0, T.columns, tuple(found))


def after(snapshot: Snapshot, change: Rewrite) -> tuple[Any, ...]:
    """The files of the next version."""
    gone = {each.path for each in change.remove}
    assert gone <= {each.path for each in snapshot.files}
    return (*(each for each in snapshot.files if each.path not in gone), *change.add)


@given(
    st.lists(ROWS, max_size=4),
    st.lists(KEYS, max_size=4),
    st.lists(KEYS, max_size=2),
    ROWS,
    st.sampled_from([(1 << 30, 0, 2), (1 << 30, 1 << 20, 1), (0, 0, 1)]),
)
@settings(max_examples=60)
def test_rows_after_a_change(
    files: list[Rows], gone: Rows, others: Rows, came: Rows, sizes: tuple[int, int, int]
) -> None:
    """Keys may stand twice, in the files and in what comes; NULL is a value of them."""
    driver_bytes, small_bytes, most = sizes
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr("viewkeep.tables.files.rewrite.SMALL_BYTES", small_bytes)
        patch.setattr("viewkeep.tables.files.rewrite.FILE_ROWS", most)
        table = LakeTable(f"{place}/t")
        snapshot, scans = written(table, *files), DuckdbScans()
        keys = to_arrow(T.columns[:2], list(gone))
        wider = to_arrow(T.columns[:2], [*others, *gone])
        rows = to_arrow(T.columns, list(came))
        everything = [row for part in files for row in part]
        expected = bag([*(row for row in everything if row[:2] not in gone), *came])
        for found in (None, find_rows_by_key(scans, table, snapshot, wider, driver_bytes)):
            change = rewrite_files(scans, table, snapshot, keys, rows, driver_bytes, found)
            left = after(snapshot, change)
            assert bag(to_rows(ParquetFolder(table).read(left, T.columns))) == expected
            assert all(1 <= each.rows <= max(most, len(everything)) for each in change.add)
        met = find_rows_by_key(scans, table, snapshot, wider, driver_bytes)
        named = [*others, *gone]
        assert bag(to_rows(met.rows)) == bag([row for row in everything if row[:2] in named])
        assert [named[place] for place in met.places] == [row[:2] for row in to_rows(met.rows)]


def test_a_row_takes_the_place_of_the_one_it_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that files keep ranges of keys; files without changed rows stay."""
    monkeypatch.setattr("viewkeep.tables.files.rewrite.SMALL_BYTES", 0)
    table = LakeTable(str(tmp_path / "t"))
    first = [(n, "a", 0.5, (n,), "s") for n in range(5)]
    snapshot = written(table, first, [(n, "a", 0.5, (), "t") for n in range(5, 9)])
    keys = to_arrow(T.columns[:2], [(1, "a"), (3, "a")])
    rows = to_arrow(T.columns, [(3, "a", 1.5, (9,), "s"), (1, "a", 0.5, (1,), None)])
    change = rewrite_files(DuckdbScans(), table, snapshot, keys, rows)
    assert change.remove == snapshot.files[:1]
    [new] = change.add
    expected = list(first)
    expected[1], expected[3] = (1, "a", 0.5, (1,), None), (3, "a", 1.5, (9,), "s")
    assert to_rows(ParquetFolder(table).read([new], T.columns)) == expected


def test_many_rows_are_shared_out_among_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewkeep.tables.files.rewrite.SHARE_ROWS", 4)
    monkeypatch.setattr("viewkeep.tables.files.rewrite.os.cpu_count", lambda: 2)
    table = LakeTable(str(tmp_path / "t"))
    sizes = []
    for count in (3, 11):
        rows = to_arrow(T.columns, [(n, "a", 0.5, (), "s") for n in range(count)])
        files = write_files(table, rows)
        sizes.append([each.rows for each in files])
        assert ParquetFolder(table).read(files, T.columns).equals(rows)
    assert sizes == [[3], [6, 5]]
