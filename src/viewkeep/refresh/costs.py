"""What bringing changes in and computing a view anew are expected to take.

    incremental  statements + look-ups (bytes of caches and view) + changes + rows that they touch
                 + rows written anew
    recompute    a statement + values of the columns that the query reads + rows of its joins

The constants are seconds: those of DuckDB, of Spark's driver and of recomputation on Spark fit
refreshes on one machine, those of Spark's jobs fit one of 40 jobs. What refreshes of the view have
taken (`lake.experience`) corrects both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log10

from viewkeep.diffs.costs.joined_rows import joined_rows
from viewkeep.execute.engines import Choice
from viewkeep.execute.few_rows import most_changes
from viewkeep.lake import Experience, Pins
from viewkeep.lake.views.cache_versions import open_caches
from viewkeep.lake.views.experience import FADING
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.query.algebra import Scan
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.verbatim import Verbatim


@dataclass(frozen=True)
class Prices:
    """Seconds of what an engine does."""

    kept: float
    """A kept relation, whatever changes: the rows before, the difference, a commit."""
    statement: float
    """A statement of the script without rows; of those that changes of a table may run, some are
    for other kinds of changes."""
    few_statement: float
    """The same where so few rows change that they go through Python, and rows are looked up."""
    look_up: float
    """A byte of a relation in which keys are looked up."""
    change: float
    """A change that goes through a script."""
    touch: float
    """A row of the largest table that changes of smaller ones meet, if all keys are as frequent."""
    mark: float
    """Such a row of a view whose rows are marked as deleted and added, not written anew."""
    rewrite: float
    """A byte of the view that is written anew around the rows that change."""
    recompute: float
    """A recomputation without rows."""
    read: float
    """A value that a recomputation reads, once for every place that names the table."""
    joined: float
    """A row that a join of a recomputation passes on, or looks up."""
    untried: float
    """What changes of tables may cost more the first time than all of this tells."""


PRICES = {
    "duckdb": Prices(
        kept=0.01,
        statement=0.003,
        few_statement=0.0012,
        look_up=1.2e-9,
        change=5e-6,
        touch=0.8e-6,
        mark=1e-6,
        rewrite=5e-9,
        recompute=0.02,
        read=9e-9,
        joined=40e-9,
        untried=0.03,
    ),
    "spark": Prices(
        kept=2.0,
        statement=0.7,
        few_statement=0.05,
        look_up=10e-9,
        change=10e-6,
        touch=1.5e-6,
        mark=3e-6,
        rewrite=40e-9,
        recompute=0.25,
        read=25e-9,
        joined=25e-9,
        untried=2.0,
    ),
}
DRIVER = replace(
    PRICES["spark"],
    kept=0.02,
    statement=0.002,
    few_statement=0.002,
    change=50e-6,
    touch=30e-6,
    rewrite=16e-9,
    untried=0.1,
)
"""Those of diffs on Spark's driver, which looks rows up by itself: there is no job."""
DRIVER_BYTES = 256 << 20
"""The most bytes of relations of which all that is looked up is surely read on the driver."""
LOOK_UP_JOBS = replace(DRIVER, kept=0.5, statement=0.1, few_statement=0.05)
"""Those of diffs on the driver beside larger relations, in which a job may look rows up."""
DRIVER_CHANGES, DRIVER_ROWS, JOBS = 150_000, 750_000, "jobs"
"""The most changes, and the most rows that they may touch, for their diffs to stay on the driver:
selections keep a part of these. Larger diffs stay in Spark's jobs: what the one took does not tell
what the other takes."""
MARGIN = 1.1
"""So much longer than recomputation may be expected of changes that are brought in."""
SMALL = 1 << 20
"""Bytes of tables: over fewer both ways are done at once, and changes are brought in."""


@dataclass(frozen=True)
class Estimate:
    """Seconds of the two ways; `plain` is the first one before experience corrects it, `error` what
    may come on top of that, and `way` how the engine brings so many changes in."""

    incremental: float
    recompute: float
    plain: float
    error: float
    way: str = ""

    @property
    def is_dear(self) -> bool:
        """Whether bringing changes in would take longer, and not by the error of an estimate: a
        recomputation leaves caches out, which the next changes may want."""
        return self.incremental + self.error > MARGIN * self.recompute

    def notes(self) -> dict[str, float]:
        """The seconds of the two ways as JSON values."""
        return {"incremental": self.incremental, "recompute": self.recompute}

    def __str__(self) -> str:
        first = f" (the first time up to {self.error:.2f} s more)" if self.error else ""
        return f"about {self.incremental:.2f} s{first}, recomputation {self.recompute:.2f} s"


