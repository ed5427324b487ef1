"""Commits of views that wait for the disk while the next views are computed.

A commit is a few waits for the disk one after the other, and hardly any work. Those of views that
do not read each other happen side by side; of one view, each step waits for the one before it.
"""

import os
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import lru_cache
from types import TracebackType

from viewkeep.lake import RefreshReport
from viewkeep.refresh.run import CommitView

THREADS = 8
"""The most commits at the same time."""


class RunningCommits:
    """Commits that run in the background; the end of the block waits for all of them."""

    def __init__(self) -> None:
        self._running: dict[str, Future[RefreshReport]] = {}
        self._busy: list[Future[RefreshReport]] = []

    def __enter__(self) -> "RunningCommits":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        wait(self._running.values())

    def start(self, view: str, commit: CommitView) -> None:
        """Start a commit in the background."""
        self._busy = [each for each in self._busy if not each.done()]
        if len(self._busy) >= THREADS:
            wait(self._busy, return_when=FIRST_COMPLETED)
        # In a copy of the context, logs are remembered as where the commit was made ready.
        self._running[view] = _commit_threads(os.getpid()).submit(copy_context().run, commit)
        self._busy.append(self._running[view])

    def results(self, views: Iterable[str]) -> dict[str, RefreshReport]:
        """Wait for the commits of some views; their reports, or the first error."""
        return {name: self._running.pop(name).result() for name in views if name in self._running}


@lru_cache(1)
def _commit_threads(process: int) -> ThreadPoolExecutor:
    """Threads of this process: a fork has none of them."""
    return ThreadPoolExecutor(THREADS, f"viewkeep commit {process}")
