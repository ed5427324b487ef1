"""A round of refreshes: all views brought to the same versions of the base tables.

A round pins the newest version of every table, and takes the views in the order in which they
read each other. While one is committed, the next that does not read it is computed. When another
process refreshes at the same time, one of the two loses a commit; it then looks at the newest
versions and goes round again, and finds most of its work done.
"""

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from viewkeep.errors import ViewkeepError, problem_of
from viewkeep.execute.engines import Engines
from viewkeep.lake import Pins, RefreshReport
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition
from viewkeep.lake.follow_tables import define_followed_tables, follow_tables
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import NONE_YET, Transactions
from viewkeep.lake.views.problems import note_problems
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.lake.views.view_plans import PlansAtMoment
from viewkeep.refresh.commits import RunningCommits
from viewkeep.refresh.plan import FAILS, SKIP, Stage, definition_reason, plan_above, plan_view
from viewkeep.refresh.run import CommitView, compute_refresh
from viewkeep.tables.log.delta import ConflictError, StorageError
from viewkeep.tables.log.memory import forget_logs, remembered_logs

LOG = logging.getLogger(__name__)
TRIES = 50
WAIT = 0.2

Plan = PlansAtMoment
Switch = Callable[[View, StoredView, str], RefreshReport | None]
"""Computes a view that has to be computed anew for a reason by a better strategy; None if there is
none."""
Better = Callable[[View], ViewDefinition | None]
"""The definition that a view would be computed anew by, if that is not its own."""


class SwitchedError(ConflictError):
    """A view of the round has another definition now, and maybe those above it; `report` tells."""

    def __init__(self, report: RefreshReport) -> None:
        self.report = report
        super().__init__(f'view "{report.view}" was defined anew')


class RefreshError(ViewkeepError):
    """Views that could not be refreshed; `reports` tells of all, also of those that could."""

    def __init__(self, reports: Iterable[RefreshReport]) -> None:
        self.reports = list(reports)
        failed = [each for each in self.reports if each.error]
        lines = [f'view "{each.view}": {each.error}' for each in failed]
        fresh = len(self.reports) - len(failed)
        super().__init__("\n".join([*lines, f"the other views ({fresh}) are up to date"]))


@dataclass(frozen=True)
class RefreshRound:
    """What a round did: a report for each view, the versions that it pinned or made, for each of
    these the versions of the base tables below it, and why others have none. `earlier` are the
    reports of rounds that were begun before."""

    reports: dict[str, RefreshReport]
    pins: dict[str, int]
    below: dict[str, Pins]
    problems: dict[str, str]
    earlier: dict[str, RefreshReport]

    def add(self, reports: Mapping[str, RefreshReport], catalog: Catalog) -> None:
        """Views that were committed, or that could not be."""
        for name, report in reports.items():
            LOG.info("%s: %s", name, report.error or f"{report.strategy}, {report.seconds:.2f} s")
            self.reports[name] = self._with_earlier(report)
            if report.error:
                self.problems[name] = f"not refreshed, since it reads {name}"
            else:
                self.pins[name] = report.version
                self.below[name] = self.tables(catalog.views[name])

    def _with_earlier(self, report: RefreshReport) -> RefreshReport:
        """The report, or that of the round before which has brought the view there; properties of
        its table may have come after that."""
        if report.changed:
            self.earlier[report.view] = report
        return report if report.error else self.earlier.get(report.view, report)

    def inputs(self, definition: ViewDefinition) -> dict[str, int]:
        """The versions that a view is to read."""
        return {name: self.pins[name] for name in definition.inputs if name in self.pins}

    def tables(self, definition: ViewDefinition) -> dict[str, int]:
        """The versions of all base tables below a view."""
        versions: dict[str, int] = {}
        for name in definition.inputs:
            versions |= self.below.get(name, {})
        return versions


def refresh_views(
    lake: Lake,
    names: Iterable[str] | None,
    plan: Plan,
    engines: Engines,
    switch: Switch | None = None,
) -> list[RefreshReport]:
    """Refresh the views, or those that are wanted with what they read; reports in their order.
    Views that have to be computed anew may `switch` their strategy."""
    only, earlier = None if names is None else list(names), dict[str, RefreshReport]()

    def attempt() -> RefreshRound:
        return _refresh_round(lake, lake.catalog.read(), only, (), plan, engines, earlier, switch)

    current = _round_until_settled(lake, attempt)
    note_problems(lake, current.reports.values())
    return _reports_of_round(current)


