"""What refreshes of a view have cost, and what the next one may cost.

Computing a view anew is never wrong, and its cost is known: the view was built. Bringing changes in
is tried for a share of that cost. Where that was not enough, the next refreshes with about as many
changes of the same tables do not try, first one, then two, four and so on: however badly a script
fits the data, all refreshes together take little more than recomputation would.

Caches that a recomputation has left out are written again once refreshes with them would have saved
what they cost: all refreshes together then take at most twice what was best in hindsight.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from math import sqrt
from typing import Any

SHARE = 0.3
"""The part of the cost of recomputation that trying to bring changes in may take."""
MOST = 1.5
"""The part that it may take where it is expected to take less than recomputation."""
LEAST = 0.5
"""Seconds that may be tried unless a recomputation takes less: as much as a few Spark jobs."""
BRIEF = 0.1
"""Seconds that may always be tried."""
LEAST_SMALL = 1.5
"""Seconds that may always be tried over few bytes: a cold start, or a slow disk, is no reason."""
LONG = 0.25
"""Seconds: over few bytes, less than this is not worth a thought."""
CACHES_SHARE = 0.5
"""The part of a recomputation that writing caches with it is taken to cost, as long as that is not
known."""
SMALL = 8 * 1024 * 1024
"""Bytes: what takes longer over fewer is the noise of the machine."""
LONGEST_PAUSE = 32
"""The most refreshes in a row that do not try."""
COLD_SECONDS = {"duckdb": 0.3, "spark": 6.0}
"""What the first build of a process may take longer: libraries are loaded, Java compiles."""
SPARK_SHARE = 0.5
"""The part of a view's first build on Spark that later ones take: plans are compiled in it."""
QUICK = 1.0
"""Seconds: a first build that took less tells less than an estimate."""
GROWTH = 1.1
"""The most times that a recomputation is believed to take what the one before it took."""
FAR = 3.0
"""So many times more is not the noise of the machine."""
FARTHEST = 4.0
"""The most times that a run may differ from its estimate and still correct the next one."""

FADING = 0.5
"""What is left of a factor, as its exponent, for ten times more or fewer changes: it may come from
what does not depend on their number."""

Changes = Mapping[str, int]
"""The number of changes by table."""
Factors = Mapping[int, float]
"""By the order of magnitude of the number of changes."""


@dataclass(frozen=True)
class Pause:
    """Refreshes left that do not try, after tries in vain, the last with so many changes."""

    tries: int
    left: int
    changes: int

    def concerns(self, changes: Changes) -> bool:
        """Whether these changes are about as many; half of them may cost half as much."""
        return 2 * sum(changes.values()) >= self.changes


