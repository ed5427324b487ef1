"""Keeps views fresh until it is stopped: looks at the logs of tables, and refreshes what is due.

A view is due when the oldest change that it has not seen is nearly as old as its lag. Of several
watchers of a lake one works; when it dies, the next one takes over.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from viewkeep.errors import ViewkeepError, problem_of
from viewkeep.lake import RefreshReport
from viewkeep.lake.catalog import Catalog, ViewDefinition
from viewkeep.lake.lake import Lake
from viewkeep.lake.retry import RetryPause
from viewkeep.lake.transactions import Transactions
from viewkeep.lake.views.view import View
from viewkeep.query.clock import clock_of
from viewkeep.refresh.all_views import RefreshError
from viewkeep.refresh.lag import DOWNSTREAM, seconds_of
from viewkeep.tables.log.delta import LakeTable, StorageError

SHORTEST, LONGEST = 0.05, 1.0
"""Seconds between two looks at the logs."""
LONG_AGO = float("inf")

Plan = Callable[[ViewDefinition, Catalog], View]
Refresh = Callable[[Sequence[str]], list[RefreshReport]]
Tell = Callable[[Any], None]
"""Called with the report of each refresh, and of each intake of a source."""


def no_sources(tell: Tell) -> None:
    """A look at no sources."""


@dataclass
class ViewFigures:
    """What a watcher has done for a view, and how many seconds it is behind."""

    refreshes: int = 0
    errors: int = 0
    rows: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0
    lag: float = 0.0


@dataclass
class Watcher:
    """Watches one lake; `lag` is that of views without a lag of their own."""

    lake: Lake
    plan: Plan
    refresh: Refresh
    lag: float = 0.0
    figures: dict[str, ViewFigures] = field(default_factory=dict)
    look_at_sources: Callable[[Tell], object] = no_sources
    _pauses: dict[str, RetryPause] = field(default_factory=dict)
    _fresh_at: dict[str, tuple[ViewDefinition, Mapping[str, int]]] = field(default_factory=dict)

    def run(self, stop: Event, tell: Tell) -> None:
        """Work until the event is set; every refresh and every failure is told."""
        lease = self.lake.lease("watch")
        pause = RetryPause()
        try:
            while not stop.is_set():
                try:
                    if lease.is_held():
                        self._refresh_due_views(tell)
                    pause = RetryPause()
                except ViewkeepError as error:  # the lake itself: perhaps it comes back
                    tell(RefreshReport("", "none", error=problem_of(error)))
                    pause.extend()
                    stop.wait(pause.left)
                stop.wait(min(max(self.lag / 10, SHORTEST), LONGEST))
        finally:
            lease.release()

    def _refresh_due_views(self, tell: Tell) -> None:
        self.look_at_sources(tell)
        catalog = self.lake.catalog.read()
        due = self.due(catalog, time.time())
        if due:
            for report in self._refresh_reports(due):
                self._note_figures(report)
                if report.changed or report.error:
                    tell(report)

    def _refresh_reports(self, names: Sequence[str]) -> list[RefreshReport]:
        try:
            return self.refresh(names)
        except RefreshError as error:
            return error.reports

    def _note_figures(self, report: RefreshReport) -> None:
        figures = self.figures.setdefault(report.view, ViewFigures())
        if report.error:
            figures.errors += 1
            self._pauses.setdefault(report.view, RetryPause()).extend()
            return
        self._pauses.pop(report.view, None)
        if report.changed:
            figures.refreshes += 1
            figures.rows += report.rows_changed
            figures.seconds += report.seconds
            figures.last_seconds = report.seconds

    # --- what is due ----------------------------------------------------------------------------

    def due(self, catalog: Catalog, now: float) -> list[str]:
        """The views that have to be refreshed now, in their order."""
        versions = self._table_versions(catalog)
        return [each.name for each in catalog.order() if self._is_due(each, catalog, versions, now)]

    def _table_versions(self, catalog: Catalog) -> dict[str, int]:
        """The newest versions of base tables; one that cannot be read is for refreshes to tell."""
        transactions, versions = Transactions(self.lake), {}
        for each in catalog.tables.values():
            with suppress(StorageError):
                versions[each.name] = transactions.visible_version(each)
        return versions

    def _is_due(
        self, definition: ViewDefinition, catalog: Catalog, versions: Mapping[str, int], now: float
    ) -> bool:
        figures = self.figures.setdefault(definition.name, ViewFigures())
        seconds_behind = self._seconds_behind(definition, catalog, versions, now)
        figures.lag = 0.0 if seconds_behind is None else min(seconds_behind, now)
        lag = self._lag_seconds(definition)
        pause = self._pauses.get(definition.name)
        if seconds_behind is None or lag is None or (pause is not None and pause.left):
            return False
        return seconds_behind >= lag - min(2 * figures.last_seconds + SHORTEST, lag / 2)

    def _lag_seconds(self, definition: ViewDefinition) -> float | None:
        if definition.lag == DOWNSTREAM:
            return None
        return seconds_of(definition.lag) if definition.lag else self.lag

    def _seconds_behind(
        self, definition: ViewDefinition, catalog: Catalog, versions: Mapping[str, int], now: float
    ) -> float | None:
        """For how long changes have waited that a view has not seen; None if there are none."""
        if self._fresh_at.get(definition.name) == (definition, versions):
            return None
        try:
            view = self.plan(definition, catalog)
            stored = view.stored()
        except ViewkeepError:  # a refresh tells what is wrong
            return LONG_AGO
        if stored.state.build != definition.build:
            return LONG_AGO
        tables = stored.state.tables
        unseen = {n: seen for n, seen in tables.items() if versions.get(n, seen) != seen}
        if unseen:
            places = {n: self.lake.at(catalog.table(n).location) for n in unseen}
            return max(now - _commit_time(places[n], seen + 1) for n, seen in unseen.items())
        if view.clock_columns:
            is_moved = view.at(clock_of(None)).has_moved_clock(stored.state)
            return now - stored.report.at / 1000 if is_moved else None
        self._fresh_at[definition.name] = definition, dict(versions)
        return None


def _commit_time(table: LakeTable, version: int) -> float:
    """The time of a commit in seconds; long ago if its log entry is gone."""
    try:
        [commit] = table.log(version - 1, version)
    except StorageError:
        return -LONG_AGO
    return commit.timestamp / 1000
