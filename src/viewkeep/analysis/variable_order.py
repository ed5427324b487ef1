"""Variable orders: the shape of a view tree, and the search for the cheapest one.

A variable order is a forest over the query's variables in which the variables of every atom lie on
one path to a root. It stands for a view tree with one join per variable (ivm_lecture, F-IVM). For a
variable X let below(X) be the atoms with a variable in the subtree of X, dep(X) the ancestors of X
that occur in them, and bag(X) = {X} with dep(X). Then, for databases of size N,

    view sizes and preprocessing   N^w,  w = max over X of rho*(bag(X))
    single-tuple update            N^d,  d = max over X, and dynamic atoms R below X, of
                                         rho*(bag(X) minus what R's variables determine)

where rho* is the fractional edge cover number over below(X). Dependencies count only where their
guard is below X: a view may use nothing that an update elsewhere could change. Enumeration has
constant delay when inputs come above outputs and these above bound variables ("free-top").
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from viewkeep.analysis.edge_cover import edge_cover
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Dependency, closure, dependencies

INPUT, OUTPUT, BOUND = 0, 1, 2
"""Levels of variables from top to bottom of an order."""

UPDATE, WIDTH = 0, 1
"""Positions in a pair of costs."""

ZERO = Fraction(0)

Component = frozenset[str]


@dataclass(frozen=True, slots=True)
class VariableOrder:
    """A variable, the ancestors its view depends on, and the orders below it."""

    variable: str
    depends_on: tuple[str, ...]
    children: tuple["VariableOrder", ...] = ()

    def walk(self) -> Iterator["VariableOrder"]:
        """This node and all below it, top-down."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class OrderCost:
    """A forest of variable orders with the exponents of its view tree."""

    roots: tuple[VariableOrder, ...]
    update: Fraction
    width: Fraction


@dataclass(frozen=True)
class JoinShape:
    """All that a search for variable orders needs to know of a query."""

    atoms: tuple[frozenset[str], ...]
    levels: dict[str, int]
    dynamic: tuple[bool, ...]
    rules: tuple[Dependency, ...] = ()

    @staticmethod
    def of(query: ConjunctiveQuery) -> "JoinShape":
        """The shape of a query as it stands; access patterns want its fracture."""
        levels = dict.fromkeys(query.variables, BOUND)
        levels |= dict.fromkeys(query.outputs, OUTPUT) | dict.fromkeys(query.inputs, INPUT)
        static = query.constraints.static
        return JoinShape(
            tuple(atom.schema for atom in query.atoms),
            levels,
            tuple(atom.relation not in static for atom in query.atoms),
            dependencies(query),
        )

    @cached_property
    def determined(self) -> frozenset[str]:
        """The bound variables that functional dependencies derive from the free ones.

        Every output tuple has one value for them, so they may stand among the free variables.
        A degree bound does not do: it could repeat an output tuple.
        """
        free = {variable for variable, level in self.levels.items() if level != BOUND}
        exact = [rule for rule in self.rules if rule.bound == 1]
        return closure(free, exact) - free

    def components(self, variables: frozenset[str]) -> list[Component]:
        """The variables split into parts that share no atom, in order of first appearance."""
        rest = [v for v in self.levels if v in variables]
        found: list[Component] = []
        while rest:
            reached = frontier = frozenset({rest[0]})
            while frontier:
                touching = [atom for atom in self.atoms if atom & frontier]
                frontier = (variables & frozenset().union(*touching)) - reached
                reached |= frontier
            found.append(reached)
            rest = [v for v in rest if v not in reached]
        return found


def best_order(shape: JoinShape, free_top: bool = True) -> OrderCost:
    """The order with the least update exponent, then the least width."""
    return OrderSearch(shape, free_top).best()


def best_width(shape: JoinShape) -> Fraction:
    """The static width: the least width over all free-top orders, whatever updates cost."""
    static = JoinShape(shape.atoms, shape.levels, (False,) * len(shape.atoms), shape.rules)
    return OrderSearch(static, free_top=True).best().width