@dataclass(frozen=True)
class Experience:
    """The seconds of a recomputation, and pauses by the tables whose changes were too costly.

    >>> known = Experience().after_build(10.0)
    >>> known.budget(size=10**9)
    3.0
    >>> [known.after_giving_up({"t": 9}).is_paused({"t": n}) for n in (5, 4)]
    [True, False]
    """

    seconds: float | None = None
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    size: int = 0
    """The bytes that the recomputation read."""
    caches: float = 0.0
    """The seconds that writing the caches took."""
    missed: float = 0.0
    """The seconds that caches would have saved since they were left out."""
    factors: Mapping[str, Factors] = field(default_factory=dict)
    """By changed tables and the way: the seconds of bringing changes in, in estimates of them."""

    def budget(self, size: int, estimate: float = 0.0) -> float | None:
        """The seconds that bringing changes in may take, over relations of so many bytes, where
        so many are expected; None where nothing is known."""
        if self.seconds is None:
            return None
        least = min(LEAST, max(BRIEF, self.seconds)) if size > SMALL else max(LEAST, LEAST_SMALL)
        return max(least, SHARE * self.seconds, min(2 * estimate, MOST * self.seconds))

    def recompute(self, size: int, estimate: float) -> float:
        """The seconds of a recomputation that reads so many bytes, estimated so far."""
        if self.seconds is None or not self.size:
            return estimate
        return self.seconds * max(1.0, size / self.size)

    @property
    def knows_recompute(self) -> bool:
        """Whether a recomputation needs no estimate."""
        return self.seconds is not None and bool(self.size)

    def corrected(self, changes: Changes, estimate: float, way: str = "") -> float:
        """The seconds of bringing changes in some way, estimated so far."""
        return estimate * self._correction_factor(changes, way)

    def _correction_factor(self, changes: Changes, way: str) -> float:
        """The factor of about as many changes of these tables, or what is left of the nearest."""
        factors, own = self.factors.get(_way_key(changes, way), {}), _magnitude(changes)
        if not factors:
            return 1.0
        nearest = min(factors, key=lambda each: (abs(each - own), -each))
        return float(factors[nearest] ** FADING ** abs(nearest - own))

    def has_tried(self, changes: Changes, way: str = "") -> bool:
        """Whether changes of these tables were brought in this way before."""
        return _way_key(changes, way) in self.factors

    def is_paused(self, changes: Changes) -> bool:
        """Whether a refresh should not try to bring these changes in."""
        pause = self._pause_of(changes)
        return pause is not None and pause.left > 0

    def has_given_up(self, changes: Changes) -> bool:
        """Whether bringing about as many changes in took too long the last time."""
        return self._pause_of(changes) is not None

    def after_build(self, seconds: float) -> "Experience":
        """The view was computed anew. Of later builds less than before counts at once, and more by
        and by: it may be the noise of the machine."""
        if self.seconds is None:
            return replace(self, seconds=seconds)
        most = GROWTH * self.seconds
        if seconds > FAR * self.seconds:
            most = sqrt(self.seconds * seconds)
        return replace(self, seconds=min(seconds, most))

    def after_writing(self, size: int, caches: float) -> "Experience":
        """The recomputation read so many bytes, and wrote the caches in so many seconds, or left
        them out in none."""
        if not caches:
            return replace(self, size=size)
        return replace(self, size=size, caches=caches, missed=0.0)

    def after_missing(self, seconds: float) -> "Experience":
        """Caches would have saved so many seconds."""
        return replace(self, missed=self.missed + max(0.0, seconds))

    @property
    def wants_caches(self) -> bool:
        """Whether caches would have saved what writing them costs, and more than the errors of
        estimates add up to."""
        return self.missed > max(BRIEF, self.caches or CACHES_SHARE * (self.seconds or 0.0))

    def after_measuring(
        self, changes: Changes, seconds: float, estimate: float, way: str = ""
    ) -> "Experience":
        """Bringing changes in took so many seconds, with an estimate that was not corrected."""
        if not estimate:
            return self
        factor = min(FARTHEST, max(1 / FARTHEST, seconds / estimate))
        old_factor = self.factors.get(_way_key(changes, way), {}).get(_magnitude(changes), factor)
        return self._with_factor(changes, (old_factor + factor) / 2, way)

    def after_avoiding(self, changes: Changes, way: str = "") -> "Experience":
        """Changes were not brought in since they looked dear: what made them so is forgotten by
        and by."""
        old_factor = self._correction_factor(changes, way)
        return self if old_factor <= 1.0 else self._with_factor(changes, old_factor**0.8, way)

    def _with_factor(self, changes: Changes, factor: float, way: str) -> "Experience":
        key = _way_key(changes, way)
        factors = {**self.factors.get(key, {}), _magnitude(changes): factor}
        return replace(self, factors={**self.factors, key: factors})

    def after_giving_up(self, changes: Changes) -> "Experience":
        """Bringing changes in was tried, and took too long."""
        tries = old.tries if (old := self._pause_of(changes)) else 0
        left = min(1 << tries, LONGEST_PAUSE)
        return self._with_pause(changes, Pause(tries + 1, left, sum(changes.values())))

    def after_pausing(self, changes: Changes) -> "Experience":
        """The changes were not tried to be brought in."""
        old = self._pause_of(changes)
        return self if old is None else self._with_pause(changes, replace(old, left=old.left - 1))

    def after_run(self, changes: Changes, seconds: float, size: int) -> "Experience":
        """The changes were brought in; where that took longer than computing anew (over few bytes:
        much longer), the next ones are not."""
        recompute_seconds = self.seconds
        if recompute_seconds is None:
            return self.after_success(changes)
        is_costly = seconds > (
            recompute_seconds if size > SMALL else max(2 * recompute_seconds, LONG)
        )
        return self.after_giving_up(changes) if is_costly else self.after_success(changes)

    def after_success(self, changes: Changes) -> "Experience":
        """The changes were brought in."""
        return self if self._pause_of(changes) is None else self._with_pause(changes, None)

    def _pause_of(self, changes: Changes) -> Pause | None:
        pause = self.pauses.get(_tables_key(changes))
        return pause if pause is not None and pause.concerns(changes) else None

    def _with_pause(self, changes: Changes, pause: Pause | None) -> "Experience":
        rest = {name: each for name, each in self.pauses.items() if name != _tables_key(changes)}
        return replace(
            self, pauses=rest if pause is None else {**rest, _tables_key(changes): pause}
        )

    def notes(self) -> dict[str, Any]:
        """The experience as JSON values."""
        return {
            "seconds": self.seconds,
            "pauses": {name: list(astuple(pause)) for name, pause in self.pauses.items()},
            "size": self.size,
            "caches": self.caches,
            "missed": self.missed,
            "factors_by_magnitude": {
                name: _factor_texts(each) for name, each in self.factors.items()
            },
        }

    @staticmethod
    def from_notes(notes: Mapping[str, Any]) -> "Experience":
        """The experience of a report's notes, which older ones do not have."""
        pauses = {name: Pause(*pause) for name, pause in notes.get("pauses", {}).items()}
        factors = notes.get("factors_by_magnitude", {}).items()
        return Experience(
            notes.get("seconds"),
            pauses,
            notes.get("size", 0),
            notes.get("caches", 0.0),
            notes.get("missed", 0.0),
            {name: _factor_numbers(each) for name, each in factors},
        )


