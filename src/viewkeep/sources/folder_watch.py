"""Folders that a watcher looks at: what comes into them is taken in, and told."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewkeep.errors import ViewkeepError, problem_of
from viewkeep.lake.intake import IngestReport
from viewkeep.lake.lake import Lake
from viewkeep.lake.retry import RetryPause
from viewkeep.sources.folder import FoundFile, list_files
from viewkeep.sources.ingest import FolderSource, open_folder

Listing = Sequence[FoundFile]
LIMIT = 1.0
"""Seconds after which a folder that fills all the time lets other sources, and views, go on."""
FolderPaths = Mapping[str, str | os.PathLike[str]]
"""Folders by the tables that they change."""


@dataclass
class _State:
    """What a folder held at the last look, and when one that failed is tried again."""

    listing: Listing | None = None
    waiting: tuple[Any, ...] = ()
    pause: RetryPause = field(default_factory=RetryPause)


def watch_folders(lake: Lake, folders: Mapping[str, FolderPaths]) -> "FolderWatch":
    """A watch on folders by table, for each kind of records."""
    return FolderWatch(
        [
            open_folder(lake, name, folder, records)
            for records, by_table in folders.items()
            for name, folder in by_table.items()
        ]
    )


@dataclass
class FolderWatch:
    """Sources that are looked at in turn; one that fails does not stop the others."""

    sources: Sequence[FolderSource]
    _states: dict[tuple[str, str], _State] = field(default_factory=dict)

    def look(self, tell: Callable[[IngestReport], None]) -> None:
        """Take in what is new in the folders, and tell it; what waits is told once."""
        for each in self.sources:
            key = each.definition.name, each.folder
            state = self._states.setdefault(key, _State())
            if not state.pause.left:
                self._look_at_source(each, state, tell)

    def _look_at_source(
        self, source: FolderSource, state: _State, tell: Callable[[IngestReport], None]
    ) -> None:
        try:
            listing, _ = list_files(source.folder)
            if listing == state.listing:
                return
            report = source.ingest(LIMIT)
        except ViewkeepError as error:
            state.pause.extend()
            tell(IngestReport(source.definition.name, -1, error=problem_of(error)))
            return
        state.listing, state.pause = None if report.has_more else listing, RetryPause()
        if report.changed or report.waiting != state.waiting:
            tell(report)
        state.waiting = report.waiting
