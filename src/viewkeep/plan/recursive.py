"""Recursive higher-order maintenance, DBToaster's recipe (ivm_lecture, part 2):

1. one view tree per updatable factor, which is a child of the root;
2. a materialized view over each connected component of the remaining factors;
3. it exports the join and head variables;
4. it is treated like a query: go to 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import (
    INPUT,
    UPDATE,
    Access,
    Block,
    Enumerator,
    Join,
    Map,
    Program,
    Step,
    Trigger,
    Update,
    fresh,
)
from viewkeep.plan.tree import Leaf, NodeInput
from viewkeep.plan.view_tree import RESULT, join_all


@dataclass(frozen=True, slots=True)
class JoinView:
    """The join of some atoms, summed down to the exported variables."""

    name: str
    atoms: frozenset[int]
    key: tuple[str, ...]


def plan_recursive(
    leaves: Sequence[Leaf],
    relations: Sequence[str],
    head: tuple[str, ...],
    inputs: tuple[tuple[str, str], ...] = (),
    notes: tuple[str, ...] = (),
) -> Program:
    """All views that the recipe asks for, each updated from the others."""
    planner = RecursivePlanner(leaves, head)
    return planner.program(relations, inputs, notes)


class RecursivePlanner:
    """Collects the views, largest first."""

    def __init__(self, leaves: Sequence[Leaf], head: tuple[str, ...]) -> None:
        self.leaves = {leaf.atom: leaf for leaf in leaves}
        atoms = frozenset(self.leaves)
        self.result = JoinView(RESULT, atoms, head)
        self.views = {(atoms, head): self.result}
        pending = [self.result]
        while pending:
            view, count = pending.pop(), len(self.views)
            for atom in sorted(view.atoms):
                self._component_views(view, atom)
            pending += list(self.views.values())[count:]

    def program(
        self,
        relations: Sequence[str],
        inputs: tuple[tuple[str, str], ...],
        notes: tuple[str, ...],
    ) -> Program:
        """Maps, triggers and loading of all views."""
        triggers = [self._recursive_trigger(leaf, relations) for leaf in self.leaves.values()]
        head = self.result.key
        return assemble(
            "recursive",
            self._recursive_maps(),
            triggers,
            [self._load_view(view) for view in self.views.values()],
            Enumerator(head, (Join((Access(RESULT, head),), head),)),
            inputs,
            RESULT,
            notes,
        )

    def _component_views(self, view: JoinView, atom: int) -> list[JoinView]:
        """The components of what is left beside an atom, with what they export."""
        outside = set(view.key) | set(self.leaves[atom].key)
        return [
            self._view_of_atoms(
                part, tuple(v for v in self._variables_of_atoms(part) if v in outside)
            )
            for part in self._atom_components(view.atoms - {atom})
        ]

    def _atom_components(self, atoms: frozenset[int]) -> Iterator[frozenset[int]]:
        rest = sorted(atoms)
        while rest:
            part, names = {rest[0]}, set(self.leaves[rest[0]].key)
            while more := {i for i in rest if i not in part and names & set(self.leaves[i].key)}:
                part |= more
                names |= {v for i in more for v in self.leaves[i].key}
            yield frozenset(part)
            rest = [i for i in rest if i not in part]

    def _variables_of_atoms(self, atoms: frozenset[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v for i in sorted(atoms) for v in self.leaves[i].key))

    def _view_of_atoms(self, atoms: frozenset[int], key: tuple[str, ...]) -> JoinView:
        """The view of these atoms: the input itself where nothing is summed away."""
        if len(atoms) == 1:
            (leaf,) = (self.leaves[i] for i in atoms)
            if set(key) == set(leaf.key):
                return JoinView(leaf.name, atoms, leaf.key)
        if (atoms, key) not in self.views:
            self.views[atoms, key] = JoinView(self._recursive_view_name(atoms, key), atoms, key)
        return self.views[atoms, key]

    def _recursive_view_name(self, atoms: frozenset[int], key: tuple[str, ...]) -> str:
        name = "V_" + "".join(self.leaves[i].name for i in sorted(atoms))
        names = {view.name for view in self.views.values()}
        return fresh(f"{name}_{''.join(key)}", names) if name in names else name

    def _recursive_maps(self) -> Iterator[Map]:
        for leaf in self.leaves.values():
            yield Map(leaf.name, leaf.key, INPUT, frozenset({leaf.atom}))
        for view in self.views.values():
            factors = [self.leaves[i] for i in sorted(view.atoms)]
            product = " * ".join(f"{x.name}({', '.join(x.key)})" for x in factors)
            summed_variables = [
                v for v in self._variables_of_atoms(view.atoms) if v not in view.key
            ]
            summed = f"sum_{','.join(summed_variables)} " if summed_variables else ""
            yield Map(view.name, view.key, summed + product, view.atoms)

    def _recursive_trigger(self, leaf: Leaf, relations: Sequence[str]) -> Trigger:
        input_update = Block(UPDATE, leaf.key, (Update(leaf.name, leaf.key),))
        touched = [view for view in self.views.values() if leaf.atom in view.atoms]
        blocks = [
            Block(UPDATE, leaf.key, (*self._view_change(view, leaf), Update(view.name, view.key)))
            for view in touched
        ]
        output = tuple(self._view_change(self.result, leaf))
        return Trigger(
            leaf.atom, relations[leaf.atom], leaf.key, (input_update, *blocks), (output,)
        )

    def _view_change(self, view: JoinView, leaf: Leaf) -> Iterator[Step]:
        """The update joined with the views over the components of the rest."""
        parts = self._component_views(view, leaf.atom)
        yield from join_all(
            [NodeInput(p.name, p.key, False, p.atoms) for p in parts], set(leaf.key), True
        )

    def _load_view(self, view: JoinView) -> Block:
        """The join of its inputs, starting from the first."""
        first, *rest = (self.leaves[i] for i in sorted(view.atoms))
        inputs = [NodeInput(leaf.name, leaf.key, False, frozenset({leaf.atom})) for leaf in rest]
        joins = join_all(inputs, set(first.key), weigh=True)
        return Block(first.name, first.key, (*joins, Update(view.name, view.key)))
