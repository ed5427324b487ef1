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

from viewkeep.diffs.costs.sizes import Size, Spread, size_of_table
from viewkeep.diffs.costs.work import ScriptWork
from viewkeep.diffs.script import Script
from viewkeep.execute.engines import Engines
from viewkeep.execute.few_rows import MOST_CHANGES
from viewkeep.lake import RefreshReport
from viewkeep.lake.views.view import View
from viewkeep.query.algebra import AntiJoin, GroupBy, Join, Node, Scan, SemiJoin
from viewkeep.query.expressions import columns_of
from viewkeep.query.traversal import walk
from viewkeep.refresh.costs import PRICES, SMALL, Prices
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


@dataclass(frozen=True)
class StrategyCost:
    """The seconds that a refresh by a strategy is expected to take, on average over the tables;
    `is_bound` tells that it takes more, and that how much more was not asked."""

    strategy: str
    seconds: float
    is_bound: bool = False

    def __str__(self) -> str:
        return f"{self.strategy} {'over ' if self.is_bound else ''}{self.seconds:.2g} s"


@dataclass(frozen=True)
class Rates:
    """Sizes of tables, parts of them that change, and what an engine takes."""

    tables: Mapping[str, Size]
    shares: Mapping[str, float]
    price: Prices

    def cost(self, strategy: str, view: View, most: float = inf) -> StrategyCost:
        """The cost of a refresh after changes of one of the tables, on average; no more than that
        it is over `most`, if it is."""
        changes = {name: share * self.tables[name].rows for name, share in self.shares.items()}
        changes = {name: rows for name, rows in changes.items() if rows}
        works: dict[int, ScriptWork] = {}
        total, count = 0.0, max(1, len(changes))
        for name, rows in changes.items():
            script = script_for_table(view, name)
            if id(script) not in works:  # the same script may be that of all tables
                works[id(script)] = ScriptWork(script, self.tables)
            total += _seconds(works[id(script)], {name: rows}, self.price)
            if total > most * count:
                return StrategyCost(strategy, total / count, is_bound=True)
        return StrategyCost(strategy, total / count)


def rates_of(view: View, engines: Engines, shares: Mapping[str, float]) -> Rates | None:
    """What is known of changes of a view's tables; None where these are small."""
    size = sum(each.table.snapshot().size for each in view.sources.values())
    if size <= SMALL:
        return None
    expected = {name: shares.get(name, SHARE) for name in view.changing}
    return Rates(_table_sizes(view), expected, PRICES[engines.choose(view.queries, size).backend])


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


def _seconds(script: ScriptWork, changes: Mapping[str, float], price: Prices) -> float:
    work, kept = script.after(changes), script.kept
    is_few = sum(changes.values()) <= MOST_CHANGES
    seconds = (price.few_statement if is_few else price.statement) * work.statements
    seconds += price.operator_row * work.rows + price.value * work.values
    for name, rows in work.changed.items():
        whole = kept[name].rows * len(kept[name].spreads) * COLUMN_BYTES
        files = max(1.0, whole / FILE_BYTES)
        seconds += price.kept * min(1.0, rows) + price.change * rows
        seconds += price.rewrite * whole * (1 - exp(-rows / files))
    return seconds


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
