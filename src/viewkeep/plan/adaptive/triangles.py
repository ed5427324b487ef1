"""Triangles listed with constant delay, updated as fast as they are counted
(triangle_ivm_epsilon, section 7).

The triangles of different combinations of parts are different ones. If all three parts are heavy
or all are light, an update changes few triangles: they are kept in a list. Otherwise exactly one
atom X follows a heavy part S and a light part T round the cycle, and an update of X may change
very many triangles. There

    L(a, b, c) = S_h * T_l               listed
    n(a, b)    = how many c are in L      live
    W(a, b)    live where X and n are

so that an update of X costs a look-up, and triangles are read from W, then L.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from viewkeep.analysis.exponents import HALF, Exponent, value_at
from viewkeep.plan.adaptive.counts import PartFactors
from viewkeep.plan.adaptive.degrees import Factor, number_of
from viewkeep.plan.adaptive.splits import Epsilon, candidates
from viewkeep.plan.adaptive.view_search import cheapest_joins
from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import (
    UPDATE,
    Access,
    Block,
    Branch,
    Enumerator,
    Join,
    Map,
    Part,
    Program,
    Step,
    Trigger,
    Union,
    Update,
    opened,
)
from viewkeep.plan.tree import Leaf

ALL_TRIANGLES = Fraction(3, 2)
"""There are never more triangles than N^3/2."""


@dataclass(frozen=True)
class TriangleCase:
    """One combination of parts: kept in a list, or factorized over the atom `top`."""

    members: tuple[Factor, ...]
    top: Factor | None
    suffix: str
    head: tuple[str, ...]

    @property
    def pair(self) -> tuple[Factor, ...]:
        """The two atoms below the top one, heavy before light."""
        below = [each for each in self.members if each is not self.top]
        return tuple(sorted(below, key=lambda each: -each.level))

    @property
    def listed(self) -> str:
        """The map with whole triangles, or with the pair joined."""
        return f"L_{self.suffix}"

    @property
    def counts(self) -> str:
        """How many triangles the pair offers to each tuple of the top atom."""
        return f"n_{self.suffix}"

    @property
    def live(self) -> str:
        """The tuples of the top atom that have triangles."""
        return f"W_{self.suffix}"

    def joined(self) -> tuple[Factor, ...]:
        """What the list is made from."""
        return self.members if self.top is None else self.pair


def plan_triangles(
    leaves: Sequence[Leaf],
    relations: Sequence[str],
    head: tuple[str, ...],
    epsilon: Epsilon,
    notes: tuple[str, ...] = (),
) -> Program:
    """The program that lists the triangles of three relations."""
    places = next(candidates(leaves, linear_space=False))
    splits = tuple(place.split(epsilon) for place in places)
    parts = PartFactors.of(leaves, splits)
    cases = list(_triangle_cases(parts, head))
    return assemble(
        "epsilon",
        [*parts.maps(), *(each for case in cases for each in _triangle_maps(case))],
        [_triangle_trigger(part, relations[part.atom], parts, cases) for part in parts.parts],
        [block for case in cases for block in _triangle_loading(case)],
        Enumerator(head, (Union(tuple(map(_triangle_branch, cases)), head, disjoint=True),)),
        notes=notes,
        splits=splits,
        parts=parts.parts,
    )


def _triangle_cases(parts: PartFactors, head: tuple[str, ...]) -> Iterator[TriangleCase]:
    by_atom: dict[int, list[Part]] = {}
    for part in parts.parts:
        by_atom.setdefault(part.atom, []).append(part)
    split_on = {part.atom: parts.splits[part.levels[0][0]].variables for part in parts.parts}
    for combination in product(*by_atom.values()):
        members = tuple(parts.factors[part.map] for part in combination)
        suffix = "".join(part.letters for part in combination)
        yield TriangleCase(members, _top_factor(members, split_on), suffix, head)


def _top_factor(members: tuple[Factor, ...], split_on: dict[int, tuple[str, ...]]) -> Factor | None:
    """The atom for which a heavy part split on a variable of its own meets a light part split on
    the variable that it lacks: the only loop that could be long."""
    for top in members:
        sharing_variable, lacking_variable = (
            [
                each
                for each in members
                if each is not top and _shares_split_variable(each, top, split_on) is near
            ]
            for near in (True, False)
        )
        if sharing_variable[0].level and not lacking_variable[0].level:
            return top
    return None


def _shares_split_variable(each: Factor, top: Factor, split_on: dict[int, tuple[str, ...]]) -> bool:
    return set(split_on[next(iter(each.atoms))]) <= top.variables


# --- maps -----------------------------------------------------------------------------------------


def _triangle_maps(case: TriangleCase) -> Iterator[Map]:
    atoms = frozenset(atom for each in case.joined() for atom in each.atoms)
    parts = frozenset(part for each in case.joined() for part in each.parts)
    product_ = " * ".join(f"{each.name}({', '.join(each.key)})" for each in case.joined())
    degrees = frozenset(degree for each in case.joined() for degree in each.degrees)
    size: Exponent = number_of(degrees, frozenset(case.head), frozenset()).exponent
    if case.top is None and value_at(size, HALF) >= ALL_TRIANGLES:
        size = ALL_TRIANGLES
    yield Map(case.listed, case.head, product_, atoms, parts=parts, size=size)
    if case.top is not None:
        key, [third] = case.top.key, opened(case.top.key, case.head)
        text = f"number of {third} in {case.listed}"
        pairs = number_of(degrees, frozenset(key), frozenset()).exponent
        yield Map(case.counts, key, text, atoms, live=True, parts=parts, size=pairs)
        all_atoms = atoms | case.top.atoms
        text = f"all live in {case.top.name}({', '.join(key)}) * {case.counts}({', '.join(key)})"
        yield Map(
            case.live,
            key,
            text,
            all_atoms,
            live=True,
            parts=parts | case.top.parts,
            size=Fraction(1),
        )


# --- updates --------------------------------------------------------------------------------------


def _triangle_trigger(
    part: Part, relation: str, parts: PartFactors, cases: Sequence[TriangleCase]
) -> Trigger:
    factor = parts.factors[part.map]
    blocks = [_triangle_update(case, factor) for case in cases if factor in case.joined()]
    part_steps: tuple[Step, ...] = (Update(part.map, factor.key),)
    tops = [case for case in cases if case.top is factor]
    if tops:
        [case] = tops  # each part follows just one heavy-light pair
        look_up = Join((Access(case.counts, factor.key, weigh=False),))
        part_steps = (
            Update(part.map, factor.key, live=True),
            look_up,
            Update(case.live, factor.key),
        )
    blocks.append(Block(UPDATE, factor.key, part_steps, cost=Fraction(0)))
    others = [each for each in parts.parts if each.atom != part.atom]
    pairs = product(*([p for p in others if p.atom == a] for a in {p.atom for p in others}))
    outputs = tuple(
        cheapest_joins([parts.factors[p.map] for p in pair], factor.variables)[0] for pair in pairs
    )
    return Trigger(part.atom, relation, factor.key, tuple(blocks), outputs, part.map)


def _triangle_update(case: TriangleCase, factor: Factor) -> Block:
    """The list, and what follows for tuples of the top atom when a triangle comes or goes."""
    others = [each for each in case.joined() if each is not factor]
    joins, cost = cheapest_joins(others, factor.variables)
    steps: list[Step] = [*joins, Update(case.listed, case.head, live=case.top is not None)]
    if case.top is not None:
        key = case.top.key
        steps += [
            Update(case.counts, key, live=True),
            Join((Access(case.top.name, key, weigh=False),)),
            Update(case.live, key),
        ]
    return Block(UPDATE, factor.key, tuple(steps), cost=cost.exponent)


# --- reading and loading --------------------------------------------------------------------------


def _triangle_branch(case: TriangleCase) -> Branch:
    if case.top is None:
        return Branch((), (Join((Access(case.listed, case.head),), case.head),))
    key = case.top.key
    return Branch(
        (),
        (
            Join((Access(case.live, key, weigh=False),), key),
            Join((Access(case.top.name, key),)),
            Join((Access(case.listed, case.head),), opened(key, case.head)),
        ),
    )


def _triangle_loading(case: TriangleCase) -> Iterator[Block]:
    first, *rest = case.joined()
    joins, _ = cheapest_joins(rest, first.variables)
    yield Block(first.name, first.key, (*joins, Update(case.listed, case.head)))
    if case.top is not None:
        key = case.top.key
        count = Update(case.counts, key)
        yield Block(case.listed, case.head, (count,), weigh=False)
        look_up = Join((Access(case.counts, key, weigh=False),))
        steps = (look_up, Update(case.live, key))
        yield Block(case.top.name, key, steps, weigh=False)
