"""A limit on what bringing changes in may cost: beyond it, the view is computed anew.

The work is done in one thread and asks `check_time` between its steps; a second thread ends the
statements and jobs that are running when the time is over, however long they would have taken.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

from viewkeep.errors import ViewkeepError

AGAIN = 0.25
"""Seconds after which work that was started in the meantime is ended, too."""

Interrupt = Callable[[], object]


class OverBudgetError(ViewkeepError):
    """Work that takes longer than it may."""


class Watch:
    """The seconds that some work may take, from now on, and what ends the parts that are running;
    its thread is started with the first of these."""

    def __init__(self, budget: float) -> None:
        self.budget, self._start = budget, perf_counter()
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._interrupts: list[Interrupt] = []
        self._thread: threading.Thread | None = None

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return perf_counter() - self._start > self.budget

    def check(self) -> None:
        """Raise once the time is over."""
        if self.is_over:
            raise OverBudgetError(f"it took more than {self.budget:.1f} s")

    def add(self, interrupt: Interrupt) -> None:
        """Call it when the time is over, until it is removed."""
        with self._lock:
            self._interrupts.append(interrupt)
            if self._thread is None:
                self._thread = threading.Thread(target=self._end_work, daemon=True)
                self._thread.start()

    def remove(self, interrupt: Interrupt) -> None:
        """The part that it would end is done."""
        with self._lock:
            self._interrupts.remove(interrupt)

    def close(self) -> None:
        """All is done."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _end_work(self) -> None:
        self._ended.wait(max(0.0, self._start + self.budget - perf_counter()))
        while not self._ended.is_set():
            with self._lock:
                for interrupt in self._interrupts:
                    interrupt()
            self._ended.wait(AGAIN)


_CURRENT: ContextVar[Watch | None] = ContextVar("viewkeep watch", default=None)


def check_time() -> None:
    """Raise `OverBudgetError` if the work that this is a part of takes too long."""
    watch = _CURRENT.get()
    if watch is not None:
        watch.check()


@contextmanager
def interruptible(interrupt: Interrupt) -> Iterator[None]:
    """A part of some work that `interrupt` ends when the time of the work is over."""
    watch = _CURRENT.get()
    if watch is None:
        yield
        return
    watch.add(interrupt)
    try:
        yield
    finally:
        watch.remove(interrupt)


@contextmanager
def within_budget(budget: float | None) -> Iterator[None]:
    """Work that may take so many seconds, or any number; it asks by itself whether they are over,
    and the parts that are `interruptible` are ended."""
    watch = None if budget is None else Watch(budget)
    token = _CURRENT.set(watch)
    try:
        yield
    except OverBudgetError:
        raise
    except Exception:
        if watch is not None:
            watch.check()  # work that was interrupted says so in the words of its engine
        raise
    finally:
        _CURRENT.reset(token)
        if watch is not None:
            watch.close()
