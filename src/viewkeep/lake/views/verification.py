"""What a comparison of a view with its query found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewkeep.display import facts_html, rows_html


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

    def _repr_html_(self) -> str:
        rows = [("missing", *row) for row in self.missing]
        rows += [("too many", *row) for row in self.extra]
        differences = rows_html(("", *self.columns), rows) if rows else ""
        return facts_html(str(self), [("seconds", f"{self.seconds:.3f}")]) + differences

    def __str__(self) -> str:
        problems = [
            f"{self.missing_rows:,} rows missing" if self.missing_rows else "",
            f"{self.extra_rows:,} rows too many" if self.extra_rows else "",
        ]
        result = ", ".join(each for each in problems if each) or "as its query gives"
        return f"{self.view}: {self.rows:,} rows, {result}{'' if self.fresh else '; stale'}"

    @property
    def ok(self) -> bool:
        """Whether the view is what its query gives at the versions that it reflects."""
        return not self.missing_rows and not self.extra_rows

    @property
    def fresh(self) -> bool:
        """Whether these are the newest versions."""
        return not self.behind
