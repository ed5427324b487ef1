"""Which strategy a view is kept by, where the user leaves it open.

For each strategy that can keep the view, its script is made and its work estimated for expected
changes of each table (`diffs.costs`): statements, rows of operators, values read, rows written.
IDs are the rule; another strategy is taken where it is expected to take less than half as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

from viewkeep.diffs.costs.sizes import Size, Spread, size_of_table
from viewkeep.diffs.costs.work import kept_sizes, work_of
from viewkeep.diffs.decide import HEAVY_LIGHT, MAPS, VIEW_TREE
from viewkeep.diffs.script import Script
from viewkeep.errors import ArgumentError, QueryError, did_you_mean
from viewkeep.execute.engines import Engines
from viewkeep.execute.few_rows import MOST_CHANGES
from viewkeep.lake.catalog import Catalog, ViewDefinition
from viewkeep.lake.views.view import View
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.algebra import AntiJoin, GroupBy, Join, Node, Scan, SemiJoin
from viewkeep.query.expressions import columns_of
from viewkeep.query.traversal import walk
from viewkeep.refresh.costs import PRICES, SMALL, Prices
from viewkeep.tables.files.samples import value_counts
from viewkeep.tables.log.delta import StorageError

IDS = "id"
OTHERS = ("tuple", VIEW_TREE, MAPS, HEAVY_LIGHT)
GAIN = 2.0
"""So many times faster than by IDs another strategy is expected to be where it is taken."""
WORTH = 10
"""Where refreshes by IDs are expected to take fewer times the fixed cost of a recomputation, others
are not looked at."""
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
    """The seconds that a refresh by a strategy is expected to take, on average over the tables."""

    strategy: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.strategy} {self.seconds:.2g} s"


def choose_strategy(
    plans: ViewPlans, catalog: Catalog, definition: ViewDefinition, engines: Engines
) -> ViewDefinition:
    """The definition with the strategy that is expected to be the fastest, if that is left open
    and makes a difference. Only a view that may be computed anew gets another than by IDs: sums of
    parts may overflow where those of all rows do not."""
    if definition.strategy != "auto" or definition.policy != "auto":
        return definition
    view = plans.view(replace(definition, ready=True), catalog)
    rates = _rates(view, engines) if _has_choice(view) else None
    if rates is None or rates.seconds(view) < WORTH * rates.price.recompute:
        return definition
    views = {IDS: view, **_alternatives(plans, catalog, definition)}
    costs = rates.costs(views)
    best = faster(costs, IDS)
    if best is None:
        return definition
    chosen = views[best.strategy].definition
    reason = f"expected to be faster than by IDs: {', '.join(map(str, costs))}"
    return replace(chosen, strategy="auto", chosen=best.strategy, chosen_why=reason, ready=False)


def strategy_costs(plans: ViewPlans, view: View, engines: Engines) -> list[StrategyCost]:
    """What refreshes of a view are expected to take by each strategy that can keep it, for changes
    like those of its last refreshes; none where that makes no difference."""
    rates = _rates(view, engines, _seen_shares(view)) if _has_choice(view) else None
    if rates is None:
        return []
    own, catalog = view.decision.strategy, plans.lake.catalog.read()
    others = _alternatives(plans, catalog, view.definition, (IDS, *OTHERS))
    return rates.costs({own: view, **{s: each for s, each in others.items() if s != own}})


def strategy_advice(plans: ViewPlans, view: View, engines: Engines) -> str:
    """What refreshes by each strategy are expected to take, and which would be better; nothing
    where the tables cannot be read."""
    own = view.decision.strategy
    try:
        costs = strategy_costs(plans, view, engines)
    except StorageError:  # what is wrong with them is told by the next refresh
        return ""
    best = faster(costs, own)
    text = ", ".join(map(str, costs))
    if best is None:
        return text
    way = "create it again" if view.definition.strategy == "auto" else f'strategy="{best.strategy}"'
    return f"{text}; {best.strategy} would be faster after changes like the last ones: {way}"


def faster(costs: Sequence[StrategyCost], own: str) -> StrategyCost | None:
    """The strategy that is expected to be much faster than the one that a view is kept by."""
    seconds = {each.strategy: each.seconds for each in costs}
    best = min(costs, key=lambda each: each.seconds, default=None)
    return best if best is not None and best.seconds * GAIN < seconds[own] else None


@dataclass(frozen=True)
class _Rates:
    """Sizes of tables, parts of them that change, and what an engine takes."""

    tables: Mapping[str, Size]
    shares: Mapping[str, float]
    price: Prices

    def seconds(self, view: View) -> float:
        """The seconds of a refresh after changes of one of the tables, on average."""
        seconds = [
            _seconds(_script(view, name), self.tables, {name: changes}, self.price)
            for name, share in self.shares.items()
            if (changes := share * self.tables[name].rows)
        ]
        return sum(seconds) / max(1, len(seconds))

    def costs(self, views: Mapping[str, View]) -> list[StrategyCost]:
        """The same by each strategy."""
        return [StrategyCost(strategy, self.seconds(view)) for strategy, view in views.items()]


def _rates(view: View, engines: Engines, seen: Mapping[str, float] | None = None) -> _Rates | None:
    """What is known of changes of a view's tables; None where they are small."""
    size = sum(each.table.snapshot().size for each in view.sources.values())
    if size <= SMALL:
        return None
    expected = {**dict(view.definition.shares), **(seen or {})}
    shares = {name: expected.get(name, SHARE) for name in view.changing}
    return _Rates(_table_sizes(view), shares, PRICES[engines.choose(view.queries, size).backend])


