"""Which strategy a view is kept by, where the user leaves it open.

For each strategy that can keep the view, its script is made, and what refreshes by it take is
estimated (`strategy_costs`), as is a recomputation. IDs are the rule; another strategy is taken
where it is expected to be faster by `GAIN`. Where a recomputation is expected to be faster than
all, the view has IDs and no caches: each refresh still takes the cheaper way, and writes the caches
once they pay. A view that is computed anew anyway (a rebuild) chooses again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from time import perf_counter

from viewkeep.diffs.decide import HEAVY_LIGHT, MAPS, RECOMPUTE, VIEW_TREE
from viewkeep.errors import ArgumentError, QueryError, ViewkeepError, did_you_mean
from viewkeep.execute.engines import Engines
from viewkeep.lake import RefreshReport
from viewkeep.lake.catalog import Catalog, ViewDefinition
from viewkeep.lake.views.view import View
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.algebra import GroupBy, Join
from viewkeep.query.traversal import walk
from viewkeep.refresh.prices import PRICES
from viewkeep.refresh.strategy_costs import (
    REPORTS,
    Rates,
    StrategyCost,
    rates_of,
    script_for_table,
    seen_shares,
)

IDS = "id"
OTHERS = ("tuple", VIEW_TREE, MAPS, HEAVY_LIGHT)
GAIN = 1.05
"""So many times faster than by its own strategy, and than by a recomputation, a view is expected to
be by one that is taken."""
WORTH = 10
"""A status looks at views whose refreshes take more times the fixed cost of a recomputation."""
ADVICE_SECONDS = 1.0
"""A status that has taken so long to compare strategies compares those of no further view."""


@dataclass(frozen=True)
class Comparison:
    """What refreshes of a view take by its own strategy, which comes first, and by others."""

    costs: Sequence[StrategyCost]
    views: Mapping[str, View]
    recompute: float
    """The seconds of a recomputation."""

    @property
    def own(self) -> StrategyCost:
        """The cost of the view's own strategy."""
        return self.costs[0]

    @property
    def is_recomputed(self) -> bool:
        """Whether a recomputation is expected to be faster than by any strategy, or nearly."""
        best = min(each.seconds for each in self.costs)
        return self.recompute < min(self.own.seconds, GAIN * best)

    @property
    def better(self) -> StrategyCost | None:
        """The strategy that is expected to be faster than the view's own, and than recomputation,
        which every view may take."""
        best = min(self.costs, key=lambda each: (each.seconds, each.is_bound))
        most = min(self.own.seconds, self.recompute)
        return best if not best.is_bound and best.seconds * GAIN < most else None

    @property
    def better_definition(self) -> ViewDefinition | None:
        """The definition of the view by the better strategy, with the reason."""
        best = self.better
        if best is None:
            return None
        definition = self.views[best.strategy].definition
        return self._chosen_definition(definition, best.strategy, best)

    @property
    def first_definition(self) -> ViewDefinition:
        """The definition of a new view: by the better strategy, without caches, or its own."""
        better, own = self.better_definition, self.views[self.own.strategy].definition
        if better is not None:
            return better
        if self.is_recomputed:
            return self._chosen_definition(own, RECOMPUTE, self.own)
        return replace(own, expected=self.own.by_table, ready=False)

    def _chosen_definition(
        self, definition: ViewDefinition, chosen: str, cost: StrategyCost
    ) -> ViewDefinition:
        own = "IDs" if self.own.strategy == IDS else self.own.strategy
        return replace(
            definition,
            strategy="auto",
            chosen=chosen,
            chosen_why=f"expected to be faster than by {own}: {self}",
            expected=cost.by_table,
            ready=False,
        )

    def __str__(self) -> str:
        return ", ".join(map(str, [*self.costs, StrategyCost(RECOMPUTE, self.recompute)]))


def choose_strategy(
    plans: ViewPlans, catalog: Catalog, definition: ViewDefinition, engines: Engines
) -> ViewDefinition:
    """The definition of a new view with the strategy that is expected to be the fastest, if the
    user leaves it open and it makes a difference.

    Expected changes are those that the user states, else those of the view that it replaces. Only
    views that may be recomputed get another strategy than IDs: sums of parts may overflow where
    those of all rows do not.
    """
    if not is_open(definition):
        return definition
    view = plans.view(replace(definition, ready=True), catalog)
    if not _has_choice(view):
        return definition
    rates = rates_of(view, engines, {**seen_shares(view), **dict(definition.shares)})
    if rates is None:
        return definition
    return _compare(plans, catalog, view, rates).first_definition


def is_open(definition: ViewDefinition) -> bool:
    """Whether the strategy of a view is Viewkeep's choice."""
    return definition.strategy == "auto" and definition.policy == "auto"


