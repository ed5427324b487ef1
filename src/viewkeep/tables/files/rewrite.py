"""Copy on write: files that hold changed rows are written anew, the others stay.

Where rows only get other values, columns that keep theirs are copied (`update_columns`).
Few bytes are rewritten in memory; many by a scan of an engine. New rows come
into a file of their own where nothing has to be rewritten; when such files have become many, the
next change puts them together.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.key_index import KeyIndex, Places
from viewkeep.tables.files.key_match import may_hold
from viewkeep.tables.files.look_up import find_places_of_keys, parallel
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.recent_places import RECENT_PLACES
from viewkeep.tables.files.scans import Scans
from viewkeep.tables.files.update_columns import (
    FEWEST_ROWS,
    ColumnUpdate,
    column_update,
    write_column_update,
)
from viewkeep.tables.log.delta import DataFile, LakeTable, Snapshot
from viewkeep.tables.relations import StoredRows
from viewkeep.tables.row_differences import Mask

DRIVER_BYTES = 8 * 1024 * 1024
"""The most bytes that are rewritten in memory; an engine streams more in less time."""
JOB_BYTES = 256 * 1024 * 1024
"""The same where the engine is Spark, whose jobs take a while to start."""
SMALL_FILES = 16
"""So many small files are put together."""
SMALL_BYTES = 4 * 1024 * 1024
PLACES_BYTES = 1 << 30
"""The most bytes of files in which an engine looks for the places of rows, to update them there."""
FILE_BYTES = 128 * 1024 * 1024
"""About how large a rewritten file may become."""
FILE_ROWS = 1 << 21
"""The most rows of a file that is written on the driver."""
SHARE_ROWS = 1 << 18
"""The fewest rows that become a file of their own, so that several are written at a time."""


@dataclass(frozen=True)
class Rewrite:
    """Files to add and files to remove, in one commit."""

    add: tuple[DataFile, ...] = ()
    remove: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class FileRows:
    """A file with its rows in memory, and for each row the place of its key, or -1."""

    file: DataFile
    rows: pa.Table
    places: Places


@dataclass(frozen=True)
class MatchedRows:
    """The rows of a version that have one of some keys, and the places of their keys.

    `files` are those that have such rows; None if they are too large for the driver.
    """

    keys: KeyIndex
    looked_up: pa.Table
    """Those that an engine has found."""
    places: Places
    files: tuple[FileRows, ...] | None

    @cached_property
    def rows(self) -> pa.Table:
        """All of them, file by file."""
        matches = [each.rows.filter(pa.array(each.places >= 0)) for each in self.files or ()]
        return pa.concat_tables([self.looked_up, *matches])


def find_rows_by_key(
    scans: Scans,
    table: LakeTable,
    snapshot: Snapshot,
    keys: pa.Table,
    driver_bytes: int = DRIVER_BYTES,
) -> MatchedRows:
    """The rows of a version that have one of the keys."""
    files = [each for each in snapshot.files if may_hold(each, keys)]
    index = KeyIndex(keys)
    if sum(each.size for each in files) <= driver_bytes:
        return _load_matches(table, snapshot, files, index)
    near = scans.rows_near(_rows_of_stored_files(table, snapshot, files), keys)
    places = index.places(near)
    return MatchedRows(index, near.filter(pa.array(places >= 0)), places[places >= 0], None)


def _load_matches(
    table: LakeTable, snapshot: Snapshot, files: Sequence[DataFile], keys: KeyIndex
) -> MatchedRows:
    folder = ParquetFolder(table)

    def load(each: DataFile) -> FileRows | None:
        rows = folder.read([each], snapshot.fields)
        places = keys.places(rows)
        return FileRows(each, rows, places) if (places >= 0).any() else None

    loaded = tuple(each for each in parallel(load, files) if each is not None)
    places = [each.places[each.places >= 0] for each in loaded]
    none = arrow_schema(snapshot.fields).empty_table()
    return MatchedRows(keys, none, np.concatenate([np.zeros(0, np.int64), *places]), loaded)


def rewrite_files(
    scans: Scans,
    table: LakeTable,
    snapshot: Snapshot,
    old_keys: pa.Table,
    new_rows: pa.Table,
    driver_bytes: int = DRIVER_BYTES,
    matches: MatchedRows | None = None,
    old_rows: pa.Table | None = None,
) -> Rewrite:
    """New files for a version without the rows that have a key of `old_keys`, and with `new_rows`.

    `matches` are the rows of these and perhaps other keys, if they were looked up before;
    `old_rows` those of just these keys, in their order.
    """
    new_rows = new_rows.cast(arrow_schema(snapshot.fields))
    candidate_files = [each for each in snapshot.files if may_hold(each, old_keys)]
    if old_rows is not None:
        update = column_update(old_keys.column_names, old_rows.cast(new_rows.schema), new_rows)
        stored = _rows_of_stored_files(table, snapshot, candidate_files)
        updated = None if update is None else _update_columns(scans, stored, update, driver_bytes)
        if updated is not None:
            return updated
    if matches is None and sum(each.size for each in candidate_files) <= driver_bytes:
        matches = _load_matches(table, snapshot, candidate_files, KeyIndex(old_keys))
    if matches is None or matches.files is None:
        rest = scans.write_without(
            _rows_of_stored_files(table, snapshot, candidate_files), old_keys
        )
        return Rewrite((*rest, *write_files(table, new_rows)), tuple(candidate_files))
    return _rewrite_in_memory(table, snapshot, matches, old_keys, new_rows)


def _update_columns(
    scans: Scans, rows: StoredRows, update: ColumnUpdate, driver_bytes: int
) -> Rewrite | None:
    """The same where only some columns change, by a copy of the others; None where that is not
    possible, or gains nothing."""
    is_worth_it = sum(each.rows for each in rows.files) >= FEWEST_ROWS
    if not is_worth_it or rows.size > PLACES_BYTES or _small_files_to_merge(rows.snapshot, ()):
        return None
    recent = RECENT_PLACES.get(rows, update.keys)
    if recent is None and rows.size > driver_bytes:
        recent = scans.row_places(rows, update.keys)
    if recent is not None:
        hits = update.hits(recent, len(rows.files))
    else:
        fields, folder = rows.snapshot.fields, ParquetFolder(rows.table)
        hits = find_places_of_keys(folder, rows.files, fields, KeyIndex(update.keys))
    pairs = write_column_update(rows, hits, update)
    if pairs is None:
        return None
    return Rewrite(tuple(new for _, new in pairs), tuple(old for old, _ in pairs))


def _rewrite_in_memory(
    table: LakeTable,
    snapshot: Snapshot,
    matches: MatchedRows,
    old_keys: pa.Table,
    new_rows: pa.Table,
) -> Rewrite:
    """Rows that replace others take their places; the rest goes to the end of some file."""
    files = matches.files or ()
    moves = _moves_of_rows(matches, old_keys, new_rows)
    rests = zip(
        files, parallel(lambda each: _file_after_change(each, moves, new_rows), files), strict=True
    )
    hit = [(each.file, rest) for each, rest in rests if rest is not None]
    small = _small_files_to_merge(snapshot, [each for each, _ in hit])
    merged = [
        ParquetFolder(table).read(small, snapshot.fields),
        new_rows.filter(pa.array(moves.appended)),
    ]
    merged += [rest for each, rest in hit if each.size < SMALL_BYTES]
    large = [rest for each, rest in hit if each.size >= SMALL_BYTES and rest.num_rows]
    if large:  # a large file takes the new rows in, so that no small one is needed
        large[0] = pa.concat_tables([large[0], *merged])
        merged = []
    together = [pa.concat_tables(merged)] if merged else []
    add = write_files(table, *large, *together)
    return Rewrite(tuple(add), (*small, *(each for each, _ in hit)))


@dataclass(frozen=True)
class _Moves:
    """By the place of a key, whether its row goes and which new row stands there instead, or -1;
    and which new rows stand nowhere so far."""

    goes: Mask
    instead: Places
    appended: Mask


def _moves_of_rows(matches: MatchedRows, old_keys: pa.Table, new_rows: pa.Table) -> _Moves:
    count = matches.keys.keys.num_rows
    goes, instead = np.zeros(count, np.bool_), np.full(count, -1, np.int64)
    away = matches.keys.places(old_keys)
    goes[away[away >= 0]] = True
    # A row takes the place of another one if it is the only one with the key of the only one.
    there, back = np.bincount(matches.places, minlength=count), matches.keys.places(new_rows)
    matched = np.flatnonzero(back >= 0)
    places = back[matched]
    alone = np.bincount(places, minlength=count)
    replaces = goes[places] & (there[places] == 1) & (alone[places] == 1)
    instead[places[replaces]] = matched[replaces]
    appended = np.ones(new_rows.num_rows, np.bool_)
    appended[matched[replaces]] = False
    return _Moves(goes, instead, appended)


def _file_after_change(file: FileRows, moves: _Moves, new_rows: pa.Table) -> pa.Table | None:
    """The rows of a file after a change, or None if all stay as they are."""
    hits = np.flatnonzero(file.places >= 0)
    keys = file.places[hits]
    instead = moves.instead[keys]
    replaced, dropped = hits[instead >= 0], hits[moves.goes[keys] & (instead < 0)]
    rows = file.rows
    if len(replaced):
        rows = _rows_with_replacements(
            rows, replaced, new_rows.take(pa.array(instead[instead >= 0]))
        )
    if len(dropped):
        return rows.filter(pc.invert(_mask_of_places(rows.num_rows, dropped)))
    return None if rows is file.rows else rows


def _mask_of_places(count: int, places: Places) -> pa.Array:
    mask = np.zeros(count, np.bool_)
    mask[places] = True
    return pa.array(mask)


def _rows_with_replacements(rows: pa.Table, places: Places, new: pa.Table) -> pa.Table:
    """Rows with others in some places; columns that stay as they are are not copied."""
    mask, new = _mask_of_places(rows.num_rows, places), new.combine_chunks()
    old = rows.filter(mask)
    for position, name in enumerate(rows.column_names):
        if not old[name].equals(new[name]):
            column = _column_with_replacements(rows[name], mask, new[name])
            rows = rows.set_column(position, rows.schema.field(name), column)
    return rows


def _column_with_replacements(
    column: pa.ChunkedArray, mask: pa.Array, new: pa.ChunkedArray
) -> pa.ChunkedArray:
    if not pa.types.is_nested(column.type):
        return pc.replace_with_mask(column, mask, _single_array(new))
    places = np.arange(len(column))
    places[mask.to_numpy(zero_copy_only=False)] = len(column) + np.arange(len(new))
    return pa.chunked_array([*column.chunks, *new.chunks], column.type).take(pa.array(places))


def _single_array(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def write_files(table: LakeTable, *groups: pa.Table) -> list[DataFile]:
    """Write rows into new files, each of rows of one group."""
    share = -(-sum(rows.num_rows for rows in groups) // (os.cpu_count() or 1))
    size = min(FILE_ROWS, max(SHARE_ROWS, share))
    parts = [rows.slice(start, size) for rows in groups for start in range(0, rows.num_rows, size)]
    return parallel(ParquetFolder(table).write, parts)


def _rows_of_stored_files(
    table: LakeTable, snapshot: Snapshot, files: Sequence[DataFile]
) -> StoredRows:
    return StoredRows(table, snapshot, files, {f.name: f.name for f in snapshot.fields})


def _small_files_to_merge(
    snapshot: Snapshot, candidate_files: Sequence[DataFile]
) -> list[DataFile]:
    """Small files to merge into this change, once there are many of them."""
    small = [f for f in snapshot.files if f.size < SMALL_BYTES and f not in candidate_files]
    return small if len(small) >= SMALL_FILES else []
