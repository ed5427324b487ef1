"""Exponents of update time and delay, fitted to step counts on growing adversarial data.

Run with `make bounds`; the method and a table are in docs/bounds.md.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, product
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import viewkeep as vk
from bench._cases import CASES, Case
from bench._families import (
    HEAVY,
    Change,
    databases,
    joined_databases,
    orders,
    visits,
)

SIZES = (500, 1000, 2000, 4000, 8000)
MARGIN = 0.1
GLANCE = 50
"""How many output tuples are read after each single update."""


@dataclass(frozen=True)
class Measurement:
    """One line of the table: exponents predicted and measured."""

    case: Case
    relation: str
    predicted_update: float
    update: float
    predicted_delay: float
    delay: float

    @property
    def verdict(self) -> str:
        """Whether theory holds, and whether the data shows that it is tight."""
        pairs = ((self.update, self.predicted_update), (self.delay, self.predicted_delay))
        if any(measured > predicted + MARGIN for measured, predicted in pairs):
            return "above"
        if any(measured < predicted - MARGIN for measured, predicted in pairs):
            return "below"
        return "holds"


@dataclass
class Worst:
    """The largest numbers of steps seen at one size."""

    update: dict[str, float] = field(default_factory=dict)
    delay: int = 0

    def note_update(self, relation: str, steps: float) -> None:
        """Take an update into account."""
        self.update[relation] = max(self.update.get(relation, 0), steps)

    def note_delay(self, steps: int) -> None:
        """Take a wait for the next output tuple, or for the end, into account."""
        self.delay = max(self.delay, steps)


def measure(case: Case, sizes: Sequence[int] = SIZES) -> list[Measurement]:
    """The exponents of a case: one line per relation, or one for an amortized average."""
    sizes = [case.sized(size) for size in sizes]
    probe = probe_streams if case.amortized else probe_updates
    found = [probe(case, size) for size in sizes]
    delay = exponent(sizes, [worst.delay for worst in found])
    return [
        Measurement(
            case,
            relation,
            max(case.updates.values()) if case.amortized else case.updates[relation],
            exponent(sizes, [worst.update[relation] for worst in found]),
            case.delay,
            delay,
        )
        for relation in found[0].update
    ]


def exponent(sizes: Sequence[int], steps: Sequence[float]) -> float:
    """The slope of log steps over log size by least squares; not below 0."""
    x = [math.log(size) for size in sizes]
    y = [math.log(max(count, 1)) for count in steps]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    rise = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return max(rise / sum((a - mean_x) ** 2 for a in x), 0.0)


def maintainer(case: Case) -> vk.Maintainer:
    """The query of a case, maintained as the case says."""
    return vk.maintain(case.query, strategy=case.strategy, engine="reference", **case.options)


# --- the worst single update ----------------------------------------------------------------------


def probe_updates(case: Case, size: int) -> Worst:
    """The worst single update of each relation and the worst delay, over all databases."""
    worst, query = Worst(), vk.parse(case.query)
    for database in databases(query, case.limits, size):
        live = maintainer(case)
        live.load({relation: list(rows) for relation, rows in database.rows.items()})
        for wait in waits(live, size, 2 * size):
            worst.note_delay(wait)
        for relation in case.updates:
            arity = len(query.columns_of(relation))
            for changes in visits(database, relation, arity, size):
                probe_changes(live, changes, size, worst)
    return worst


def probe_changes(live: vk.Maintainer, changes: Iterable[Change], size: int, worst: Worst) -> None:
    """The steps of single updates, and of a glance at the output after each."""
    for relation, row, multiplicity in changes:
        before = live.steps
        live.update(relation, row, multiplicity)
        worst.note_update(relation, live.steps - before)
        for wait in waits(live, size, GLANCE):
            worst.note_delay(wait)


def waits(live: vk.Maintainer, size: int, most: int) -> Iterator[int]:
    """The steps before each of the first output tuples, and before the end if it is reached."""
    for given in inputs(live, size):
        count, before = 0, live.steps
        for _ in islice(live.enumerate(given), most):
            yield live.steps - before
            count, before = count + 1, live.steps
        if count < most:
            yield live.steps - before


def inputs(live: vk.Maintainer, size: int) -> Iterator[Mapping[str, Any]]:
    """Values for the inputs of an access pattern: heavy, light and absent."""
    names = live.query.inputs
    for values in product((HEAVY, 1, size + 1), repeat=len(names)):
        yield dict(zip(names, values, strict=True))


# --- the average update of a stream ---------------------------------------------------------------


def probe_streams(case: Case, size: int) -> Worst:
    """The average update of whole streams, over all databases and orders of arrival."""
    worst, query = Worst(), vk.parse(case.query)
    for database in joined_databases(query, case.limits, size):
        for arriving in orders(database):
            live = maintainer(case)
            probe_stream(live, arriving, size, worst)
            for wait in waits(live, size, 2 * size):
                worst.note_delay(wait)
            if not case.options.get("insert_only"):
                leaving = [(relation, row, -1) for relation, row, _ in arriving]
                probe_stream(live, leaving, size, worst)
    return worst


AVERAGE = "average"


def probe_stream(
    live: vk.Maintainer, changes: Sequence[Change], size: int, worst: Worst, glances: int = 10
) -> None:
    """The steps per update of a stream, and of a glance at the output now and then."""
    steps, length = 0, len(changes) // glances + 1
    for start in range(0, len(changes), length):
        before = live.steps
        for relation, row, multiplicity in changes[start : start + length]:
            live.update(relation, row, multiplicity)
        steps += live.steps - before
        for wait in waits(live, size, GLANCE):
            worst.note_delay(wait)
    worst.note_update(AVERAGE, steps / len(changes))


# --- the table ------------------------------------------------------------------------------------


def table(measurements: Iterable[Measurement]) -> Table:
    """What was measured: a line per case, or several where relations differ."""
    title = "Exponents of N, predicted -> measured: worst update, worst delay"
    shown = Table(title=title, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("case", "strategy", "relations", "update", "delay", "verdict"):
        shown.add_column(column, no_wrap=column != "relations")
    previous: Case | None = None
    for (case, *figures), lines in groupby(measurements, key=_cells):
        head = [case.title, maintainer(case).program.strategy] if case is not previous else ["", ""]
        shown.add_row(*head, ", ".join(line.relation for line in lines), *figures)
        previous = case
    return shown


def _cells(line: Measurement) -> tuple[Case, str, str, str]:
    update = f"{line.predicted_update:g} -> {line.update:.2f}"
    return line.case, update, f"{line.predicted_delay:g} -> {line.delay:.2f}", line.verdict


def queries(cases: Iterable[Case]) -> Table:
    """The query of each case, and the constraints on its data."""
    shown = Table.grid(padding=(0, 2))
    for title, query, known in dict.fromkeys((c.title, c.query, _known(c)) for c in cases):
        shown.add_row(title, f"{query}{known}")
    return shown


def _known(case: Case) -> str:
    listed = ((k, v) for k, v in case.options.items() if isinstance(v, tuple))
    return "".join(f"\n{name.replace('_', ' ')}: {', '.join(v)}" for name, v in listed)


def main() -> int:
    """Measure all cases; fail where a bound is broken."""
    console = Console()
    progress = track(CASES, "Measuring", console=Console(stderr=True), transient=True)
    found: list[Measurement] = [line for case in progress for line in measure(case)]
    console.print(table(found))
    console.print(f"sizes {', '.join(map(str, SIZES))}; margin {MARGIN}\n", highlight=False)
    console.print(queries(CASES), highlight=False)
    return int(any(line.verdict == "above" for line in found))


if __name__ == "__main__":
    sys.exit(main())
