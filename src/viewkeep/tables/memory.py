"""Logs that were read are remembered within one piece of work: a refresh opens each table once.

Outside of such a block every call reads the log. Inside, the newest version of a table is the one
that was seen first, as a refresh pins it; a commit of one's own makes the table be read again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Key = tuple[str, str, int | None]
"""What was read, of which table, at which version; None is the newest."""


class LogMemory:
    """What was read of logs, by table."""

    def __init__(self) -> None:
        self._values: dict[Key, Any] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def __getitem__(self, key: Key) -> Any:
        return self._values[key]

    def __setitem__(self, key: Key, value: Any) -> None:
        self._values[key] = value

    def forget(self, uri: str) -> None:
        """Read a table again."""
        self._values = {key: value for key, value in self._values.items() if key[1] != uri}


_CURRENT: ContextVar[LogMemory | None] = ContextVar("viewkeep logs", default=None)


@contextmanager
def remembered_logs() -> Iterator[None]:
    """A block that opens each table once; inside of another one it starts anew."""
    token = _CURRENT.set(LogMemory())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def log_memory() -> LogMemory | None:
    """What the block that runs remembers; None outside of one."""
    return _CURRENT.get()
