"""Copy on write where rows only get other values: columns that keep theirs are copied as bytes.

The update of a sum leaves keys and counts as they are, and that of a price all but the price. Only
the columns that change are read and written anew, and of them only row groups with such rows.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, cast
from uuid import uuid4

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from viewkeep.tables.failures import storage_errors
from viewkeep.tables.files.key_index import KeyIndex, Places
from viewkeep.tables.files.look_up import parallel
from viewkeep.tables.files.parquet import ParquetFolder, open_writer
from viewkeep.tables.files.scans import FILE, ROW
from viewkeep.tables.files.splice import (
    ColumnSource,
    GroupSource,
    Splice,
    SpliceError,
    leaf_columns,
)
from viewkeep.tables.log.roaring import RowNumbers
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import StoredRows

FEWEST_ROWS = 1 << 16
"""Files of fewer rows are written as a whole in the time that it takes to put one together."""
MOST_BYTES = 1 << 28
"""The most bytes of columns that are written anew, before they are compressed."""

Hits = tuple[RowNumbers, Places]
"""The rows of a file that change, and for each the place of its key among the keys."""


@dataclass(frozen=True)
class ColumnUpdate:
    """Keys, each of one row, and the new values of the columns that change, key by key."""

    keys: pa.Table
    values: pa.Table

    def hits(self, places: pa.Table, files: int) -> list[Hits]:
        """By file, the rows of `Scans.row_places`."""
        keys = KeyIndex(self.keys).places(places.select(self.keys.column_names))
        numbers, rows = places[FILE].to_numpy(), places[ROW].to_numpy().astype(np.int64)
        return [(rows[numbers == number], keys[numbers == number]) for number in range(files)]


def column_update(
    key: Sequence[str], old_rows: pa.Table, new_rows: pa.Table
) -> ColumnUpdate | None:
    """What a change of rows sets; None where rows come or go, or all columns change."""
    if not key or old_rows.num_rows != new_rows.num_rows:
        return None
    keys = old_rows.select(list(key))
    index = KeyIndex(keys)
    places = index.places(new_rows)
    if index.repeated is not None or not _is_permutation(places):
        return None
    old_rows = old_rows.take(pa.array(places))
    names = [name for name in new_rows.column_names if _changes(old_rows[name], new_rows[name])]
    if len(names) == new_rows.num_columns or not {*key}.isdisjoint(names):
        return None
    if any(pa.types.is_nested(new_rows[name].type) for name in names):
        return None
    return ColumnUpdate(keys.take(pa.array(places)), new_rows.select(names))


def _is_permutation(places: Places) -> bool:
    return bool((np.bincount(places[places >= 0], minlength=len(places)) == 1).all())


def _changes(old: pa.ChunkedArray, new: pa.ChunkedArray) -> bool:
    """Whether values differ; those of floats may, though they are equal."""
    return pa.types.is_floating(new.type) or not old.equals(new)


def write_column_update(
    rows: StoredRows, hits: Sequence[Hits], update: ColumnUpdate
) -> list[tuple[DataFile, DataFile]] | None:
    """The files that have a row with one of the keys, each with the file that stands for it now;
    None if not every key has one row, or files cannot be put together."""
    keys = np.concatenate([np.zeros(0, np.int64), *(each for _, each in hits)])
    if len(keys) != update.keys.num_rows or not _is_permutation(keys):
        return None
    folder = ParquetFolder(rows.table)
    if rows.snapshot.partitions or folder.local_place("") is None or not update.values.num_columns:
        return None
    files = [(file, hit) for file, hit in zip(rows.files, hits, strict=True) if len(hit[0])]
    if any(file.vector is not None or file.mapping is not None for file, _ in files):
        return None
    try:
        return [
            (file, _FileUpdate(folder, file, hit, update.values).write()) for file, hit in files
        ]
    except SpliceError:
        return None


class _FileUpdate:
    """One file, and the new values of some of its columns in some rows."""

    def __init__(self, folder: ParquetFolder, file: DataFile, hits: Hits, values: pa.Table) -> None:
        self._folder, self._file = folder, file
        order = np.argsort(hits[0])
        self._row_numbers = hits[0][order]
        self._values = values.take(pa.array(hits[1][order]))
        with folder.opened(file) as (opened, bounds):
            self._schema, self._leaves = opened.schema_arrow, leaf_columns(opened.schema)
            self._starts, self._footer = bounds.starts, bounds.footer
        self._names = [each[0] for each in self._leaves]
        """The paths of leaves; that of a column which is not nested is its name."""
        if not {*values.column_names} <= {*self._names}:
            raise SpliceError("columns that a file does not have")

    def write(self) -> DataFile:
        """The new file."""
        groups = np.unique(np.searchsorted(self._starts, self._row_numbers, side="right") - 1)
        if self._changed_bytes(groups) > MOST_BYTES:
            raise SpliceError("more bytes than fit into memory")
        parts = [part for part in np.array_split(groups, os.cpu_count() or 1) if len(part)]
        new_columns = dict[int, tuple[GroupSource, int]]()
        for part, source in zip(parts, parallel(self._new_columns, parts), strict=True):
            new_columns |= {int(group): (source, place) for place, group in enumerate(part)}
        path = f"part-{uuid4()}.parquet"
        place = self._folder.local_place(path)
        assert place is not None
        with storage_errors(place):
            try:
                self._put_together(place, new_columns)
            except SpliceError:
                os.unlink(place)
                raise
        return self._folder.read_described(path)

    def _changed_bytes(self, groups: Places) -> int:
        columns = [self._names.index(name) for name in self._values.column_names]
        chosen = [self._footer.row_group(int(number)) for number in groups]
        return sum(each.column(n).total_uncompressed_size for each in chosen for n in columns)

    def _new_columns(self, groups: Places) -> GroupSource:
        """A file in memory of the columns that change, of some row groups."""
        names = self._values.column_names
        schema = pa.schema([self._schema.field(name) for name in names])
        leaves = [each for each in self._leaves if each[0] in names]
        numbers = any(each[3] != "FIXED_LEN_BYTE_ARRAY" and "Decimal" in each[4] for each in leaves)
        sink = pa.BufferOutputStream()
        with (
            self._folder.opened(self._file) as (file, _),
            open_writer(sink, schema, store_decimal_as_integer=numbers) as writer,
        ):
            for number in groups:
                rows = file.read_row_group(int(number), names, use_threads=False).select(names)
                writer.write_table(self._updated_rows(int(number), rows), rows.num_rows)
        buffer = sink.getvalue()
        written = {
            each[0]: each for each in leaf_columns(pq.read_metadata(pa.BufferReader(buffer)).schema)
        }
        if written != {each[0]: each for each in leaves}:
            raise SpliceError("columns that are written otherwise than they were")
        return GroupSource.read(cast(IO[bytes], pa.BufferReader(buffer)))

    def _updated_rows(self, group: int, rows: pa.Table) -> pa.Table:
        first, last = np.searchsorted(self._row_numbers, self._starts[group : group + 2])
        mask = np.zeros(rows.num_rows, np.bool_)
        mask[self._row_numbers[first:last] - self._starts[group]] = True
        values = self._values.slice(first, last - first).combine_chunks()
        columns = [
            _with_values(rows[name], pa.array(mask), values[name]) for name in rows.column_names
        ]
        return pa.Table.from_arrays(columns, schema=rows.schema)

    def _put_together(self, place: str, new_columns: dict[int, tuple[GroupSource, int]]) -> None:
        new_names = self._values.column_names
        source_place = self._folder.place_of(self._file)
        with open(source_place, "rb", buffering=0) as old, open(place, "xb", buffering=0) as sink:
            source, splice = GroupSource.read(old), Splice(sink, is_new=True)
            for group in range(len(self._starts) - 1):
                columns: list[ColumnSource] = []
                for number, name in enumerate(self._names):
                    if group in new_columns and name in new_names:
                        new, new_group = new_columns[group]
                        columns.append((new, new_group, new_names.index(name)))
                    else:
                        columns.append((source, group, number))
                splice.add_columns(columns)
            splice.finish(source)


def _with_values(column: pa.ChunkedArray, mask: pa.Array, values: pa.ChunkedArray) -> Any:
    new = values.cast(column.type).combine_chunks()
    whole = new if isinstance(new, pa.Array) else pa.concat_arrays(new.chunks)
    return pc.replace_with_mask(column, mask, whole)
