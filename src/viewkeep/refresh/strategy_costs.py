"""What refreshes of a view are expected to take by a strategy.

The work of its script (`diffs.costs`) is estimated for changes of each table: statements, rows of
operators, values read, rows written. How much of a table changes is what the user expects, or what
the last refreshes have seen.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import exp, inf
from statistics import mean

from viewkeep.diffs.costs.sizes import Size, SizeEstimates, Spread, passed_rows, size_of_table
from viewkeep.diffs.costs.work import ScriptWork, Work
from viewkeep.diffs.model import DELETE, INSERT, UPDATE
from viewkeep.diffs.passes.compose import VIEW
from viewkeep.diffs.script import Script
from viewkeep.execute.engines import Engines
from viewkeep.execute.few_rows import MOST_CHANGES, MOST_ROWS
from viewkeep.lake import RefreshReport
from viewkeep.lake.views.view import View
from viewkeep.query.algebra import AntiJoin, GroupBy, Join, Node, Scan, SemiJoin
from viewkeep.query.expressions import columns_of
from viewkeep.query.traversal import walk
from viewkeep.query.verbatim import Verbatim
from viewkeep.refresh.costs import SMALL
from viewkeep.refresh.prices import (
    PRICES,
    Prices,
    query_seconds,
    script_prices,
    way_of_diffs,
)
from viewkeep.tables.files.samples import value_counts
from viewkeep.tables.log.delta import StorageError

SHARE = 0.001
"""The part of a table's rows that is expected to change between two refreshes."""
REPORTS = 10
"""So many of the last refreshes tell which changes are to be expected."""
FILE_BYTES = 8e6
"""The bytes of a file of a large relation, which is written anew if one of its rows changes."""
COLUMN_BYTES = 6
"""The bytes of a value in a file, about."""
RUN_BY_TABLE = 1.25
"""What scripts that bring tables in one after the other take, in what their work tells."""


@dataclass(frozen=True)
class StrategyCost:
    """The seconds that a refresh by a strategy is expected to take, on average over the tables;
    `is_bound` tells that it takes more, and that how much more was not asked."""

    strategy: str
    seconds: float
    is_bound: bool = False
    by_table: tuple[tuple[str, int, float], ...] = ()
    """For each table, how many changes were expected, and the seconds that they take."""

    def __str__(self) -> str:
        return f"{self.strategy} {'over ' if self.is_bound else ''}{self.seconds:.2g} s"


@dataclass(frozen=True)
class ScriptPrices:
    """What an engine takes for scripts over relations of so many bytes."""

    backend: str
    size: int

    @property
    def refresh(self) -> float:
        """The least that a refresh takes."""
        return self.of(0, 0).refresh

    def of(self, changes: float, touched: float) -> Prices:
        """The prices for so many changes, that touch so many rows."""
        way = way_of_diffs(self.backend, changes, touched)
        return script_prices(self.backend, self.size, way)


@dataclass(frozen=True)
class Rates:
    """Sizes of tables, parts of them that change, and what an engine takes."""

    tables: Mapping[str, Size]
    shares: Mapping[str, float]
    price: ScriptPrices
    recompute: float
    """The seconds of a recomputation."""

    def cost(self, strategy: str, view: View, most: float = inf) -> StrategyCost:
        """The cost of a refresh after changes of one of the tables, on average; no more than that
        it is over `most`, if it is."""
        changes = {name: share * self.tables[name].rows for name, share in self.shares.items()}
        changes = {name: rows for name, rows in changes.items() if rows}
        works: dict[int, ScriptWork] = {}
        total, count, by_table = 0.0, max(1, len(changes)), []
        for name, rows in changes.items():
            script = script_for_table(view, name)
            if id(script) not in works:  # the same script may be that of all tables
                works[id(script)] = ScriptWork(script, self.tables)
            seconds = _seconds(works[id(script)], {name: rows}, self.price)
            seconds *= RUN_BY_TABLE if view.is_recursive else 1.0
            by_table.append((name, max(1, round(rows)), seconds))
            total += seconds
            if total > most * count:
                return StrategyCost(strategy, total / count, is_bound=True)
        return StrategyCost(strategy, total / count, by_table=tuple(by_table))


