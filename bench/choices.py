"""Whether `auto` keeps views by the fastest strategy, one run for all: views, changes, sizes.

    python -m bench.choices [--sizes 200000 1000000] [--shares 0.0001 0.01 0.1] [--docs]
                            [--results FILE] [--minutes 15]

Each case is a view over tables of some size, and a kind of changes of a part of one table. It is
measured by every strategy that can keep the view, by recomputation, and by `auto`, which is told
the share: each in an embedded lake of its own, over the same tables. A choice is right if the
strategy that `auto` used is the fastest, or takes at most 20% longer by the figures of the
strategies themselves. A strategy that took too long is left out where more changes. Every view is
verified at the end. With `--results` each view and size is written to a file once it is measured,
and those that are there are not measured again; `--minutes` begins no other after so long.
"""

import argparse
import json
import os
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import product
from math import inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from rich.console import Console

from bench._choice_views import VIEWS, ChoiceLake, ChoiceView
from bench._results import Results
from bench.keeper import timed_refresh
from viewkeep import Keeper, QueryError

STRATEGIES = ("id", "tuple", "viewtree", "recursive", "epsilon", "recompute")
WITHIN = 1.2
"""A choice may take so many times the seconds of the fastest strategy."""
LONGEST = 2.0
"""The seconds of a refresh after which a strategy is not measured for more changes."""
AUTO, TABLES = "auto", "tables"
PAGE = Path(__file__).parent.parent / "docs" / "choice_figures.md"

Place = tuple[str, str, float]
"""The changed table, the kind of changes, and their share."""


@dataclass(frozen=True)
class Figure:
    """The seconds of refreshes, the median of some rounds, and the strategy that was used last."""

    seconds: float
    used: str


@dataclass(frozen=True)
class Case:
    """What a view takes after changes by each strategy, and what `auto` did."""

    view: str
    rows: int
    place: Place
    seconds: Mapping[str, float]
    auto: Figure

    @property
    def best(self) -> str:
        """The fastest strategy."""
        return min(self.seconds, key=lambda each: self.seconds[each])

    @property
    def ratio(self) -> float:
        """The seconds of the strategy that `auto` used, in those of the fastest.

        >>> place, seconds = ("r", "insert", 0.1), {"id": 3.0, "recompute": 2.0}
        >>> Case("v", 10, place, seconds, Figure(2.9, "id")).ratio
        1.5
        """
        return self.seconds.get(self.auto.used, self.auto.seconds) / self.seconds[self.best]

    @property
    def is_right(self) -> bool:
        """Whether the choice is the fastest strategy, or nearly."""
        return self.ratio <= WITHIN

    def notes(self) -> dict[str, Any]:
        """The case as a value of JSON."""
        return asdict(self)

    @staticmethod
    def from_notes(notes: Mapping[str, Any]) -> "Case":
        """The case of such a value.

        >>> case = Case("v", 10, ("r", "insert", 0.1), {"id": 3.0}, Figure(2.9, "id"))
        >>> Case.from_notes(json.loads(json.dumps(case.notes()))) == case
        True
        """
        table, kind, share = notes["place"]
        auto = Figure(**notes["auto"])
        return Case(notes["view"], notes["rows"], (table, kind, share), notes["seconds"], auto)

    def cells(self) -> Iterator[str]:
        """The case as a row of a table."""
        table, kind, share = self.place
        yield from (f"{self.rows:,}", self.view, f"{kind} {table}", f"{share:.2%}")
        yield from (
            f"{self.seconds[each]:.3f}" if each in self.seconds else "-" for each in STRATEGIES
        )
        yield from (self.auto.used, f"{self.auto.seconds:.3f}", f"{self.ratio:.2f}")


COLUMNS = ("rows", "view", "changes", "share", *STRATEGIES, "`auto` used", "seconds", "x")


def places(view: ChoiceView, shares: Sequence[float]) -> list[Place]:
    """The changes that a view is measured for, of each kind the fewest first."""
    return [(table, kind, share) for table, kind in view.changes for share in sorted(shares)]


@dataclass
class StrategyLakes:
    """A lake for each way to keep a view, over the same tables: caches are not shared, and all ways
    bring in the same changes."""

    tables: ChoiceLake
    folder: Path
    keepers: dict[str, Keeper] = field(default_factory=dict)
    slow: set[str] = field(default_factory=set)
    """The strategies that took too long for fewer changes of the same kind."""

    def open(self, strategy: str) -> Keeper:
        """A lake with the tables and no view."""
        keeper = Keeper(self.folder / strategy, durable=False)
        for name in self.tables.view.tables:
            keeper.register_table(name, self.folder / TABLES / name, key=["id"])
        return keeper

    def create(self) -> None:
        """The view by each strategy that can keep it."""
        for strategy in STRATEGIES:
            keeper = self.open(strategy)
            with suppress(QueryError):
                self._create_view(strategy, keeper)
                self.keepers[strategy] = keeper
        self.keepers[AUTO] = self.open(AUTO)

    def _create_view(self, strategy: str, keeper: Keeper) -> None:
        policy = "full" if strategy == "recompute" else "incremental"
        keeper.create_view("v", self.tables.view.sql, strategy, policy, replace=True)

    def expect(self, place: Place) -> None:
        """Create the view of `auto` anew, which is told what will change."""
        table, _, share = place
        shares = {**dict.fromkeys(self.tables.view.tables, 0.0), table: share}
        sql = self.tables.view.sql
        self.keepers[AUTO].create_view("v", sql, replace=True, shares=shares)

    def forget_slow(self) -> None:
        """Let strategies that took too long try another kind of changes."""
        for strategy in self.slow:
            self._create_view(strategy, self.keepers[strategy])
        self.slow.clear()

    def refreshes(self, place: Place, rounds: int) -> dict[str, Figure]:
        """Change a table and refresh the view in all ways, some times."""
        seconds: dict[str, list[float]] = {}
        used: dict[str, str] = {}
        for _ in range(rounds):
            self.tables.change(*place)
            for strategy, keeper in self.keepers.items():
                if strategy in self.slow:
                    continue
                taken, reports = timed_refresh(keeper, "v")
                seconds.setdefault(strategy, []).append(taken)
                used[strategy] = reports[-1].strategy
                if taken > LONGEST and strategy != AUTO:
                    self.slow.add(strategy)
        return {name: Figure(median(each), used[name]) for name, each in seconds.items()}

    def check(self) -> None:
        """The view is as its query gives, in all lakes."""
        for strategy, keeper in self.keepers.items():
            if strategy not in self.slow:
                found = keeper.verify("v")
                assert (found.missing_rows, found.extra_rows) == (0, 0), (strategy, found)


