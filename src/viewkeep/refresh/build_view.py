"""A view from scratch: files and caches that nobody sees, then one commit that shows them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from viewkeep.diffs.script import Materialized
from viewkeep.execute.backend import Backend, Target
from viewkeep.execute.engines import Choice, Engines
from viewkeep.lake import Costs, Pins, RefreshReport, Timer, ViewState
from viewkeep.lake.views.cache_versions import replace_cache, shared_version
from viewkeep.lake.views.caches import GROUP_ROWS, Cache, order_of
from viewkeep.lake.views.stored_view import REPORT, STATE, StoredView
from viewkeep.lake.views.view import View
from viewkeep.query.verbatim import Query
from viewkeep.refresh.costs import recompute_seconds
from viewkeep.refresh.relations import ViewRelations
from viewkeep.tables.log.delta import ConflictError, LakeTable
from viewkeep.tables.log.snapshots import DataFile


@dataclass(frozen=True)
class BuiltView:
    """A view that was computed and is not shown yet."""

    files: Sequence[DataFile]
    state: ViewState
    report: RefreshReport
    size: int
    """The bytes that were read."""
    is_warm: bool
    """Whether the engine had written rows before."""


def build_view(
    view: View,
    engines: Engines,
    inputs: Pins,
    tables: Pins,
    start: StoredView | None,
    reason: str = "",
    changes: Mapping[str, int] | None = None,
    first: bool = False,
    caches: bool = True,
) -> RefreshReport:
    """Compute a view from its inputs at these versions, and commit it; `first` tells that the
    definition has no version yet, `caches` whether they are written as well."""
    build = compute_view(view, engines, inputs, tables, reason, changes, first, caches)
    return commit_view(view, build, start)


def build_choice(view: View, engines: Engines, inputs: Pins) -> Choice:
    """The engine that computes a view from scratch."""
    size = sum(view.sources[name].table.snapshot(inputs[name]).size for name in view.sources)
    return engines.choose(view.definitions, size)


def compute_view(
    view: View,
    engines: Engines,
    inputs: Pins,
    tables: Pins,
    reason: str = "",
    changes: Mapping[str, int] | None = None,
    first: bool = False,
    caches: bool = True,
    is_quick: bool = False,
) -> BuiltView:
    """The view from scratch: files that nobody sees yet, and caches that nobody reads yet;
    `is_quick` tells that it is computed since that takes less time than its changes would."""
    timer = Timer()
    choice = build_choice(view, engines, inputs)
    backend = engines[choice.backend]
    is_warm = backend.is_warm
    build = _Build(view, backend, inputs)
    versions: dict[str, int] = {}
    if caches and view.has_caches:
        with timer.phase("caches"):
            versions = build.write_caches(may_reuse=first)
    with timer.phase("compute"):
        files = build.write_view(is_quick)
    report = RefreshReport(
        view.name,
        view.decision.strategy if first else "recompute",
        reason or view.decision.reason,
        changes or {},
        from_scratch=True,
        rows=sum(each.rows for each in files),
        after=dict(inputs),
        jobs=build.jobs,
        backend=choice.backend,
    )
    state = view.state(inputs, tables, versions)
    return BuiltView(files, state, timer.stamp(report), choice.size, is_warm)


def commit_view(view: View, build: BuiltView, start: StoredView | None) -> RefreshReport:
    """Show computed rows, as the next version after `start`; without one, as a new table, or
    as the next version of whatever a process that died, or a damaged table, left."""
    before = start.state.inputs if start else {}
    is_same = start is not None and start.state.build == build.state.build
    costs = Costs.from_notes(start.report.experience) if start and is_same else Costs()
    report, caches = build.report, build.report.phases.get("caches", 0.0)
    estimate = None  # of a first build: later ones are told by those before them
    if costs.of(report.backend).seconds is None:
        estimate = recompute_seconds(view, build.state.inputs, report.backend)
    build_figures = (report.seconds, build.size, caches, estimate, build.is_warm)
    costs = costs.after_build(report.backend, *build_figures)
    report = replace(report, before=before, experience=costs.notes())
    notes = {STATE: build.state.notes(), REPORT: report.notes()}
    fields, form = view.layout.fields, (view.definition.feed, view.marks_rows)
    if start is None and not view.table.exists():
        view.check_current()
        with suppress(ConflictError):  # a process that defines the same view was first
            text = view.definition.sql
            view.table.create(fields, build.files, notes, text, *form)
            return report
    newest = start.newest if start else view.table.version()
    view.check_current()
    version = view.table.replace(newest, fields, build.files, notes, *form)
    return replace(report, version=version)


class _Build:
    """The caches of a view one after the other, then the view from those that were written."""

    def __init__(self, view: View, backend: Backend, inputs: Pins) -> None:
        self._view, self._backend, self._inputs = view, backend, inputs
        self._relations = ViewRelations(view, {(name, "post"): inputs[name] for name in inputs})
        self.jobs = 0

    def write_caches(self, may_reuse: bool) -> dict[str, int]:
        """New versions of the caches, or those that other views have written."""
        view, versions = self._view, {}
        for cache in view.script.caches:
            table = view.cache_table(cache)
            view.lake.remove_damaged(table.uri)
            version = shared_version(view, cache, self._inputs) if may_reuse else None
            if version is None:
                target = cache_target(view, cache, table)
                files = self._write_query(
                    f'view "{view.name}": {cache.name}', cache.definition, target
                )
                version = replace_cache(view, cache, table, files, self._inputs)
            versions[cache.name] = version
            version_of_cache = Cache(cache, table, table.snapshot(version), view.cache_names(cache))
            self._relations[cache.name] = version_of_cache.relation()
        return versions

    def write_view(self, is_quick: bool) -> list[DataFile]:
        """Files with the rows of the view."""
        view = self._view
        has_caches = view.has_caches and view.script.caches[0].name in self._relations
        query = view.script.view.definition if has_caches else view.stored_query
        return self._write_query(f'view "{view.name}"', query, view_target(view, is_quick))

    def _write_query(self, place: str, query: Query, target: Target) -> list[DataFile]:
        result = self._backend.write(place, query, self._relations, target)
        self.jobs += result.jobs
        return result.files


def view_target(view: View, is_quick: bool = False) -> Target:
    """How a view is written as a whole: sorted by what is looked up, where rows are marked. A
    recomputation that is made for its cost does not sort all rows, which would take half as long
    again; tables are often in some order by themselves."""
    target = Target(view.table, view.layout.columns)
    if not view.marks_rows:
        return target
    order = order_of(view.script, view.script.view.name)
    return replace(target, order=order, group_rows=GROUP_ROWS, is_sorted=True, is_quick=is_quick)


def cache_target(view: View, cache: Materialized, table: LakeTable) -> Target:
    """How a cache is written as a whole: sorted by what is looked up."""
    columns = [(column, name) for name, column in view.cache_names(cache).items()]
    return Target(table, columns, order_of(view.script, cache.name), GROUP_ROWS)
