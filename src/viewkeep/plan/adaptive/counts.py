"""Counts kept in sublinear time: relations in heavy and light parts, skew-aware views
(triangle_ivm_epsilon, sections 3 and 7).

The count is the sum over all combinations of parts. For each combination and each update the
search finds the cheapest delta; the program holds what it found. Counts by the values of a `head`
are kept as a list: an update costs that for each entry that it may change.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from viewkeep.analysis.exponents import HALF, value_at
from viewkeep.plan.adaptive.degrees import CONSTANT, Cost, Factor, number_of
from viewkeep.plan.adaptive.splits import (
    TWO_THIRDS,
    Epsilon,
    candidates,
    consistent_choices,
    factor_of,
    parts_of,
)
from viewkeep.plan.adaptive.view_search import (
    Delta,
    PartView,
    SearchExhausted,
    Tries,
    ViewNames,
    ViewSearch,
    factors_in_order,
)
from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import (
    INPUT,
    UPDATE,
    Access,
    Block,
    Enumerator,
    Join,
    Map,
    Part,
    Program,
    Split,
    Step,
    Trigger,
    Update,
)
from viewkeep.plan.tree import Leaf
from viewkeep.plan.view_tree import RESULT


def plan_heavy_light_count(
    leaves: Sequence[Leaf],
    relations: Sequence[str],
    epsilon: Epsilon,
    linear_space: bool = False,
    notes: tuple[str, ...] = (),
    head: tuple[str, ...] = (),
) -> Program | None:
    """The program for a count, or None if no split that was tried makes it sublinear."""
    try:
        return _first_sublinear_plan(leaves, relations, epsilon, linear_space, notes, head)
    except SearchExhausted:
        return None


def needs_no_split(leaves: Sequence[Leaf], head: tuple[str, ...]) -> bool:
    """Whether views over whole relations change in constant time for each entry of the output."""
    try:
        return _skew_of_splits(leaves, (), CONSTANT.value, Tries(), head).plan()
    except SearchExhausted:
        return False


def _skew_of_splits(
    leaves: Sequence[Leaf],
    splits: tuple[Split, ...],
    budget: Fraction,
    tries: Tries,
    head: tuple[str, ...],
) -> "Skew":
    names = ViewNames({leaf.atom: leaf.name for leaf in leaves})
    search = ViewSearch(budget, names, tries)
    return Skew(PartFactors.of(leaves, splits), search, names, head)


def _first_sublinear_plan(
    leaves: Sequence[Leaf],
    relations: Sequence[str],
    epsilon: Epsilon,
    linear_space: bool,
    notes: tuple[str, ...],
    head: tuple[str, ...],
) -> Program | None:
    tries = Tries()
    for places in candidates(leaves, linear_space):
        splits = tuple(place.split(epsilon) for place in places)
        # No count that needs a split is below N^1/2; one that fails there may do with N^2/3.
        budget = TWO_THIRDS if any(place.fixed for place in places) else HALF
        skew = _skew_of_splits(leaves, splits, budget, tries, head)
        if splits and skew.plan():
            return skew.program(relations, notes)
    return None


@dataclass(frozen=True)
class PartFactors:
    """The parts of all atoms, each with its factor."""

    splits: tuple[Split, ...]
    parts: tuple[Part, ...]
    factors: dict[str, Factor]

    @staticmethod
    def of(leaves: Sequence[Leaf], splits: tuple[Split, ...]) -> "PartFactors":
        """Every combination of levels of each atom."""
        parts = parts_of(leaves, splits)
        shared = len({split.thresholds for split in splits}) == 1
        keys = {leaf.atom: leaf.key for leaf in leaves}
        factors = {p.map: factor_of(p, keys[p.atom], splits, shared) for p in parts}
        return PartFactors(splits, parts, factors)

    def combinations(self, head: tuple[str, ...]) -> Iterator[PartView]:
        """The count over each combination of parts that can have tuples in common."""
        by_atom: dict[int, list[Part]] = {}
        for part in self.parts:
            by_atom.setdefault(part.atom, []).append(part)
        for parts in consistent_choices(list(by_atom.values())):
            yield PartView(frozenset(self.factors[part.map] for part in parts), head, True)

    def maps(self) -> Iterator[Map]:
        """The parts as maps."""
        for part in self.parts:
            names = frozenset({part.map}) if part.levels else frozenset[str]()
            yield Map(
                part.map, self.factors[part.map].key, INPUT, frozenset({part.atom}), parts=names
            )


class Skew:
    """The plan for one choice of splits, and the program that follows from it."""

    def __init__(
        self, parts: PartFactors, search: ViewSearch, names: ViewNames, head: tuple[str, ...]
    ) -> None:
        self._parts, self._search, self._names, self._head = parts, search, names, head
        self._counts: dict[PartView, dict[Factor, Delta]] = {}
        self._views: dict[PartView, dict[Factor, Delta]] = {}
        self._short: dict[str, str] = {}

    def plan(self) -> bool:
        """Find a delta for every combination and update; whether all are within the budget."""
        for view in self._parts.combinations(self._head):
            deltas = self._search.maintain(view)
            if deltas is None:
                return False
            self._counts[view] = deltas
        for deltas in self._counts.values():
            self._collect_views(deltas)
        self._short = self._names.shorten(self._views)
        return True

    def _collect_views(self, deltas: dict[Factor, Delta]) -> None:
        for delta in deltas.values():
            for view in sorted(delta.reads, key=self._names):
                deltas_of_view = self._search.maintain(view)
                if deltas_of_view is not None and view not in self._views:
                    self._collect_views(deltas_of_view)
                    self._views[view] = deltas_of_view

    def program(self, relations: Sequence[str], notes: tuple[str, ...]) -> Program:
        """Maps, a trigger for each part, loading, and the count as output."""
        atoms = frozenset(part.atom for part in self._parts.parts)
        size = None if self._head else Fraction(0)
        result = Map(RESULT, self._head, "the count", atoms, size=size)
        return assemble(
            "epsilon",
            [*self._parts.maps(), *self._maps_of_views(), result],
            [self._trigger_of_part(part, relations[part.atom]) for part in self._parts.parts],
            [*self._load_views(), *self._load_count()],
            Enumerator(self._head, (Join((Access(RESULT, self._head),), self._head),)),
            listed=RESULT,
            notes=notes,
            splits=self._parts.splits,
            parts=self._parts.parts,
        )

    def _maps_of_views(self) -> Iterator[Map]:
        split = {part.map for part in self._parts.parts if part.levels}
        for view in self._views:
            degrees = frozenset(d for each in view.members for d in each.degrees)
            yield Map(
                self._view_name(view),
                view.key,
                view.definition,
                frozenset(atom for each in view.members for atom in each.atoms),
                parts=self._parts_in_view(view) if self._is_skewed(view, split) else frozenset(),
                size=number_of(degrees, frozenset(view.key), frozenset()).exponent,
            )

    def _is_skewed(self, view: PartView, split: set[str]) -> bool:
        return any(part in split for each in view.members for part in each.parts)

    def _parts_in_view(self, view: PartView) -> frozenset[str]:
        """The parts in the view; an atom that is not split counts by the name of its map."""
        return frozenset(part for each in view.members for part in each.parts)

    # --- updates --------------------------------------------------------------------------------

    def _trigger_of_part(self, part: Part, relation: str) -> Trigger:
        factor = self._parts.factors[part.map]
        updates = [
            (deltas[factor], Update(RESULT, self._head))
            for deltas in self._counts.values()
            if factor in deltas
        ]
        updates += [
            (deltas[factor], Update(self._view_name(view), view.key))
            for view, deltas in self._views.items()
            if factor in deltas
        ]
        blocks = [
            Block(UPDATE, factor.key, (*self._delta_joins(delta), store), cost=delta.cost.exponent)
            for delta, store in updates
        ]
        part_update = Update(part.map, factor.key)
        blocks.append(Block(UPDATE, factor.key, (part_update,), cost=Fraction(0)))
        label = part.map if part.levels else ""
        outputs = self._count_changes(part.atom)
        return Trigger(part.atom, relation, factor.key, tuple(blocks), outputs, label)

    def _count_changes(self, atom: int) -> tuple[tuple[Step, ...], ...]:
        """The change of the count by a tuple of an atom, whatever part it is in: joins with parts
        that cannot meet the tuple find nothing, and no combination of the others counts twice."""
        by_partners: dict[frozenset[Factor], Delta] = {}
        for view, deltas in self._counts.items():
            for factor, delta in deltas.items():
                if atom in factor.atoms:
                    by_partners[view.members - {factor}] = delta
        return tuple(map(self._delta_joins, by_partners.values()))

    def _delta_joins(self, delta: Delta) -> tuple[Join, ...]:
        """The joins of a delta, with the short names of views."""
        short = self._short
        return tuple(
            Join(tuple(replace(a, map=short.get(a.map, a.map)) for a in join.accesses), join.opens)
            for join in delta.joins
        )

    def _view_name(self, view: PartView) -> str:
        return self._short[self._names(view)]

    # --- loading --------------------------------------------------------------------------------

    def _load_views(self) -> Iterator[Block]:
        """Each view from the member with the shortest loops, after the views it reads."""
        for view, deltas in self._views.items():
            factor = min(
                factors_in_order(deltas),
                key=lambda each: self._cost_at_thresholds(deltas[each].cost),
            )
            store = Update(self._view_name(view), view.key)
            yield Block(factor.name, factor.key, (*self._delta_joins(deltas[factor]), store))

    def _load_count(self) -> Iterator[Block]:
        """All combinations from the parts of one atom: the smaller list is iterated each time, so
        that the sum over all tuples is that of a worst-case optimal join."""
        atoms = dict.fromkeys(part.atom for part in self._parts.parts)
        first = min(
            atoms, key=lambda atom: max(map(self._cost_at_thresholds, self._trigger_costs(atom)))
        )
        for deltas in self._counts.values():
            for factor, delta in deltas.items():
                if first in factor.atoms:
                    store = Update(RESULT, self._head)
                    yield Block(factor.name, factor.key, (*self._delta_joins(delta), store))

    def _trigger_costs(self, atom: int) -> Iterable[Cost]:
        for deltas in self._counts.values():
            yield from (delta.cost for factor, delta in deltas.items() if atom in factor.atoms)

    def _cost_at_thresholds(self, cost: Cost) -> Fraction:
        """The cost for the epsilon that is asked for, where all splits have the same."""
        first = Fraction(self._parts.splits[0].thresholds[0]).limit_denominator(1000)
        return value_at(cost.exponent, first)
