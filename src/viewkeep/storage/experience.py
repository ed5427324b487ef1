"""What refreshes of a view have cost, and what the next one may cost.

Computing a view anew is never wrong, and its cost is known: the view was built. Bringing changes in
is tried for a share of that cost. Where that was not enough, the next refreshes with changes of the
same tables do not try, first one, then two, four and so on: however badly a script fits the data,
all refreshes together take little more than recomputation would.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

SHARE = 0.4
"""The part of the cost of recomputation that trying to bring changes in may take."""
LEAST = 0.5
"""Seconds that may always be tried: as much as a few Spark jobs take."""
LONGEST_PAUSE = 32
"""The most refreshes in a row that do not try."""


@dataclass(frozen=True)
class Pause:
    """After some tries in vain, so many refreshes are left that do not try."""

    tries: int
    left: int


@dataclass(frozen=True)
class Experience:
    """The seconds of a recomputation, and pauses by the tables whose changes were too costly.

    >>> known = Experience().after_build(10.0)
    >>> known.budget
    4.0
    >>> [known.after_giving_up(["t"]).is_paused(["t"]), known.is_paused(["t"])]
    [True, False]
    """

    seconds: float | None = None
    pauses: Mapping[str, Pause] = field(default_factory=dict)

    @property
    def budget(self) -> float | None:
        """The seconds that bringing changes in may take; None where nothing is known."""
        return None if self.seconds is None else max(LEAST, SHARE * self.seconds)

    def is_paused(self, tables: Iterable[str]) -> bool:
        """Whether a refresh with changes of these tables should not try to bring them in."""
        pause = self.pauses.get(_key(tables))
        return pause is not None and pause.left > 0

    def after_build(self, seconds: float) -> "Experience":
        """The view was computed anew. The first time is the slowest, so less counts at once."""
        old = self.seconds
        return replace(self, seconds=seconds if old is None else min(seconds, (old + seconds) / 2))

    def after_giving_up(self, tables: Iterable[str]) -> "Experience":
        """Bringing changes in was tried, and took too long."""
        old = self.pauses.get(_key(tables), Pause(0, 0))
        pause = Pause(old.tries + 1, min(1 << old.tries, LONGEST_PAUSE))
        return replace(self, pauses={**self.pauses, _key(tables): pause})

    def after_pausing(self, tables: Iterable[str]) -> "Experience":
        """The changes were not tried to be brought in."""
        old = self.pauses.get(_key(tables), Pause(0, 1))
        return replace(self, pauses={**self.pauses, _key(tables): replace(old, left=old.left - 1)})

    def after_success(self, tables: Iterable[str]) -> "Experience":
        """The changes were brought in."""
        rest = {name: pause for name, pause in self.pauses.items() if name != _key(tables)}
        return replace(self, pauses=rest)

    def notes(self) -> dict[str, Any]:
        """The experience as JSON values."""
        pauses = {name: [pause.tries, pause.left] for name, pause in self.pauses.items()}
        return {"seconds": self.seconds, "pauses": pauses}

    @staticmethod
    def from_notes(notes: Mapping[str, Any]) -> "Experience":
        """The experience of a report's notes, which older ones do not have."""
        pauses = {name: Pause(*pause) for name, pause in notes.get("pauses", {}).items()}
        return Experience(notes.get("seconds"), pauses)


def _key(tables: Iterable[str]) -> str:
    return "+".join(sorted(tables))
