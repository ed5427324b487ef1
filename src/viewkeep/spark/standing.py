"""How fresh a view is: what its tables hold that it does not reflect yet."""

import time
from collections.abc import Callable

from viewkeep.spark.catalog import Catalog, ViewDefinition
from viewkeep.spark.feed import Feed
from viewkeep.spark.lake import Lake
from viewkeep.spark.report import problem_of
from viewkeep.spark.views import Found, View
from viewkeep.storage import ViewStatus, speed_up


def view_status(
    lake: Lake,
    catalog: Catalog,
    definition: ViewDefinition,
    plan: Callable[[ViewDefinition, Catalog], View],
) -> ViewStatus:
    """The status of a view; what is wrong with it is told, not raised."""
    empty = ViewStatus(definition.name, 0, definition.strategy, definition.policy)
    if not definition.ready:
        problem = "it was never finished: create it again, or drop it"
        return _with_problem(empty, problem)
    try:
        view = plan(definition, catalog)
        found = view.found()
        behind, waiting = unseen_changes(lake, catalog, found)
        return ViewStatus(
            definition.name,
            found.report.rows,
            view.decision.strategy,
            definition.policy,
            behind,
            waiting,
            found.report,
            speed_up(view.history()),
        )
    except Exception as error:  # the status of a broken view is that it is broken
        return _with_problem(empty, problem_of(error))


def _with_problem(status: ViewStatus, problem: str) -> ViewStatus:
    return ViewStatus(status.name, 0, status.strategy, status.policy, problem=problem)


def unseen_changes(
    lake: Lake, catalog: Catalog, found: Found
) -> tuple[dict[str, int | None], float]:
    """For each table below, the changes that the view has not seen; and how old the oldest is."""
    behind: dict[str, int | None] = {}
    oldest = float("inf")
    for name, seen in found.state.tables.items():
        definition = catalog.table(name)
        table = lake.at(definition.location)
        newest = table.version()
        if newest == seen:
            continue
        feed = Feed(lake.spark, name, definition.table, table)
        behind[name] = feed.count(seen, newest)
        oldest = min(oldest, table.log(seen, seen + 1)[0].timestamp / 1000)
    return behind, max(0.0, time.time() - oldest) if behind else 0.0