def measure(view: ChoiceView, rows: int, shares: Sequence[float], rounds: int) -> Iterator[Case]:
    """The cases of one view at one size."""
    with TemporaryDirectory(prefix="viewkeep-choices-") as name:
        folder = Path(name)
        tables = ChoiceLake(Keeper(folder / TABLES, durable=False), view, rows)
        tables.fill()
        lakes = StrategyLakes(tables, folder)
        lakes.create()
        kinds = set[tuple[str, str]]()
        for place in places(view, shares):
            if place[:2] not in kinds:
                lakes.forget_slow()
                kinds.add(place[:2])
            lakes.expect(place)
            figures = lakes.refreshes(place, rounds)
            auto = figures.pop(AUTO)
            yield Case(view.name, rows, place, {n: f.seconds for n, f in figures.items()}, auto)
        lakes.check()


def summary(cases: Sequence[Case]) -> Iterator[str]:
    """How often the choice was right, and where each strategy is the fastest."""
    right = sum(each.is_right for each in cases)
    yield (
        f"In {right} of {len(cases)} cases ({right / len(cases):.0%}) the strategy that `auto` "
        f"used was the fastest, or took at most {WITHIN - 1:.0%} longer."
    )
    for strategy in STRATEGIES:
        views = Counter(each.view for each in cases if each.best == strategy)
        where = ", ".join(f"{name} ({count})" for name, count in views.items()) or "nowhere"
        yield f"`{strategy}` is the fastest in {views.total()} of {len(cases)} cases: {where}."


def page(cases: Sequence[Case], rounds: int) -> str:
    """The figures as a page of docs."""
    rows = [COLUMNS, tuple("---" for _ in COLUMNS), *(tuple(each.cells()) for each in cases)]
    views = [f"- {each.name}: `{' '.join(each.sql.split())}`" for each in VIEWS]
    return "\n".join(
        [
            "# Which strategy is the fastest, and which one `auto` uses: figures",
            "",
            "Written by `python -m bench.choices --docs` (`make bench-choices` prints it); do not "
            f"edit. {platform.machine()}, {os.cpu_count()} cores, embedded lakes; seconds from "
            f"`refresh` to visible, medians of {rounds} rounds, by each strategy that can keep the "
            "view, each in a lake of its own over the same tables. `auto` was told the share; `x` "
            "is the time of the strategy that it used over that of the fastest.",
            "",
            *(f"- {line}" for line in summary(cases)),
            "",
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
            "The views; `rows` are those of the largest table, but four times the edges of graphs:",
            "",
            *views,
            "",
        ]
    )


def arguments() -> argparse.Namespace:
    """Sizes and shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0001, 0.01, 0.1])
    parser.add_argument("--rounds", type=int, default=3, help="batches; the median counts")
    names = [each.name for each in VIEWS]
    parser.add_argument("--views", nargs="*", default=names, choices=names)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--results", type=Path, help="keep figures here, and go on from them")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no view after so long")
    parser.add_argument("--docs", action="store_true", help="write docs/choice_figures.md")
    given = parser.parse_args()
    if given.quick:
        given.sizes, given.shares, given.rounds = [1000], [0.01], 1
    return given


def cases_of(
    view: ChoiceView, rows: int, given: argparse.Namespace, results: Results
) -> list[Case]:
    """The cases of one view at one size, measured unless they are known."""
    key = json.dumps([view.name, rows, given.shares, given.rounds])
    if key not in results:
        measured = measure(view, rows, given.shares, given.rounds)
        results.add(key, [each.notes() for each in measured])
    return [Case.from_notes(each) for each in results[key]]


def main() -> None:
    """Measure, and print the cases and how often the choice was right."""
    given, console = arguments(), Console(width=180)
    cases, results = list[Case](), Results(given.results)
    start, left = monotonic(), 0
    console.print("  ".join(COLUMNS), highlight=False)
    for rows, view in product(given.sizes, VIEWS):
        if view.name not in given.views:
            continue
        if monotonic() - start > 60 * given.minutes:
            left += 1
            continue
        found = cases_of(view, rows, given, results)
        cases += found
        for case in found:
            console.print("  ".join(case.cells()), highlight=False)
    for line in summary(cases) if cases else ():
        console.print(line, highlight=False)
    if left:
        console.print(f"{left} views and sizes are left: run the command again")
    elif given.docs:
        PAGE.write_text(page(cases, given.rounds), encoding="utf-8")


if __name__ == "__main__":
    main()
