"""What one refresh of a view did: returned to the caller, and kept in the view's commit."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from time import perf_counter, time
from typing import Any
from uuid import uuid4

from viewkeep.display import facts_html
from viewkeep.lake.views.state import Pins


@dataclass(frozen=True)
class RefreshReport:
    """One refresh of one view.

    `strategy` is what was done: `id` and `tuple` bring changes in, `recompute` computes the view
    anew, `none` finds nothing to do. The first version of a definition is always computed from
    scratch, and its `strategy` is the one by which it will be kept; `from_scratch` tells such
    versions, and those by `recompute`, from those that brought changes in. `changes` counts the
    changed rows of each input, `rows_changed` those of the view: inserted, deleted and updated.
    `accesses` are keys looked up, rows found by them and rows written, None where that stayed in
    Spark. `before` and `after` are the versions of the inputs. `version` is the version of the view
    that readers see now.
    `backend` is the engine that did it. `experience` is what this refresh and those before it have
    cost (`Costs`). `expected` are the seconds that bringing the changes in (`incremental`) and
    computing the view anew (`recompute`) were estimated to take, where that was worth an estimate.
    """

    view: str
    strategy: str
    reason: str = ""
    changes: Mapping[str, int] = field(default_factory=dict)
    rows_changed: int = 0
    rows: int = 0
    accesses: int | None = field(default=None, repr=False)
    jobs: int = field(default=0, repr=False)
    seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict, repr=False)
    before: Pins = field(default_factory=dict, repr=False)
    after: Pins = field(default_factory=dict, repr=False)
    version: int = 0
    refresh: str = field(default="", repr=False)
    at: int = field(default=0, repr=False)
    error: str = ""
    from_scratch: bool = field(default=False, repr=False)
    experience: Mapping[str, Any] = field(default_factory=dict, repr=False)
    backend: str = ""
    expected: Mapping[str, float] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.view}: {self.summary}"

    def _repr_html_(self) -> str:
        expected = self.expected_seconds
        counts = ", ".join(f"{count:,} of {name}" for name, count in self.changes.items())
        return facts_html(
            f"Refresh of {self.view}",
            [
                ("error", self.error),
                ("strategy", self.strategy),
                ("changes", counts),
                ("rows changed", "all" if self.from_scratch else f"{self.rows_changed:,}"),
                ("rows", f"{self.rows:,}"),
                ("seconds", f"{self.seconds:.3f}"),
                ("expected", "" if expected is None else f"{expected:.3f}"),
                ("version", self.version),
                ("engine", self.backend),
                ("why", self.reason),
            ],
        )

    @property
    def summary(self) -> str:
        """What was done, for how many changes, in what time, and why."""
        if self.error:
            return f"failed: {self.error}"
        if not self.changed:
            return f"{self.rows:,} rows; nothing to do"
        counts = [f"{count:,} of {name}" for name, count in self.changes.items()]
        parts = [
            f"{self.rows_changed:,} of {self.rows:,} rows changed by {self.strategy}",
            f"changes: {', '.join(counts)}" if counts else "",
            f"{self.seconds:.3f} s",
            self.reason,
        ]
        return "; ".join(part for part in parts if part)

    @property
    def expected_seconds(self) -> float | None:
        """What was estimated for the way that was taken; None where nothing was."""
        return self.expected.get("recompute" if self.from_scratch else "incremental")

    @property
    def changed(self) -> bool:
        """Whether the view has a new version."""
        return self.strategy != "none" and not self.error

    def notes(self) -> dict[str, Any]:
        """The report as JSON values."""
        values = vars(self).items()
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in values}

    @staticmethod
    def from_notes(notes: Mapping[str, Any], version: int, at: int) -> "RefreshReport":
        """The report of a commit, which tells its own version and time (milliseconds); what newer
        releases note besides is left out."""
        names = {each.name for each in fields(RefreshReport)}
        fields_of_report = {name: value for name, value in notes.items() if name in names}
        return replace(RefreshReport(**fields_of_report), version=version, at=at)


class Timer:
    """Seconds by phase."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self.phases: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of a block under a name."""
        start = perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + perf_counter() - start

    @property
    def seconds(self) -> float:
        """All seconds so far."""
        return perf_counter() - self._start

    def stamp(self, report: RefreshReport) -> RefreshReport:
        """The report with the seconds so far, an ID of its own, and the time of day."""
        return replace(
            report,
            seconds=self.seconds,
            phases=dict(self.phases),
            refresh=str(uuid4()),
            at=int(time() * 1000),
        )
