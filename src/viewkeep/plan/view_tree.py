"""F-IVM: one view tree for all updates (ivm_lecture, part 2; recent_increments_in_ivm, 4.1).

An update climbs from its atom to the root. At each node it is joined with the node's other inputs,
which the update does not touch. Output tuples are read from the top down.
"""

from collections.abc import Iterable, Iterator

from viewkeep.analysis.variable_order import JoinShape, VariableOrder
from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import (
    INPUT,
    NOTHING,
    UPDATE,
    Access,
    Block,
    Collect,
    Enumerator,
    Join,
    Map,
    Program,
    Step,
    Trigger,
    Update,
    opened,
)
from viewkeep.plan.tree import Leaf, NodeInput, Tree, TreeNode, build_tree
from viewkeep.query.constraints import Dependency, closure


def plan_view_tree(
    shape: JoinShape,
    order: tuple[VariableOrder, ...],
    leaves: tuple[Leaf, ...],
    relations: tuple[str, ...],
    head: tuple[str, ...],
    inputs: tuple[tuple[str, str], ...] = (),
    listed: bool = False,
    notes: tuple[str, ...] = (),
) -> Program:
    """The program of a view tree, with the output factorized or as a list."""
    copies = tuple(copy for copy, _ in inputs)
    planner = ViewTreePlanner(build_tree(shape, order, leaves), shape.rules, head, copies)
    return planner.program(relations, inputs, listed, notes)


class ViewTreePlanner:
    """Emits the maps, triggers, loading and enumeration of one tree."""

    def __init__(
        self,
        tree: Tree,
        rules: tuple[Dependency, ...],
        head: tuple[str, ...],
        inputs: tuple[str, ...],
    ) -> None:
        self.tree, self.rules, self.head, self.inputs = tree, rules, head, inputs

    def program(
        self,
        relations: tuple[str, ...],
        inputs: tuple[tuple[str, str], ...],
        listed: bool,
        notes: tuple[str, ...],
    ) -> Program:
        """Everything put together."""
        enumerator = Enumerator(self.head, self._enumeration_steps(set(self.inputs)))
        triggers = [
            self._view_tree_trigger(leaf, relations[leaf.atom], listed) for leaf in self.tree.leaves
        ]
        maps, loading = list(self._view_tree_maps()), list(self._load_view_tree())
        if listed:
            steps = (*self._enumeration_steps(set()), Update(RESULT, self.head))
            loading.append(Block(NOTHING, (), steps))
            atoms = frozenset(leaf.atom for leaf in self.tree.leaves)
            maps.append(Map(RESULT, self.head, "the output as a list", atoms))
            enumerator = Enumerator(self.head, (Join((Access(RESULT, self.head),), self.head),))
        return assemble(
            "viewtree",
            maps,
            triggers,
            loading,
            enumerator,
            inputs,
            RESULT if listed else None,
            notes,
        )

    # --- maps -----------------------------------------------------------------------------------

    def _view_tree_maps(self) -> Iterator[Map]:
        for leaf in self.tree.leaves:
            yield Map(leaf.name, leaf.key, INPUT, frozenset({leaf.atom}))
        yield from self._view_maps()

    def _view_maps(self) -> Iterator[Map]:
        for node in reversed(self.tree.nodes()):
            product = " * ".join(f"{i.name}({', '.join(i.key)})" for i in node.inputs)
            if node.top and not node.is_alias:
                yield Map(node.joined, node.bag, f"all live in {product}", node.atoms, live=True)
            if node.top:
                joined = f"{node.joined}({', '.join(node.joined_key)})"
                counted = f"number of {node.variable} live in {joined}"
                yield Map(node.upper, node.depends_on, counted, node.atoms, live=True)
            else:
                summed = f"sum_{node.variable} {product}"
                yield Map(node.upper, node.depends_on, summed, node.atoms)

    # --- updates --------------------------------------------------------------------------------

    def _view_tree_trigger(self, leaf: Leaf, relation: str, listed: bool) -> Trigger:
        output = look_ups_first(self._output_change(leaf), set(leaf.key))
        blocks = list(self._climb_from_leaf(leaf))
        if listed:
            blocks.append(Block(UPDATE, leaf.key, (*output, Update(RESULT, self.head))))
        return Trigger(leaf.atom, relation, leaf.key, tuple(blocks), (output,))

    def _climb_from_leaf(self, leaf: Leaf) -> Iterator[Block]:
        """The update of the atom's map, then of each view on the way to the root."""
        node = self.tree.home(leaf)
        steps: list[Step] = [Update(leaf.name, leaf.key, live=node is not None and node.top)]
        source, variables = UPDATE, leaf.key
        bound, name, looped = set(leaf.key), leaf.name, set[str]()
        while node is not None:
            others = [each for each in node.inputs if each.name != name]
            joins = list(join_all(others, bound, not node.top, self.rules))
            looped |= {v for join in joins for v in join.opens}
            steps += joins
            if node.top and not node.is_alias:
                steps.append(Update(node.joined, node.bag, live=True))
            if not node.top and looped - set(node.depends_on):
                # Several bindings meet in one entry: add them up before climbing on.
                local = f"d{node.upper}"
                yield Block(source, variables, (*steps, Collect(local, node.depends_on)))
                source, variables, steps, looped = local, node.depends_on, [], set()
            steps.append(Update(node.upper, node.depends_on, live=self._is_live_only(node)))
            bound, name, node = set(node.depends_on), node.upper, node.parent
        yield Block(source, variables, tuple(steps))

    def _is_live_only(self, node: TreeNode) -> bool:
        """Whether the node above only cares about entries that appear or vanish."""
        return node.parent.top if node.parent is not None else node.top

    # --- the change of the output -----------------------------------------------------------------

    def _output_change(self, leaf: Leaf) -> Iterator[Join]:
        """From one tuple of an atom to the output tuples it changes, and by how much."""
        joins, bound, aside = self._joins_to_root(leaf)
        yield from joins
        for each in aside:
            yield from self._read_subtree(each, bound)

    def _joins_to_root(self, leaf: Leaf) -> tuple[list[Join], set[str], list[TreeNode]]:
        """The joins from a tuple up to the root, what they bind, and what is left to read."""
        joins, bound, aside = list[Join](), set(leaf.key), list[TreeNode]()
        name, node = leaf.name, self.tree.home(leaf)
        while node is not None:
            others = [each for each in node.inputs if each.name != name]
            joins += join_all(others, bound, True, self.rules)
            bound |= set(node.bag)
            aside += [c for c in node.children if c.upper != name and c.top]
            name, node = node.upper, node.parent
        others_above = [root for root in self.tree.roots if root.upper != name]
        joins += self._look_up_roots(others_above, leaf.atom)
        return joins, bound, aside + [root for root in others_above if root.top]

    def _look_up_roots(self, roots: Iterable[TreeNode], atom: int | None) -> Iterator[Join]:
        """The trees beside the one that changed, and the atoms without variables."""
        for leaf in self.tree.nullary:
            if leaf.atom != atom:
                yield Join((Access(leaf.name, ()),))
        for upper, top in dict.fromkeys((root.upper, root.top) for root in roots):
            yield Join((Access(upper, (), weigh=not top),))

    # --- enumeration and loading ------------------------------------------------------------------

    def _enumeration_steps(self, inputs: set[str]) -> tuple[Step, ...]:
        joins, bound = list(self._look_up_roots(self.tree.roots, None)), set(inputs)
        for root in self.tree.roots:
            if root.top:
                joins += self._read_subtree(root, bound)
        return look_ups_first(joins, inputs)

    def _read_subtree(self, node: TreeNode, bound: set[str]) -> Iterator[Join]:
        """The values of a variable on top, then those below it; payloads where they are final."""
        yield from self._read_values(node, bound)
        for child in self._read_next(node):
            yield from self._read_subtree(child, bound)

    def _read_values(self, node: TreeNode, bound: set[str]) -> Iterator[Join]:
        only = node.inputs[0]
        weigh = node.is_alias and not only.live
        yield Join((Access(node.joined, node.joined_key, weigh),), opened(bound, node.bag))
        bound |= set(node.bag)
        if not node.is_alias:
            for each in node.inputs:
                if not each.live:
                    yield Join((Access(each.name, each.key),))

    def _read_next(self, node: TreeNode) -> list[TreeNode]:
        """The branch with the fewest look-ups goes innermost: it is paid per output tuple."""
        top = [child for child in node.children if child.top]
        return sorted(top, key=look_ups, reverse=True)

    def _load_view_tree(self) -> Iterator[Block]:
        """Every view in one pass over an input that has most of its variables."""
        for node in reversed(self.tree.nodes()):
            inputs = sorted(node.inputs, key=lambda each: -len(each.key))
            first, rest = inputs[0], inputs[1:]
            steps: list[Step] = list(join_all(rest, set(first.key), not node.top, self.rules))
            if not node.top:
                steps.append(Update(node.upper, node.depends_on))
                yield Block(first.name, first.key, tuple(steps))
                continue
            if not node.is_alias:
                steps.append(Update(node.joined, node.bag))
            steps.append(Update(node.upper, node.depends_on))
            yield Block(first.name, first.key, tuple(steps), weigh=False)


