"""Hierarchical queries with heavy and light values (ivm_lecture, part 3: delta_1-hierarchical
queries; "Trade-offs in Static and Dynamic Evaluation of Hierarchical Queries").

In the canonical order X stands above Y if the atoms of Y are some of those of X. A bound X above
free variables is what makes updates or reading slow. Its values are split by degree, in all its
atoms at once, so that each value takes one of two ways:

    light   the free variables are put above X: an update meets at most N^eps tuples of X in each
            other atom
    heavy   X stays on top: output is read from the union over the at most N^(1-eps) heavy values

Both ways count what is live in one view, so the tree above X does not see that there are two:
with k such variables there are k choices in one tree, not 2^k trees.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

from viewkeep.analysis.hierarchical import crossing_pair
from viewkeep.plan.adaptive.splits import Epsilon, parts_of
from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import (
    INPUT,
    LEVELS,
    Block,
    Branch,
    Enumerator,
    Join,
    Map,
    Part,
    Program,
    Split,
    Trigger,
    Union,
    Update,
    fresh,
)
from viewkeep.plan.tree import Leaf, Tree, TreeNode
from viewkeep.plan.view_tree import ViewTreePlanner, look_ups_first
from viewkeep.query.conjunctive import ConjunctiveQuery

LIGHT, HEAVY = LEVELS[0], LEVELS[-1]

Inside = tuple[list[Leaf], list[TreeNode]]
"""What a node joins."""

Sources = dict[Leaf, tuple[Part, ...]]
"""The leaves of a tree, each with the parts that it is made of."""


def plan_hierarchical(
    query: ConjunctiveQuery,
    leaves: Sequence[Leaf],
    relations: Sequence[str],
    epsilon: Epsilon,
    notes: tuple[str, ...] = (),
) -> Program:
    """The program of a hierarchical query without inputs: with delta rank i, updates take
    O(N^(i eps)), amortized, and output comes with delay O(N^(1 - eps))."""
    if crossing_pair(query) is not None:
        raise ValueError(f"not hierarchical: {query}")
    groups = _canonical_groups(query, query.variables, ())
    splits = tuple(group.split(epsilon) for group in _groups_top_down(groups) if group.is_split)
    parts = parts_of(leaves, splits)
    builder = TreeBuilder(leaves, parts, query.free)
    tree = builder.tree(groups)
    planner = HierarchicalPlanner(tree, builder.sources, query.outputs)
    return planner.split_program(relations, splits, parts, notes)


# --- the canonical order --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HierarchicalGroup:
    """The variables of the same atoms, those of the groups above, and the groups below.

    Free variables come before bound ones: the order within a group is a matter of choice.
    """

    atoms: frozenset[int]
    free: tuple[str, ...]
    bound: tuple[str, ...]
    above: tuple[str, ...]
    below: tuple["HierarchicalGroup", ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The free variables of the groups below."""
        return tuple(v for group in _groups_top_down(self.below) for v in group.free)

    @property
    def is_split(self) -> bool:
        """Whether bound variables stand above free ones."""
        return bool(self.bound and self.outputs)

    @property
    def own_atoms(self) -> list[int]:
        """The atoms without further variables below."""
        return sorted(self.atoms.difference(*(group.atoms for group in self.below)))

    def split(self, epsilon: Epsilon) -> Split:
        """One split for all bound variables of the group, in all its atoms."""
        variables, atoms = self.above + self.free + self.bound, tuple(sorted(self.atoms))
        return Split(variables, atoms, (epsilon(variables, atoms),))


def _canonical_groups(
    query: ConjunctiveQuery, variables: tuple[str, ...], above: tuple[str, ...]
) -> tuple[HierarchicalGroup, ...]:
    """The canonical order of these variables, which share no atom set with those above."""
    atoms_of, groups = query.atoms_of, list[HierarchicalGroup]()
    sets = dict.fromkeys(atoms_of[v] for v in variables)
    for atoms in (each for each in sets if not any(each < other for other in sets)):
        group_variables = [v for v in variables if atoms_of[v] == atoms]
        free = tuple(v for v in group_variables if v in query.free)
        bound = tuple(v for v in group_variables if v not in query.free)
        inside = tuple(v for v in variables if atoms_of[v] < atoms)
        below = _canonical_groups(query, inside, above + free + bound)
        groups.append(HierarchicalGroup(atoms, free, bound, above, below))
    return tuple(groups)


def _groups_top_down(groups: Iterable[HierarchicalGroup]) -> Iterator[HierarchicalGroup]:
    """The groups and all below them, top-down: nested splits are numbered from the outermost."""
    for group in groups:
        yield group
        yield from _groups_top_down(group.below)


# --- the tree -------------------------------------------------------------------------------------


