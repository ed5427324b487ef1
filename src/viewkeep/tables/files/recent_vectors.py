"""Deleted rows of files by their deletion vectors, which never change: each is read once."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from viewkeep.tables.log.roaring import RowNumbers

Key = tuple[str, str]
"""A table, and the identity of a vector."""


class RecentVectors:
    """The rows of vectors that this process has written or read, up to a number of bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes, self._lock = most, 0, Lock()
        self._rows: OrderedDict[Key, RowNumbers] = OrderedDict()

    def get(self, key: Key, read: Callable[[], RowNumbers]) -> RowNumbers:
        """The rows of a vector, read if they are not known."""
        row_numbers = self._rows.get(key)
        if row_numbers is None:
            row_numbers = read()
            self.add(key, row_numbers)
        return row_numbers

    def add(self, key: Key, rows: RowNumbers) -> None:
        """The rows of a vector; the oldest ones are forgotten."""
        with self._lock:
            if key in self._rows or rows.nbytes > self._most:
                return
            self._rows[key] = rows
            self._bytes += rows.nbytes
            while self._bytes > self._most:
                _, oldest = self._rows.popitem(last=False)
                self._bytes -= oldest.nbytes


RECENT_VECTORS = RecentVectors(1 << 26)
