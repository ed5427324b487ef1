"""A limit on what bringing changes in may cost: beyond it, the view is computed anew.

The work is done in one thread and asks `check_time` between its steps; a second thread ends the
statement or job that is running when the time is over, however long that would have taken.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

from viewkeep.errors import ViewkeepError

AGAIN = 0.25
"""Seconds after which work that was started in the meantime is ended, too."""


class OverBudgetError(ViewkeepError):
    """Work that takes longer than it may."""


class Watch:
    """The seconds that some work may take, from now on."""

    def __init__(self, budget: float) -> None:
        self.budget, self._start = budget, perf_counter()

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return perf_counter() - self._start > self.budget

    def check(self) -> None:
        """Raise once the time is over."""
        if self.is_over:
            raise OverBudgetError(f"it took more than {self.budget:.1f} s")


_CURRENT: ContextVar[Watch | None] = ContextVar("viewkeep watch", default=None)


def check_time() -> None:
    """Raise `OverBudgetError` if the work that this is a part of takes too long."""
    watch = _CURRENT.get()
    if watch is not None:
        watch.check()


@contextmanager
def watch_budget(budget: float | None) -> Iterator[None]:
    """Work that may take so many seconds, and asks by itself whether they are over."""
    token = _CURRENT.set(None if budget is None else Watch(budget))
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def interrupt_after(budget: float | None, interrupt: Callable[[], None]) -> Iterator[None]:
    """Work that may take so many seconds, ended by `interrupt`; without a budget, any number."""
    if budget is None:
        yield
        return
    watch, ended = Watch(budget), threading.Event()

    def end_work() -> None:
        ended.wait(budget)
        while not ended.is_set():
            interrupt()
            ended.wait(AGAIN)

    token = _CURRENT.set(watch)
    thread = threading.Thread(target=end_work, daemon=True)
    thread.start()
    try:
        yield
    except OverBudgetError:
        raise
    except Exception:
        watch.check()  # work that was interrupted says so in the words of its engine
        raise
    finally:
        ended.set()
        thread.join()
        _CURRENT.reset(token)
