"""One process of several does a work: the others wait until it is gone."""

import os
import time
from contextlib import suppress
from uuid import uuid4

from viewkeep.lake.marks import host_name, is_dead
from viewkeep.tables.failures import StorageError
from viewkeep.tables.files.parquet import ParquetFolder

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

FOLDER = "_viewkeep/leases"
TERM = 30.0
"""Seconds without a word of its holder after which a lease in an object store is free."""
RENEWALS = 3
"""So often a holder gives word within a term."""


class Lease:
    """The right to do a work in a lake in a local folder; it ends with the process that has it.

    Where files cannot be locked, everyone has it: commits that meet are then settled one by one.
    """

    def __init__(self, lake: str, work: str) -> None:
        self._path = f"{lake}/{FOLDER}/{work}"
        self._file: int | None = None

    def is_held(self) -> bool:
        """Whether this process has it now, or can take it."""
        if fcntl is None or self._file is not None:
            return True
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except OSError:
            os.close(file)
            return True
        self._file = file
        return True

    def release(self) -> None:
        """Give it back."""
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None


class StoreLease:
    """The same in an object store, which has no locks: an object that its holder writes anew every
    few seconds.

    Whoever has seen the same text for a term takes the lease, by a clock of its own: those of
    machines may differ. Two that take it in the same moment may both have it for a while, as may a
    holder whose work takes longer than a term: commits that meet are settled one by one.
    """

    def __init__(self, folder: ParquetFolder, work: str) -> None:
        self._folder, self._work = folder, work
        self._holder = f"{host_name()}-{os.getpid()}-{uuid4().hex}"
        self._words = 0
        self._is_held = False
        self._next_look = 0.0
        self._seen, self._seen_at = "", 0.0

    def is_held(self) -> bool:
        """Whether this process has it now, or can take it."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + TERM / RENEWALS
            try:
                self._is_held = self._is_taken(now)
            except StorageError:
                return True
        return self._is_held

    def _is_taken(self, now: float) -> bool:
        """Look at the lease, and take it where it is free or one's own."""
        text = self._text()
        holder = text.partition("\n")[0]
        if text != self._seen:
            self._seen, self._seen_at = text, now
        is_free = not holder or is_dead(holder) or now - self._seen_at >= TERM
        if holder != self._holder and not is_free:
            return False
        self._words += 1
        self._folder.write_text(self._work, f"{self._holder}\n{self._words}")
        return self._text().partition("\n")[0] == self._holder

    def _text(self) -> str:
        return self._folder.read_text(self._work) if self._work in self._folder.names() else ""

    def release(self) -> None:
        """Give it back."""
        with suppress(StorageError):
            if self._text().partition("\n")[0] == self._holder:
                self._folder.remove_file(self._work)
        self._is_held, self._next_look = False, 0.0
