"""Entries with back-pointers, and the index that groups them by some of their columns.

The data structure of triangle_ivm_epsilon, section 2, "Computational Model". Where the paper
links entries in doubly-linked lists, a group here is a dense list and an entry remembers its
place in it: removal moves the last entry into the gap. A plain dict would not do, since CPython
dicts keep the slots of deleted keys and an enumeration would have to walk over them.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Generic, TypeVar

from viewkeep.errors import SchemaError

D = TypeVar("D")
Row = tuple[Any, ...]

# An entry is [row, payload, place in the relation, place in index 0's group, ...]: a list, since
# it is the fastest mutable record. Places are the back-pointers.
Entry = list[Any]
ROW, PAYLOAD, PLACE = 0, 1, 2


def remove_entry(entries: list[Entry], entry: Entry, place: int) -> None:
    """Remove `entry` in constant time; `place` is where entries keep their position in the list."""
    last = entries.pop()
    if last is not entry:
        position = entry[place]
        entries[position] = last
        last[place] = position


def key_function(positions: tuple[int, ...]) -> Callable[[Row], Row]:
    """The function that takes the values at some positions of a row, always as a tuple.

    >>> key_function((2, 0))(("x", "y", "z")), key_function((1,))(("x", "y", "z"))
    (('z', 'x'), ('y',))
    """
    if len(positions) > 1:
        return itemgetter(*positions)
    # itemgetter(1) would give a bare value, itemgetter() is an error; slices give tuples.
    start = positions[0] if positions else 0
    return itemgetter(slice(start, start + len(positions)))


class Index(Generic[D]):
    """The entries of a relation grouped by the values of some columns.

    Points (4)-(7) of the Computational Model, all in constant time: enumerate the entries
    matching a key, check a key, size of a group, insert and remove. Made by `Relation.index_on`
    and kept up to date by the relation.
    """

    __slots__ = ("_changes", "_groups", "_key_of", "_place", "columns")

    def __init__(
        self,
        columns: tuple[str, ...],
        positions: tuple[int, ...],
        place: int,
        changes: list[int],
    ) -> None:
        self.columns = columns
        self._key_of = key_function(positions)
        self._place = place
        self._changes = changes
        self._groups: dict[Row, list[Entry]] = {}

    @property
    def find_group(self) -> Callable[[Row], list[Entry] | None]:
        """The function from keys to groups, for engines that look up often; None if absent."""
        return self._groups.get

    def matches(self, key: Row) -> Iterator[tuple[Row, D]]:
        """The entries whose columns have the values of `key`, with constant delay.

        Inserting or removing tuples meanwhile raises RuntimeError, as for a dict.
        """
        changes = self._changes
        before = changes[0]
        for entry in self._entries_of_key(key):
            yield entry[ROW], entry[PAYLOAD]
            if changes[0] != before:
                raise RuntimeError("relation changed size during enumeration of an index")

    def __contains__(self, key: Row) -> bool:
        return bool(self._entries_of_key(key))

    def group_size(self, key: Row) -> int:
        """How many entries match `key`: the degree of a value, for heavy and light parts."""
        return len(self._entries_of_key(key))

    def __len__(self) -> int:
        """The number of distinct keys."""
        return len(self._groups)

    def _entries_of_key(self, key: Row) -> list[Entry]:
        group = self._groups.get(key)
        if group is not None:
            return group
        # Checked on a miss only: every stored key is a tuple of the right length.
        if not isinstance(key, tuple) or len(key) != len(self.columns):
            raise SchemaError(f"key {key!r} does not fit the index on ({', '.join(self.columns)})")
        return []

    def insert(self, entry: Entry) -> None:
        """Add an entry and note its place; only the relation calls this."""
        key = self._key_of(entry[ROW])
        group = self._groups.get(key)
        if group is None:
            self._groups[key] = [entry]
            entry[self._place] = 0
        else:
            entry[self._place] = len(group)
            group.append(entry)

    def remove(self, entry: Entry) -> None:
        """Take an entry out; only the relation calls this."""
        key = self._key_of(entry[ROW])
        group = self._groups[key]
        if len(group) == 1:
            del self._groups[key]
        else:
            remove_entry(group, entry, self._place)

    def clear(self) -> None:
        """Take all entries out; only the relation calls this."""
        self._groups.clear()


class RowIndex(Generic[D]):
    """A relation as its own index on all its columns: a group is one row or none."""

    __slots__ = ("_by_row", "columns")

    def __init__(self, columns: tuple[str, ...], by_row: dict[Row, Entry]) -> None:
        self.columns = columns
        self._by_row = by_row

    def matches(self, key: Row) -> Iterator[tuple[Row, D]]:
        """The row equal to `key`, if it is there."""
        entry = self._by_row.get(key)
        if entry is not None:
            yield entry[ROW], entry[PAYLOAD]