class TreeBuilder:
    """Grows the nodes of groups; a path of letters tells the choices made above them."""

    def __init__(
        self, leaves: Sequence[Leaf], parts: tuple[Part, ...], free: tuple[str, ...]
    ) -> None:
        self._leaves, self._parts, self._free = leaves, parts, free
        self._taken = {part.map for part in parts}
        self.sources: Sources = {}

    def tree(self, groups: tuple[HierarchicalGroup, ...]) -> Tree:
        """The tree of all groups; atoms without variables stand beside it."""
        nullary = tuple(self._leaf_on_path(leaf.atom, "") for leaf in self._leaves if not leaf.key)
        roots = tuple(node for group in groups for node in self._group_nodes(group, ""))
        self.sources = dict(sorted(self.sources.items(), key=lambda item: item[0].atom))
        return Tree(roots, nullary, tuple(self.sources))

    def _group_nodes(self, group: HierarchicalGroup, path: str) -> list[TreeNode]:
        """The node of a group, or its alternatives, with all that is below."""
        if not group.is_split:
            variables = group.free + group.bound
            return [
                self._variable_chain(variables, group.above, self._nodes_inside(group, path), path)
            ]
        start, upper = group.above + group.free, self._name_on_path("V", group.bound[0], path)
        light, heavy = path + LIGHT, path + HEAVY
        alternatives = [
            self._variable_chain(
                group.outputs, start, self._light_nodes(group, light), light, upper
            ),
            self._variable_chain(
                group.bound, start, self._nodes_inside(group, heavy), heavy, upper
            ),
        ]
        if not group.free:
            return alternatives
        return [self._variable_chain(group.free, group.above, ([], alternatives), path)]

    def _nodes_inside(self, group: HierarchicalGroup, path: str) -> Inside:
        children = [node for each in group.below for node in self._group_nodes(each, path)]
        return [self._leaf_on_path(atom, path) for atom in group.own_atoms], children

    def _light_nodes(self, group: HierarchicalGroup, path: str) -> Inside:
        """The atoms of a light group, with the bound variables summed away."""
        leaves, children = (
            [self._leaf_on_path(atom, path) for atom in group.own_atoms],
            list[TreeNode](),
        )
        for each in group.below:
            more_leaves, more_children = self._light_nodes(each, path)
            leaves, children = leaves + more_leaves, children + more_children
        if not group.bound:
            return leaves, children
        start = group.above + group.free + group.outputs
        return [], [self._variable_chain(group.bound, start, (leaves, children), path)]

    def _variable_chain(
        self,
        variables: tuple[str, ...],
        above: tuple[str, ...],
        inside: Inside,
        path: str,
        upper: str = "",
    ) -> TreeNode:
        """A node for each variable, one above the other; the last has what is inside."""
        first, rest = variables[0], variables[1:]
        if rest:
            inside = [], [self._variable_chain(rest, (*above, first), inside, path)]
        leaves, children = inside
        upper = upper or self._name_on_path("V", first, path)
        top = first in self._free or any(child.top for child in children)
        node = TreeNode(
            first, above, leaves, children, top, upper, self._name_on_path("V'", first, path)
        )
        node.atoms = frozenset(x.atom for x in leaves).union(*(c.atoms for c in children))
        for child in children:
            child.parent = node
        return node

    def _leaf_on_path(self, atom: int, path: str) -> Leaf:
        """The part of an atom on a path; below a light choice, all parts of further splits."""
        leaf = next(leaf for leaf in self._leaves if leaf.atom == atom)
        atom_parts = [part for part in self._parts if part.atom == atom]
        parts = tuple(part for part in atom_parts if _part_letters(part).startswith(path))
        name = self._name_on_path(leaf.name, path) if parts[1:] else parts[0].map
        part_leaf = replace(leaf, name=name)
        self.sources[part_leaf] = parts
        return part_leaf

    def _name_on_path(self, *words: str) -> str:
        name = fresh("_".join(word for word in words if word), self._taken)
        self._taken.add(name)
        return name


def _part_letters(part: Part) -> str:
    return "".join((LIGHT, HEAVY)[level] for _, level in part.levels)


# --- the program ----------------------------------------------------------------------------------


