"""Brings one view to newer versions of what it reads: the cheapest way that is right.

nothing      the inputs have no newer versions, or these have no other rows
incremental  the changes, through the view's delta script
recompute    where the view has no script, the policy says so, or the changes are too many
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame

from viewkeep.changes import ChangeBatch, ChangeError, difference
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.errors import QueryError, ViewkeepError
from viewkeep.execute.base_diffs import Inputs, diff_inputs
from viewkeep.execute.spark.changed_rows import RowChanges
from viewkeep.execute.spark.jobs import Jobs, counted_jobs
from viewkeep.execute.spark.layered import Layered
from viewkeep.execute.spark.report import RunError, problem_of
from viewkeep.execute.spark.scanned import Scanned
from viewkeep.execute.spark.watch import OverBudgetError, watched
from viewkeep.lake import Experience, Pins, RefreshReport, Timer, ViewState
from viewkeep.lake.caches import Cache, order_of, write_cache
from viewkeep.lake.lineage import replaced_cache, replaced_history
from viewkeep.lake.view import REPORT, STATE, Found, View
from viewkeep.refresh.outcome import Outcome, TooManyRowsError, outcome
from viewkeep.tables import feed
from viewkeep.tables.arrow_rows import to_rows
from viewkeep.tables.delta import ConflictError, DataFile, Snapshot, StorageError
from viewkeep.tables.feed import TooManyChangesError, UnclearChangesError, check_columns
from viewkeep.tables.parquet import write_frame
from viewkeep.tables.rewrite import Rewrite, rewrite

FALLS_BACK = True
"""Whether a script that is costly or fails gives way to recomputation, under the policy `auto`."""
LARGE_SHARE = 0.3
"""Under the policy `auto`, a view is computed anew when more than this share of a table changed."""


def refresh_view(view: View, inputs: Pins, tables: Pins) -> RefreshReport:
    """Bring a view to these versions of its inputs, which reflect these versions of tables."""
    found = view.found()
    if found.state.build != view.definition.build:
        view.check_current()
        return view.build(inputs, tables, found, "the definition has changed", first=True)
    if found.state.plan != view.plan:
        return view.build(inputs, tables, found, "this version of Viewkeep keeps it in another way")
    _check_columns(view, found.state, inputs)
    reason = replaced_history(view, found.state)
    if reason:
        return _built_unless_strict(view, found, inputs, tables, reason)
    if found.state.is_ahead_of(inputs):
        raise ConflictError(f'view "{view.name}": another process has seen newer changes')
    if dict(found.state.inputs) == dict(inputs):
        return RefreshReport(
            view.name,
            "none",
            "nothing changed",
            rows=found.report.rows,
            before=found.state.inputs,
            after=dict(inputs),
            version=found.newest,
        )
    reason = replaced_cache(view, found.state)
    if reason:
        return _built_unless_strict(view, found, inputs, tables, reason)
    return _Refresh(view, found, inputs, tables).run()


def _check_columns(view: View, state: ViewState, inputs: Pins) -> None:
    """Refuse inputs that have lost columns since, or changed their types."""
    for name, since in state.inputs.items():
        table = view.sources[name].table
        if inputs[name] != since:
            check_columns(name, view.sources[name].declared, table.snapshot(inputs[name]))


def _built_unless_strict(
    view: View, found: Found, inputs: Pins, tables: Pins, reason: str
) -> RefreshReport:
    """Compute a view whose changes cannot be told: that is right, whatever happened below it."""
    if view.definition.policy == "strict":
        raise StorageError(
            f'{reason}; the policy strict computes nothing anew by itself: repair("{view.name}")'
        )
    return view.build(inputs, tables, found, reason)


class _Refresh:
    """One refresh of one view."""

    def __init__(self, view: View, found: Found, inputs: Pins, tables: Pins) -> None:
        self._view, self._found, self._inputs, self._tables = view, found, inputs, tables
        self._experience = Experience.from_notes(found.report.experience)
        self._timer = Timer()

    def run(self) -> RefreshReport:
        """Decide on a way, and go it."""
        counts = {name: self._count(name) for name in self._moved()}
        known = {name: count for name, count in counts.items() if count is not None}
        reason = self._why_anew(counts)
        if not reason and len(known) == len(counts):
            reason = self._why_not_tried(known)
        if reason:
            return self._anew(reason, known)
        with counted_jobs(self._view.lake.spark) as jobs:
            changes: dict[str, int] = {}
            try:
                with self._timer.phase("changes"):
                    batches = {name: self._batch(name) for name in self._moved()}
                changes = {name: batch.size for name, batch in batches.items()}
                reason = self._why_anew(changes)
                if not reason and len(known) < len(counts):
                    reason = self._why_not_tried(changes)
                if not reason:
                    return self._brought(diff_inputs(self._plan, batches), changes, jobs)
            except (TooManyChangesError, TooManyRowsError) as problem:
                reason = self._unless_strict(str(problem))
            except UnclearChangesError as problem:
                return _built_unless_strict(
                    self._view, self._found, self._inputs, self._tables, str(problem)
                )
            except ChangeError as problem:
                raise ChangeError(
                    f'{problem}, then refresh; if it still fails: repair("{self._view.name}")'
                ) from problem
            except OverBudgetError as problem:
                self._experience = self._experience.after_giving_up(changes)
                reason = f"bringing the changes in went past the cost of recomputation: {problem}"
            except Exception as problem:
                if not (self._may_fall_back and _is_the_scripts(problem)):
                    raise
                reason = f"bringing the changes in failed: {problem_of(problem)}"
        return self._anew(reason, changes)

    def _anew(self, reason: str, changes: Mapping[str, int]) -> RefreshReport:
        report = replace(self._found.report, experience=self._experience.notes())
        start = replace(self._found, report=report)
        return self._view.build(self._inputs, self._tables, start, reason, changes)

    @property
    def _may_fall_back(self) -> bool:
        """Whether the view may be computed anew where bringing changes in is costly, or fails."""
        return FALLS_BACK and self._view.definition.policy == "auto"

    def _why_not_tried(self, changes: Mapping[str, int]) -> str:
        if not self._may_fall_back or not self._experience.is_paused(changes):
            return ""
        self._experience = self._experience.after_pausing(changes)
        return f"changes of {' and '.join(changes)} went past the cost of recomputation before"

    @property
    def _plan(self) -> IdPlan:
        plan = self._view.decision.plan
        assert plan is not None
        return plan

    # --- which way ------------------------------------------------------------------------------

    def _moved(self) -> list[str]:
        before = self._found.state.inputs
        return [name for name, version in self._inputs.items() if before.get(name) != version]

    def _count(self, name: str) -> int | None:
        return self._view.feed(name).count(self._found.state.inputs[name], self._inputs[name])

    def _batch(self, name: str) -> ChangeBatch:
        since, until = self._found.state.inputs[name], self._inputs[name]
        return self._view.feed(name).changes(since, until, feed.MOST_CHANGES)

    def _why_anew(self, counts: Mapping[str, int | None]) -> str:
        if not self._view.is_incremental:
            return self._view.decision.reason
        fixed = [name for name in counts if name not in self._view.changing]
        if fixed and self._view.is_recursive:
            return f"{', '.join(fixed)}, declared as static, changed"
        for name, count in counts.items():
            if count is None:
                continue
            if count > feed.MOST_CHANGES:
                return self._unless_strict(f"{count:,} changes of {name}")
            if self._view.definition.policy == "auto" and count > 1000:
                rows = self._view.sources[name].table.snapshot(self._inputs[name]).rows
                if count > LARGE_SHARE * rows:
                    return f"{count:,} changes of {name}, which has {rows:,} rows"
        return ""

    def _unless_strict(self, too_many: str) -> str:
        reason = f"{too_many}, too many to bring in one by one"
        if self._view.definition.policy == "strict":
            raise QueryError(f"{reason}; the policy strict allows nothing else")
        return reason

    # --- bringing changes in --------------------------------------------------------------------

    def _brought(self, inputs: Inputs, changes: Mapping[str, int], jobs: Jobs) -> RefreshReport:
        if not inputs.diffs:
            return self._untouched(changes, jobs)
        return self._incremental(inputs, changes, jobs)

    def _untouched(self, changes: Mapping[str, int], jobs: Jobs) -> RefreshReport:
        """The inputs have new versions that change nothing here: only the state is written."""
        report = replace(
            self._report(changes, self._found.report.rows),
            reason="no change concerns the view",
            experience=self._experience.notes(),
        )
        return self._commit(Rewrite(), self._found.state.caches, report, jobs, {"changes": None})

    def _incremental(self, inputs: Inputs, changes: Mapping[str, int], jobs: Jobs) -> RefreshReport:
        view, timer = self._view, self._timer
        snapshot = view.table.snapshot(self._found.newest)
        caches = view.caches(self._found.state)
        kept: dict[str, DataFrame | Scanned | Layered] = {
            name: cache.relation(view.lake.spark) for name, cache in caches.items()
        }
        kept[view.script.view.name] = Scanned(
            view.lake.spark, view.table, snapshot, snapshot.files, view.layout.public_names
        )
        budget = self._experience.budget if self._may_fall_back else None
        with ExitStack() as running:
            running.enter_context(watched(view.lake.spark, budget))
            with timer.phase("compute"):
                brought = outcome(view, inputs, kept, self._found.state.inputs, self._inputs)
                found = running.enter_context(brought)
            with timer.phase("write"):
                versions = self._write_caches(caches, found)
                files, batch = self._write_view(snapshot, found)
                notes = view.changes_written(batch)
        count = snapshot.rows - sum(f.rows for f in files.remove) + sum(f.rows for f in files.add)
        report = replace(
            self._report(changes, count),
            rows_changed=_changed_rows(found.rows.get(view.script.view.name), view.layout.ids),
            accesses=found.accesses,
            jobs=found.jobs,
            experience=self._experience.after_success(changes).notes(),
        )
        return self._commit(files, versions, report, jobs, notes)

    # --- writing --------------------------------------------------------------------------------

    def _write_caches(self, caches: Mapping[str, Cache], found: Outcome) -> dict[str, int]:
        """New versions of the caches that change; the others keep theirs."""
        versions = dict(self._found.state.caches)
        for name, cache in caches.items():
            if name in found.rows:
                files = self._cache_files(cache, found)
                versions[name] = self._view.replace_cache(cache.kept, cache.table, files)
        return versions

    def _cache_files(self, cache: Cache, found: Outcome) -> list[DataFile]:
        name = cache.kept.name
        rows = found.rows[name]
        if rows is None or cache.is_heavy:
            return write_cache(found.whole(name), cache.table, order_of(self._view.script, name))
        return cache.changed(rows.gone, rows.came)

    def _write_view(self, snapshot: Snapshot, found: Outcome) -> tuple[Rewrite, ChangeBatch | None]:
        """The new files of the view, and its changes where they are few."""
        view, name = self._view, self._view.script.view.name
        declared = view.layout.declared
        if name not in found.rows:
            return Rewrite(), ChangeBatch(view.name, declared) if declared.key else None
        changes = found.rows[name]
        if changes is None:
            frame = view.layout.public_frame(found.whole(name))
            return Rewrite(tuple(write_frame(frame, view.table)), snapshot.files), None
        gone, came = view.layout.to_public(changes.gone), view.layout.to_public(changes.came)
        keys = gone.select(list(dict.fromkeys(view.layout.keys)))
        files = rewrite(view.lake.spark, view.table, snapshot, keys, came, view.lake.driver_bytes)
        return files, self._batch_of(gone, came)

    def _batch_of(self, gone: pa.Table, came: pa.Table) -> ChangeBatch | None:
        declared = self._view.layout.declared
        if not declared.key:
            return None
        names = list(declared.names)
        olds, news = to_rows(gone.select(names)), to_rows(came.select(names))
        return difference(self._view.name, declared, olds, news)

    def _commit(
        self,
        files: Rewrite,
        caches: Pins,
        report: RefreshReport,
        jobs: Jobs,
        notes: Mapping[str, object],
    ) -> RefreshReport:
        view = self._view
        state = view.state(self._inputs, self._tables, caches)
        report = view.timed(report, self._timer, jobs)
        said = {STATE: state.notes(), REPORT: report.notes(), **notes}
        version = view.table.commit(self._found.newest, files.add, files.remove, said)
        return replace(report, version=version)

    def _report(self, changes: Mapping[str, int], rows: int) -> RefreshReport:
        return RefreshReport(
            self._view.name,
            self._view.decision.strategy,
            changes=dict(changes),
            rows=rows,
            before=self._found.state.inputs,
            after=dict(self._inputs),
        )


def _is_the_scripts(problem: Exception) -> bool:
    """Whether a script failed by itself, so that the view's query may be right; what the tables,
    the disk or the user have wrong is an error whichever way the view goes."""
    expected = isinstance(problem, ViewkeepError) and not isinstance(problem, RunError)
    return not expected and not isinstance(problem, (OSError, MemoryError))


def _changed_rows(rows: RowChanges | None, ids: tuple[str, ...] | None) -> int:
    """How many rows were inserted, deleted or updated."""
    if rows is None:
        return 0
    if not ids:
        return int(max(rows.gone.num_rows, rows.came.num_rows))
    keys = [set(to_rows(table.select(list(ids)))) for table in (rows.gone, rows.came)]
    return len(keys[0] | keys[1])