RESULT = "Result"
"""The map that holds the output as a list."""


def join_all(
    inputs: list[NodeInput], bound: set[str], weigh: bool, rules: tuple[Dependency, ...] = ()
) -> Iterator[Join]:
    """Join inputs: those that open nothing first, then those that determine what they open,
    then those that open fewest variables.

    Inputs that open the same variables are intersected, the smallest group iterated.
    """
    rest, variables = list(inputs), set(bound)
    while rest:
        cheapest = min(rest, key=lambda each: _input_cost(each, variables, rules))
        opens = opened(variables, cheapest.key)
        intersected = [each for each in rest if set(opened(variables, each.key)) == set(opens)]
        yield Join(tuple(Access(e.name, e.key, weigh and not e.live) for e in intersected), opens)
        variables |= set(opens)
        rest = [each for each in rest if each not in intersected]


def _input_cost(
    each: NodeInput, bound: set[str], rules: tuple[Dependency, ...]
) -> tuple[bool, int]:
    """Whether more than a bounded number of values may be opened, and for how many variables."""
    opens = opened(bound, each.key)
    input_rules = [rule for rule in rules if rule.guard in each.atoms]
    return not set(opens) <= closure(bound & set(each.key), input_rules), len(opens)


def look_ups(node: TreeNode) -> int:
    """How many look-ups it takes to read the node and all below it."""
    node_look_ups = 0 if node.is_alias else sum(not each.live for each in node.inputs)
    return node_look_ups + sum(look_ups(child) for child in node.children if child.top)


def look_ups_first(joins: Iterable[Join], bound: set[str]) -> tuple[Step, ...]:
    """Every look-up as soon as its variables are bound, so that no loop runs for nothing: with
    Q(a | b) = S(a, b) * T(b), a given b that T lacks must not cost a step for each a."""
    rest, variables, steps = list(joins), set(bound), list[Step]()
    while rest:
        ready = [j for j in rest if all(variables.issuperset(a.arguments) for a in j.accesses)]
        next_joins = ready or rest[:1]
        steps += next_joins
        variables |= {v for join in next_joins for v in join.opens}
        rest = [join for join in rest if all(join is not each for each in next_joins)]
    return tuple(steps)
