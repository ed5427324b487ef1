"""Rows of small files that this process has written or read.

Files of Delta tables never change: one that still has the same size and time on the disk need not
be read again.
"""

from collections import OrderedDict
from threading import Lock

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.file_marks import FileMark, file_mark

LARGEST = 1 << 18
"""A file with more bytes of rows is not remembered."""


class RecentFiles:
    """Rows of files by their paths, up to a number of bytes; the oldest ones are forgotten."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes, self._lock = most, 0, Lock()
        self._files: OrderedDict[str, tuple[FileMark, pa.Table, int]] = OrderedDict()

    def get(self, path: str) -> pa.Table | None:
        """The rows of a file, if it is the one that was seen."""
        entry = self._files.get(path)
        if entry is None or entry[0] != file_mark(path):
            return None
        return entry[1]

    def add(self, path: str, rows: pa.Table) -> None:
        """Remember the rows of a file in one piece; slices would keep all of a larger table in
        memory."""
        if rows.get_total_buffer_size() > LARGEST:
            return
        rows = rows.combine_chunks()
        size = rows.get_total_buffer_size()
        mark = file_mark(path)
        if mark is None:
            return
        with self._lock:
            self._drop(path)
            self._files[path] = mark, rows, size
            self._bytes += size
            while self._bytes > self._most:
                self._drop(next(iter(self._files)))

    def _drop(self, path: str) -> None:
        entry = self._files.pop(path, None)
        self._bytes -= entry[2] if entry is not None else 0


RECENT_FILES = RecentFiles(1 << 26)
