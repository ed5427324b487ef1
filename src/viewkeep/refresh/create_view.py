"""Views that begin: a new one, one in place of another, one whose table was damaged.

A definition is in the catalog before its rows are there, and marked as unfinished: a process that
dies leaves a name that can be created again. A replacement is computed before it is defined.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime

from viewkeep.errors import ViewkeepError, problem_of
from viewkeep.execute.engines import Engines
from viewkeep.execute.errors import NeedsSparkError, RunError, SparkStartError
from viewkeep.lake import RefreshReport
from viewkeep.lake.catalog import Catalog, ViewDefinition
from viewkeep.lake.follow_tables import follow_named_tables
from viewkeep.lake.views.problems import forget_problem
from viewkeep.lake.views.stored_view import stored_view
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.clock import clock_of
from viewkeep.refresh.all_views import RefreshError, pinned_inputs, refresh_views
from viewkeep.refresh.build_view import build_view
from viewkeep.refresh.choose_strategy import check_shares, choose_strategy
from viewkeep.refresh.lag import check_lag
from viewkeep.refresh.replace_view import (
    compute_replacement,
    show_replacement,
    strategy_switch,
    switch_strategy,
)
from viewkeep.tables.log.delta import StorageError
from viewkeep.tables.log.memory import remembered_logs

FAILURES = (StorageError, RefreshError, RunError, NeedsSparkError, SparkStartError)


def is_failure(error: Exception) -> bool:
    """Whether an error is one of storage or of an engine, and not of what the user asked for."""
    from_spark = type(error).__module__.startswith(("pyspark", "py4j"))
    return isinstance(error, FAILURES) or from_spark


@dataclass(frozen=True)
class ViewRequest:
    """A view that a user asks for: its name and text, and what is to happen to one of that name.

    `as_of` is the moment of clocks in its query.
    """

    name: str
    sql: object
    options: ViewOptions
    replace: bool = False
    if_not_exists: bool = False
    backend: str | None = None
    as_of: datetime | date | str | None = None


def create_view(plans: ViewPlans, request: ViewRequest, engines: Engines) -> RefreshReport:
    """Define a view and fill it; replace a view of that name, or leave it, as the request says."""
    statement = plans.statement(request.name, request.sql)
    is_replaced = request.replace or statement.replace
    is_kept = (request.if_not_exists or statement.if_not_exists) and not is_replaced
    catalog = plans.lake.catalog.read()
    old = catalog.views.get(request.name)
    if old is not None and old.ready and is_kept:
        return stored_view(old.name, plans.lake.at(old.location)).report
    catalog = follow_named_tables(plans, statement.query, commit=True)
    old = catalog.views.get(request.name)
    engines, clock = engines.forcing(request.backend), clock_of(request.as_of)
    if old is None or (old.ready and not is_replaced):  # an unfinished one may be created again
        catalog.check_free(request.name)
    check_lag(request.options.lag)
    with statement.whole_text_errors():
        definition = plans.define(catalog, request.name, statement.query, request.options)
        statement.check_columns(each.name for each in definition.table.visible)
        check_shares(definition)
        chosen_definition = choose_strategy(plans, catalog, definition, engines)
    if chosen_definition.chosen:
        with suppress(ViewkeepError):  # sums of parts may overflow where those of all rows do not
            return _create_or_replace(plans, catalog, chosen_definition, old, engines, clock)
    else:
        definition = chosen_definition
    return _create_or_replace(plans, catalog, definition, old, engines, clock)


def _create_or_replace(
    plans: ViewPlans,
    catalog: Catalog,
    definition: ViewDefinition,
    old: ViewDefinition | None,
    engines: Engines,
    clock: int,
) -> RefreshReport:
    """Create a view, or replace `old`."""
    if old is None or not old.ready:
        return _define_and_fill(plans, definition, old, engines, clock)
    with plans.lake.marked():
        return _replace_view(plans, catalog, definition, engines, clock)


def _define_and_fill(
    plans: ViewPlans,
    definition: ViewDefinition,
    old: ViewDefinition | None,
    engines: Engines,
    clock: int,
) -> RefreshReport:
    """Define a view and fill it as of a moment; `old` is the definition of one that was never
    finished."""
    if old is None:
        plans.check_place(definition)
    name, catalog = definition.name, plans.lake.catalog
    catalog.change(f"create_view {name}", lambda now: now.taking(definition, old))
    try:
        report = _build_from_pins(plans, definition, engines, clock)
    except BaseException:
        catalog.change(f"give up {name}", lambda now: now.giving_up(definition))
        raise
    catalog.change(f"finish {name}", lambda now: now.finishing(definition))
    return report


def _replace_view(
    plans: ViewPlans, catalog: Catalog, definition: ViewDefinition, engines: Engines, clock: int
) -> RefreshReport:
    """Show the view by another definition once its rows are computed."""
    start = stored_view(definition.name, plans.lake.at(catalog.view(definition.name).location))
    reason = "the definition has changed"
    if definition.chosen:
        reason = f"{reason}; {definition.chosen} is {definition.chosen_why}"
    replacement = compute_replacement(plans, catalog, definition, engines, clock, reason)
    return show_replacement(plans, replacement, start, engines, clock)


def repair_view(plans: ViewPlans, name: str, engines: Engines, clock: int) -> RefreshReport:
    """Compute a view anew, whatever happened to its table, and refresh the views above it."""
    catalog = plans.lake.catalog.read()
    report = _rebuild_view(plans, catalog.finished_view(name), engines, clock, "repaired")
    readers = plans.lake.catalog.read().above(name)
    above = [_refresh_or_rebuild(plans, view, engines, clock, name) for view in readers]
    if any(each.error for each in above):
        raise RefreshError([report, *above])
    return report


def _refresh_or_rebuild(
    plans: ViewPlans, definition: ViewDefinition, engines: Engines, clock: int, repaired: str
) -> RefreshReport:
    """A view above one that was repaired: refreshed if it can be."""
    lake, name = plans.lake, definition.name
    try:
        try:
            with lake.marked():
                switch = strategy_switch(plans, engines, clock)
                return refresh_views(lake, [name], plans.at(clock), engines, switch)[-1]
        except Exception as error:
            if not is_failure(error):
                raise
        return _rebuild_view(plans, definition, engines, clock, f'"{repaired}" was repaired')
    except Exception as error:  # whatever is wrong with one view is that view's problem
        return RefreshReport(name, "none", error=problem_of(error))


def _rebuild_view(
    plans: ViewPlans, definition: ViewDefinition, engines: Engines, clock: int, reason: str
) -> RefreshReport:
    """Compute a view anew, maybe by another strategy."""
    lake = plans.lake
    lake.remove_damaged(definition.location)
    view = plans.view(definition, lake.catalog.read())
    with lake.marked():
        report = switch_strategy(plans, view, None, engines, clock, reason)
    if report is None:
        return _build_from_pins(plans, definition, engines, clock, reason)
    forget_problem(lake, definition.name)
    return report


def _build_from_pins(
    plans: ViewPlans, definition: ViewDefinition, engines: Engines, clock: int, reason: str = ""
) -> RefreshReport:
    lake = plans.lake
    with lake.marked():
        pinned = pinned_inputs(lake, definition, plans.at(clock), engines)
        view = plans.at(clock)(definition, lake.catalog.read())
        inputs, tables = pinned.inputs(definition), pinned.tables(definition)
        with remembered_logs():
            first, caches = not reason, view.begins_with_caches
            report = build_view(view, engines, inputs, tables, None, reason, None, first, caches)
        forget_problem(lake, view.name)
        return report
