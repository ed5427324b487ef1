"""Where to split relations: candidates for the variables whose heavy values are told apart."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from types import MappingProxyType

from viewkeep.analysis.exponents import HALF, Linear
from viewkeep.plan.adaptive.degrees import LINEAR, Degree, Factor, Power
from viewkeep.plan.program import Part, Split, fresh
from viewkeep.plan.tree import Leaf

EMPTY: Mapping[int, int] = MappingProxyType({})
THIRD, TWO_THIRDS = Fraction(1, 3), Fraction(2, 3)
FIXED = ((THIRD,), (TWO_THIRDS,), (THIRD, TWO_THIRDS))
"""Thresholds that are tried where N^epsilon does not do, those with the fewest parts first."""

Epsilon = Callable[[tuple[str, ...], tuple[int, ...]], float]
"""The threshold exponent for some variables of some atoms."""


@dataclass(frozen=True, slots=True)
class Place:
    """Variables whose values are told apart in some atoms, at the threshold that is asked for or at
    `fixed` ones."""

    variables: tuple[str, ...]
    atoms: tuple[int, ...]
    fixed: tuple[Fraction, ...] = ()

    def split(self, epsilon: Epsilon) -> Split:
        """The split with the thresholds that were asked for."""
        if self.fixed:
            return Split(self.variables, self.atoms, tuple(map(float, self.fixed)), fixed=True)
        return Split(self.variables, self.atoms, (epsilon(self.variables, self.atoms),))


@dataclass(frozen=True)
class Classes:
    """The join variables, those of the same atoms together."""

    groups: tuple[tuple[str, ...], ...]
    common: tuple[str, ...]
    atoms: dict[tuple[str, ...], tuple[int, ...]]

    @staticmethod
    def of(leaves: Sequence[Leaf]) -> "Classes":
        """Variables of one atom alone are no join variables; those of all are in every split."""
        classes: dict[tuple[int, ...], list[str]] = {}
        for variable in dict.fromkeys(v for leaf in leaves for v in leaf.key):
            atoms = tuple(leaf.atom for leaf in leaves if variable in leaf.key)
            classes.setdefault(atoms, []).append(variable)
        common = tuple(classes.pop(tuple(leaf.atom for leaf in leaves), ()))
        groups = {tuple(vs): atoms for atoms, vs in classes.items() if len(atoms) > 1}
        return Classes(tuple(groups), common, groups)

    def of_atom(self, atom: int) -> list[tuple[str, ...]]:
        """The groups that an atom has."""
        return [group for group in self.groups if atom in self.atoms[group]]


def candidates(leaves: Sequence[Leaf], linear_space: bool) -> Iterator[tuple[Place, ...]]:
    """Sets of splits worth trying, simplest first."""
    classes = Classes.of(leaves)
    if not linear_space:
        if cycle := _loomis_whitney_splits(classes, leaves):
            yield cycle
        for group in classes.groups:
            for atom in _wide_atoms(classes, group):
                yield (Place(classes.common + group, (atom,)),)
    yield _joint_splits(classes)
    for thresholds in () if linear_space else FIXED:
        yield _joint_splits(classes, thresholds)


def _loomis_whitney_splits(classes: Classes, leaves: Sequence[Leaf]) -> tuple[Place, ...]:
    """Each atom lacks one group: it is split on all but the one before that, round the cycle.

    For the triangle R(a, b), S(b, c), T(c, a): R on a, S on b, T on c.
    """
    groups, places = classes.groups, list[Place]()
    lacking = {
        leaf.atom: [g for g in groups if leaf.atom not in classes.atoms[g]] for leaf in leaves
    }
    each_lacks_one = all(len(lacks) == 1 for lacks in lacking.values())
    lacked = {g for lacks in lacking.values() for g in lacks}
    if len(groups) < 3 or not each_lacks_one or not len(leaves) == len(groups) == len(lacked):
        return ()
    for leaf in leaves:
        left_out = groups[groups.index(lacking[leaf.atom][0]) - 1]
        groups_of_split = [g for g in classes.of_atom(leaf.atom) if g != left_out]
        variables = {*classes.common, *(v for g in groups_of_split for v in g)}
        places.append(Place(tuple(v for v in leaf.key if v in variables), (leaf.atom,)))
    return tuple(places)


def _joint_splits(classes: Classes, fixed: tuple[Fraction, ...] = ()) -> tuple[Place, ...]:
    """Every join variable, with the same level in all its atoms."""
    return tuple(
        Place(classes.common + group, tuple(wide), fixed)
        for group in classes.groups
        if (wide := _wide_atoms(classes, group))
    )


def _wide_atoms(classes: Classes, group: tuple[str, ...]) -> list[int]:
    """The atoms of a group that have other join variables: in the others its degree is one."""
    return [atom for atom in classes.atoms[group] if len(classes.of_atom(atom)) > 1]


# --- parts ----------------------------------------------------------------------------------------


def parts_of(leaves: Sequence[Leaf], splits: Sequence[Split]) -> tuple[Part, ...]:
    """Every combination of levels of each atom, heavy before light."""
    parts, names = list[Part](), {leaf.name for leaf in leaves}
    for leaf in leaves:
        numbers_of_splits = [
            number for number, split in enumerate(splits) if leaf.atom in split.atoms
        ]
        sizes = [range(len(splits[number].thresholds), -1, -1) for number in numbers_of_splits]
        for levels in product(*sizes):
            letters = "".join(
                splits[n].letter(level) for n, level in zip(numbers_of_splits, levels, strict=True)
            )
            name = fresh(f"{leaf.name}_{letters}", names) if numbers_of_splits else leaf.name
            names.add(name)
            numbers = tuple(zip(numbers_of_splits, levels, strict=True))
            parts.append(
                Part(leaf.atom, name, numbers, letters, leaf.name if numbers_of_splits else "")
            )
    return tuple(parts)


def consistent_choices(
    choices: Sequence[Sequence[Part]], levels: Mapping[int, int] = EMPTY
) -> Iterator[tuple[Part, ...]]:
    """One part of each atom, in every way that gives no value two levels: a split has one level
    for all its atoms."""
    if not choices:
        yield ()
        return
    for part in choices[0]:
        if all(levels.get(number, level) == level for number, level in part.levels):
            for rest in consistent_choices(choices[1:], {**levels, **dict(part.levels)}):
                yield (part, *rest)


def factor_of(part: Part, key: tuple[str, ...], splits: Sequence[Split], shared: bool) -> Factor:
    """A part with the degrees that its levels promise; `shared` if all splits have one epsilon."""
    variables = frozenset(key)
    degrees = {Degree(frozenset(), variables, LINEAR)}
    for number, level in part.levels:
        split, split_variables = splits[number], frozenset(splits[number].variables)
        if level < len(split.thresholds):
            degrees.add(Degree(split_variables, variables, _threshold_power(split, level, shared)))
        if level > 0:
            power = _threshold_power(split, level - 1, shared)
            line = Linear(1 - power.line.constant, -power.line.slope)
            degrees.add(Degree(frozenset(), split_variables, Power(1 - power.value, line)))
    return Factor(
        part.map,
        key,
        frozenset({part.map}),
        frozenset({part.atom}),
        frozenset(degrees),
        sum(level for _, level in part.levels),
        part.letters,
    )


def _threshold_power(split: Split, level: int, shared: bool) -> Power:
    """Plans are made for thresholds N^1/2, or for fixed ones, whatever epsilon is."""
    exact = Fraction(split.thresholds[level]).limit_denominator(1000)
    if split.fixed:
        return Power(exact, Linear(exact))
    return Power(HALF, Linear(0, 1) if shared else Linear(exact))
