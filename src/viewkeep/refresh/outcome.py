"""The scripts of one refresh, run: one for all changes, or one after the other for each table.

Scripts with recursive views bring the changes of one table (`diffs.recursive`): the next one finds
what is kept as the one before has left it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame

from viewkeep.diffs.model import post, pre
from viewkeep.errors import ViewkeepError
from viewkeep.execute.base_diffs import Columns, Inputs
from viewkeep.execute.spark.changed_rows import RowChanges
from viewkeep.execute.spark.compose_changes import changed_relation, composed
from viewkeep.execute.spark.layered import Layered
from viewkeep.execute.spark.run import Run, changed_rows, run
from viewkeep.execute.spark.scanned import Scanned
from viewkeep.lake import Pins
from viewkeep.lake.view import Frames, View
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_arrow

Kept = Mapping[str, DataFrame | Scanned | Layered]
"""The caches and the view as they were before the refresh, by their names in the script."""


class TooManyRowsError(ViewkeepError):
    """Changes of so many rows that computing the view anew is the better way."""


@dataclass
class Outcome:
    """The changed rows of what is kept (None: too many for the driver), and what it took."""

    rows: dict[str, RowChanges | None] = field(default_factory=dict)
    whole: Callable[[str], DataFrame] = field(kw_only=True)
    """All rows of a relation after the changes; lazy."""
    jobs: int = 0
    accesses: int | None = 0

    def add_report(self, done: Run) -> None:
        """Count what a run took."""
        self.jobs += done.report.jobs
        written = [each.rows for each in done.report.statements if each.kind != "compute"]
        if None in written or self.accesses is None:  # something stayed in Spark
            self.accesses = None
        else:
            self.accesses += done.fetched.accesses + sum(rows or 0 for rows in written)


@contextmanager
def outcome(view: View, inputs: Inputs, kept: Kept, before: Pins, after: Pins) -> Iterator[Outcome]:
    """Run the scripts for these changes; what they found is there inside the block."""
    if view.is_recursive:
        yield _one_by_one(view, inputs, kept, before, after)
        return
    frames = _frames(view, inputs, kept, before, after)
    with run(view.lake.spark, view.script_for(inputs.kinds), frames, find_changed=True) as done:
        found = Outcome(changed_rows(done), whole=lambda name: done.changed[name].new)
        found.add_report(done)
        yield found


def _one_by_one(view: View, inputs: Inputs, kept: Kept, before: Pins, after: Pins) -> Outcome:
    now, versions = dict(kept), dict(before)

    def whole(name: str) -> DataFrame:
        relation = now[name]
        return relation if isinstance(relation, DataFrame) else relation.frame

    found = Outcome(whole=whole)
    for table, kinds in inputs.kinds.items():
        script = view.recursive_script(table, kinds)
        frames = _frames(view, inputs, now, versions, {**versions, table: after[table]})
        with run(view.lake.spark, script, frames, find_changed=True) as done:
            found.add_report(done)
            for name, changes in changed_rows(done).items():
                _add(view, found, now, name, changes)
        versions[table] = after[table]
    return found


def _add(
    view: View,
    found: Outcome,
    now: dict[str, DataFrame | Scanned | Layered],
    name: str,
    changes: RowChanges | None,
) -> None:
    if changes is None:
        raise TooManyRowsError(f"too many rows of {name} change")
    # The scripts of different tables name the same rows by different columns of equal values.
    ids = next(each.ids for each in view.script.materialized if each.name == name)
    now[name] = changed_relation(view.lake.spark, now[name], changes, ids)
    earlier = found.rows.get(name)
    found.rows[name] = changes if earlier is None else composed(earlier, changes, ids)


def _frames(view: View, inputs: Inputs, kept: Kept, before: Pins, after: Pins) -> Frames:
    """Where a script finds its relations."""
    frames = Frames(
        view,
        {
            **{(name, "pre"): before[name] for name in view.sources},
            **{(name, "post"): after[name] for name in view.sources},
        },
    )
    frames.update(kept)
    frames.update({name: _diff(*given) for name, given in inputs.diffs.items()})
    return frames


def _diff(table: Table, columns: Columns) -> pa.Table:
    typed = {name: f for f in table.columns for name in (f.name, pre(f.name), post(f.name))}
    fields = [replace(typed[name], name=name) for name in columns]
    return to_arrow(fields, list(zip(*columns.values(), strict=True)))