def pinned_inputs(
    lake: Lake, definition: ViewDefinition, plan: Plan, engines: Engines
) -> RefreshRound:
    """Refresh what a view reads, and pin it, so that the view can be built from it."""

    def attempt() -> RefreshRound:
        catalog = lake.catalog.read()
        views = [name for name in definition.inputs if name in catalog.views]
        return _refresh_round(lake, catalog, views, definition.inputs, plan, engines, {})

    current = _round_until_settled(lake, attempt)
    note_problems(lake, current.reports.values())
    _reports_of_round(current)
    for name in definition.inputs:
        if name in current.problems:
            raise StorageError(current.problems[name])
    return current


def plan_views(
    lake: Lake, names: Iterable[str] | None, plan: Plan, engines: Engines, better: Better
) -> list[Stage]:
    """What `refresh_views` would do now, as far as logs tell; nothing is run. Views that have to be
    computed anew are said to take a `better` strategy."""
    with remembered_logs():
        return _plan_round(lake, names, plan, engines, better)


def _plan_round(
    lake: Lake, names: Iterable[str] | None, plan: Plan, engines: Engines, better: Better
) -> list[Stage]:
    catalog = lake.catalog.read()
    only = None if names is None else list(names)
    read = {name for view in catalog.order(only) for name in view.inputs}
    pins, problems = _pinned_tables(lake, [t for n, t in catalog.tables.items() if n in read])
    catalog = follow_tables(plan.plans, catalog, pins)
    order = catalog.order(only)
    stages: dict[str, Stage] = {}
    for definition in order:
        stages[definition.name] = stage = _stage_or_problem(
            definition, catalog, plan, engines, pins, problems, stages, better
        )
        if stage.action == SKIP:
            pins[definition.name] = plan(definition, catalog).stored().newest
    return list(stages.values())


def _stage_or_problem(
    definition: ViewDefinition,
    catalog: Catalog,
    plan: Plan,
    engines: Engines,
    pins: Pins,
    problems: dict[str, str],
    stages: Mapping[str, Stage],
    better: Better,
) -> Stage:
    for name in definition.inputs:
        if name in problems:
            problems[definition.name] = f"not refreshed, since it reads {definition.name}"
            return Stage(definition.name, FAILS, problems[name])
    try:
        view = plan(definition, catalog)
        lower = [n for n in definition.inputs if n in stages and stages[n].action != SKIP]
        stored = view.stored()
        if lower:
            stage = plan_above(view, stored.state, lower)
        else:
            stage = plan_view(view, stored, {n: pins[n] for n in definition.inputs}, engines)
        return _switch_stage(stage, view, stored, better)
    except Exception as error:  # whatever is wrong with a view stops no other view
        problems[definition.name] = f"not refreshed, since it reads {definition.name}"
        return Stage(definition.name, FAILS, problem_of(error))


def _switch_stage(stage: Stage, view: View, stored: StoredView, better: Better) -> Stage:
    """The stage of a view, which tells the strategy that it takes if it has to be computed anew."""
    other = better(view) if definition_reason(view, stored.state) else None
    if other is None:
        return stage
    return replace(
        stage, strategy=other.chosen, reason=f"{stage.reason}; {other.chosen} is {other.chosen_why}"
    )


def _round_until_settled(lake: Lake, attempt: Callable[[], RefreshRound]) -> RefreshRound:
    tries = 0
    while tries < TRIES:
        try:
            with remembered_logs():
                return attempt()
        except SwitchedError:  # each view is switched once
            continue
        except ConflictError:
            tries += 1
            time.sleep(WAIT * random.random() * tries)
    raise ConflictError(f"{lake.uri}: other processes refresh all the time; try again later")


def _reports_of_round(current: RefreshRound) -> list[RefreshReport]:
    reports = list(current.reports.values())
    if any(each.error for each in reports):
        raise RefreshError(reports)
    return reports


