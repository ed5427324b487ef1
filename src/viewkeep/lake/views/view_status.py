"""How fresh the views of a lake are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewkeep.lake.views.reports import RefreshReport


@dataclass(frozen=True)
class ViewStatus:
    """A view now: its rows, what it has not seen yet, and what its last refreshes took.

    `behind` counts, for each table below it, the changed rows that it does not reflect; None where
    the table's writer did not count them. `waiting` are the seconds since the oldest of them.
    `speed_up` is the last refresh by recomputation over the last incremental one, in seconds; None
    before there was one of each. The first computation does not count: it is slower than any other.
    """

    name: str
    rows: int
    strategy: str
    policy: str
    behind: Mapping[str, int | None] = field(default_factory=dict)
    waiting: float = 0.0
    last: RefreshReport | None = None
    speed_up: float | None = None
    problem: str = ""

    @property
    def is_fresh(self) -> bool:
        """Whether it reflects all that its tables hold."""
        return not self.behind and not self.problem


@dataclass(frozen=True)
class Verification:
    """A view compared with its query, computed anew at the versions that the view reflects.

    `missing` rows should be in the view, `extra` ones should not; only the first ones are listed.
    `behind` counts, as in `ViewStatus`, the changes that the view does not reflect yet: a view may
    be right (`ok`) and stale (not `fresh`) at the same time.
    """

    view: str
    rows: int
    missing_rows: int
    extra_rows: int
    missing: Sequence[tuple[Any, ...]] = ()
    extra: Sequence[tuple[Any, ...]] = ()
    columns: Sequence[str] = ()
    seconds: float = 0.0
    behind: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the view is what its query gives at the versions that it reflects."""
        return not self.missing_rows and not self.extra_rows

    @property
    def fresh(self) -> bool:
        """Whether these are the newest versions."""
        return not self.behind


def speed_up(history: Sequence[RefreshReport]) -> float | None:
    """The seconds of the last refresh that recomputed over those of the last that brought changes.

    Both found a lake that had been read before; the first computation of a view did not.
    """
    refreshes = [each for each in history if each.before]
    anew = next((r.seconds for r in refreshes if r.strategy == "recompute"), None)
    kept = next((r.seconds for r in refreshes if not r.from_scratch and r.rows_changed), None)
    return anew / kept if anew and kept else None
