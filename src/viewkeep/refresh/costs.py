"""What bringing changes in and computing a view anew are expected to take in DuckDB.

    incremental  statements + look-ups (bytes of caches and view) + changes + rows written anew
    recompute    a statement + values of the columns that the query reads

The constants are seconds as measured on one machine (`python -m bench.keeper`); what refreshes of
the view have taken (`lake.experience`) corrects both.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeep.execute.engines import Choice
from viewkeep.execute.few_rows import MOST_CHANGES
from viewkeep.lake import Experience, Pins
from viewkeep.lake.views.view import StoredView, View
from viewkeep.query.algebra import Scan
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.verbatim import Verbatim

KEPT = 0.01
"""What a kept relation takes whatever changes: the rows before, the difference, a commit."""
STATEMENT = 0.003
"""A statement of the script without rows; of those that changes of a table may run, some are for
other kinds of changes."""
FEW_STATEMENT = 0.0012
"""The same where so few rows change that they go through Python, and rows are looked up by keys."""
RECOMPUTE = 0.02
"""A recomputation without rows."""
LOOK_UP = 1.2e-9
"""A byte of a relation in which keys are looked up."""
CHANGE = 12e-6
"""A change that goes through a script."""
REWRITE = 8e-9
"""A byte of the view that is written anew around the rows that change."""
READ = 9e-9
"""A value of a table that a recomputation reads, once for every place that names the table."""
MARGIN = 1.1
"""So much longer than recomputation may be expected of changes that are brought in."""
UNTRIED = 0.03
"""Seconds by which changes of tables may cost more the first time than any of this tells."""
SMALL = 1 << 20
"""Bytes of tables: over fewer both ways are done at once, and changes are brought in."""


@dataclass(frozen=True)
class Estimate:
    """Seconds of the two ways; `plain` is the first one before experience corrects it, and `error`
    what may come on top of that."""

    incremental: float
    recompute: float
    plain: float
    error: float

    @property
    def is_dear(self) -> bool:
        """Whether bringing changes in would take longer, and not by the error of an estimate: a
        recomputation leaves caches out, which the next changes may want."""
        return self.incremental + self.error > MARGIN * self.recompute

    def __str__(self) -> str:
        return f"about {self.incremental:.2f} s, recomputation {self.recompute:.2f} s"


def recompute_seconds(view: View, inputs: Pins) -> float:
    """The seconds of a recomputation from these versions."""
    query = view.computed
    if isinstance(query, Verbatim):
        return RECOMPUTE
    needs, values = needed_columns(query, never_none=True), 0
    for node, columns in needs.items():
        if isinstance(node, Scan):
            source = view.sources.get(node.name)
            rows = source.table.snapshot(inputs[node.name]).rows if source else 1  # the clock
            values += rows * len(columns)
    return RECOMPUTE + READ * values


def estimate(
    view: View,
    stored: StoredView,
    inputs: Pins,
    choice: Choice,
    changes: Mapping[str, int],
    experience: Experience,
) -> Estimate | None:
    """The cost of some changes; None where it is not known, or not worth a thought."""
    tables = sum(view.sources[name].table.snapshot(inputs[name]).size for name in view.sources)
    if choice.backend != "duckdb" or tables <= SMALL:
        return None
    shown = view.table.snapshot(stored.newest).size
    kept = shown + sum(cache.snapshot.size for cache in view.caches(stored.state).values())
    is_few = sum(changes.values()) <= MOST_CHANGES
    statement = FEW_STATEMENT if is_few else STATEMENT
    statements = statement * view.count_statements(changes) + KEPT * len(view.script.materialized)
    written = 0 if view.marks_rows else shown
    plain = statements + LOOK_UP * kept + CHANGE * sum(changes.values()) + REWRITE * written
    return Estimate(
        experience.corrected(changes, plain),
        experience.recompute(tables, recompute_seconds(view, inputs)),
        plain,
        0.0 if experience.has_tried(changes) else UNTRIED,
    )
