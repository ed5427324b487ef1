"""The modification log of a table, and its net effect (id_based_ivm, section 5).

Entries hold what users give: an insert a whole row (a tuple in the order of the columns, or a
mapping that names them all), an update the key and the new values of some columns, a delete the
key. Keys are tuples in the order of the table's key. Values are checked when the log is netted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from viewkeep.changes.batch import ChangeBatch
from viewkeep.changes.rows import Key, Lookup, Row, RowFormat
from viewkeep.query.tables import Table


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row."""

    row: Row | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Update:
    """New values for some columns of the row with this key; key columns may be among them."""

    key: Key
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delete:
    """The end of the row with this key."""

    key: Key


Modification = Insert | Update | Delete


def net(
    name: str,
    table: Table,
    before: Mapping[Key, Row] | Lookup,
    log: Iterable[Modification],
) -> ChangeBatch:
    """What a log does to a table in all: one change per key, from its first to its last row.

    `before` gives the rows before the log, by key. It is only read, so an error changes nothing.

    >>> parts = Table({"pid": "int", "price": "int"}, key=["pid"])
    >>> log = [Update((1,), {"price": 6}), Insert((2, 7)), Update((2,), {"pid": 3}), Delete((1,))]
    >>> batch = net("parts", parts, {(1,): (1, 5)}, log)
    >>> batch.inserts, batch.deletes, batch.updates
    (((3, 7),), ((1, 5),), ())
    """
    play = Play(RowFormat(name, table), before.get if isinstance(before, Mapping) else before)
    for entry in log:
        play.step(entry)
    return play.batch()


class Play:
    """A log played over rows that stay as they are: the touched keys, before and now."""

    def __init__(self, format_: RowFormat, before: Lookup) -> None:
        self._format, self._before = format_, before
        self.first: dict[Key, Row | None] = {}
        self.last: dict[Key, Row | None] = {}

    def batch(self) -> ChangeBatch:
        """The net effect of the entries so far."""
        steps = ((old, self.last[key]) for key, old in self.first.items())
        return ChangeBatch.of_steps(self._format.name, self._format.table, steps)

    def step(self, entry: Modification) -> None:
        """Play one entry; one that does not fit is an error and leaves everything as it is."""
        match entry:
            case Insert():
                self._play_insert(self._format.row(entry.row))
            case Update():
                self._play_update(self._format.key(entry.key), entry.values)
            case Delete():
                key = self._format.key(entry.key)
                self._existing_row(key, "delete")
                self.last[key] = None
            case _:
                assert_never(entry)

    def _play_insert(self, row: Row) -> None:
        key = self._format.key_of(row)
        if self.row(key) is not None:
            self._format.refuse(key, "insert, but the key is there; update the row instead")
        self.last[key] = row

    def _play_update(self, key: Key, values: Mapping[str, Any]) -> None:
        old = self._existing_row(key, "update")
        new = self._format.changed(old, values)
        new_key = self._format.key_of(new)
        if new_key == key:
            self.last[key] = new
        elif self.row(new_key) is not None:
            self._format.refuse(new_key, f"update of key {key!r}, but a row has this key already")
        else:
            self.last[key], self.last[new_key] = None, new

    def _existing_row(self, key: Key, action: str) -> Row:
        row = self.row(key)
        if row is None:
            self._format.refuse(key, f"{action}, but no row has this key; insert it first")
        return row

    def row(self, key: Key) -> Row | None:
        """The row of a key after the entries so far."""
        if key not in self.first:
            self.first[key] = self.last[key] = self._before(key)
        return self.last[key]
