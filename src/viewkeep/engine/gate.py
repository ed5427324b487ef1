"""One thread at a time in a maintainer; what subscribers must hear is told outside."""

from collections.abc import Callable
from threading import RLock
from types import TracebackType
from typing import Any


class Gate:
    """A lock that a thread may enter again; `leave` is called whenever it has been left.

    `update` in machine code holds the interpreter's own lock and takes no other. It is bound to
    `link`, whose first item is the address of the state: while the gate is entered that is 0, and
    such updates go to Python, where they wait.
    """

    __slots__ = ("_depth", "_leave", "address", "link", "lock")

    def __init__(self, leave: Callable[[], None]) -> None:
        self.lock = RLock()
        """The lock alone, for changes that only the reference engine sees."""
        self.link: list[Any] = [0]
        self.address = 0
        self._depth, self._leave = 0, leave

    def __enter__(self) -> None:
        self.lock.acquire()
        self._depth += 1
        self.link[0] = 0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1
        outermost = not self._depth
        if outermost:
            self.link[0] = self.address
        self.lock.release()
        if outermost:
            self._leave()
