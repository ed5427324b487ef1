"""A view by another definition: its rows are computed, then it is defined, then they are shown.

Until the last step readers see the rows of the definition before. After a crash between the last
two the next refresh builds the view.
"""

from dataclasses import dataclass, replace

from viewkeep.errors import ViewkeepError
from viewkeep.execute.engines import Engines
from viewkeep.lake import RefreshReport
from viewkeep.lake.catalog import Catalog, ViewDefinition
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.refresh.all_views import Switch, pinned_inputs, refresh_views
from viewkeep.refresh.build_view import BuiltView, commit_view, compute_view
from viewkeep.refresh.choose_strategy import better_definition
from viewkeep.tables.log.delta import ConflictError


@dataclass(frozen=True)
class Replacement:
    """A view by a new definition, whose rows are computed and not shown yet."""

    view: View
    built: BuiltView


def compute_replacement(
    plans: ViewPlans,
    catalog: Catalog,
    definition: ViewDefinition,
    engines: Engines,
    clock: int,
    reason: str,
) -> Replacement:
    """Compute the rows of a new definition; an error if views above could not read it."""
    ready = replace(definition, ready=True)
    plans.replace(catalog, ready)
    view = plans.at(clock)(ready, catalog)
    pinned = pinned_inputs(plans.lake, ready, plans.at(clock), engines)
    inputs, tables = pinned.inputs(ready), pinned.tables(ready)
    first, caches = True, view.begins_with_caches
    built = compute_view(view, engines, inputs, tables, reason, None, first, caches)
    return Replacement(view, built)


def show_replacement(
    plans: ViewPlans,
    replacement: Replacement,
    start: StoredView | None,
    engines: Engines,
    clock: int,
    old: ViewDefinition | None = None,
) -> RefreshReport:
    """Define the view anew, and commit its rows after the version `start`; where `old` is given,
    only if the view is still defined so."""
    lake, view = plans.lake, replacement.view

    def defined(now: Catalog) -> Catalog:
        if old is not None and now.views.get(old.name) != old:
            raise ConflictError(f'view "{old.name}": another process has defined it anew')
        return plans.replace(now, view.definition)

    lake.catalog.change(f"replace {view.name}", defined)
    try:
        return commit_view(view, replacement.built, start)
    except ConflictError:  # another process has refreshed the view since
        return refresh_views(lake, [view.name], plans.at(clock), engines)[-1]


def switch_strategy(
    plans: ViewPlans,
    view: View,
    start: StoredView | None,
    engines: Engines,
    clock: int,
    reason: str,
) -> RefreshReport | None:
    """Compute a view anew by a strategy that is expected to be much faster than its own; None if
    there is none, or it fails: sums of parts may overflow where those of all rows do not."""
    other = better_definition(plans, view, engines)
    if other is None:
        return None
    catalog, why = plans.lake.catalog.read(), f"{reason}; {other.chosen} is {other.chosen_why}"
    try:
        replacement = compute_replacement(plans, catalog, other, engines, clock, why)
    except ConflictError:
        raise
    except ViewkeepError:
        return None
    return show_replacement(plans, replacement, start, engines, clock, view.definition)


def strategy_switch(plans: ViewPlans, engines: Engines, clock: int) -> Switch:
    """`switch_strategy` for the views of a refresh."""
    return lambda view, start, reason: switch_strategy(plans, view, start, engines, clock, reason)
