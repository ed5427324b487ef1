"""What views would be, over tables that need not be there yet, beside the views that are there.

A view is the same if its query is, as algebra: other names for tables, other blanks, an order of
clauses that the optimizer changes anyway are other texts of the same query.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.errors import ViewkeepError
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition, typed_columns
from viewkeep.lake.views.shared_caches import SharedForm
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.tables import Table
from viewkeep.query.types.widening import is_widening
from viewkeep.query.verbatim import Query, Verbatim
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


def preview_views(
    plans: ViewPlans,
    tables: Mapping[str, Table],
    views: Iterable[tuple[str, str, ViewOptions]],
) -> list[ViewPreview]:
    """Views over the tables and views of the lake, over `tables` that it does not have, or not with
    these columns, and over views before them; nothing is made."""
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
        previews.append(_preview_of_definition(plans, now, planned, definition))
        planned = planned.including(replace(definition, ready=True))
    return previews


def _preview_of_definition(
    plans: ViewPlans, now: Catalog, planned: Catalog, definition: ViewDefinition
) -> ViewPreview:
    view = plans.view(definition, planned)
    fields = {each.name: each.type for each in definition.table.visible}
    old = now.views.get(definition.name)
    is_there = old is not None and old.ready
    before = {each.name: each.type for each in old.table.visible} if old is not None else {}
    retyped = [name for name, kind in before.items() if fields.get(name, kind) != kind]
    return ViewPreview(
        definition.name,
        change_of_view(plans, now, old, definition, view.query) if old and is_there else NEW,
        view.decision.strategy,
        view.decision.reason,
        definition.inputs,
        _visible_columns(definition.table),
        tuple((name, str(fields[name])) for name in retyped),
        tuple(
            name
            for name, kind in before.items()
            if name not in fields or (name in retyped and not is_widening(kind, fields[name]))
        ),
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
