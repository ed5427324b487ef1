"""A table of Iceberg where a Delta table is expected: read like one, and never written."""

from collections.abc import Mapping
from typing import Any

from viewkeep.query.types.data_types import Field
from viewkeep.tables.failures import MissingEntryError, StorageError
from viewkeep.tables.iceberg.history import History, read_history
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.entries import Commit
from viewkeep.tables.log.snapshots import Snapshot

REMEMBERED = 16
_SNAPSHOTS: dict[tuple[str, str, int], Snapshot] = {}
"""Versions by place, table and number of the snapshot: they never change."""


class IcebergTable(LakeTable):
    """A table at a place as `read_history` takes it."""

    def __init__(self, uri: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__(uri, options)
        self.folder = "/"

    def exists(self) -> bool:
        """Whether it can be read."""
        try:
            self._history()
        except StorageError:
            return False
        return True

    def is_writable(self) -> bool:
        """Nothing is committed to it here."""
        return False

    def version(self) -> int:
        """The newest version."""
        return self._history().newest

    def identity(self, version: int) -> str:
        """What tells a table from one that was made anew under its name."""
        return str(self._history().table.metadata.table_uuid)

    def fields(self, version: int) -> tuple[Field, ...]:
        """The columns of a version."""
        return self.snapshot(version).fields

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version, or the newest one; refused where it cannot be read correctly."""
        history = self._history()
        at = history.newest if version is None else version
        made = history.at(at)
        key = (self.uri, self.identity(at), 0 if made is None else made.snapshot_id)
        if made is None:
            return history.snapshot(at)
        if key not in _SNAPSHOTS or _SNAPSHOTS[key].version != at:
            while len(_SNAPSHOTS) >= REMEMBERED:
                _SNAPSHOTS.pop(next(iter(_SNAPSHOTS)), None)
            _SNAPSHOTS[key] = history.snapshot(at)
        return _SNAPSHOTS[key]

    def log(self, after: int, until: int | None = None) -> list[Commit]:
        """The commits after a version up to another one, newest first."""
        history = self._history()
        newest = history.newest if until is None else until
        return [history.commit(version) for version in range(newest, after, -1)]

    def has_change_feed(self, since: int, until: int) -> bool:
        """Iceberg has none: the files of two versions are compared."""
        return False

    def fingerprint(self, version: int) -> str:
        """The snapshot of a version, which one on another branch of history is not."""
        made = self._history().at(version)
        return f"iceberg:{None if made is None else made.snapshot_id}"

    def has_fingerprint(self, version: int, expected: str) -> bool | None:
        """Whether a version is the one that was seen; None if its snapshot has expired."""
        try:
            return self.fingerprint(version) == expected
        except MissingEntryError:
            return None

    def _entry_text(self, version: int) -> bytes | None:
        return None

    def _history(self) -> History:
        history: Any = self._read_once("history", None, lambda: read_history(self.uri))
        assert isinstance(history, History)
        return history
