"""The memory of a compiled engine seen from Python: maps as columns, and what is to be freed."""

import ctypes
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewkeep.engine.compiled.emit.tables import EMPTY
from viewkeep.engine.compiled.layout import Memory, Store, Table
from viewkeep.engine.compiled.rings import kind_words

Words = NDArray[np.int64]

_release = ctypes.CDLL(None).free
_release.argtypes = [ctypes.c_void_p]
_release.restype = None


def words_at(address: int, count: int) -> Words:
    """Words of memory as an array, which does not own them."""
    if not count:
        return np.zeros(0, np.int64)
    return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))


class MemoryState:
    """The words of one engine's state; the blocks that they point to go with it."""

    def __init__(self, memory: Memory, start: Callable[[int], int]) -> None:
        self.memory = memory
        self.words: Words = np.zeros(memory.words, np.int64)
        self.address: int = self.words.ctypes.data
        self.borrowed: object = None
        """What owns the blocks that are not this state's own: a mapped file."""
        start(self.address)
        self._finalizer = weakref.finalize(self, _free_blocks, memory, self.words)

    def release(self) -> None:
        """Free all blocks; whoever does so puts others in their place."""
        _free_blocks(self.memory, self.words)

    def rows(self, table: Table) -> Words:
        """The used rows of a table, copied."""
        if not table.key:
            return self.words[table.at : table.at + table.stride].reshape(1, -1).copy()
        room = int(self.words[table.at + 1]) + 1
        content = words_at(int(self.words[table.at]), room * table.stride).reshape(room, -1)
        return np.ascontiguousarray(content[content[:, 0] != EMPTY])

    def entries(self, store: Store) -> Words:
        """The rows of a table in which a map has an entry."""
        rows = self.rows(store.table)
        return rows[_entries_present(rows, store)]

    def count(self, store: Store) -> int:
        """How many entries a map has."""
        if store.key and not store.fused:
            return int(self.words[store.table.at + 2])
        return len(self.entries(store))

    def numbers(self, rows: Words, store: Store) -> Iterator[tuple[Any, ...]]:
        """The numbers of a map's payloads in rows of its table."""
        columns = [number_list(column) for column in payload_columns(rows, store)]
        return zip(*columns, strict=True)

    def size(self) -> int:
        """Bytes of all tables and pools."""
        return sum(8 * words for _, _, words in blocks(self.memory, self.words))


def payload_columns(rows: Words, store: Store) -> Iterator[NDArray[Any]]:
    """The numbers of a map's payloads, each as a column of its own type."""
    for place, kind in store.shape.places:
        start = store.word + place
        columns = rows[:, start : start + kind_words(kind)]
        column = np.ascontiguousarray(columns if kind.isdigit() else columns[:, 0])
        yield column.view(np.float64) if kind == "f" else column


def number_list(column: NDArray[Any]) -> list[Any]:
    """A column as numbers of Python; one of several words has a row for each number."""
    if column.ndim == 1:
        return list(column.tolist())
    *low, high = column.T
    totals: list[int] = high.tolist()
    for words in reversed(low):
        unsigned = np.ascontiguousarray(words).view(np.uint64).tolist()
        totals = [(total << 64) + word for total, word in zip(totals, unsigned, strict=True)]
    return totals


def _entries_present(rows: Words, store: Store) -> NDArray[np.bool_]:
    present = np.zeros(len(rows), np.bool_)
    for column in payload_columns(rows, store):
        present |= (column != 0).any(axis=1) if column.ndim > 1 else column != 0
    return present


def blocks(memory: Memory, words: Words) -> Iterator[tuple[int, int, int]]:
    """Every block: the word that points to it, the word that tells if it is borrowed, its size."""
    for table in memory.tables:
        if table.key:
            room = int(words[table.at + 1]) + 1
            yield table.at, table.at + 4, room * table.stride
    for store in memory.stores.values():
        for index in store.indexes:
            yield index.pool, index.pool + 3, int(words[index.pool + 2])


def _free_blocks(memory: Memory, words: Words) -> None:
    for place, borrowed, _ in blocks(memory, words):
        if not words[borrowed]:
            _release(int(words[place]))
