"""A table in memory whose versions can be told apart, and the difference of two states."""

from collections.abc import Iterable, Mapping
from typing import Any

from viewkeep.changes.batch import ChangeBatch, compose_batches
from viewkeep.changes.log import Delete, Insert, Modification, Update, net
from viewkeep.changes.rows import ChangeError, Key, Row, RowFormat
from viewkeep.query.tables import Table


class MemoryTable:
    """A table in memory: its newest rows, and the batches that lead back to older versions.

    >>> parts = MemoryTable("parts", Table({"pid": "int", "price": "int"}, key=["pid"]), [(1, 5)])
    >>> parts.apply(inserts=[(2, 7)], updates={(1,): {"price": 6}})
    1
    >>> parts.rows(0), parts.rows(1)
    ({(1,): (1, 5)}, {(1,): (1, 6), (2,): (2, 7)})
    """

    def __init__(
        self, name: str, table: Table, rows: Iterable[Row | Mapping[str, Any]] = ()
    ) -> None:
        self.name, self.table = name, table
        self._rows = RowFormat(name, table).keyed(rows)
        self._oldest = 0
        self._batches: list[ChangeBatch] = []

    @property
    def versions(self) -> range:
        """The versions that can still be read, newest last."""
        return range(self._oldest, self.version + 1)

    @property
    def version(self) -> int:
        """The newest version."""
        return self._oldest + len(self._batches)

    def get(self, key: Key) -> Row | None:
        """The newest row of a key, or None."""
        return self._rows.get(key)

    def apply(
        self,
        inserts: Iterable[Row | Mapping[str, Any]] = (),
        updates: Mapping[Key, Mapping[str, Any]] | None = None,
        deletes: Iterable[Key] = (),
    ) -> int:
        """Make one new version: deletes first, then updates, then inserts; or none, on error."""
        return self.play(
            [
                *map(Delete, deletes),
                *(Update(key, values) for key, values in (updates or {}).items()),
                *map(Insert, inserts),
            ]
        )

    def play(self, log: Iterable[Modification]) -> int:
        """Make one new version by a log, in its order; or none, on error."""
        batch = net(self.name, self.table, self._rows, log)
        batch.apply_to(self._rows)
        self._batches.append(batch)
        return self.version

    def changes(self, since: int, until: int) -> ChangeBatch:
        """The net changes from one version to a later one."""
        self._check(since)
        self._check(until)
        if since > until:
            raise ChangeError(
                f'table "{self.name}": version {since} is later than {until}; '
                "take the inverse of the changes the other way round"
            )
        batches = self._batches[since - self._oldest : until - self._oldest]
        return compose_batches(self.name, self.table, batches)

    def rows(self, version: int) -> dict[Key, Row]:
        """The rows at a version, by key, as a dict of their own."""
        return self.changes(version, self.version).inverse().apply(self._rows)

    def forget(self, before: int) -> None:
        """Let go of the versions before this one, once no view needs them."""
        self._check(before)
        del self._batches[: before - self._oldest]
        self._oldest = before

    def _check(self, version: int) -> None:
        if version not in self.versions:
            raise ChangeError(
                f'table "{self.name}" has no version {version}; '
                f"there are {self._oldest} to {self.version}"
            )


def difference(
    name: str, table: Table, old_rows: Iterable[Row], new_rows: Iterable[Row]
) -> ChangeBatch:
    """The changes, by key, that lead from some rows to others."""
    format_ = RowFormat(name, table)
    old, new = format_.keyed(old_rows), format_.keyed(new_rows)
    steps = ((old.get(key), new.get(key)) for key in {**old, **new})
    return ChangeBatch.of_steps(name, table, steps)