class HierarchicalPlanner(ViewTreePlanner):
    """A view tree in which nodes that share their upper view are alternatives."""

    def __init__(self, tree: Tree, sources: Sources, head: tuple[str, ...]) -> None:
        super().__init__(tree, (), head, ())
        self.sources = sources

    def split_program(
        self,
        relations: Sequence[str],
        splits: tuple[Split, ...],
        parts: tuple[Part, ...],
        notes: tuple[str, ...],
    ) -> Program:
        """Everything put together."""
        roots = self.tree.roots
        reading = self._read_alternatives(root for root in roots if root.top)
        return assemble(
            "epsilon",
            (*self._maps_of_parts(), *self._maps_of_sums(), *self._summed_views()),
            self._part_triggers(relations),
            (*self._load_sums(), *self._load_view_tree()),
            Enumerator(self.head, (*self._look_up_roots(roots, None), *reading)),
            notes=notes,
            splits=splits,
            parts=parts,
        )

    # --- maps -----------------------------------------------------------------------------------

    def _maps_of_parts(self) -> Iterator[Map]:
        """The parts of all atoms."""
        for leaf, parts in self.sources.items():
            for part in parts:
                part_names = frozenset({part.map} if part.levels else ())
                yield Map(part.map, leaf.key, INPUT, frozenset({leaf.atom}), parts=part_names)

    def _maps_of_sums(self) -> Iterator[Map]:
        """The leaves that are made of several parts."""
        for leaf, parts in self.sources.items():
            if parts[1:]:
                names = [part.map for part in parts]
                total = Map(leaf.name, leaf.key, " + ".join(names), frozenset({leaf.atom}))
                yield replace(total, parts=frozenset(names))

    def _load_sums(self) -> Iterator[Block]:
        for leaf, parts in self.sources.items():
            for part in parts if parts[1:] else ():
                yield Block(part.map, leaf.key, (Update(leaf.name, leaf.key),))

    def _summed_views(self) -> Iterable[Map]:
        """The views; alternatives add up in one view."""
        maps, below = dict[str, Map](), self._parts_below()
        for each in self._view_maps():
            earlier = maps.get(each.name)
            definition = f"{earlier.definition} + {each.definition}" if earlier else each.definition
            maps[each.name] = replace(each, definition=definition, parts=below[each.name])
        return maps.values()

    def _parts_below(self) -> dict[str, frozenset[str]]:
        """For each view the parts below it; none if nothing below it is split."""
        parts_of_view: dict[str, list[Part]] = {}
        for leaf, parts in self.sources.items():
            node = self.tree.home(leaf)
            while node is not None:
                for view in (node.joined, node.upper):
                    parts_of_view.setdefault(view, []).extend(parts)
                node = node.parent
        return {
            view: frozenset(part.map for part in parts if any(each.levels for each in parts))
            for view, parts in parts_of_view.items()
        }

    # --- updates --------------------------------------------------------------------------------

    def _part_triggers(self, relations: Sequence[str]) -> Iterator[Trigger]:
        """One trigger for each part; all parts of an atom change the output alike."""
        for leaf, parts in self.sources.items():
            outputs = tuple(
                look_ups_first(way, set(leaf.key))
                for other in self.sources
                if other.atom == leaf.atom
                for way in self._ways_up(other)
            )
            for part in parts:
                blocks = self._climb_from_part(part, leaf)
                name = part.map if part.levels else ""
                yield Trigger(leaf.atom, relations[leaf.atom], leaf.key, blocks, outputs, name)

    def _climb_from_part(self, part: Part, leaf: Leaf) -> tuple[Block, ...]:
        first, *rest = self._climb_from_leaf(leaf)
        if leaf.name != part.map:
            first = replace(first, steps=(Update(part.map, leaf.key), *first.steps))
        return (first, *rest)

    def _ways_up(self, leaf: Leaf) -> Iterator[list[Join]]:
        """From a tuple to the output tuples that it changes, and by how much.

        A tuple meets only tuples whose values have the same levels, so nothing counts twice.
        """
        joins, _, aside = self._joins_to_root(leaf)
        for way in self._ways_down(aside):
            yield [*joins, *way]

    def _ways_down(self, nodes: Iterable[TreeNode]) -> Iterator[tuple[Join, ...]]:
        """Every way to read nodes: one for each choice of alternatives."""
        choices = [
            [
                (*self._read_values(node, set(node.depends_on)), *below)
                for node in alternatives
                for below in self._ways_down(self._read_next(node))
            ]
            for alternatives in _alternative_nodes(nodes)
        ]
        return (tuple(chain.from_iterable(ways)) for ways in product(*choices))

    # --- enumeration ----------------------------------------------------------------------------

    def _read_alternatives(self, nodes: Iterable[TreeNode]) -> Iterator[Join | Union]:
        """Nodes from the top down, with a union wherever there are alternatives."""
        for first, *others in _alternative_nodes(nodes):
            if others:
                outputs = tuple(v for v in self.head if v in _variables_below(first))
                yield Union(tuple(map(self._union_branch, (first, *others))), outputs)
            else:
                yield from self._read_node(first)

    def _read_node(self, node: TreeNode) -> Iterator[Join | Union]:
        yield from self._read_values(node, set(node.depends_on))
        yield from self._read_alternatives(self._read_next(node))

    def _union_branch(self, node: TreeNode) -> Branch:
        """A light part is one set; a heavy part has a set for each value of bound variables."""
        steps, over = tuple(self._read_node(node)), list[Join]()
        for step in steps:
            if not isinstance(step, Join) or set(step.opens) <= set(self.head):
                break
            over.append(step)
        return Branch(tuple(over), steps[len(over) :])


def _alternative_nodes(nodes: Iterable[TreeNode]) -> Iterable[list[TreeNode]]:
    """Nodes with the same upper view together."""
    by_view: dict[str, list[TreeNode]] = {}
    for node in nodes:
        by_view.setdefault(node.upper, []).append(node)
    return by_view.values()


def _variables_below(node: TreeNode) -> set[str]:
    return {node.variable}.union(*map(_variables_below, node.children))
