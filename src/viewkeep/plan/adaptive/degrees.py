"""What degrees tell about the cost of loops and the size of views.

A degree constraint says: for each value of the variables `determinant`, at most N^exponent values
of the variables `binds`. The light part of a relation has one whose determinant are the split
variables, the heavy part one for the split variables themselves. Chains of constraints bound any
loop.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from viewkeep.analysis.exponents import Exponent, Linear, in_epsilon

ONE, ZERO = Fraction(1), Fraction(0)


@dataclass(frozen=True, slots=True)
class Power:
    """An exponent of N: its value where plans are compared, and as people read it."""

    value: Fraction
    line: Linear

    def __add__(self, other: "Power") -> "Power":
        first, second = self.line, other.line
        line = Linear(first.constant + second.constant, first.slope + second.slope)
        return Power(self.value + other.value, line)


CONSTANT, LINEAR = Power(ZERO, Linear(ZERO)), Power(ONE, Linear(ONE))


@dataclass(frozen=True, slots=True)
class Degree:
    """At most N^power values of `binds` for each value of `determinant`."""

    determinant: frozenset[str]
    binds: frozenset[str]
    power: Power


@dataclass(frozen=True)
class Factor:
    """What joins multiply: a part of an atom, or a view over some parts."""

    name: str
    key: tuple[str, ...]
    parts: frozenset[str]
    atoms: frozenset[int]
    degrees: frozenset[Degree]
    level: int = 0
    """How heavy a part is: heavier ones stand first in products."""
    letters: str = ""
    """The levels of a part as they stand in names."""

    def __hash__(self) -> int:
        # Within a plan the name tells; the degrees would be hashed over and over.
        return hash(self.name)

    @cached_property
    def variables(self) -> frozenset[str]:
        """The key as a set."""
        return frozenset(self.key)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cheapest ways to bound a number of steps; all of them hold at once."""

    powers: frozenset[Power]

    @property
    def value(self) -> Fraction:
        """What plans are compared by."""
        return next(iter(self.powers)).value

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(frozenset(a + b for a in self.powers for b in other.powers))

    @property
    def exponent(self) -> Exponent:
        """The smallest of all ways, as an expression in epsilon."""
        lines = sorted({p.line for p in self.powers}, key=lambda line: (line.constant, line.slope))
        return in_epsilon(*lines, largest=False)


FREE = Cost(frozenset({CONSTANT}))


def cheapest(costs: Iterable[Cost]) -> Cost:
    """The ways of the lowest value among all."""
    powers = [power for cost in costs for power in cost.powers]
    lowest = min(power.value for power in powers)
    return Cost(frozenset(power for power in powers if power.value == lowest))


@lru_cache(maxsize=4096)
def number_of(degrees: frozenset[Degree], goal: frozenset[str], constants: frozenset[str]) -> Cost:
    """How many values the goal can have for each value of the given variables."""
    return _Reach().cost(_degrees_without(degrees, constants), goal - constants)


class _Reach:
    """The cheapest chains of degrees to goals, each part of a problem solved once.

    What is known falls away from the degrees; the rest comes apart where no degree connects it, and
    the parts are bounded one by one: a star costs the sum of its leaves, whatever their order.
    """

    def __init__(self) -> None:
        self._costs: dict[tuple[frozenset[Degree], frozenset[str]], Cost] = {}

    def cost(self, degrees: frozenset[Degree], goal: frozenset[str]) -> Cost:
        total, reached = FREE, frozenset[str]()
        for part in _degree_components(_degrees_towards(degrees, goal)):
            component_goal = goal.intersection(v for degree in part for v in degree.binds)
            total, reached = (
                total + self._component_cost(part, component_goal),
                reached | component_goal,
            )
        if reached != goal:
            raise ValueError(f"no degree binds {', '.join(sorted(goal - reached))}")
        return total

    def _component_cost(self, degrees: frozenset[Degree], goal: frozenset[str]) -> Cost:
        if (degrees, goal) not in self._costs:
            self._costs[degrees, goal] = cheapest(
                Cost(frozenset({each.power}))
                + self.cost(_degrees_without(degrees, each.binds), goal - each.binds)
                for each in degrees
                if not each.determinant
            )
        return self._costs[degrees, goal]


def _degrees_without(degrees: Iterable[Degree], constants: frozenset[str]) -> frozenset[Degree]:
    """The degrees without the variables that are known."""
    return frozenset(
        Degree(degree.determinant - constants, degree.binds - constants, degree.power)
        for degree in degrees
        if not degree.binds <= constants
    )


def _degrees_towards(degrees: frozenset[Degree], goal: frozenset[str]) -> frozenset[Degree]:
    """The degrees that lead to the goal: binding a variable that leads nowhere can only cost."""
    useful = set(goal)
    while more := {v for d in degrees if d.binds & useful for v in d.determinant} - useful:
        useful |= more
    return frozenset(
        Degree(d.determinant, d.binds & useful, d.power) for d in degrees if d.binds & useful
    )


def _degree_components(degrees: frozenset[Degree]) -> Iterator[frozenset[Degree]]:
    """The degrees that variables connect."""
    rest = set(degrees)
    while rest:
        part, reached = set[Degree](), set[str]()
        near = {next(iter(rest))}
        while near:
            part |= near
            rest -= near
            reached |= {v for degree in near for v in degree.determinant | degree.binds}
            near = {d for d in rest if not reached.isdisjoint(d.determinant | d.binds)}
        yield frozenset(part)