def _refresh_round(
    lake: Lake,
    catalog: Catalog,
    names: list[str] | None,
    also_pinned: Iterable[str],
    plan: Plan,
    engines: Engines,
    earlier: dict[str, RefreshReport],
    switch: Switch | None = None,
) -> RefreshRound:
    order = catalog.order(names)
    read = {name for view in order for name in view.inputs} | set(also_pinned)
    pins, problems = _pinned_tables(lake, [t for n, t in catalog.tables.items() if n in read])
    if define_followed_tables(plan.plans, catalog, pins):
        raise ConflictError("tables have other columns than before; the round begins anew")
    below: dict[str, Pins] = {name: {name: version} for name, version in pins.items()}
    reports = {view.name: RefreshReport(view.name, "none") for view in order}
    current = RefreshRound(reports, pins, below, problems, earlier)
    with RunningCommits() as commits:
        for number, definition in enumerate(order, 1):
            LOG.info("refreshing %s (%d of %d) ...", definition.name, number, len(order))
            current.add(commits.results(definition.inputs), catalog)
            try:
                commit = _computed_commit(definition, catalog, plan, current, engines, switch)
            except SwitchedError as switched:
                current.add(commits.results(view.name for view in order), catalog)
                earlier[definition.name] = switched.report
                raise
            if definition is order[-1]:
                current.add({definition.name: commit()}, catalog)
            else:
                commits.start(definition.name, commit)
        current.add(commits.results(view.name for view in order), catalog)
    return current


def _pinned_tables(
    lake: Lake, tables: Iterable[TableDefinition]
) -> tuple[dict[str, int], dict[str, str]]:
    """The newest version of each table that views may see, or why it has none: other tables may
    still be read. All are as they were between two decisions about transactions."""
    tables, transactions = list(tables), Transactions(lake)
    for _ in range(TRIES):
        decided = transactions.decided()
        pins_and_problems = _newest_table_versions(
            lake, tables, None if decided == NONE_YET else transactions
        )
        if transactions.decided() == decided:
            return pins_and_problems
        forget_logs(lake.at(each.location).uri for each in tables)
    raise ConflictError(f"{lake.uri}: transactions are decided all the time; try again later")


def _newest_table_versions(
    lake: Lake, tables: Iterable[TableDefinition], transactions: Transactions | None
) -> tuple[dict[str, int], dict[str, str]]:
    pins: dict[str, int] = {}
    problems: dict[str, str] = {}
    for each in tables:
        try:
            if transactions is not None:
                pins[each.name] = transactions.visible_version(each)
            else:
                pins[each.name] = lake.at(each.location).version()
        except StorageError as error:
            problems[each.name] = f'table "{each.name}": {error}'
    return pins, problems


def _computed_commit(
    definition: ViewDefinition,
    catalog: Catalog,
    plan: Plan,
    current: RefreshRound,
    engines: Engines,
    switch: Switch | None,
) -> CommitView:
    """Compute a view; the commit that shows it, or that tells what is wrong with it."""
    for name in definition.inputs:
        if name in current.problems:
            return _failing_commit(definition, current.problems[name])
    inputs, tables = current.inputs(definition), current.tables(definition)
    try:
        view = plan(definition, catalog)
        if switch is not None:
            _switch_rebuilt(view, switch)
        commit = compute_refresh(view, inputs, tables, engines)
    except ConflictError:
        raise
    except Exception as error:  # whatever happens inside a view stops no other view
        return _failing_commit(definition, problem_of(error))
    return lambda: _report_of_commit(definition, commit)


def _switch_rebuilt(view: View, switch: Switch) -> None:
    """Let a view that has to be computed anew switch its strategy."""
    stored = view.stored()
    reason = definition_reason(view, stored.state)
    report = switch(view, stored, reason) if reason else None
    if report is not None:
        raise SwitchedError(report)


def _report_of_commit(definition: ViewDefinition, commit: CommitView) -> RefreshReport:
    try:
        return commit()
    except ConflictError:
        raise
    except Exception as error:
        return _failing_commit(definition, problem_of(error))()


def _failing_commit(definition: ViewDefinition, problem: str) -> CommitView:
    return lambda: RefreshReport(definition.name, "none", error=problem)