def recompute_seconds(view: View, inputs: Pins, backend: str) -> float:
    """The seconds of a recomputation from these versions."""
    query, price, values = view.computed, PRICES[backend], 0
    if isinstance(query, Verbatim):
        return price.recompute
    rows = _rows_of_inputs(view, inputs)
    for node, columns in needed_columns(query, never_none=True).items():
        if isinstance(node, Scan):
            values += rows.get(node.name, 1) * len(columns)  # the clock is no table
    return price.recompute + price.read * values + price.joined * joined_rows(query, rows)


def estimate(
    view: View,
    stored: StoredView,
    inputs: Pins,
    choice: Choice,
    changes: Mapping[str, int],
    experience: Experience,
) -> Estimate | None:
    """The cost of some changes; None where it is not worth a thought."""
    tables = sum(view.sources[name].table.snapshot(inputs[name]).size for name in view.sources)
    if tables <= SMALL:
        return None
    touched = touched_rows(_rows_of_inputs(view, inputs), changes)
    way = _way(choice, sum(changes.values()), touched)
    price = _script_prices(choice, way)
    plain = _incremental_seconds(view, stored, price, changes, touched)
    anew = 0.0
    if not experience.knows_recompute:
        anew = recompute_seconds(view, inputs, choice.backend)
    anew = experience.recompute(tables, anew)
    if experience.has_tried(changes, way):
        return Estimate(experience.corrected(changes, plain, way), anew, plain, 0.0, way)
    factor = _expected_factor(view, stored, inputs, changes) if choice.backend == "duckdb" else None
    if factor is not None:
        return Estimate(factor * plain, anew, plain, 0.0)
    return Estimate(plain, anew, plain, price.untried, way)


def _expected_factor(
    view: View, stored: StoredView, inputs: Pins, changes: Mapping[str, int]
) -> float | None:
    """The seconds of changes that were expected when the strategy was chosen, which knew more of
    the tables' values, in those of the estimate for as many; None where others were expected."""
    expected = {name: (count, seconds) for name, count, seconds in view.definition.expected}
    if not changes or not changes.keys() <= expected.keys():
        return None
    counts = {name: expected[name][0] for name in changes}
    touched = touched_rows(_rows_of_inputs(view, inputs), counts)
    plain = _incremental_seconds(view, stored, PRICES["duckdb"], counts, touched)
    apart = abs(log10(sum(changes.values()) / sum(counts.values())))
    return float((sum(expected[name][1] for name in changes) / plain) ** (FADING**apart))


def touched_rows(rows: Mapping[str, int], changes: Mapping[str, int]) -> int:
    """The rows of the largest table that changes of others join with, or that change themselves.

    >>> touched_rows({"uses": 1000, "parts": 100}, {"parts": 7, "uses": 2})
    72
    """
    largest = max(rows.values(), default=0)
    return sum(
        count * max(1, largest // max(1, rows.get(name, largest)))
        for name, count in changes.items()
    )


def _way(choice: Choice, changes: int, touched: int) -> str:
    """Whether diffs stay in Spark's jobs."""
    is_small = changes <= DRIVER_CHANGES and touched <= DRIVER_ROWS
    return JOBS if choice.backend == "spark" and not is_small else ""


def _script_prices(choice: Choice, way: str) -> Prices:
    """Those of the engine, or of Spark's driver."""
    if choice.backend != "spark" or way == JOBS:
        return PRICES[choice.backend]
    return DRIVER if choice.size <= DRIVER_BYTES else LOOK_UP_JOBS


def _incremental_seconds(
    view: View, stored: StoredView, price: Prices, changes: Mapping[str, int], touched: int
) -> float:
    view_bytes, count = view.table.snapshot(stored.newest).size, sum(changes.values())
    bytes_of_all = view_bytes + sum(
        cache.snapshot.size for cache in open_caches(view, stored.state).values()
    )
    statements = view.count_statements(changes)
    statement = price.few_statement if count <= most_changes(statements) else price.statement
    return (
        statement * statements
        + price.kept * len(view.script.materialized)
        + price.look_up * bytes_of_all
        + price.change * count
        + price.touch * touched
        + (price.mark * touched if view.marks_rows else price.rewrite * view_bytes)
    )


def _rows_of_inputs(view: View, inputs: Pins) -> dict[str, int]:
    return {name: view.sources[name].table.snapshot(inputs[name]).rows for name in view.sources}
