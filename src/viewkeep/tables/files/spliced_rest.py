"""Files without some of their rows: row groups that have none of these are copied as bytes.

The other row groups, and those that are small, are read and written anew at the end, as new row
groups of the usual size. Where that would be most of the rows, an engine writes all of them.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import IO, cast
from uuid import uuid4

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from viewkeep.tables.failures import storage_errors
from viewkeep.tables.files.parquet import ParquetFolder, open_writer
from viewkeep.tables.files.row_groups import GroupBounds
from viewkeep.tables.files.splice import GroupSource, Leaves, Splice, SpliceError, leaf_columns
from viewkeep.tables.log.roaring import RowNumbers
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import StoredRows

MOST_SHARE = 0.5
"""The largest share of the rows that is read and written anew."""
MOST_BYTES = 1 << 28
"""The most bytes that are, before they are compressed."""
SMALL_GROUP = 4096
"""Row groups of fewer rows are put together."""
MOST_KEYS = 20_000
"""The most keys whose rows are sought in single row groups."""
FEWEST_GROUPS = 128
"""In fewer row groups some keys are in most of them."""


@dataclass(frozen=True)
class _OpenFile:
    """A file, and the ascending places of the rows in it that go."""

    data: DataFile
    file: pq.ParquetFile
    bounds: GroupBounds
    gone: RowNumbers

    @cached_property
    def anew(self) -> list[int]:
        """The row groups that are written anew."""
        is_anew = np.diff(self.bounds.starts) < SMALL_GROUP
        is_anew[np.searchsorted(self.bounds.starts, self.gone, side="right") - 1] = True
        return [int(each) for each in np.flatnonzero(is_anew)]

    @property
    def copied(self) -> list[int]:
        """The row groups that are copied."""
        return sorted({*range(len(self.bounds.starts) - 1)} - {*self.anew})

    def rests(self) -> Iterator[pa.Table]:
        """The rows that stay of each row group that is written anew."""
        starts = self.bounds.starts
        for number in self.anew:
            rows = self.file.read_row_group(number, use_threads=False)
            first, last = np.searchsorted(self.gone, starts[number : number + 2])
            stays = np.ones(rows.num_rows, np.bool_)
            stays[self.gone[first:last] - starts[number]] = False
            yield rows.filter(pa.array(stays))

    @property
    def _rows_anew(self) -> int:
        return int(np.diff(self.bounds.starts)[self.anew].sum())

    @property
    def share(self) -> tuple[int, int]:
        """How many rows are written anew, and how many bytes before they are compressed."""
        footer = self.bounds.footer
        return self._rows_anew, sum(footer.row_group(n).total_byte_size for n in self.anew)


def may_splice(rows: StoredRows, keys: int) -> bool:
    """Whether so many keys may leave most row groups of files as they are."""
    folder = ParquetFolder(rows.table)
    if rows.snapshot.partitions or folder.local_place("") is None or keys > MOST_KEYS:
        return False
    if any(each.vector is not None for each in rows.files):
        return False
    groups = 0
    for each in rows.files:
        with folder.opened(each) as (_, bounds):
            groups += len(bounds.starts) - 1
    return groups >= FEWEST_GROUPS


def write_spliced(rows: StoredRows, places: Sequence[RowNumbers]) -> list[DataFile] | None:
    """Write the rows of files but those at some places, ascending in each file, into a new file;
    None where most rows would be written anew, or the files are not alike."""
    folder = ParquetFolder(rows.table)
    with ExitStack() as stack:
        opened = [stack.enter_context(folder.opened(each)) for each in rows.files]
        files = [
            _OpenFile(data, file, bounds, row_numbers)
            for data, (file, bounds), row_numbers in zip(rows.files, opened, places, strict=True)
        ]
        # The largest one has row groups of the usual size.
        files.sort(key=lambda each: each.data.rows, reverse=True)
        anew, size = map(sum, zip(*(each.share for each in files), strict=True))
        total = sum(each.bounds.footer.num_rows for each in files)
        if anew > MOST_SHARE * total or size > MOST_BYTES:
            return None
        try:
            return [
                _write_spliced_rest(folder, files, [field.name for field in rows.snapshot.fields])
            ]
        except SpliceError:
            return None


def _write_spliced_rest(
    folder: ParquetFolder, files: Sequence[_OpenFile], names: list[str]
) -> DataFile:
    meaning = leaf_columns(files[0].file.schema)
    for each in files:
        is_alike = not each.copied or leaf_columns(each.file.schema) == meaning
        if each.file.schema_arrow.names != names or not is_alike:
            raise SpliceError("files that are not alike")
    path = f"part-{uuid4()}.parquet"
    place = folder.local_place(path)
    assert place is not None
    with storage_errors(place):
        try:
            _write_rests(place, files, meaning)
            if leaf_columns(pq.read_metadata(place).schema) != meaning:
                raise SpliceError("rows that are written otherwise than they were")
            _splice_groups(place, folder, files)
        except SpliceError:
            os.unlink(place)
            raise
    return folder.read_described(path)


def _write_rests(place: str, files: Sequence[_OpenFile], meaning: Leaves) -> None:
    """A file of the rows that are written anew, by row groups; small ones become one."""
    schema, small = files[0].file.schema_arrow, []
    numbers = any(each[3] != "FIXED_LEN_BYTE_ARRAY" and "Decimal" in each[4] for each in meaning)
    with open_writer(place, schema, store_decimal_as_integer=numbers) as writer:
        for rest in (rest for each in files for rest in each.rests()):
            if rest.num_rows < SMALL_GROUP:
                small.append(rest.cast(schema))
            else:
                writer.write_table(rest.cast(schema))
        together = pa.concat_tables([schema.empty_table(), *small])
        if together.num_rows:
            writer.write_table(together)


def _splice_groups(place: str, folder: ParquetFolder, files: Sequence[_OpenFile]) -> None:
    """Put the row groups that are copied behind those that a file has."""
    with ExitStack() as stack:

        def unbuffered(at: str, mode: str) -> IO[bytes]:
            return cast(IO[bytes], stack.enter_context(open(at, mode, buffering=0)))

        splice = Splice(unbuffered(place, "r+b"))
        sources = [GroupSource.read(unbuffered(folder.place_of(each.data), "rb")) for each in files]
        for each, source in zip(files, sources, strict=True):
            splice.add(source, each.copied)
        splice.finish(sources[0])
