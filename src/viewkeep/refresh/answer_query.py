"""The answer of a query over the tables and views of a lake, as they are now; nothing is kept."""

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.errors import ArgumentError
from viewkeep.execute.backend import Source
from viewkeep.execute.budget import OverBudgetError, within_budget
from viewkeep.execute.engines import Engines
from viewkeep.lake.catalog import Catalog
from viewkeep.lake.follow_tables import follow_named_tables
from viewkeep.lake.read import entry_rows
from viewkeep.lake.views.clock import clock_rows
from viewkeep.lake.views.view_plans import ViewPlans, inputs_of_query
from viewkeep.query.clock import CLOCK, clock_of
from viewkeep.query.verbatim import Verbatim
from viewkeep.tables.relations import Relation


def answer_query(
    plans: ViewPlans, sql: object, engines: Engines, most: int | None, seconds: float | None
) -> pa.Table:
    """The first rows of a query, or all of them; SQL means what it means in a view, and the order
    that it asks for is that of the rows. A query that takes longer than `seconds` is ended."""
    if most is not None and most < 0:
        raise ArgumentError(f"limit={most}: expected a number from 0")
    if seconds is not None and not seconds > 0:
        raise ArgumentError(f"timeout={seconds}: expected a number of seconds above 0")
    try:
        with within_budget(seconds):
            return _answer_query(plans, sql, engines, most)
    except OverBudgetError:
        raise OverBudgetError(
            f"the query took longer than {seconds:g} s, its time limit, and was ended"
        ) from None


def _answer_query(plans: ViewPlans, sql: object, engines: Engines, most: int | None) -> pa.Table:
    lake = plans.lake
    catalog = follow_named_tables(plans, sql, commit=False) if isinstance(sql, str) else Catalog()
    query, order = plans.shown_query(sql, catalog)
    if not isinstance(query, Verbatim):
        query = optimize(query)
    stored = {name: entry_rows(lake, name, None) for name in inputs_of_query(query)}
    relations: dict[Source, Relation] = {(name, "post"): rows for name, rows in stored.items()}
    relations[CLOCK, "post"] = clock_rows(clock_of(None))
    size = sum(rows.snapshot.size for rows in stored.values())
    engine = engines[engines.choose((query,), size).backend]
    return engine.answer("query", query, relations, order, most)
