"""Runs the stage of one view: brings changes in by its delta script, or computes it anew.

Rows are computed and written down first; the commit that shows them is returned, to be made when
the caller wants it, perhaps while the next view is computed.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from viewkeep.changes import ChangeError
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.errors import ViewkeepError, problem_of
from viewkeep.execute.base_diffs import BaseDiffs, diff_inputs
from viewkeep.execute.budget import OverBudgetError, check_time, within_budget
from viewkeep.execute.engines import Choice, Engines, JobCount
from viewkeep.execute.errors import RunError
from viewkeep.lake import Costs, Experience, Pins, RefreshReport, Timer
from viewkeep.lake.views.cache_versions import (
    caches_over,
    open_caches,
    shared_versions,
    write_next_version,
)
from viewkeep.lake.views.caches import Cache
from viewkeep.lake.views.clock import clock_changes
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.query.clock import CLOCK
from viewkeep.refresh.build_view import commit_view, compute_view
from viewkeep.refresh.plan import (
    RECOMPUTE,
    SKIP,
    Stage,
    changed_inputs,
    cost_reason,
    fallback_estimate,
    pause_reason,
    plan_view,
    recompute_reason,
    too_many_reason,
    unless_strict,
    writes_caches,
)
from viewkeep.refresh.run_scripts import KeptRows, TooManyRowsError, ViewScripts
from viewkeep.refresh.write_changes import (
    Outcome,
    WrittenView,
    commit_written,
    write_caches,
    write_view,
)
from viewkeep.tables import feed
from viewkeep.tables.feed import TooManyChangesError, UnclearChangesError
from viewkeep.tables.files.rewrite import Rewrite
from viewkeep.tables.log.delta import DataFile
from viewkeep.tables.relations import StoredRows
from viewkeep.tables.table_changes import TableChanges

CommitView = Callable[[], RefreshReport]
"""Shows what a refresh has computed, and tells what it did."""


def compute_refresh(view: View, inputs: Pins, tables: Pins, engines: Engines) -> CommitView:
    """Compute a view at these versions of its inputs, which reflect these versions of tables."""
    stored = view.stored()
    stage = plan_view(view, stored, inputs, engines)
    return _StageRun(view, stored, inputs, tables, engines, stage).run()


class _StageRun:
    """One refresh of one view."""

    def __init__(
        self,
        view: View,
        stored: StoredView,
        inputs: Pins,
        tables: Pins,
        engines: Engines,
        stage: Stage,
    ) -> None:
        self._view, self._stored, self._inputs, self._tables = view, stored, inputs, tables
        self._engines, self._stage = engines, stage
        self._costs = Costs.from_notes(stored.report.experience)
        self._timer = Timer()
        self._changes: Mapping[str, TableChanges] = {}

    def run(self) -> CommitView:
        """Do what the stage says, up to the commit."""
        stage = self._stage
        if stage.action == SKIP:
            return self._report_of_skip
        if stage.action == RECOMPUTE:
            counts = {name: count for name, count in stage.changes.items() if count is not None}
            self._note_changes_avoided(counts)
            if stage.first:
                self._view.check_current()
            return self._recompute_view(stage.reason, counts)
        return self._incremental_or_fall_back()

    def _report_of_skip(self) -> RefreshReport:
        return RefreshReport(
            self._view.name,
            "none",
            self._stage.reason,
            rows=self._stored.report.rows,
            before=self._stored.state.inputs,
            after=dict(self._inputs),
            version=self._stored.newest,
        )

    def _note_changes_avoided(self, changes: Mapping[str, int]) -> None:
        """Changes are not brought in, though they could be."""
        stage, about = self._stage, self._stage.estimate
        if stage.paused:
            self._note_experience(self._experience.after_pausing(changes))
        if about is not None and about.is_dear:
            self._note_experience(self._experience.after_avoiding(changes, about.way))
        elif about is not None and not stage.caches:
            self._note_experience(
                self._experience.after_missing(about.recompute - about.incremental)
            )

    def _recompute_view(self, reason: str, changes: Mapping[str, int]) -> CommitView:
        stage = self._stage
        caches = stage.caches
        if stage.action != RECOMPUTE:
            caches = writes_caches(self._view)
        report = replace(self._stored.report, experience=self._costs.notes())
        start = replace(self._stored, report=report)
        about = (self._inputs, self._tables, reason, changes, stage.first, caches)
        is_quick = not (caches or stage.first)
        build = compute_view(self._view, self._engines, *about, is_quick)
        build = replace(build, report=replace(build.report, expected=self._estimate_notes))
        return lambda: commit_view(self._view, build, start)

    def _incremental_or_fall_back(self) -> CommitView:
        changes: dict[str, int] = {}
        with self._engines.counted_jobs() as jobs:
            try:
                with self._timer.phase("changes"):
                    self._changes = batches = self._input_changes()
                changes = {name: batch.size for name, batch in batches.items()}
                reason = self._recompute_reason(changes)
                if not reason:
                    return self._run_or_commit_state(
                        diff_inputs(self._id_plan, batches), changes, jobs
                    )
            except (TooManyChangesError, TooManyRowsError) as problem:
                reason = too_many_reason(self._view, str(problem))
            except UnclearChangesError as problem:
                reason = unless_strict(self._view, str(problem))
            except ChangeError as problem:
                raise ChangeError(
                    f'{problem}, then refresh; if it still fails: repair("{self._view.name}")'
                ) from problem
            except OverBudgetError as problem:
                self._note_experience(self._experience.after_giving_up(changes))
                reason = f"bringing the changes in went past the cost of recomputation: {problem}"
            except Exception as problem:
                if not (self._stage.fallback and _is_fault_of_script(problem)):
                    raise
                reason = f"bringing the changes in failed: {problem_of(problem)}"
        return self._recompute_view(reason, changes)

    def _recompute_reason(self, changes: Mapping[str, int]) -> str:
        """What the log did not tell may be known now."""
        if None not in self._stage.changes.values():
            return ""
        reason = recompute_reason(self._view, self._inputs, changes) or self._reason_of_cost(
            changes
        )
        if not reason:
            reason = pause_reason(self._view, changes, self._costs, self._stage.backend)
            if reason:
                self._note_experience(self._experience.after_pausing(changes))
        return reason

    def _reason_of_cost(self, changes: Mapping[str, int]) -> str:
        choice = Choice(self._stage.backend, self._stage.backend_reason, self._stage.size)
        about = fallback_estimate(
            self._view, self._stored, self._inputs, choice, changes, self._costs
        )
        self._stage = replace(self._stage, estimate=about)
        reason = cost_reason(about)
        if reason and about is not None:
            self._note_experience(self._experience.after_avoiding(changes, about.way))
        return reason

    @property
    def _experience(self) -> Experience:
        return self._costs.of(self._stage.backend)

    def _note_experience(self, experience: Experience) -> None:
        self._costs = self._costs.having(self._stage.backend, experience)

    @property
    def _estimate_notes(self) -> dict[str, float]:
        about = self._stage.estimate
        return about.notes() if about is not None else {}

    @property
    def _id_plan(self) -> IdPlan:
        plan = self._view.decision.plan
        assert plan is not None
        return plan

    def _input_changes(self) -> dict[str, TableChanges]:
        """The changes of all that the view reads."""
        batches = {
            name: self._changes_of_input(name)
            for name in changed_inputs(self._stored, self._inputs)
        }
        before, after = self._stored.state.clock, self._view.clock
        if before is not None and after is not None:
            batches[CLOCK] = clock_changes(before, after)
        return batches

    def _changes_of_input(self, name: str) -> TableChanges:
        since, until = self._stored.state.inputs[name], self._inputs[name]
        declared = self._view.sources[name].declared
        if not declared.key and name not in self._view.numbered:  # the plan does not read it
            return TableChanges.none(name, declared)
        return self._view.feed(name).changes(since, until, feed.MOST_CHANGES)

    # --- bringing changes in --------------------------------------------------------------------

    def _run_or_commit_state(
        self, inputs: BaseDiffs, changes: Mapping[str, int], jobs: JobCount
    ) -> CommitView:
        if not inputs.diffs:
            return lambda: self._commit_state(changes, jobs)
        return self._run_incrementally(inputs, changes, jobs)

    def _commit_state(self, changes: Mapping[str, int], jobs: JobCount) -> RefreshReport:
        """The inputs have new versions that change nothing here: only the state is written."""
        report = replace(
            self._refresh_report(changes, self._stored.report.rows),
            reason="no change concerns the view",
            experience=self._costs.notes(),
            jobs=jobs.count,
        )
        unchanged = WrittenView(Rewrite(), {"changes": None})
        return self._commit_refresh(unchanged, self._stored.state.caches, report)

    def _run_incrementally(
        self, inputs: BaseDiffs, changes: Mapping[str, int], jobs: JobCount
    ) -> CommitView:
        view, timer = self._view, self._timer
        snapshot = view.table.snapshot(self._stored.newest)
        caches = open_caches(view, self._stored.state)
        kept: KeptRows = {name: cache.relation() for name, cache in caches.items()}
        kept[view.script.view.name] = StoredRows(
            view.table, snapshot, snapshot.files, view.layout.public_names
        )
        names = changed_inputs(self._stored, self._inputs)
        shared = shared_versions(view, caches_over(view, caches.values(), names), self._inputs)
        budget, outcome_of_run = self._run_budget(), self._script_outcome(inputs, kept, shared)
        timing = timer.phase("compute")
        with within_budget(budget), timing, outcome_of_run as outcome, timer.phase("write"):
            touched = (caches[name] for name in caches if name in outcome.rows)
            shared |= shared_versions(view, touched, self._inputs)
            caches_to_write = {name: cache for name, cache in caches.items() if name not in shared}
            cache_files = write_caches(view, caches_to_write, outcome)
            check_time()
            written = write_view(view, snapshot, outcome)
        files = written.files
        timer.phases["compute"] -= timer.phases["write"]
        count = snapshot.rows - sum(f.rows for f in files.remove) + sum(f.rows for f in files.add)
        report = replace(
            self._refresh_report(changes, count),
            rows_changed=written.rows_changed,
            accesses=outcome.accesses,
            jobs=outcome.jobs + jobs.count,
        )
        versions = {**self._stored.state.caches, **shared}
        return lambda: self._commit_caches_and_view(
            caches_to_write, versions, cache_files, written, report
        )

    def _commit_caches_and_view(
        self,
        caches: Mapping[str, Cache],
        versions: dict[str, int],
        files: Mapping[str, list[DataFile]],
        written: WrittenView,
        report: RefreshReport,
    ) -> RefreshReport:
        """New versions of the caches that change, then the view, whose state names them."""
        with self._timer.phase("write"):
            for name, each in files.items():
                cache = caches[name]
                versions[name] = write_next_version(self._view, cache, each, self._inputs)
        seconds = self._timer.phases["compute"] + self._timer.phases["write"]
        self._note_experience(self._experience_after_run(report.changes, seconds))
        return self._commit_refresh(
            written, versions, replace(report, experience=self._costs.notes())
        )

    def _experience_after_run(self, changes: Mapping[str, int], seconds: float) -> Experience:
        """What was estimated is corrected; otherwise only what took too long is told."""
        about, experience = self._stage.estimate, self._experience
        if about is None:
            return experience.after_run(changes, seconds, self._stage.size)
        done = experience.after_success(changes)
        return done.after_measuring(changes, seconds, about.plain, about.way)

    def _script_outcome(
        self, inputs: BaseDiffs, kept: KeptRows, shared: Iterable[str]
    ) -> AbstractContextManager[Outcome]:
        backend = self._engines[self._stage.backend]
        scripts = ViewScripts(self._view, self._stored, self._inputs, self._changes, backend)
        return scripts.outcome(inputs, kept, frozenset(shared))

    def _run_budget(self) -> float | None:
        if not self._stage.fallback:
            return None
        about = self._stage.estimate
        return self._experience.budget(self._stage.size, about.incremental if about else 0.0)

    def _commit_refresh(
        self, written: WrittenView, caches: Pins, report: RefreshReport
    ) -> RefreshReport:
        view = self._view
        state = view.state(self._inputs, self._tables, caches)
        stamped = self._timer.stamp(report)
        return commit_written(view, self._stored.newest, written, state, stamped)

    def _refresh_report(self, changes: Mapping[str, int], rows: int) -> RefreshReport:
        return RefreshReport(
            self._view.name,
            self._view.decision.strategy,
            changes=dict(changes),
            rows=rows,
            before=self._stored.state.inputs,
            after=dict(self._inputs),
            backend=self._stage.backend,
            expected=self._estimate_notes,
        )


def _is_fault_of_script(problem: Exception) -> bool:
    """Whether a script failed by itself, so that the view's query may be right; what the tables,
    the disk or the user have wrong is an error whichever way the view goes."""
    is_ours = isinstance(problem, ViewkeepError) and not isinstance(problem, RunError)
    return not is_ours and not isinstance(problem, (OSError, MemoryError))
