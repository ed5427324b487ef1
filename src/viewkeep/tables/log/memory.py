"""Logs that were read are remembered within one piece of work: a refresh opens each table once.

Outside of such a block every call reads the log. Inside, the newest version of a table is the one
that was seen first, as a refresh pins it; a commit of one's own makes the table be read again.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from viewkeep.tables.log.entries import RECENT as LOOKED_AT
from viewkeep.tables.log.snapshots import Snapshot

Key = tuple[str, str, int | tuple[Any, ...] | None]
"""What was read, of which table, at which version or between which two, perhaps of some columns;
None is the newest."""


class LogMemory:
    """What was read of logs, by table."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[Key, Any]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._tables.get(key[1], {})

    def __getitem__(self, key: Key) -> Any:
        return self._tables[key[1]][key]

    def __setitem__(self, key: Key, value: Any) -> None:
        self._tables.setdefault(key[1], {})[key] = value

    def forget(self, uri: str) -> None:
        """Read a table again."""
        self._tables.pop(uri, None)


_CURRENT: ContextVar[LogMemory | None] = ContextVar("viewkeep logs", default=None)


@contextmanager
def remembered_logs() -> Iterator[None]:
    """A block that opens each table once; inside of another one it starts anew."""
    token = _CURRENT.set(LogMemory())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def forget_logs(uris: Iterable[str]) -> None:
    """Read tables again, where logs are remembered."""
    memory = _CURRENT.get()
    if memory is not None:
        for uri in uris:
            memory.forget(uri)


KEPT_ENTRIES = 200
"""So many entries of a log are remembered by their sizes and times."""


class RecentSnapshots:
    """Versions that this process has read, each with the fingerprint of its log entry: a version
    whose entry is still the same need not be read again, whoever has written since."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._snapshots: OrderedDict[tuple[str, int], tuple[str, Snapshot]] = OrderedDict()
        self._newest: dict[str, int] = {}
        self._entries: dict[str, dict[int, tuple[int, int]]] = {}

    def get(self, uri: str, version: int, fingerprint: str) -> Snapshot | None:
        """A version, if its entry is the one that was read."""
        entry = self._snapshots.get((uri, version))
        return entry[1] if entry is not None and entry[0] == fingerprint else None

    def add(self, snapshot: Snapshot, fingerprint: str) -> None:
        """A version that was read; the oldest ones are forgotten."""
        with self._lock:
            self._snapshots[snapshot.uri, snapshot.version] = fingerprint, snapshot
            self._newest[snapshot.uri] = snapshot.version
            while len(self._snapshots) > self._most:
                (uri, version), _ = self._snapshots.popitem(last=False)
                if self._newest.get(uri) == version:
                    del self._newest[uri]
                    self._entries.pop(uri, None)

    def see(self, uri: str, entries: Mapping[int, tuple[int, int]]) -> None:
        """Remember entries of a log by their sizes and times."""
        with self._lock:
            last = max(entries, default=0)
            marks = {**self._entries.get(uri, {}), **entries}
            self._entries[uri] = {n: each for n, each in marks.items() if n > last - KEPT_ENTRIES}

    def see_log(self, uri: str, entries: Mapping[int, tuple[int, int]]) -> None:
        """Remember the last entries of a log that was read: those before may have been cleaned
        up since."""
        with self._lock:
            marks, first = {**self._entries.get(uri, {}), **entries}, min(entries, default=0)
            self._entries[uri] = {n: each for n, each in marks.items() if n >= first}

    def has_seen(self, uri: str, entries: Mapping[int, tuple[int, int]]) -> bool:
        """Whether all these last entries are as they were seen, and none before them has gone."""
        marks = self._entries.get(uri, {})
        is_same = all(marks.get(version) == mark for version, mark in entries.items())
        is_whole = len(entries) >= LOOKED_AT or min(entries, default=0) - 1 not in marks
        return bool(entries) and is_same and is_whole

    def last_version(self, uri: str) -> int | None:
        """The version of a table that was read last."""
        return self._newest.get(uri)


RECENT = RecentSnapshots(1000)


def log_memory() -> LogMemory | None:
    """What the block that runs remembers; None outside of one."""
    return _CURRENT.get()