def better_definition(plans: ViewPlans, view: View, engines: Engines) -> ViewDefinition | None:
    """The definition by which a view is to be computed anew, if its strategy is open and another
    one is expected to be much faster for changes like the last ones."""
    if not is_open(view.definition):
        return None
    try:
        comparison = compare_strategies(plans, view, engines, exactly=False)
    except ViewkeepError:  # what is wrong with its tables is told by the computation
        return None
    return comparison.better_definition if comparison else None


def compare_strategies(
    plans: ViewPlans, view: View, engines: Engines, exactly: bool = True
) -> Comparison | None:
    """What refreshes of a view are expected to take by each strategy that can keep it, for changes
    like those of its last refreshes; None where that makes no difference. Unless
    `exactly`, the estimate of a strategy stops once it is no better than the best."""
    if not _has_choice(view):
        return None
    shares = {**dict(view.definition.shares), **seen_shares(view)}
    rates = rates_of(view, engines, shares)
    if rates is None:
        return None
    return _compare(plans, plans.lake.catalog.read(), view, rates, exactly)


def _compare(
    plans: ViewPlans, catalog: Catalog, view: View, rates: Rates, exactly: bool = False
) -> Comparison:
    own = rates.cost(view.decision.strategy, view)
    costs, views = [own], {own.strategy: view}
    seconds_to_beat = min(own.seconds, rates.recompute) / GAIN
    others = [each for each in (IDS, *OTHERS) if each != own.strategy]
    may_gain = exactly or seconds_to_beat >= rates.price.refresh
    for strategy, other in _alternatives(plans, catalog, view, others if may_gain else ()):
        cost = rates.cost(strategy, other, *(() if exactly else (seconds_to_beat,)))
        views[strategy] = other
        costs.append(cost)
        seconds_to_beat = min(seconds_to_beat, cost.seconds)
    return Comparison(costs, views, rates.recompute)


def strategy_advice(plans: ViewPlans, view: View, engines: Engines) -> str:
    """What refreshes by each strategy are expected to take, and which would be better; nothing
    where the tables cannot be read."""
    try:
        comparison = compare_strategies(plans, view, engines)
    except ViewkeepError:  # what is wrong with them is told by the next refresh
        return ""
    if comparison is None:
        return ""
    best = comparison.better
    if best is None:
        return str(comparison)
    way = _way_to_strategy(view.definition, best.strategy)
    return f"{comparison}; {best.strategy} would be faster after changes like the last ones: {way}"


def _way_to_strategy(definition: ViewDefinition, strategy: str) -> str:
    """How a view gets another strategy."""
    if is_open(definition):
        return f'repair("{definition.name}") takes it, as the next rebuild does'
    return f'strategy="{strategy}"'


class StatusAdvice:
    """What `status` says of views whose last refreshes took long, if another strategy would have
    been much faster; it takes about `ADVICE_SECONDS` for all views, or one view longer."""

    def __init__(self, plans: ViewPlans, engines: Engines) -> None:
        self._plans, self._engines, self._seconds_left = plans, engines, ADVICE_SECONDS

    def __call__(self, view: View, history: Sequence[RefreshReport]) -> str:
        """The advice for a view with these refreshes; nothing where there is none."""
        recent = [each for each in history if each.changes][:REPORTS]
        if self._seconds_left <= 0 or not recent or not _took_long(recent):
            return ""
        start = perf_counter()
        try:
            return self._advice(view, recent)
        except Exception:  # what is wrong with its tables is told by the next refresh
            return ""
        finally:
            self._seconds_left -= perf_counter() - start

    def _advice(self, view: View, recent: Sequence[RefreshReport]) -> str:
        comparison = compare_strategies(self._plans, view, self._engines, exactly=False)
        best = comparison.better if comparison else None
        seconds = mean(each.seconds for each in recent)
        if best is None or best.seconds >= seconds:
            return ""
        return (
            f"the last refreshes took {seconds:.2g} s on average, {best.strategy} is expected to "
            f"take {best.seconds:.2g} s: {_way_to_strategy(view.definition, best.strategy)}"
        )


def _took_long(reports: Sequence[RefreshReport]) -> bool:
    """Whether refreshes took long enough for another strategy to make a difference."""
    price = PRICES.get(reports[0].backend)
    seconds = mean(each.seconds for each in reports)
    return price is not None and seconds >= WORTH * price.recompute


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
    plans: ViewPlans, catalog: Catalog, view: View, strategies: Iterable[str]
) -> Iterator[tuple[str, View]]:
    """The view by each strategy that can keep it."""
    definition = view.definition
    for strategy in strategies:
        options = replace(
            ViewOptions.of(definition), strategy=strategy, policy="auto", chosen="", chosen_why=""
        )
        try:
            about = (definition.name, definition.newest_sql, options, definition.sees)
            other = plans.define(catalog, *about)
            view_by_strategy = plans.view(replace(other, ready=True), catalog)
            script_for_table(view_by_strategy, view_by_strategy.changing[0])
        except (QueryError, IndexError):  # it cannot be kept so, or no table changes
            continue
        yield strategy, view_by_strategy