def rates_of(view: View, engines: Engines, shares: Mapping[str, float]) -> Rates | None:
    """What is known of changes of a view's tables; None where these are small."""
    size = sum(each.table.snapshot().size for each in view.sources.values())
    if size <= SMALL:
        return None
    expected = {name: shares.get(name, SHARE) for name in view.changing}
    backend, tables = engines.choose(view.queries, size).backend, _table_sizes(view)
    query, rows = view.computed, {name: each.rows for name, each in tables.items()}
    joined = 0.0 if isinstance(query, Verbatim) else passed_rows(query, SizeEstimates(tables))
    recompute = query_seconds(query, rows, joined, PRICES[backend])
    return Rates(tables, expected, ScriptPrices(backend, size), recompute)


def seen_shares(view: View) -> dict[str, float]:
    """The parts of tables that changed before the last refreshes, on average over those that have
    read them; none where its table cannot be read."""
    reports: list[RefreshReport] = []
    with suppress(StorageError):
        reports = list(islice((each for each in view.reports() if each.changes), REPORTS))
    seen: dict[str, float] = {}
    for name in view.changing:
        counts = [each.changes.get(name, 0) for each in reports if name in each.after]
        if counts:
            rows = max(1, view.sources[name].table.snapshot().rows)
            seen[name] = min(1.0, sum(counts) / len(counts) / rows)
    return seen


def script_for_table(view: View, table: str) -> Script:
    """The script that brings changes of a table in."""
    return view.recursive_script(table, None) if view.is_recursive else view.script


def _seconds(script: ScriptWork, changes: Mapping[str, float], price: ScriptPrices) -> float:
    """The seconds of changes, on average over the kinds of changes."""
    works = [script.after(changes, kind) for kind in (INSERT, UPDATE, DELETE)]
    count = sum(changes.values())
    return mean(_seconds_of_work(each, script.kept[VIEW], count, price) for each in works)


def _seconds_of_work(work: Work, view: Size, changes: float, prices: ScriptPrices) -> float:
    is_few = changes <= MOST_CHANGES and work.largest <= MOST_ROWS
    price = prices.of(changes, work.largest)
    seconds = price.refresh + price.value * work.values
    seconds += work.statements * (price.few_statement if is_few else price.statement)
    seconds += work.rows * (price.few_row if is_few else price.row)
    seconds += sum(price.kept * min(1.0, n) + price.change * n for n in work.changed.values())
    size = view.rows * len(view.spreads) * COLUMN_BYTES
    files = max(1.0, size / FILE_BYTES)
    return seconds + price.rewrite * size * (1 - exp(-work.changed.get(VIEW, 0.0) / files))


def _table_sizes(view: View) -> dict[str, Size]:
    """The sizes of what a view reads, with the spread of columns that it joins or groups by."""
    columns = _compared_columns(view.node)
    sizes = {}
    for name, source in view.sources.items():
        snapshot = source.table.snapshot()
        unknown = columns.get(name, set()) - set(source.declared.key[:1])
        counts = value_counts(source.table, snapshot, unknown)
        spreads = {n: Spread(c.distinct, c.agreement) for n, c in counts.items()}
        sizes[name] = size_of_table(source.declared, snapshot.rows, spreads)
    return sizes


def _compared_columns(view: Node) -> dict[str, set[str]]:
    """By table: the columns that joins compare and that groups are made by."""
    compared = set[str]()
    for node in walk(view):
        if isinstance(node, Join | SemiJoin | AntiJoin):
            compared |= columns_of(node.condition)
        elif isinstance(node, GroupBy):
            compared |= set(node.keys)
    columns: dict[str, set[str]] = {}
    for node in walk(view):
        if isinstance(node, Scan):
            own = {f.name for f in node.table.columns if f"{node.alias}.{f.name}" in compared}
            columns.setdefault(node.name, set()).update(own)
    return columns