class OrderSearch:
    """Exact search, top-down: choose a root, remove it, go on in each connected component.

    What is possible below depends only on the component, so results are shared; candidates that
    cannot beat the best so far are cut off.
    """

    def __init__(self, shape: JoinShape, free_top: bool = True) -> None:
        self._shape = shape
        self._free_top = free_top
        self._updates: dict[Component, Fraction] = {}
        self._orders: dict[Component, tuple[Fraction, VariableOrder] | None] = {}
        self._costs: dict[Component, dict[str, tuple[Fraction, Fraction]]] = {}

    def best(self) -> OrderCost:
        """Two passes: the least update exponent, then the least width that goes with it."""
        roots = self._shape.components(frozenset(self._shape.levels))
        update = max((self._least_update(c) for c in roots), default=ZERO)
        found = [self._least_width(c, update) for c in roots]
        chosen = [entry for entry in found if entry is not None]
        width = max((width for width, _ in chosen), default=ZERO)
        return OrderCost(tuple(order for _, order in chosen), update, width)

    def _least_update(self, component: Component) -> Fraction:
        if component not in self._updates:
            costs = self._root_costs(component)
            floor = max((self._least_update(c) for c in self._inevitable(component)), default=ZERO)
            best: Fraction | None = None
            for root in self._by_cost(component, UPDATE):
                if best is None or floor < best > costs[root][UPDATE]:
                    below = (self._least_update(c) for c in self._below(component, root))
                    total = max((costs[root][UPDATE], *below))
                    best = total if best is None else min(best, total)
            assert best is not None  # every component has a root that is allowed
            self._updates[component] = best
        return self._updates[component]

    def _least_width(
        self, component: Component, update: Fraction
    ) -> tuple[Fraction, VariableOrder] | None:
        """The narrowest order whose updates cost at most `update`; None if there is none."""
        if component not in self._orders:
            self._orders[component] = self._find_least_width(component, update)
        return self._orders[component]

    def _find_least_width(
        self, component: Component, update: Fraction
    ) -> tuple[Fraction, VariableOrder] | None:
        costs = self._root_costs(component)
        inevitable = [self._least_width(c, update) for c in self._inevitable(component)]
        floor = max((found[0] for found in inevitable if found is not None), default=ZERO)
        best: tuple[Fraction, VariableOrder] | None = None
        for root in self._by_cost(component, WIDTH):
            promising = best is None or floor < best[0] > costs[root][WIDTH]
            if costs[root][UPDATE] <= update and promising:
                found = self._order_with_root(component, root, update)
                if found is not None and (best is None or found[0] < best[0]):
                    best = found
        return best

    def _by_cost(self, component: Component, which: int) -> list[str]:
        """The possible roots, cheapest first, and of these the most connected first."""
        costs, atoms = self._root_costs(component), self._shape.atoms
        return sorted(costs, key=lambda v: (costs[v][which], -sum(v in atom for atom in atoms)))

    def _inevitable(self, component: Component) -> list[Component]:
        """Components of lower levels that every free-top order meets, whatever it does before.

        What they cost is a floor for the search: a star with a bound centre and many free leaves
        costs the same in whatever order the leaves come.
        """
        if not self._free_top or self._shape.determined:
            return []
        levels = self._shape.levels
        top = min(levels[v] for v in component)
        return self._shape.components(frozenset(v for v in component if levels[v] > top))

    def _order_with_root(
        self, component: Component, root: str, update: Fraction
    ) -> tuple[Fraction, VariableOrder] | None:
        children = [self._least_width(c, update) for c in self._below(component, root)]
        known = [child for child in children if child is not None]
        if len(known) < len(children):
            return None
        width = max(self._root_costs(component)[root][WIDTH], *(w for w, _ in known), ZERO)
        depends_on = tuple(v for v in self._shape.levels if v in self._outside(component))
        return width, VariableOrder(root, depends_on, tuple(order for _, order in known))

    def _below(self, component: Component, root: str) -> list[Component]:
        return self._shape.components(component - {root})

    def _outside(self, component: Component) -> frozenset[str]:
        touching = [atom for atom in self._shape.atoms if atom & component]
        return frozenset().union(*touching) - component

    def _root_costs(self, component: Component) -> dict[str, tuple[Fraction, Fraction]]:
        """The update and width exponents of each variable that may be the root."""
        if component not in self._costs:
            below = [i for i, atom in enumerate(self._shape.atoms) if atom & component]
            rules = [rule for rule in self._shape.rules if rule.guard in below]
            closures = {i: closure(self._shape.atoms[i], rules) for i in below}
            edges = list(closures.values())
            outside = self._outside(component)
            changing = {closures[i] for i in below if self._shape.dynamic[i]}
            self._costs[component] = {
                root: (
                    max(
                        (edge_cover((outside | {root}) - c, edges) for c in changing),
                        default=ZERO,
                    ),
                    edge_cover(outside | {root}, edges),
                )
                for root in self._roots(component)
            }
        return self._costs[component]

    def _roots(self, component: Component) -> list[str]:
        """The variables that may be on top: the highest level first, dominating ones alone.

        A variable in every atom below belongs to every bag anyway, so putting it on top costs
        nothing and loses nothing.
        """
        allowed = self._allowed(component)
        touching = [atom for atom in self._shape.atoms if atom & component]
        dominating = [v for v in allowed if all(v in atom for atom in touching)]
        return dominating[:1] or allowed

    def _allowed(self, component: Component) -> list[str]:
        members = [v for v in self._shape.levels if v in component]
        if not self._free_top:
            return members
        top = min(self._shape.levels[v] for v in members)
        early = frozenset() if top == INPUT else self._shape.determined
        return [v for v in members if self._shape.levels[v] == top or v in early]
