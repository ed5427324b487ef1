"""Small files are read once, as long as they are the same on the disk."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeep.tables.files.recent_files import LARGEST, RecentFiles


def written(path: Path, rows: pa.Table) -> str:
    pq.write_table(rows, path)
    return str(path)


def test_rows_of_a_file_are_remembered_until_it_changes_or_is_gone(tmp_path: Path) -> None:
    files, rows = RecentFiles(1 << 20), pa.concat_tables([pa.table({"a": [n]}) for n in (1, 2)])
    path = written(tmp_path / "a.parquet", rows)
    assert files.get(path) is None
    files.add(path, rows)
    assert files.get(path) == rows
    assert files.get(path)["a"].num_chunks == 1
    os.utime(path, ns=(0, 0))
    assert files.get(path) is None
    files.add(path, rows)
    os.remove(path)
    assert files.get(path) is None


def test_large_files_and_slices_of_large_tables_are_not_remembered(tmp_path: Path) -> None:
    files, rows = RecentFiles(1 << 30), pa.table({"a": range(LARGEST // 8 + 1)})
    path = written(tmp_path / "a.parquet", rows)
    files.add(path, rows)
    assert files.get(path) is None
    files.add(path, rows.slice(0, 1))
    assert files.get(path) is None


def test_the_oldest_files_are_forgotten_first(tmp_path: Path) -> None:
    rows = pa.table({"a": range(100)})
    size = rows.get_total_buffer_size()
    files = RecentFiles(3 * size)
    paths = [written(tmp_path / f"{n}.parquet", rows) for n in range(5)]
    for path in paths:
        files.add(path, rows)
    files.add(paths[4], rows)  # again: counted once
    assert [files.get(path) is not None for path in paths] == [False, False, True, True, True]
