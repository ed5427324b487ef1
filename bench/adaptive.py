"""Exponents of the adaptive strategy, fitted to step counts on data that is bad for it.

Run with `make bounds`; the method and a table are in docs/bounds.md.
"""

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import viewkeep as vk
from bench._adaptive import CASES, AdaptiveCase
from bench.bounds import MARGIN, exponent, waits


@dataclass(frozen=True)
class Line:
    """A line of the table: what a case promises, and the exponents that step counts show."""

    case: AdaptiveCase
    measured: float
    deltas: float | None = None

    @property
    def verdict(self) -> str:
        """Whether theory holds, and whether the data shows that it is tight."""
        excess = self.measured - self.case.promised
        return "above" if excess > MARGIN else "below" if excess < -MARGIN else "holds"


def measure(case: AdaptiveCase) -> Line:
    """The exponent of a case, and that of first-order deltas if the case compares them."""
    deltas = None if case.delta is None else measure_deltas(case)
    return Line(case, measure_adaptive(case), deltas)


def measure_adaptive(case: AdaptiveCase, sizes: Sequence[int] | None = None) -> float:
    """The exponent that step counts, or numbers of entries, show; at sizes other than its own."""
    return _exponent(case, sizes or case.sizes, strategy="epsilon", **case.options)


def measure_deltas(case: AdaptiveCase) -> float:
    """The exponent of first-order deltas, at smaller sizes: they may take N^2 steps."""
    return _exponent(case, [size // 4 for size in case.sizes[:2]], strategy="delta")


def _exponent(case: AdaptiveCase, sizes: Sequence[int], **options: Any) -> float:
    quantity = QUANTITIES[case.quantity]
    found = [
        quantity(case, size, vk.maintain(case.query, engine="reference", **options))
        for size in sizes
    ]
    return exponent(sizes, found)


# --- what is measured -----------------------------------------------------------------------------


def worst_update(case: AdaptiveCase, size: int, live: vk.Maintainer) -> float:
    """The steps of the dearest single update."""
    return max(_steps(case, size, live))


def average_update(case: AdaptiveCase, size: int, live: vk.Maintainer) -> float:
    """The steps of all updates, rebalancing included, by their number."""
    steps = list(_steps(case, size, live))
    return sum(steps) / len(steps)


def worst_delay(case: AdaptiveCase, size: int, live: vk.Maintainer) -> float:
    """The most steps before an output tuple or the end, after loading and after all updates."""
    live.load(case.family.rows(size, case.epsilon))
    worst = max(waits(live, size, 2 * size))
    for change in case.family.stream(size, case.epsilon):
        live.update(*change)
    return max(worst, *waits(live, size, 2 * size))


def loading(case: AdaptiveCase, size: int, live: vk.Maintainer) -> float:
    """The steps of preprocessing."""
    live.load(case.family.rows(size, case.epsilon))
    return live.steps


def inserting(case: AdaptiveCase, size: int, live: vk.Maintainer) -> float:
    """The steps of all inserts into an empty database, one at a time, in a mixed order."""
    rows = case.family.rows(size, case.epsilon)
    changes = [(relation, row) for relation, content in rows.items() for row in content]
    random.Random(0).shuffle(changes)
    for relation, row in changes:
        live.update(relation, row)
    return live.steps


def space(case: AdaptiveCase, size: int, live: vk.Maintainer) -> float:
    """The entries of all maps."""
    live.load(case.family.rows(size, case.epsilon))
    return sum(live.sizes().values())


QUANTITIES = {
    "worst update": worst_update,
    "average update": average_update,
    "delay": worst_delay,
    "loading": loading,
    "inserting": inserting,
    "space": space,
}


def _steps(case: AdaptiveCase, size: int, live: vk.Maintainer) -> Iterator[int]:
    live.load(case.family.rows(size, case.epsilon))
    for change in case.family.stream(size, case.epsilon):
        before = live.steps
        live.update(*change)
        yield live.steps - before


# --- the table ------------------------------------------------------------------------------------


def table(lines: Iterable[Line]) -> Table:
    """What was measured: a line per case."""
    title = "Heavy and light parts: exponents of N, promised -> measured"
    shown = Table(title=title, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("case", "data", "measured", "exponent", "deltas", "verdict"):
        shown.add_column(column, no_wrap=True)
    for line in lines:
        shown.add_row(*_cells(line))
    return shown


def _cells(line: Line) -> tuple[str, ...]:
    case, deltas = line.case, "" if line.deltas is None else f"{line.deltas:.2f}"
    figures = f"{case.promised:.2g} -> {line.measured:.2f}"
    return case.title, case.family.name, case.quantity, figures, deltas, line.verdict


def queries(cases: Iterable[AdaptiveCase]) -> Table:
    """The query of each kind of case."""
    shown = Table.grid(padding=(0, 2))
    for kind, query in {case.title.partition(",")[0]: case.query for case in cases}.items():
        shown.add_row(kind, query)
    return shown


def main() -> int:
    """Measure all cases; fail where a bound is broken."""
    console = Console()
    progress = track(CASES, "Measuring", console=Console(stderr=True), transient=True)
    found = [measure(case) for case in progress]
    console.print(table(found), highlight=False)
    console.print(f"eps 0.5 where not said; margin {MARGIN}\n", highlight=False)
    console.print(queries(CASES), highlight=False)
    return int(any(line.verdict == "above" for line in found))


if __name__ == "__main__":
    sys.exit(main())
