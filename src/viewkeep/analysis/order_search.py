"""The search for the cheapest variable order: exact, top-down, by branch and bound."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from viewkeep.analysis.edge_cover import edge_cover
from viewkeep.analysis.variable_order import (
    INPUT,
    ZERO,
    Component,
    JoinShape,
    OrderCost,
    VariableOrder,
)
from viewkeep.query.constraints import closure

BUDGET = 600
"""How many roots a search tries before it only follows the most promising one."""

ONE = Fraction(1)

Measure = Callable[[Component, str], Fraction]
"""What a variable costs as the root of a component."""


@lru_cache(maxsize=64)
def best_order(shape: JoinShape) -> OrderCost:
    """The free-top order with the least update exponent, then the least width."""
    costs = RootCosts(shape)
    update = OrderSearch(shape, costs.update, ZERO).best()
    width = OrderSearch(
        shape, costs.width, ONE, lambda c, root: costs.update(c, root) <= update.cost
    ).best()
    exact = update.exact and width.exact
    return OrderCost(width.roots, update.cost, width.cost, exact)


@lru_cache(maxsize=64)
def best_width(shape: JoinShape) -> Fraction:
    """The static width: the least width over all free-top orders, whatever updates cost."""
    return OrderSearch(shape, RootCosts(shape).width, ONE).best().cost


@dataclass(frozen=True, slots=True)
class CheapestOrder:
    """The least cost, an order that has it, and whether the search was complete."""

    cost: Fraction
    roots: tuple[VariableOrder, ...]
    exact: bool


class RootCosts:
    """The exponents of a variable as the root of a component, computed once each."""

    def __init__(self, shape: JoinShape) -> None:
        self._shape = shape
        self._closures: dict[Component, dict[int, frozenset[str]]] = {}
        self._updates: dict[tuple[Component, str], Fraction] = {}

    def width(self, component: Component, root: str) -> Fraction:
        """rho*(bag(root)): the size of its view."""
        bag = self._shape.outside(component) | {root}
        return edge_cover(bag, self._component_edges(component).values())

    def update(self, component: Component, root: str) -> Fraction:
        """rho*(bag(root) minus what R determines), for the worst dynamic atom R below."""
        if (component, root) not in self._updates:
            self._updates[component, root] = self._worst_update(component, root)
        return self._updates[component, root]

    def _worst_update(self, component: Component, root: str) -> Fraction:
        edges = self._component_edges(component)
        bag = self._shape.outside(component) | {root}
        open_sets = {bag - edge for i, edge in edges.items() if self._shape.dynamic[i]}
        # A set inside another one is never the worst.
        worst = [s for s in open_sets if not any(s < other for other in open_sets)]
        return max((edge_cover(each, edges.values()) for each in worst), default=ZERO)

    def _component_edges(self, component: Component) -> dict[int, frozenset[str]]:
        """The atoms below, each with all that it determines by guards that are below too."""
        if component not in self._closures:
            below = self._shape.touching(component)
            rules = [rule for rule in self._shape.rules if rule.guard in below]
            atoms = self._shape.atoms
            self._closures[component] = {i: closure(atoms[i], rules) for i in below}
        return self._closures[component]


class OrderSearch:
    """Finds the order whose most expensive variable is cheapest.

    Choose a root, remove it, go on in each connected component. What is possible below depends
    only on the component, so results are shared; roots that cannot beat the limit are skipped.
    """

    def __init__(
        self,
        shape: JoinShape,
        measure: Measure,
        least: Fraction,
        admits: Callable[[Component, str], bool] = lambda component, root: True,
    ) -> None:
        self._shape = shape
        self._measure = measure
        self._minimum = least
        self._admits = admits
        self._cheapest: dict[Component, tuple[Fraction, str]] = {}
        self._at_least: dict[Component, Fraction] = {}
        self._budget = BUDGET

    def best(self) -> CheapestOrder:
        """The cheapest forest for all variables."""
        roots = self._shape.components(frozenset(self._shape.levels))
        costs = [self._least_cost(component, None) for component in roots]
        cost = max((cost for cost in costs if cost is not None), default=ZERO)
        return CheapestOrder(
            cost, tuple(self._order_of_component(c) for c in roots), self._budget > 0
        )

    def _least_cost(self, component: Component, limit: Fraction | None) -> Fraction | None:
        """The least cost of the component, or None if it does not stay below the limit."""
        if component in self._cheapest:
            cost = self._cheapest[component][0]
            return cost if limit is None or cost < limit else None
        floor = max(
            self._minimum, self._at_least.get(component, ZERO), self._cost_floor(component, limit)
        )
        if limit is not None and floor >= limit:
            return None
        best = self._cost_by_roots(component, limit, floor)
        if best is not None:
            self._cheapest[component] = best
            return best[0]
        if limit is not None:
            self._at_least[component] = limit
        return None

    def _cost_by_roots(
        self, component: Component, limit: Fraction | None, floor: Fraction
    ) -> tuple[Fraction, str] | None:
        best: tuple[Fraction, str] | None = None
        for root in self._root_candidates(component):
            self._budget -= 1
            cost = self._cost_with_root(component, root, limit)
            if cost is not None:
                best, limit = (cost, root), cost
            if best is not None and (best[0] <= floor or self._budget <= 0):
                break
        return best

    def _cost_with_root(
        self, component: Component, root: str, limit: Fraction | None
    ) -> Fraction | None:
        if not self._admits(component, root):
            return None
        cost = self._measure(component, root)
        if limit is not None and cost >= limit:
            return None
        for child in self._shape.components(component - {root}):
            below = self._least_cost(child, limit)
            if below is None:
                return None
            cost = max(cost, below)
        return cost

    def _order_of_component(self, component: Component) -> VariableOrder:
        root = self._cheapest[component][1]
        children = self._shape.components(component - {root})
        outside = self._shape.outside(component)
        depends_on = tuple(v for v in self._shape.levels if v in outside)
        return VariableOrder(root, depends_on, tuple(map(self._order_of_component, children)))

    def _cost_floor(self, component: Component, limit: Fraction | None) -> Fraction:
        """What the components of lower levels cost, which every free-top order meets as they are.

        A star with a bound centre and many free leaves, for example, costs the same in whatever
        order the leaves come.
        """
        if self._shape.determined:
            return ZERO
        levels = self._shape.levels
        top = min(levels[v] for v in component)
        lower = frozenset(v for v in component if levels[v] > top)
        costs = [self._least_cost(c, limit) for c in self._shape.components(lower)]
        if limit is not None and None in costs:
            return limit
        return max((cost for cost in costs if cost is not None), default=ZERO)

    def _root_candidates(self, component: Component) -> list[str]:
        """The variables that may be on top, the most connected first."""
        touching = self._shape.touching(component)
        uses = {v: sum(v in self._shape.atoms[i] for i in touching) for v in component}
        return sorted(self._roots_allowed(component), key=lambda v: -uses[v])

    def _roots_allowed(self, component: Component) -> list[str]:
        levels = self._shape.levels
        members = [v for v in levels if v in component]
        top = min(levels[v] for v in members)
        early = frozenset() if top == INPUT else self._shape.determined
        return [v for v in members if levels[v] == top or v in early]