@dataclass(frozen=True)
class Costs:
    """The experience with each engine: what is dear for one may be cheap for the other."""

    by_backend: Mapping[str, Experience] = field(default_factory=dict)

    def of(self, backend: str) -> Experience:
        """The experience with one engine."""
        return self.by_backend.get(backend, Experience())

    def having(self, backend: str, experience: Experience) -> "Costs":
        """With another experience with one engine."""
        return Costs({**self.by_backend, backend: experience})

    def after_build(
        self,
        backend: str,
        seconds: float,
        size: int = 0,
        caches: float = 0.0,
        estimate: float | None = None,
        is_warm: bool = True,
    ) -> "Costs":
        """The view was computed anew by an engine from so many bytes, after its caches; these may
        take most of the time, of which computing it without them takes a part. The first time an
        estimate may tell more, above all where the engine has done nothing before."""
        experience = self.of(backend)
        spent = max(caches, seconds - caches)
        if experience.seconds is None and backend == "spark":
            spent = _first_spark_seconds(spent, estimate, is_warm)
        elif experience.seconds is None and estimate is not None:
            spent = _first_build_seconds(spent, seconds, estimate, bool(caches), is_warm)
        experience = experience.after_build(spent)
        return self.having(backend, experience.after_writing(size, caches))

    def notes(self) -> dict[str, Any]:
        """The costs as JSON values."""
        return {name: each.notes() for name, each in self.by_backend.items()}

    @staticmethod
    def from_notes(notes: Mapping[str, Any]) -> "Costs":
        """The costs of a report; older ones know of Spark only."""
        if "seconds" in notes:
            notes = {"spark": notes}
        return Costs({name: Experience.from_notes(each) for name, each in notes.items()})


def _first_build_seconds(
    spent: float, seconds: float, estimate: float, has_caches: bool, is_warm: bool
) -> float:
    """What a first build tells of a recomputation in DuckDB."""
    if not is_warm:
        warm_seconds = max(spent - COLD_SECONDS["duckdb"], 0.01)
        return min(spent, sqrt(spent * estimate)) if seconds < QUICK else warm_seconds
    return sqrt(spent * estimate) if has_caches and estimate < spent else spent


def _first_spark_seconds(spent: float, estimate: float | None, is_warm: bool) -> float:
    """What a first build tells of a recomputation on Spark."""
    likely = SPARK_SHARE * spent
    if is_warm or estimate is None:
        return likely
    return max(min(likely, estimate), spent - COLD_SECONDS["spark"])


def _tables_key(changes: Changes) -> str:
    return "+".join(sorted(changes))


def _way_key(changes: Changes, way: str) -> str:
    """What one way takes tells nothing of another: jobs of a cluster are no look-ups."""
    return f"{_tables_key(changes)} by {way}" if way else _tables_key(changes)


def _magnitude(changes: Changes) -> int:
    """The order of magnitude of the number of changes: 0 for 1 to 9, 1 for 10 to 99, and so on."""
    return len(str(sum(changes.values()))) - 1


def _factor_texts(factors: Factors) -> dict[str, float]:
    return {str(magnitude): factor for magnitude, factor in factors.items()}


def _factor_numbers(factors: Mapping[str, float]) -> dict[int, float]:
    return {int(magnitude): factor for magnitude, factor in factors.items()}
