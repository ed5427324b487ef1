"""Captures that a watcher looks at: what changed in databases is taken in, and told."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from viewkeep.errors import ViewkeepError, problem_of
from viewkeep.lake.intake import CaptureReport
from viewkeep.lake.retry import RetryPause


class Capture(Protocol):
    """Tables of a database that are followed."""

    def catch_up(self) -> list[CaptureReport]:
        """Take in what changed until now."""


@dataclass
class CaptureWatch:
    """A capture that is looked at again and again; a failure is told, and tried again later."""

    capture: Capture
    _pause: RetryPause = field(default_factory=RetryPause)

    def look(self, tell: Callable[[CaptureReport], None]) -> None:
        """Take in what changed, and tell of the tables in which anything did."""
        if self._pause.left:
            return
        try:
            reports = self.capture.catch_up()
        except ViewkeepError as error:
            self._pause.extend()
            tell(CaptureReport("", -1, error=problem_of(error)))
            return
        self._pause = RetryPause()
        for each in reports:
            if each.changed:
                tell(each)


def watch_captures(captures: Any) -> list[CaptureWatch]:
    """Watches on one capture or several, or on none."""
    several = captures if isinstance(captures, Iterable) else [captures]
    return [CaptureWatch(each) for each in several if each is not None]
