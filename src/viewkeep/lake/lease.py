"""One process of several does a work: the others wait until it is gone."""

import os
from contextlib import suppress

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

FOLDER = "_viewkeep/leases"


class Lease:
    """The right to do a work in a lake; it ends with the process that has it.

    Where files cannot be locked, everyone has it: commits that meet are then settled one by one.
    """

    def __init__(self, lake: str | None, work: str) -> None:
        self._path = None if lake is None else f"{lake}/{FOLDER}/{work}"
        self._file: int | None = None

    def is_held(self) -> bool:
        """Whether this process has it now, or can take it."""
        if self._path is None or fcntl is None or self._file is not None:
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
