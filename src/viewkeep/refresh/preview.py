"""What views would be, over tables that need not be there yet, beside the views that are there.

A view is the same if its query is, as algebra: other names for tables, other blanks, an order of
clauses that the optimizer changes anyway are other texts of the same query.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.programs.theory import theory_of
from viewkeep.errors import ViewkeepError
from viewkeep.execute.engines import Engines
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition, typed_columns
from viewkeep.lake.views.shared_caches import SharedForm
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.tables import Table
from viewkeep.query.types.widening import is_widening
from viewkeep.query.verbatim import Query, Verbatim
from viewkeep.refresh.choose_strategy import choose_strategy
from viewkeep.refresh.lag import check_lag

NEW, SAME, TEXT, OPTIONS, QUERY = "new", "same", "text", "options", "query"
"""What differs from the view of that name that is there."""
COMPARED = ("strategy", "policy", "layout")
"""Options that decide how rows are kept."""


@dataclass(frozen=True)
class ViewPreview:
    """A view as it would be: how it would be kept and why, and what of it is `change`d.

    `retyped` are the columns that the view of that name has with another type, with the new one;
    `lost` those that this one does not have, or with a type that does not hold all their values.
    """

    name: str
    change: str = NEW
    strategy: str = ""
    reason: str = ""
    reads: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    retyped: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] = ()
    problem: ViewkeepError | None = None
    theory: tuple[tuple[str, str], ...] = ()
    """What the theory says of its query, by names, as `explain` tells it."""


def preview_views(
    plans: ViewPlans,
    tables: Mapping[str, Table],
    views: Iterable[tuple[str, str, ViewOptions]],
    engines: Engines,
) -> list[ViewPreview]:
    """Views over the tables and views of the lake, over `tables` that it does not have, or not with
    these columns, and over views before them; nothing is made. Where all tables are there, the
    strategy is the one that the view would get now."""
    now = plans.lake.catalog.read()
    planned = now
    for name, table in tables.items():
        if name not in now.entries:
            place = plans.lake.place(name)
            planned = planned.including(TableDefinition(name, table, place, owned=True))
        elif name in now.tables:
            planned = planned.including(replace(now.tables[name], table=table))
    previews = []
    for name, sql, options in views:
        try:
            check_lag(options.lag)
            definition = plans.define(planned, name, sql, options)
        except ViewkeepError as error:
            previews.append(ViewPreview(name, problem=error))
            continue
        if all(planned.entries[each] == now.entries.get(each) for each in definition.inputs):
            definition = _with_chosen_strategy(plans, planned, definition, engines)
        previews.append(_preview_of_definition(plans, now, planned, definition))
        planned = planned.including(replace(definition, ready=True))
    return previews


def _with_chosen_strategy(
    plans: ViewPlans, planned: Catalog, definition: ViewDefinition, engines: Engines
) -> ViewDefinition:
    """The definition with its strategy; without a choice where a table cannot be read."""
    try:
        return choose_strategy(plans, planned, definition, engines)
    except ViewkeepError:
        return definition


def _preview_of_definition(
    plans: ViewPlans, now: Catalog, planned: Catalog, definition: ViewDefinition
) -> ViewPreview:
    view = plans.view(definition, planned)
    fields = {each.name: each.type for each in definition.table.visible}
    old = now.views.get(definition.name)
    is_there = old is not None and old.ready
    before = {each.name: each.type for each in old.table.visible} if old is not None else {}
    retyped = [name for name, kind in before.items() if fields.get(name, kind) != kind]
    change, decision = NEW, view.decision
    if old is not None and is_there:
        change = change_of_view(plans, now, old, definition, view.query)
        if change in (SAME, TEXT):
            decision = plans.view(old, now).decision
    return ViewPreview(
        definition.name,
        change,
        decision.strategy,
        decision.reason,
        definition.inputs,
        _visible_columns(definition.table),
        tuple((name, str(fields[name])) for name in retyped),
        tuple(
            name
            for name, kind in before.items()
            if name not in fields or (name in retyped and not is_widening(kind, fields[name]))
        ),
        theory=() if isinstance(view.query, Verbatim) else tuple(theory_of(view.query)),
    )


def change_of_view(
    plans: ViewPlans, now: Catalog, old: ViewDefinition, new: ViewDefinition, query: Query
) -> str:
    """What a new definition, whose query is given, changes of a view that is there."""
    if any(getattr(old, each) != getattr(new, each) for each in COMPARED):
        return OPTIONS
    try:
        before = plans.view(old, now).query
    except ViewkeepError:  # a view that can no longer be read
        return QUERY
    if query_key(before) != query_key(query):
        return QUERY
    return SAME if old.newest_sql == new.sql else TEXT


def query_key(query: Query) -> str:
    """What tells a query from all that may give other rows, whatever its tables are called in it.

    Queries with one key are equal; equal queries may have several.
    """
    if isinstance(query, Verbatim):
        return repr((query.text, query.tables))
    return f"{query.names} {SharedForm(optimize(query), (), ()).key}"


def _visible_columns(table: Table) -> dict[str, str]:
    visible = {field.name for field in table.visible}
    return {name: kind for name, kind in typed_columns(table).items() if name in visible}
