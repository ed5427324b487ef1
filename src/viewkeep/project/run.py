"""The steps of a plan, run one after the other.

Each step is whole or not there at all, and the next plan is made from what is there: a run that was
cut short is finished by running again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewkeep.csv_input import CsvFile, read_declared
from viewkeep.keeper import Keeper, RefreshError
from viewkeep.lake import RefreshReport
from viewkeep.project.model import ProjectError, ProjectTable, ProjectView
from viewkeep.project.plan import (
    ALTER,
    CREATE,
    DROP,
    IN_PLACE,
    REGISTER,
    REPLACE,
    TABLE,
    ProjectPlan,
    Step,
    table_alteration,
)
from viewkeep.query.tables import Table

Say = Callable[[str], None]


@dataclass(frozen=True)
class ProjectRun:
    """What was done: the steps, and the refreshes after them."""

    steps: tuple[Step, ...]
    refreshes: tuple[RefreshReport, ...]

    @property
    def failed(self) -> bool:
        """Whether a view could not be refreshed."""
        return any(each.error for each in self.refreshes)


def run_plan(plan: ProjectPlan, keeper: Keeper, say: Say = lambda text: None) -> ProjectRun:
    """Run the steps, then refresh all views; nothing is run while the plan has a problem."""
    if plan.problems:
        first = plan.problems[0]
        raise ProjectError(f'{first.kind} "{first.name}": {first.reason}')
    done = tuple(_run_steps(plan, keeper, say))
    say("refreshing ...")
    try:
        refreshes = keeper.refresh()
    except RefreshError as error:
        refreshes = error.reports
    return ProjectRun(done, tuple(refreshes))


def _run_steps(plan: ProjectPlan, keeper: Keeper, say: Say) -> Iterator[Step]:
    tables = {each.name: each for each in plan.project.tables}
    views = {each.name: each for each in plan.project.views}
    for name in _dropped_first(plan, keeper):
        keeper.drop_view(name)
    for step in plan.steps:
        if not step.changes:
            continue
        say(f"{step.action} {step.name} ...")
        if step.kind == TABLE:
            _make_table(tables[step.name], step, keeper)
        elif step.action == DROP:
            if step.name in keeper.views:
                keeper.drop_view(step.name)
        elif step.action in IN_PLACE:
            _change_in_place(views[step.name], keeper)
        else:
            _make_view(views[step.name], keeper, replace=step.action == REPLACE)
        yield step


def _dropped_first(plan: ProjectPlan, keeper: Keeper) -> list[str]:
    """Views that read columns which are about to be lost, and are replaced or dropped themselves:
    they would be in the way."""
    losing = {each.name for each in plan.steps if each.action == REPLACE and each.destroys}
    changed = {each.name for each in plan.steps if each.action in (REPLACE, DROP)}
    above: list[str] = []
    for view in _lowest_first(keeper):
        if losing.union(above) & set(view.reads) and view.name in changed:
            above.append(view.name)
    return above[::-1]


def _lowest_first(keeper: Keeper) -> list[Any]:
    views = {each.name: each for each in keeper.describe_views()}
    order: dict[str, Any] = {}
    while len(order) < len(views):
        for name, view in views.items():
            if name not in order and all(n in order or n not in views for n in view.reads):
                order[name] = view
    return list(order.values())


def _make_table(table: ProjectTable, step: Step, keeper: Keeper) -> None:
    if step.action == REGISTER:
        keeper.register_table(table.name, table.location, **table.constraints)
        return
    assert table.table is not None
    if step.action == ALTER:
        alteration = table_alteration(keeper.table(table.name), table.table)
        if alteration is not None and (alteration.add or alteration.lost):
            keeper.alter_table(table.name, add=alteration.add, widen=alteration.widen)
        return
    assert step.action == CREATE
    rows = None if table.rows is None else read_csv_rows(table.rows, table.table)
    keeper.create_table(table.name, table.table, rows=rows, if_not_exists=True)


def read_csv_rows(path: Path, table: Table) -> list[Any]:
    """The rows of a CSV file, whose first line names its columns."""
    file = CsvFile(str(path))
    try:
        with file.named_in_errors():
            return list(read_declared(file, table))
    finally:
        file.close()


def _change_in_place(view: ProjectView, keeper: Keeper) -> None:
    keeper.set_lag(view.name, view.options.lag)
    keeper.set_text(view.name, view.sql)


def _make_view(view: ProjectView, keeper: Keeper, replace: bool) -> None:
    options = view.options
    keeper.create_view(
        view.name,
        view.sql,
        strategy=options.strategy,
        policy=options.policy,
        replace=replace,
        lag=options.lag,
        layout=options.layout,
        project=options.project,
    )