def _seen_shares(view: View) -> dict[str, float]:
    """The parts of tables that changed before the last refreshes, on average."""
    reports = [each for each in view.history() if each.changes][:REPORTS]
    seen: dict[str, float] = {}
    for name in view.changing if reports else ():
        rows = max(1, view.sources[name].table.snapshot().rows)
        counts = [report.changes.get(name, 0) for report in reports]
        seen[name] = min(1.0, sum(counts) / len(counts) / rows)
    return seen


def check_shares(definition: ViewDefinition) -> None:
    """Refuse expected changes of what the view does not read, and parts that are none."""
    for name, share in definition.shares:
        if name not in definition.inputs:
            hint = did_you_mean(name, definition.inputs)
            raise ArgumentError(f'shares: view "{definition.name}" does not read "{name}"{hint}')
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ArgumentError(f'shares["{name}"]: expected a part from 0 to 1, not {share!r}')


def _has_choice(view: View) -> bool:
    """Whether it sums up a join: nothing else can be kept in several ways that differ much."""
    return view.is_incremental and any(
        isinstance(node, GroupBy) and any(isinstance(each, Join) for each in walk(node.child))
        for node in walk(view.node)
    )


def _alternatives(
    plans: ViewPlans,
    catalog: Catalog,
    definition: ViewDefinition,
    strategies: Iterable[str] = OTHERS,
) -> dict[str, View]:
    """The view by each strategy that can keep it."""
    views = {}
    for strategy in strategies:
        options = replace(
            ViewOptions.of(definition), strategy=strategy, policy="auto", chosen="", chosen_why=""
        )
        try:
            other = plans.define(catalog, definition.name, definition.sql, options)
            view = plans.view(replace(other, ready=True), catalog)
            _script(view, view.changing[0])
        except (QueryError, IndexError):  # it cannot be kept so, or no table changes
            continue
        views[strategy] = view
    return views


def _script(view: View, table: str) -> Script:
    return view.recursive_script(table, None) if view.is_recursive else view.script


def _seconds(
    script: Script, tables: Mapping[str, Size], changes: Mapping[str, float], price: Prices
) -> float:
    work, kept = work_of(script, tables, changes), kept_sizes(script, tables)
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
