"""Runs delta scripts on Spark: few jobs for small changes, and DataFrames as the result.

    create_frames  the caches and the view as DataFrames, from their definitions
    run_script     one refresh: every Compute, then every Apply; nothing is written
    changed_rows   the rows that a refresh changes, on the driver, for storage to write

`frames` says where relations are: a base table by (name, "pre") and (name, "post"), everything
else (base diffs, caches and the view as they were before the refresh) by its name. A table that no
statement needs for the changes at hand does not have to be there. A base diff may be an Arrow
table, which saves Spark the trouble.

Small diffs are computed on the driver from the rows whose keys they name, which one job looks up
in all relations (`schedule`, `driver`, `look_up`); a result of more than `local_rows` rows stays in
Spark, persisted until the run is closed. `changed_rows` reuses what was looked up and takes at
most one more job; with `find_changed`, the run looks up what it will need by its own jobs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType

from pyspark.sql import DataFrame, SparkSession

from viewkeep.diffs.script import Apply, Script
from viewkeep.execute.errors import RunError
from viewkeep.execute.report import StatementReport
from viewkeep.execute.row_changes import RowChanges
from viewkeep.execute.spark.apply_diff import Part, TargetChanges
from viewkeep.execute.spark.count_accesses import apply_accesses, compute_accesses
from viewkeep.execute.spark.driver.changed_rows import find_changed_rows, rows_changed
from viewkeep.execute.spark.driver.collect import Relation, with_schema
from viewkeep.execute.spark.driver.look_up import LookUps
from viewkeep.execute.spark.driver.merge_diffs import check_effective, merge_diffs
from viewkeep.execute.spark.frames import FrameBuilder
from viewkeep.execute.spark.report import SparkReport, name_in_errors
from viewkeep.execute.spark.schedule import JobSchedule
from viewkeep.execute.spark.script_relations import Frames, ScriptRelations, input_frame
from viewkeep.execute.spark.versions import counted_jobs
from viewkeep.query.algebra import Leaf, Stored

LOCAL_ROWS = 150_000
"""The most rows of a diff that are collected, and of a relation that are looked up."""
CHANGED_ROWS = 200_000
"""The most changed rows of a relation that come to the driver."""


@dataclass(frozen=True)
class Run:
    """The relations that a refresh changes, by name, and what it did.

    Close it, or use it in a `with`, when the frames are no longer needed: diffs that were too
    large to be collected are persisted until then.
    """

    changed: Mapping[str, TargetChanges]
    report: SparkReport
    look_ups: LookUps = field(repr=False)
    persisted: tuple[DataFrame, ...] = field(default=(), repr=False)

    @property
    def frames(self) -> dict[str, DataFrame]:
        """The new rows of every changed relation; lazy."""
        return {name: changed.after for name, changed in self.changed.items()}

    def close(self) -> None:
        """Give up what is persisted."""
        for frame in self.persisted:
            frame.unpersist()

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def create_frames(spark: SparkSession, script: Script, frames: Frames) -> dict[str, DataFrame]:
    """The caches and the view, lazy, each with the columns and types of its definition."""
    created: dict[str, DataFrame] = {}

    def relation(leaf: Leaf) -> Relation:
        created_frame = created.get(leaf.name) if isinstance(leaf, Stored) else None
        return Relation(
            input_frame(spark, frames, leaf) if created_frame is None else created_frame
        )

    builder = FrameBuilder(spark, relation)
    for target in script.materialized:
        with name_in_errors(f"CREATE {target.name}"):
            frame = with_schema(builder.frame(target.definition), target.definition.schema)
        created[target.name] = frame
    return created


def run_script(
    spark: SparkSession,
    script: Script,
    frames: Frames,
    count_accesses: bool = False,
    local_rows: int = LOCAL_ROWS,
    find_changed: bool = False,
) -> Run:
    """Compute the changes of the caches and of the view."""
    start = perf_counter()
    relations = ScriptRelations(spark, script, frames, local_rows)
    try:
        with counted_jobs(spark) as jobs:
            refresh = _ScriptRefresh(relations, script, find_changed)
            changed = refresh.changed()
            statements = refresh.reports(count_accesses)
            report = SparkReport(tuple(statements), perf_counter() - start, jobs.count)
    except BaseException:
        relations.unpersist()
        raise
    return Run(changed, report, relations.look_ups, tuple(relations.persisted))


def changed_rows(run: Run, limit: int = CHANGED_ROWS) -> dict[str, RowChanges | None]:
    """The changed rows of every changed relation, by at most one job; None where there are more
    than `limit`: then the frames of `run.changed` say what to write."""
    with name_in_errors("looking the changed rows up"):
        return find_changed_rows(run.changed, run.look_ups, limit)


class _ScriptRefresh:
    """One run of a script: computations, then changes."""

    def __init__(self, relations: ScriptRelations, script: Script, find_changed: bool) -> None:
        self._relations, self._script, self._find_changed = relations, script, find_changed
        self._rounds = JobSchedule(relations, script, find_changed)
        self._rounds.compute()
        self._parts: dict[str, list[Part]] = {}

    def changed(self) -> dict[str, TargetChanges]:
        """The kept relations with their diffs, where those have rows."""
        for statement in self._script.applies():
            start = perf_counter()
            part = self._diff_part(statement)
            if statement.diff not in self._relations.empty:
                self._parts.setdefault(statement.target, []).append(part)
            self._rounds.seconds[str(statement)] += perf_counter() - start
        changed = {name: self._target_changes(name, parts) for name, parts in self._parts.items()}
        if self._find_changed:
            self._fetch_changed_rows(changed)
        return changed

    def _fetch_changed_rows(self, changed: dict[str, TargetChanges]) -> None:
        """Fetch the rows that change; every change has a share of the time."""
        start = perf_counter()
        with name_in_errors("looking the changed rows up"):
            find_changed_rows(changed, self._relations.look_ups, CHANGED_ROWS)
        names = [part.name for parts in self._parts.values() for part in parts]
        for name in names:
            self._rounds.seconds[name] += (perf_counter() - start) / len(names)

    def _diff_part(self, statement: Apply) -> Part:
        target = self._relations.materialized.get(statement.target)
        if target is None:
            raise RunError(f'{statement}: there is no cache or view "{statement.target}"')
        part = Part(str(statement), statement.schema, self._relations.relation(statement.diff))
        with name_in_errors(str(statement)):
            check_effective(target, part)
        return part

    def _target_changes(self, name: str, parts: list[Part]) -> TargetChanges:
        target = self._relations.materialized[name]

        def old() -> DataFrame:
            return with_schema(self._relations.frame(name), target.definition.schema)

        return TargetChanges(target, old, tuple(merge_diffs(self._relations.spark, target, parts)))

    # --- reporting ------------------------------------------------------------------------------

    def reports(self, count_accesses: bool) -> list[StatementReport]:
        """A report per statement, computes first."""
        relations, rounds = self._relations, self._rounds
        applies = list(self._script.applies())
        accesses: dict[str, int] = {}
        if count_accesses:
            with name_in_errors("counting accesses"):
                accesses = self._apply_accesses(applies)
        computed = [
            StatementReport(
                name,
                "compute",
                relations.rows(name),
                rounds.seconds[name],
                rounds.reads.get(name),
                accesses.get(name),
            )
            for name in relations.computes
        ]
        rows_written = self._rows_written()
        applied = [
            StatementReport(
                str(each),
                each.schema.kind,
                rows_written.get(str(each)),
                rounds.seconds[str(each)],
                relations.rows(each.diff),
                accesses.get(str(each)),
            )
            for each in applies
        ]
        return [*computed, *applied]

    def _rows_written(self) -> dict[str, int]:
        """The rows that changes write, where they are known."""
        counts = {str(e): 0 for e in self._script.applies() if e.diff in self._relations.empty}
        for name, parts in self._parts.items():
            counts |= rows_changed(
                self._relations.materialized[name], parts, self._relations.look_ups
            )
        return counts

    def _apply_accesses(self, applies: list[Apply]) -> dict[str, int]:
        builder = self._relations.builder()
        accesses = compute_accesses(
            self._script.computes(), self._relations.materialized.keys(), builder
        )
        parts = [
            (self._relations.materialized[each.target], self._diff_part(each)) for each in applies
        ]
        olds = {target.name: self._relations.frame(target.name) for target, _ in parts}
        return accesses | apply_accesses(parts, olds)
