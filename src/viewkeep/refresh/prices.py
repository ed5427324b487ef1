"""Seconds of what engines do: the one table of prices that all estimates are made with.

    refreshes    (`costs`) from the numbers of rows, bytes and statements alone: it is asked at each
                 refresh, and corrected by what refreshes of the view have taken
    strategies   (`strategy_costs`) from the work of scripts, statement by statement, with the
                 spread of values: it is asked when a view is created, by `explain` and by `status`

Prices of DuckDB fit refreshes on one machine of two cores: the cases of `bench.choices`, and the
recomputations of `bench.keeper` (1M to 50M rows) and `bench.tpch`. Those of Spark's driver and of
its recomputations fit `bench.keeper` as well, those of its jobs one of 40 jobs; what scripts take
in jobs by row and value is a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeep.query.algebra import Scan
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.verbatim import Query, Verbatim


@dataclass(frozen=True)
class Prices:
    """Seconds of what an engine does."""

    refresh: float
    """A refresh that brings changes in, whatever changes."""
    kept: float
    """A kept relation that changes: the rows before, the difference, a commit."""
    statement: float
    """A statement that the engine runs, without rows."""
    few_statement: float
    """The same where so few rows change that they go through Python, and rows are looked up."""
    row: float
    """A row of an operator in the engine."""
    few_row: float
    """The same in Python."""
    value: float
    """A value of a table or cache that a script reads."""
    look_up: float
    """A byte of a relation in which keys are looked up, of which a part is read."""
    change: float
    """A row that changes of a table, or of a kept relation."""
    touch: float
    """A row of the largest table that changes of smaller ones meet, if all keys are as frequent."""
    mark: float
    """Such a row of a view whose rows are marked as deleted and added, not written anew."""
    rewrite: float
    """A byte of the view that is written anew around the rows that change; caches get overlays."""
    recompute: float
    """A recomputation without rows."""
    read: float
    """A value that a recomputation reads, once for every place that names the table."""
    joined: float
    """A row that a join of a recomputation passes on, or looks up."""
    untried: float
    """What changes of tables may cost more the first time than all of this tells."""


PRICES = {
    "duckdb": Prices(
        refresh=5e-3,
        kept=9.5e-3,
        statement=6.8e-3,
        few_statement=1.3e-3,
        row=11e-9,
        few_row=1.1e-6,
        value=1.3e-9,
        look_up=1.2e-9,
        change=4.5e-6,
        touch=0.8e-6,
        mark=1e-6,
        rewrite=7e-9,
        recompute=11e-3,
        read=4e-9,
        joined=15e-9,
        untried=0.03,
    ),
    "spark": Prices(
        refresh=0.1,
        kept=2.0,
        statement=1.5,
        few_statement=0.05,
        row=0.5e-6,
        few_row=20e-6,
        value=30e-9,
        look_up=10e-9,
        change=10e-6,
        touch=1.5e-6,
        mark=3e-6,
        rewrite=40e-9,
        recompute=0.25,
        read=25e-9,
        joined=25e-9,
        untried=2.0,
    ),
}
DRIVER = replace(
    PRICES["spark"],
    refresh=0.01,
    kept=0.02,
    statement=0.0045,
    few_statement=0.002,
    row=20e-6,
    change=50e-6,
    touch=30e-6,
    rewrite=16e-9,
    untried=0.1,
)
"""Those of diffs on Spark's driver, which looks rows up by itself: there is no job."""
DRIVER_BYTES = 256 << 20
"""The most bytes of relations of which all that is looked up is surely read on the driver."""
LOOK_UP_JOBS = replace(DRIVER, kept=0.5, statement=0.22, few_statement=0.05)
"""Those of diffs on the driver beside larger relations, in which a job may look rows up."""
DRIVER_CHANGES, DRIVER_ROWS, JOBS = 150_000, 750_000, "jobs"
"""The most changes, and the most rows that they may touch, for their diffs to stay on the driver:
selections keep a part of these. Larger diffs stay in Spark's jobs: what the one took does not tell
what the other takes."""
RUN = 0.45
"""The part of the statements that changes of a table may run that they do run: others are for other
kinds of changes."""


def way_of_diffs(backend: str, changes: float, touched: float) -> str:
    """Whether diffs of so many changes, that touch so many rows, stay in Spark's jobs."""
    is_small = changes <= DRIVER_CHANGES and touched <= DRIVER_ROWS
    return JOBS if backend == "spark" and not is_small else ""


def script_prices(backend: str, size: int, way: str) -> Prices:
    """Those of scripts over relations of so many bytes: of the engine, or of Spark's driver."""
    if backend != "spark" or way == JOBS:
        return PRICES[backend]
    return DRIVER if size <= DRIVER_BYTES else LOOK_UP_JOBS


def query_seconds(query: Query, rows: Mapping[str, float], joined: float, price: Prices) -> float:
    """The seconds of a recomputation from tables of so many rows, of which joins pass so many on;
    of columns of which nothing is known `joined_rows` tells that, of others `passed_rows`."""
    if isinstance(query, Verbatim):
        return price.recompute
    values = sum(
        rows.get(node.name, 1) * len(columns)  # the clock is no table
        for node, columns in needed_columns(query, never_none=True).items()
        if isinstance(node, Scan)
    )
    return price.recompute + price.read * values + price.joined * joined
