"""Another text of the same query: the view keeps its rows, its caches and its plan."""

from dataclasses import replace

from viewkeep.errors import QueryError
from viewkeep.lake.catalog import Catalog
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.refresh.preview import SAME, TEXT, change_of_view
from viewkeep.tables.log.delta import ConflictError


def set_text(plans: ViewPlans, name: str, sql: object) -> None:
    """Give a view another text of its query; an error if the query is another one."""
    catalog = plans.lake.catalog.read()
    old, statement = catalog.finished_view(name), plans.statement(name, sql)
    with statement.whole_text_errors():
        new = plans.define(catalog, name, statement.query, ViewOptions.of(old))
        statement.check_columns(each.name for each in new.table.visible)
    query = plans.view(new, catalog).query
    if change_of_view(plans, catalog, old, new, query) not in (SAME, TEXT):
        raise QueryError(
            f'view "{name}": this is another query than its own, not another text of it; '
            "create_view with replace=True computes it"
        )
    text = "" if new.sql == old.sql else new.sql

    def with_text(now: Catalog) -> Catalog:
        if now.views.get(name) != old:
            raise ConflictError(f'view "{name}": another process has defined it anew')
        return now.including(replace(old, text=text))

    plans.lake.catalog.change(f"text {name}", with_text)
