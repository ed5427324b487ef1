"""Parquet files of Delta tables, written and read on the driver."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.fs as pafs  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.column_bounds import column_bounds
from viewkeep.tables.files.recent_files import RECENT_FILES
from viewkeep.tables.files.recent_vectors import RECENT_VECTORS
from viewkeep.tables.files.row_groups import FOOTERS, GroupBounds
from viewkeep.tables.files.stored_columns import conform
from viewkeep.tables.log.deletion_vectors import PREFIX, SUFFIX, DeletionVector, pack_vectors
from viewkeep.tables.log.delta import DataFile, LakeTable, StorageError, file_system, storage_errors
from viewkeep.tables.log.roaring import RowNumbers

ROW_GROUP = 128 * 1024
FOOTERS_AT_ONCE = 16
SMALL_BYTES = 1 << 20
"""A file of at most so many bytes is read by one thread."""


@dataclass(frozen=True)
class ListedFile:
    """A file of rows or of deletion vectors in a table's folder, whatever the log says; `modified`
    in milliseconds."""

    path: str
    modified: float


class ParquetFolder:
    """The folder of a table, as Arrow reads and writes files in it."""

    def __init__(self, table: LakeTable) -> None:
        self.uri = table.uri
        with storage_errors(self.uri):
            self._files, self._base = file_system(table)
        self._is_local = isinstance(self._files, pafs.LocalFileSystem)

    def write(self, table: pa.Table, name: str = "part", bounds: bool = True) -> DataFile:
        """A new file with these rows; bounds of its columns are told unless nobody reads them."""
        path = f"{name}-{uuid4()}.parquet"
        with storage_errors(f"{self.uri}/{path}"):
            footers: list[Any] = []
            with self._new_file(f"{self._base}/{path}") as sink:
                about = {"metadata_collector": footers, "write_page_index": True}
                with open_writer(sink, table.schema, **about) as writer:
                    writer.write_table(table, ROW_GROUP)
                size = sink.tell()
        if self._is_local:
            RECENT_FILES.add(f"{self._base}/{path}", table)
        if not bounds:
            return DataFile(path, size, table.num_rows)
        return self._described(path, size, footers[0])

    def _new_file(self, place: str) -> Any:
        """A file to write into; its folder is made where there is none."""
        with suppress(FileNotFoundError):
            return self._files.open_output_stream(place)
        self._files.create_dir(place.rpartition("/")[0], recursive=True)
        return self._files.open_output_stream(place)

    def make(self, name: str) -> None:
        """A folder in the table's folder, for files that others write."""
        with storage_errors(f"{self.uri}/{name}"):
            self._files.create_dir(f"{self._base}/{name}", recursive=True)

    def local_place(self, path: str) -> str | None:
        """Where a file is on this machine; None elsewhere."""
        return f"{self._base}/{path}" if self._is_local else None

    def place_of(self, file: DataFile) -> str:
        """Where a file of the table is in its file system."""
        return file.location(self._base)

    def read_described(self, path: str) -> DataFile:
        """A file by its path in the folder, with what its footer tells."""
        return self._read_described(path)

    def read(self, files: Iterable[DataFile], fields: Sequence[Field]) -> pa.Table:
        """The rows of some files, with these columns; what a file does not have is NULL."""
        schema = arrow_schema(fields)
        tables = [self._read_data_file(each, schema) for each in files]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def read_path(self, path: str, fields: Sequence[Field]) -> pa.Table:
        """The rows of a file by its path in the folder."""
        return self.read([DataFile(path, 0, 0)], fields)

    def write_text(self, name: str, text: str) -> None:
        """A file for people beside the data."""
        path = f"{self._base}/{name}"
        with storage_errors(path):
            self._files.create_dir(self._base, recursive=True)
            with self._files.open_output_stream(path) as sink:
                sink.write(text.encode())

    def read_text(self, name: str) -> str:
        """A file beside the data."""
        path = f"{self._base}/{name}"
        with storage_errors(path), self._files.open_input_stream(path) as source:
            return bytes(source.read()).decode()

    def names(self) -> list[str]:
        """What is in the folder itself; nothing, if there is none."""
        with storage_errors(self.uri):
            selector = pafs.FileSelector(self._base, allow_not_found=True)
            return [each.base_name for each in self._files.get_file_info(selector)]

    def modified_times(self) -> dict[str, float]:
        """The files in the folder itself, with the times of their last change in seconds, as the
        store tells them; those without a time are new."""
        with storage_errors(self.uri):
            selector = pafs.FileSelector(self._base, allow_not_found=True)
            entries = self._files.get_file_info(selector)
        return {
            each.base_name: float("inf") if each.mtime_ns is None else each.mtime_ns / 1e9
            for each in entries
            if each.type == pafs.FileType.File
        }

    def remove_file(self, name: str) -> None:
        """Remove a file, if it is there."""
        with storage_errors(f"{self.uri}/{name}"), suppress(FileNotFoundError):
            self._files.delete_file(f"{self._base}/{name}")

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        with storage_errors(self.uri):
            if self._files.get_file_info(self._base).type != pafs.FileType.NotFound:
                self._files.delete_dir(self._base)

    def folders(self) -> list[str]:
        """The names of the folders in it."""
        with storage_errors(self.uri):
            entries = self._files.get_file_info(pafs.FileSelector(self._base, allow_not_found=True))
        return [each.base_name for each in entries if each.type == pafs.FileType.Directory]

    def listed(self, below: str = "") -> list[ListedFile]:
        """The files of rows and of deletion vectors; folders that Delta marks are no data."""
        files: list[ListedFile] = []
        with storage_errors(self.uri):
            selector = pafs.FileSelector(f"{self._base}/{below}", allow_not_found=True)
            entries = self._files.get_file_info(selector)
        for each in entries:
            name = f"{below}{each.base_name}"
            if each.base_name.startswith(("_", ".")):
                continue
            if each.type == pafs.FileType.Directory:
                files += self.listed(f"{name}/")
            elif name.endswith(".parquet") or _holds_vectors(each.base_name):
                modified = each.mtime_ns / 1e6 if each.mtime_ns is not None else float("inf")
                files.append(ListedFile(name, modified))
        return files

    def remove_files(self, files: Iterable[ListedFile]) -> None:
        """Remove files, with the checksums that Spark writes beside them."""
        self.remove_paths(each.path for each in files)

    def remove_paths(self, paths: Iterable[str]) -> None:
        """Remove files by their paths in the folder."""
        for path in paths:
            folder, _, name = f"{self._base}/{path}".rpartition("/")
            with storage_errors(f"{folder}/{name}"), suppress(FileNotFoundError):
                self._files.delete_file(f"{folder}/{name}")
            with suppress(OSError):
                self._files.delete_file(f"{folder}/.{name}.crc")

    def described(self, folder: str) -> list[DataFile]:
        """The Parquet files below a folder of the table, with what their footers tell."""
        with storage_errors(f"{self.uri}/{folder}"):
            entries = self._files.get_file_info(
                pafs.FileSelector(f"{self._base}/{folder}", recursive=False)
            )
        names = sorted(each.base_name for each in entries if each.base_name.endswith(".parquet"))
        # In a store each takes several requests, and a large job has written thousands.
        with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
            described = list(pool.map(lambda name: self._read_described(f"{folder}/{name}"), names))
        return [each for each in described if each.rows]

    def deleted_rows(self, file: DataFile) -> RowNumbers:
        """The rows of a file that are deleted, by their places in it."""
        vector = file.vector
        if vector is None:
            return np.zeros(0, np.int64)
        return RECENT_VECTORS.get(
            (self.uri, vector.identity), lambda: vector.read(self._vector_file(vector))
        )

    def write_vectors(self, vectors: Sequence[RowNumbers]) -> list[DeletionVector]:
        """Write deletion vectors down, in one file or for the log entry itself."""
        described, data = pack_vectors(vectors)
        if data is not None:
            place = described[0].location(self._base)
            with storage_errors(str(place)), self._files.open_output_stream(place) as sink:
                sink.write(data)
        for each, rows in zip(described, vectors, strict=True):
            RECENT_VECTORS.add((self.uri, each.identity), rows)
        return described

    def _vector_file(self, vector: DeletionVector) -> bytes:
        """The bytes of the file of a vector; none, if it stands in the log."""
        location = vector.location(self._base)
        if location is None:
            return b""
        with _parquet_errors(location), self._files.open_input_file(location) as source:
            return bytes(source.read())

    def read_stored(self, file: DataFile, fields: Sequence[Field]) -> pa.Table:
        """All rows of a file in their places, also those that are deleted."""
        return self._read_stored(file, arrow_schema(fields))

    def _read_data_file(self, each: DataFile, schema: pa.Schema) -> pa.Table:
        rows = self._read_stored(each, schema)
        if each.vector is None:
            return rows
        live = np.ones(rows.num_rows, np.bool_)
        live[self.deleted_rows(each)] = False
        return rows.filter(pa.array(live))

    def live_rows(self, file: DataFile, places: RowNumbers) -> pa.Array:
        """Whether the rows at some places of a file are there."""
        deleted = self.deleted_rows(file)
        if not len(deleted):
            return pa.array(np.ones(len(places), np.bool_))
        at = np.minimum(np.searchsorted(deleted, places), len(deleted) - 1)
        return pa.array(deleted[at] != places)

    def _read_stored(self, each: DataFile, schema: pa.Schema) -> pa.Table:
        location = each.location(self._base)
        recent = RECENT_FILES.get(location) if self._is_local else None
        return conform(self._read_whole(location) if recent is None else recent, schema, each)

    def _read_whole(self, location: str) -> pa.Table:
        with _parquet_errors(location), self._files.open_input_file(location) as source:
            # A small file is read before threads have started.
            is_small = source.size() <= SMALL_BYTES
            place = pa.BufferReader(source.read()) if is_small else source
            file = pq.ParquetFile(place, coerce_int96_timestamp_unit=_UNIT)
            rows = file.read(use_threads=not is_small)
        if self._is_local:
            RECENT_FILES.add(location, rows)
        return rows

    @contextmanager
    def opened(self, each: DataFile) -> Iterator[tuple[pq.ParquetFile, GroupBounds]]:
        """A file of the table, open, and the bounds of its row groups."""
        location = each.location(self._base)
        with _parquet_errors(location), self._files.open_input_file(location) as source:

            def read_footer() -> Any:
                return pq.read_metadata(source)

            bounds = FOOTERS.get(location, read_footer) if self._is_local else None
            bounds = bounds or GroupBounds(read_footer())
            about = {"metadata": bounds.footer, "coerce_int96_timestamp_unit": _UNIT}
            # Few bytes of many row groups: on a disk, one buffer for all takes longer than reading.
            yield pq.ParquetFile(source, pre_buffer=not self._is_local, **about), bounds

    def _read_described(self, path: str) -> DataFile:
        place = f"{self._base}/{path}"
        with storage_errors(place):
            size = self._files.get_file_info(place).size
            with self._files.open_input_file(place) as source:
                footer = pq.read_metadata(source)
        return self._described(path, size, footer)

    def _described(self, path: str, size: int, footer: Any) -> DataFile:
        place = f"{self._base}/{path}"

        def count_nulls(column: str) -> int:
            """The NULLs of a column, counted where the statistics leave them open, as those of long
            strings do."""
            with storage_errors(place):
                rows = pq.read_table(
                    place, columns=[column], filesystem=self._files, partitioning=None
                )
            return int(rows[column].null_count)

        least, greatest, nulls = column_bounds(footer, count_nulls)
        return DataFile(path, size, footer.num_rows, {}, least, greatest, nulls)


def open_writer(sink: Any, schema: pa.Schema, **options: Any) -> pq.ParquetWriter:
    """A Parquet file to write rows into."""
    # Numbers gain little from dictionaries, which cost most of the time.
    few_values = [each.name for each in schema if _has_few_values(each.type)]
    return pq.ParquetWriter(sink, schema, use_dictionary=few_values, **options)


@contextmanager
def _parquet_errors(location: str) -> Iterator[None]:
    try:
        with storage_errors(location):
            yield
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise StorageError(
                f"{location} is gone, probably vacuumed; repair the views that need it"
            ) from error
        raise


_UNIT = "us"
"""Of times in Spark's old form; in nanoseconds, years before 1677 and after 2262 overflow."""


def _holds_vectors(name: str) -> bool:
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def _has_few_values(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_boolean(kind))
