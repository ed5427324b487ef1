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

from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Dependency, closure, dependencies

INPUT, OUTPUT, BOUND = 0, 1, 2
"""Levels of variables from top to bottom of an order."""

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
    """A forest of variable orders with the exponents of its view tree.

    `exact` tells that no order does better; only very tangled queries exhaust the search.
    """

    roots: tuple[VariableOrder, ...]
    update: Fraction
    width: Fraction
    exact: bool = True


@dataclass(frozen=True)
class JoinShape:
    """All that a search for variable orders needs to know of a query."""

    atoms: tuple[frozenset[str], ...]
    level_of: tuple[tuple[str, int], ...]
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
            tuple(levels.items()),
            tuple(atom.relation not in static for atom in query.atoms),
            dependencies(query),
        )

    @cached_property
    def levels(self) -> dict[str, int]:
        """The level of each variable, in order of first appearance."""
        return dict(self.level_of)

    @cached_property
    def determined(self) -> frozenset[str]:
        """The bound variables that functional dependencies derive from the free ones.

        Every output tuple has one value for them, so they may stand among the free variables.
        A degree bound does not do: it could repeat an output tuple.
        """
        free = {variable for variable, level in self.levels.items() if level != BOUND}
        exact = [rule for rule in self.rules if rule.bound == 1]
        return closure(free, exact) - free

    def touching(self, component: Component) -> list[int]:
        """The positions of the atoms that have a variable of the component."""
        return [i for i, atom in enumerate(self.atoms) if atom & component]

    def outside(self, component: Component) -> frozenset[str]:
        """The variables that share an atom with the component: its view depends on them."""
        atoms = (self.atoms[i] for i in self.touching(component))
        return frozenset().union(*atoms) - component

    def components(self, variables: frozenset[str]) -> list[Component]:
        """The variables split into parts that share no atom, in order of first appearance."""
        rest = [v for v in self.levels if v in variables]
        components: list[Component] = []
        while rest:
            reached = frontier = frozenset({rest[0]})
            while frontier:
                touching = [atom for atom in self.atoms if atom & frontier]
                frontier = (variables & frozenset().union(*touching)) - reached
                reached |= frontier
            components.append(reached)
            rest = [v for v in rest if v not in reached]
        return components


def uncovered_variable(
    shape: JoinShape, roots: tuple[VariableOrder, ...]
) -> tuple[str, int, tuple[str, ...]]:
    """A variable, a dynamic atom below it, and what of the variable's bag the atom does not
    determine."""
    for node in (node for root in roots for node in root.walk()):
        below = shape.touching(frozenset(each.variable for each in node.walk()))
        rules = [rule for rule in shape.rules if rule.guard in below]
        for i in below:
            determined = closure(shape.atoms[i], rules)
            missing = tuple(v for v in (*node.depends_on, node.variable) if v not in determined)
            if shape.dynamic[i] and missing:
                return node.variable, i, missing
    raise ValueError("every dynamic atom covers its views")
