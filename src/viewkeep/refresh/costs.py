"""What bringing changes in and computing a view anew are expected to take.

    incremental  statements + look-ups (bytes of caches and view) + changes + rows that they touch
                 + rows written anew
    recompute    a statement + values of the columns that the query reads + rows of its joins

The seconds of each are in `prices`. What refreshes of the view have taken (`lake.experience`)
corrects both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log10

from viewkeep.diffs.costs.joined_rows import joined_rows
from viewkeep.execute.engines import Choice
from viewkeep.execute.few_rows import most_changes
from viewkeep.lake import Experience, Pins
from viewkeep.lake.views.cache_versions import open_caches
from viewkeep.lake.views.experience import FADING
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.query.verbatim import Verbatim
from viewkeep.refresh.prices import (
    JOBS,
    PRICES,
    RUN,
    Prices,
    query_seconds,
    script_prices,
    way_of_diffs,
)

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
    """The seconds of a recomputation from these versions, by the numbers of their rows alone."""
    query, rows = view.computed, _rows_of_inputs(view, inputs)
    joined = 0.0 if isinstance(query, Verbatim) else joined_rows(query, rows)
    return query_seconds(query, rows, joined, PRICES[backend])


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
    way = way_of_diffs(choice.backend, sum(changes.values()), touched)
    price = script_prices(choice.backend, choice.size, way)
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
    # A first try by jobs took up to three times its estimate: it is made where half will do.
    error = max(price.untried, plain) if way == JOBS else price.untried
    return Estimate(plain, anew, plain, error, way)


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


def _incremental_seconds(
    view: View, stored: StoredView, price: Prices, changes: Mapping[str, int], touched: int
) -> float:
    view_bytes, count = view.table.snapshot(stored.newest).size, sum(changes.values())
    bytes_of_all = view_bytes + sum(
        cache.snapshot.size for cache in open_caches(view, stored.state).values()
    )
    statements = view.count_statements(changes)
    is_few = count <= most_changes(statements)
    statement = price.few_statement if is_few else RUN * price.statement
    return (
        price.refresh
        + statement * statements
        + price.kept * len(view.script.materialized)
        + price.look_up * bytes_of_all
        + price.change * count
        + price.touch * touched
        + (price.mark * touched if view.marks_rows else price.rewrite * view_bytes)
    )


def _rows_of_inputs(view: View, inputs: Pins) -> dict[str, int]:
    return {name: view.sources[name].table.snapshot(inputs[name]).rows for name in view.sources}
