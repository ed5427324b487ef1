"""Merge on read: rows that change are marked in deletion vectors, and come anew in a small file.

What is written grows with the changes, not with the files that they touch. Two things clean up, and
cost a constant number of rows for each row that was changed: a file of which many rows are deleted
is written anew, and small files are put together when they have become many.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.files import rewrite
from viewkeep.tables.files.key_match import may_hold
from viewkeep.tables.files.look_up import count_near, find_places
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.recent_places import RECENT_PLACES
from viewkeep.tables.files.rewrite import DRIVER_BYTES, Rewrite
from viewkeep.tables.files.scans import FILE, ROW, Scans
from viewkeep.tables.log.delta import DataFile, LakeTable, Snapshot
from viewkeep.tables.log.roaring import RowNumbers
from viewkeep.tables.relations import StoredRows

DELETED_SHARE = 0.2
"""A file with a larger share of deleted rows is written anew."""
DRIVER_ROWS = 1 << 20
"""Keys are looked up on the driver if the row groups that may hold them have so few rows."""
JOB_ROWS = 1 << 23
"""The same where the engine is Spark, whose jobs take a while to start."""


@dataclass(frozen=True)
class _DeletedRows:
    """A file, and all rows that are deleted in it after a change."""

    file: DataFile
    rows: RowNumbers

    @property
    def share(self) -> float:
        """The share of its rows that are deleted."""
        return len(self.rows) / self.file.stored_rows


def mark_rows(
    scans: Scans,
    table: LakeTable,
    snapshot: Snapshot,
    old_keys: pa.Table,
    new_rows: pa.Table,
    driver_bytes: int = DRIVER_BYTES,
) -> Rewrite:
    """New files for a version without the rows that have a key of `old_keys`, and with `new_rows`;
    files that are only marked are removed and added, with other deletion vectors."""
    most_rows = DRIVER_ROWS if driver_bytes <= DRIVER_BYTES else JOB_ROWS
    deleted = _deleted_rows(scans, table, snapshot, old_keys, most_rows)
    empty_files = [each.file for each in deleted if each.share == 1]
    rewritten_files = _files_to_write_anew(snapshot, deleted)
    unmarked = {each.path for each in (*empty_files, *rewritten_files)}
    marked_files = [each for each in deleted if each.file.path not in unmarked]
    part = replace(snapshot, files=tuple(rewritten_files))
    copies = rewrite.rewrite_files(scans, table, part, old_keys, new_rows, driver_bytes)
    add = (*copies.add, *_files_with_vectors(table, marked_files))
    return Rewrite(add, (*copies.remove, *empty_files, *(each.file for each in marked_files)))


def _files_to_write_anew(snapshot: Snapshot, deleted: Sequence[_DeletedRows]) -> list[DataFile]:
    """Files with many deleted rows, and small files, once they are many."""
    shares = {each.file.path: each.share for each in deleted}
    some = [each for each in snapshot.files if shares.get(each.path) != 1]
    small = {each.path for each in some if each.size < rewrite.SMALL_BYTES}
    together = small if len(small) >= rewrite.SMALL_FILES else set()
    return [f for f in some if f.path in together or shares.get(f.path, 0.0) > DELETED_SHARE]


def _files_with_vectors(table: LakeTable, deleted: Sequence[_DeletedRows]) -> list[DataFile]:
    """Files with new deletion vectors."""
    if not deleted:
        return []
    vectors = ParquetFolder(table).write_vectors([each.rows for each in deleted])
    return [
        replace(each.file, rows=each.file.stored_rows - vector.rows, vector=vector)
        for each, vector in zip(deleted, vectors, strict=True)
    ]


def _deleted_rows(
    scans: Scans, table: LakeTable, snapshot: Snapshot, keys: pa.Table, most_rows: int
) -> list[_DeletedRows]:
    """The deleted rows of files in which there are more of them now; keys are looked up here if the
    row groups that may hold them have at most so many rows."""
    folder = ParquetFolder(table)
    near = [each for each in snapshot.files if may_hold(each, keys)]
    changed = []
    stored = StoredRows(table, snapshot, near, {f.name: f.name for f in snapshot.fields})
    for each, rows in zip(near, _places_of_keys(scans, stored, keys, most_rows), strict=True):
        before = folder.deleted_rows(each)
        after = _union_of_row_numbers(before, rows)
        if len(after) > len(before):
            changed.append(_DeletedRows(each, after))
    return changed


def _places_of_keys(
    scans: Scans, stored: StoredRows, keys: pa.Table, most_rows: int
) -> list[RowNumbers]:
    """For each file, the places of rows that have one of the keys."""
    folder, files = ParquetFolder(stored.table), stored.files
    places = RECENT_PLACES.get(stored, keys)
    if places is None and count_near(folder, files, keys) <= most_rows:
        return find_places(folder, files, stored.snapshot.fields, keys)
    if places is None:
        places = scans.row_places(stored, keys)
    numbers, rows = places[FILE].to_numpy(), places[ROW].to_numpy().astype(np.int64)
    return [np.sort(rows[numbers == number]) for number in range(len(files))]


def _union_of_row_numbers(before: RowNumbers, rows: RowNumbers) -> RowNumbers:
    """The union of two ascending lists of row numbers, by insertion into the first."""
    at = np.searchsorted(before, rows)
    if len(before):
        is_new = before[np.minimum(at, len(before) - 1)] != rows
        at, rows = at[is_new], rows[is_new]
    return np.insert(before, at, rows)
