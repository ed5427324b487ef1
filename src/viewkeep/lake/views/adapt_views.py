"""Views over a table that gets another definition: other columns, types, a key, another place.

keeps its rows   its plan is the same, over the columns that it was defined over
defined anew     it reads a column of a wider type, or is kept in another way: the next refresh
                 computes it from scratch
stops            it reads a column that is gone, or has a type that is not wider
"""

from dataclasses import replace

from viewkeep.errors import ViewkeepError
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition, typed_columns
from viewkeep.lake.views.seen_columns import columns_read, with_seen_columns
from viewkeep.lake.views.view import View
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.widening import is_widening


def adapt_views(plans: ViewPlans, catalog: Catalog, table: TableDefinition) -> Catalog:
    """The catalog with another definition of a table, and of the views that it changes."""
    adapted = catalog.including(table)
    changed_views: set[str] = set()
    for view in catalog.order():
        if table.name in view.inputs:
            new = _adapted_reader(plans, catalog, adapted, view, table)
        elif changed_views & set(view.inputs):
            new = _defined_anew(plans, adapted, view) or view
        else:
            continue
        adapted = adapted.including(new)
        changed_views |= {view.name} if new.table != view.table else set()
    return adapted


def stopped_views(plans: ViewPlans, catalog: Catalog) -> dict[str, str]:
    """The views that cannot be planned, and why; those that read them are not told."""
    problems: dict[str, str] = {}
    for view in catalog.order():
        try:
            plans.view(view, catalog)
        except ViewkeepError as error:
            problems[view.name] = str(error)
    return problems


def _adapted_reader(
    plans: ViewPlans,
    before: Catalog,
    after: Catalog,
    view: ViewDefinition,
    table: TableDefinition,
) -> ViewDefinition:
    """A view that reads the table, as it is defined over the new one; as it was, where it stops."""
    old, now = before.tables[table.name], typed_columns(table.table)
    seen = dict(dict(view.sees).get(table.name) or typed_columns(old.table).items())
    widened = _widened_columns(Table(seen), table.table)
    stopped = with_seen_columns(view, table.name, seen, now)
    adapted = with_seen_columns(view, table.name, seen | widened, now)
    try:
        new_plan = plans.view(adapted, after)
    except ViewkeepError:
        return adapted
    is_same = old.location == table.location and not columns_read(
        new_plan.query, table.name, widened
    )
    if is_same and _is_kept_alike(plans, before, view, new_plan):
        return adapted
    return _defined_anew(plans, after, adapted) or stopped


def _widened_columns(seen: Table, now: Table) -> dict[str, str]:
    """The columns that hold all that they held and more: with their types now."""
    there, kinds = {field.name: field for field in now.columns}, typed_columns(now)
    return {
        field.name: kinds[field.name]
        for field in seen.columns
        if field.name in there and _is_compatible(field, there[field.name])
    }


def _is_compatible(old: Field, new: Field) -> bool:
    return old != new and (old.type == new.type or is_widening(old.type, new.type))


def _is_kept_alike(plans: ViewPlans, before: Catalog, view: ViewDefinition, new: View) -> bool:
    """Whether rows and caches of a view are those that its new plan keeps."""
    kept, declared = new.plan, new.layout.declared
    try:
        old = plans.view(view, before)
    except ViewkeepError:  # it was stopped: what happened to its columns since is not known
        return False
    return (old.plan, old.layout.declared) == (kept, declared)


def _defined_anew(
    plans: ViewPlans, catalog: Catalog, view: ViewDefinition
) -> ViewDefinition | None:
    """The view by a new definition, which the next refresh computes; None if it has none."""
    try:
        new = plans.define(catalog, view.name, view.newest_sql, ViewOptions.of(view), view.sees)
    except ViewkeepError:
        return None
    return replace(new, ready=True)
