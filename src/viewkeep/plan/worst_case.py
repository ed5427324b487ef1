"""Worst-case optimal joins, one variable at a time, as steps of the trigger language.

For each variable in turn, the atoms that have it are intersected, the smallest list iterated. An
atom whose other variables are still open takes part through a projection, a live map.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from viewkeep.plan.program import INPUT, Access, Block, Join, Map, Step, Update, fresh
from viewkeep.plan.tree import Leaf


@dataclass
class Projections:
    """The projections that joins have asked for, per atom."""

    leaves: Sequence[Leaf]
    names: dict[tuple[int, tuple[str, ...]], str] = field(default_factory=dict)

    def access(self, leaf: Leaf, variables: set[str]) -> Access:
        """The atom on these of its variables: itself, weighed, or a projection of it."""
        key = tuple(v for v in leaf.key if v in variables)
        if key == leaf.key:
            return Access(leaf.name, key)
        if (leaf.atom, key) not in self.names:
            name = fresh(f"{leaf.name}^{''.join(key)}", self.names.values())
            self.names[leaf.atom, key] = name
        return Access(self.names[leaf.atom, key], key, weigh=False)

    def maps(self) -> list[Map]:
        """The atoms and their projections."""
        maps = [Map(x.name, x.key, INPUT, frozenset({x.atom})) for x in self.leaves]
        for (atom, key), name in self.names.items():
            leaf = self._leaf_of_atom(atom)
            text = f"number of {leaf.name}({', '.join(leaf.key)}) for each ({', '.join(key)})"
            maps.append(Map(name, key, text, frozenset({atom}), live=True))
        return maps

    def of(self, atom: int) -> list[tuple[str, tuple[str, ...]]]:
        """The projections of one atom."""
        return [(name, key) for (i, key), name in self.names.items() if i == atom]

    def update(self, leaf: Leaf) -> list[tuple[Step, ...]]:
        """What keeps the atom and its projections up to date."""
        atom_update = Update(leaf.name, leaf.key, live=bool(self.of(leaf.atom)))
        counts: list[Step] = [Update(name, key) for name, key in self.of(leaf.atom)]
        return [(atom_update, *counts)]

    def _leaf_of_atom(self, atom: int) -> Leaf:
        return next(leaf for leaf in self.leaves if leaf.atom == atom)


def join_steps(
    projections: Projections, leaves: Iterable[Leaf], bound: Iterable[str], order: Iterable[str]
) -> tuple[Step, ...]:
    """Join the atoms, given some variables, opening the others in this order."""
    rest, variables = list(leaves), set(bound)
    ready = [leaf for leaf in rest if set(leaf.key) <= variables]
    steps: list[Step] = [Join(tuple(Access(x.name, x.key) for x in ready))] if ready else []
    for variable in [v for v in order if v not in variables]:
        having = [leaf for leaf in rest if variable in leaf.key]
        variables.add(variable)
        steps.append(Join(tuple(projections.access(x, variables) for x in having), (variable,)))
    return tuple(steps)


def output_changes(projections: Projections) -> dict[int, tuple[Step, ...]]:
    """For each atom, the steps from one of its tuples to the output tuples that it changes."""
    leaves = projections.leaves
    return {
        leaf.atom: join_steps(
            projections,
            [each for each in leaves if each is not leaf],
            leaf.key,
            variable_sequence(leaves, leaf.key),
        )
        for leaf in leaves
    }


def load_projections(projections: Projections) -> list[Block]:
    """Every projection in one pass over its atom."""
    return [
        Block(
            leaf.name,
            leaf.key,
            tuple(Update(name, key) for name, key in atom_projections),
            weigh=False,
        )
        for leaf in projections.leaves
        if (atom_projections := projections.of(leaf.atom))
    ]


def variable_sequence(leaves: Sequence[Leaf], first: Sequence[str] = ()) -> tuple[str, ...]:
    """The given variables, then the others: always one connected to those before, if any is."""
    names = list(dict.fromkeys(v for leaf in leaves for v in leaf.key))
    sequence = list(first)
    while rest := [v for v in names if v not in sequence]:
        sequence.append(max(rest, key=lambda v: _variable_connections(leaves, sequence, v)))
    return tuple(sequence)


def _variable_connections(
    leaves: Sequence[Leaf], before: list[str], variable: str
) -> tuple[int, int]:
    having = [leaf for leaf in leaves if variable in leaf.key]
    return sum(bool(set(leaf.key) & set(before)) for leaf in having), len(having)
