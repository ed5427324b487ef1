"""Which views make every delta cheap: higher-order deltas over parts, materialized only where a
loop would be too long (triangle_ivm_epsilon, section 3; recursion as in plan/recursive.py).

The delta of a join for an update to one factor is the join of the others, with the variables of
the update bound. Others may be joined as they are, or through views over some of them, which are
maintained by the same recipe. A view is worth it only if its own deltas stay within the budget.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from viewkeep.plan.adaptive.degrees import FREE, Cost, Factor, cheapest, number_of
from viewkeep.plan.program import Access, Join, fresh, opened


@dataclass(frozen=True)
class PartView:
    """The join of some parts, summed down to its key.

    Of an output, entries that may change are not counted as steps: they are written in any case.
    """

    members: frozenset[Factor]
    key: tuple[str, ...]
    is_output: bool = False

    @property
    def definition(self) -> str:
        """The join, in the order of the atoms."""
        ordered = factors_in_order(self.members)
        product = " * ".join(f"{each.name}({', '.join(each.key)})" for each in ordered)
        variables = dict.fromkeys(v for each in ordered for v in each.key)
        summed_variables = [v for v in variables if v not in self.key]
        return f"sum_{','.join(summed_variables)} {product}" if summed_variables else product


@dataclass(frozen=True)
class Delta:
    """How an update of one factor reaches a view: joins, what they cost, the views they read."""

    joins: tuple[Join, ...]
    cost: Cost
    reads: frozenset[PartView]


class SearchExhausted(Exception):  # noqa: N818 - it ends a search, and is no error
    """The search has tried as many ways as it may."""


@dataclass
class Tries:
    """How many more ways to group and order factors may be tried: they grow exponentially."""

    left: int = 40_000

    def spend(self) -> None:
        """Count one more."""
        if self.left == 0:
            raise SearchExhausted
        self.left -= 1


class ViewSearch:
    """Finds views and deltas within a budget of N^budget steps."""

    def __init__(self, budget: Fraction, name_of: "ViewNames", tries: "Tries") -> None:
        self.budget, self._name_of, self._tries = budget, name_of, tries
        self._plans: dict[PartView, dict[Factor, Delta] | None] = {}

    def maintain(self, view: PartView) -> dict[Factor, Delta] | None:
        """A delta for each member, or None if one cannot be within the budget."""
        if view not in self._plans:
            deltas: dict[Factor, Delta] = {}
            for member in factors_in_order(view.members):
                delta = self.delta(view, member)
                if delta is None:
                    self._plans[view] = None
                    break
                deltas[member] = delta
            else:
                self._plans[view] = deltas
        return self._plans[view]

    def delta(self, view: PartView, updated: Factor) -> Delta | None:
        """The cheapest way, with as few views as possible."""
        rest = factors_in_order(view.members - {updated})
        for views in range(len(rest) // 2 + 1):
            ways = (
                groups
                for groups in _groupings_of_factors(rest, views)
                if _number_of_views(groups) == views
            )
            deltas = [
                delta
                for groups in ways
                if (delta := self._delta_over_groups(view, updated, groups))
            ]
            if deltas:
                return min(deltas, key=lambda delta: delta.cost.value)
        return None

    def _delta_over_groups(
        self, view: PartView, updated: Factor, groups: Sequence[Sequence[Factor]]
    ) -> Delta | None:
        self._tries.spend()
        factors, reads = list[Factor](), set[PartView]()
        for group in groups:
            others = frozenset(
                v for other in groups if other is not group for f in other for v in f.key
            )
            variables_read = others | updated.variables | set(view.key)
            if len(group) > 1 and not _is_connected_group(group, updated.variables):
                return None
            key = tuple(dict.fromkeys(v for f in group for v in f.key if v in variables_read))
            if len(group) == 1 and len(key) == len(group[0].key):
                factors.append(group[0])
                continue
            read = PartView(frozenset(group), key)
            reads.add(read)
            factors.append(self._view_factor(read))
        head = frozenset(view.key) if view.is_output else frozenset[str]()
        joins, cost = cheapest_joins(factors, updated.variables, self._tries, head)
        if cost.value > self.budget or any(self.maintain(each) is None for each in reads):
            return None
        return Delta(joins, cost, frozenset(reads))

    def _view_factor(self, view: PartView) -> Factor:
        return Factor(
            self._name_of(view),
            view.key,
            frozenset(part for each in view.members for part in each.parts),
            frozenset(atom for each in view.members for atom in each.atoms),
            frozenset(degree for each in view.members for degree in each.degrees),
        )


def cheapest_joins(
    factors: Sequence[Factor],
    bound: frozenset[str],
    tries: Tries | None = None,
    head: frozenset[str] = frozenset(),
) -> tuple[tuple[Join, ...], Cost]:
    """Join the factors one after another: look-ups first, then the order with the shortest loops.

    Factors that open the same variables are intersected, the smaller group iterated. The cost is
    that of one value of the variables `head`.
    """
    tries = tries or Tries()
    tries.spend()
    ready = [f for f in factors if f.variables <= bound]
    if ready:
        joins, cost = cheapest_joins([f for f in factors if f not in ready], bound, tries, head)
        return (Join(tuple(Access(f.name, f.key) for f in ready)), *joins), cost
    if not factors:
        return (), FREE
    ways = []
    for opens in dict.fromkeys(opened(bound, f.key) for f in factors):
        intersected = [f for f in factors if f.variables - bound == set(opens)]
        loop_cost = cheapest(
            number_of(f.degrees, frozenset(opens) - head, (bound | head) & f.variables)
            for f in intersected
        )
        rest = [f for f in factors if f not in intersected]
        joins, cost = cheapest_joins(rest, bound | set(opens), tries, head)
        accesses = tuple(Access(f.name, f.key) for f in intersected)
        ways.append((loop_cost + cost, (Join(accesses, opens), *joins)))
    cost, joins = min(ways, key=lambda way: way[0].value)
    return joins, cost


def factors_in_order(factors: Iterable[Factor]) -> list[Factor]:
    """Heavy before light, then by the positions of their atoms."""
    return sorted(factors, key=lambda each: (-each.level, sorted(each.atoms), each.name))


def _is_connected_group(group: Sequence[Factor], bound: frozenset[str]) -> bool:
    """Whether the factors hang together through variables that are not bound."""
    reached, rest = set(group[0].variables - bound), list(group[1:])
    while near := [f for f in rest if reached & f.variables]:
        reached |= {v for f in near for v in f.variables - bound}
        rest = [f for f in rest if f not in near]
    return not rest


def _groupings_of_factors(
    factors: Sequence[Factor], view_limit: int
) -> Iterator[list[list[Factor]]]:
    """All ways to group the factors with at most so many views, the finest first."""
    if not factors:
        yield []
        return
    first, rest = factors[0], factors[1:]
    for groups in _groupings_of_factors(rest, view_limit):
        yield [[first], *groups]
    for groups in _groupings_of_factors(rest, view_limit) if view_limit else ():
        for i, group in enumerate(groups):
            if len(group) > 1 or _number_of_views(groups) < view_limit:
                yield [*groups[:i], [first, *group], *groups[i + 1 :]]


def _number_of_views(groups: Iterable[Sequence[Factor]]) -> int:
    """How many groups are joined through a view."""
    return sum(len(group) > 1 for group in groups)


class ViewNames:
    """A name for each view: its relations, and its parts where several views have those."""

    def __init__(self, relations: dict[int, str]) -> None:
        self._relations, self._names = relations, dict[PartView, str]()

    def __call__(self, view: PartView) -> str:
        """A name that no other view has."""
        if view not in self._names:
            letters = [each.letters for each in factors_in_order(view.members)]
            name = "_".join([self.short(view), *filter(None, letters)])
            self._names[view] = fresh(name, self._names.values())
        return self._names[view]

    def short(self, view: PartView) -> str:
        """The relations alone."""
        names = [self._relation_of_factor(each) for each in factors_in_order(view.members)]
        return "V_" + ("" if all(len(name) == 1 for name in names) else "_").join(names)

    def shorten(self, views: Iterable[PartView]) -> dict[str, str]:
        """Short names for those of the views that can do without their parts."""
        short = {self(view): self.short(view) for view in views}
        often = Counter(short.values())
        return {name: short[name] if often[short[name]] == 1 else name for name in short}

    def _relation_of_factor(self, factor: Factor) -> str:
        return self._relations[next(iter(factor.atoms))]
