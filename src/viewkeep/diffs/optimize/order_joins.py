"""Rule: inner joins in an order without cross products, where their conditions allow one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from viewkeep.diffs.optimize.cannot_fail import cannot_fail
from viewkeep.diffs.optimize.truth import disjuncts
from viewkeep.diffs.rules.build import keep, select
from viewkeep.query.algebra import AntiJoin, GroupBy, Join, Node, Project, SemiJoin, UnionAll
from viewkeep.query.expressions import TRUE, Call, Expression, columns_of, conjunction, conjuncts
from viewkeep.query.traversal import inputs_of, walk, with_children


def order_joins(root: Node) -> Node:
    """Reorder the joins of a FROM list that has a cross product but needs none.

    The first table stays first, and each next one is the first in the list that a condition ties
    to those before it, by an equality if there is one. A projection restores the order of columns
    where it is seen.
    """
    uses = Counter(child for node in walk(root) for child in inputs_of(node))
    shared = frozenset(node for node, count in uses.items() if count > 1)
    results: dict[tuple[Node, bool], Node] = {}

    def visit(node: Node, order_matters: bool) -> Node:
        """Joins in a new order; `order_matters` says whether that of their columns does."""
        if (node, order_matters) not in results:
            results[node, order_matters] = ordered(node, order_matters)
        return results[node, order_matters]

    def ordered(node: Node, order_matters: bool) -> Node:
        if isinstance(node, Join):
            block = _join_block(node, shared)
            if block.is_misplaced:
                inputs = tuple(visit(each, False) for each in block.inputs)
                tree = _JoinOrder(inputs, block.conditions).joined()
                return keep(tree, node.names) if order_matters else tree
        flags = _inputs_whose_order_is_seen(node, order_matters)
        inputs = tuple(
            visit(child, flag) for child, flag in zip(inputs_of(node), flags, strict=True)
        )
        return with_children(node, inputs)

    return visit(root, True)


def _inputs_whose_order_is_seen(node: Node, order_matters: bool) -> tuple[bool, ...]:
    match node:
        case Project() | GroupBy():
            return (False,)
        case UnionAll():
            return tuple(True for _ in node.inputs)
        case SemiJoin() | AntiJoin():
            return (order_matters, False)
    return tuple(order_matters for _ in inputs_of(node))


@dataclass(frozen=True)
class _JoinOrder:
    """Inner joins as a list of inputs and one of conditions.

    Some `is_cross` have no condition; one below another that has one `is_misplaced`.
    """

    inputs: tuple[Node, ...]
    conditions: tuple[Expression, ...] = ()
    is_cross: bool = False
    is_misplaced: bool = False

    def components(self) -> list[list[Node]]:
        """The inputs that conditions tie together, each in the order of the list."""
        components: list[list[Node]] = [[each] for each in self.inputs]
        for condition in self.conditions:
            overlaps = [part for part in components if _reads_only(condition, part)]
            disjoint = [part for part in components if not _reads_only(condition, part)]
            merged = [each for each in self.inputs if any(each in part for part in overlaps)]
            components = [*disjoint, merged] if merged else disjoint
        return sorted(components, key=lambda part: self.inputs.index(part[0]))

    def joined(self) -> Node:
        """Left-deep joins of each component, and the components side by side."""
        pending = list(self.conditions)
        parts = [self._join_chain(part, pending) for part in self.components()]
        tree = parts[0]
        for part in parts[1:]:
            tree = _join_next_input(tree, part, pending)
        return select(tree, conjunction(pending))

    def _join_chain(self, inputs: Sequence[Node], pending: list[Expression]) -> Node:
        tree, rest = inputs[0], list(inputs[1:])
        while rest:
            following = min(rest, key=lambda each: _join_looseness(tree, each, pending))
            rest.remove(following)
            tree = _join_next_input(tree, following, pending)
        return tree


def _join_block(node: Join, shared: frozenset[Node]) -> _JoinOrder:
    """The block of a join; a join that is used elsewhere too is an input like any other."""
    left, right = (
        _join_block(side, shared)
        if isinstance(side, Join) and side not in shared
        else _JoinOrder((side,))
        for side in (node.left, node.right)
    )
    own = tuple(c for c in conjuncts(node.condition) if c != TRUE)
    is_tied = any(_ties_inputs(c, node.left, node.right) for c in own)
    crosses = left.is_cross or right.is_cross
    return _JoinOrder(
        left.inputs + right.inputs,
        left.conditions + right.conditions + own,
        crosses or not is_tied,
        left.is_misplaced or right.is_misplaced or (crosses and is_tied),
    )


def _join_looseness(tree: Node, other: Node, conditions: Sequence[Expression]) -> int:
    """How badly an input fits as the next one: 0 by an equality, 3 not at all."""
    names = {*tree.names, *other.names}
    ties = [c for c in conditions if _ties_inputs(c, tree, other)]
    ready = [c for c in ties if columns_of(c) <= names]
    if any(isinstance(c, Call) and c.function in ("=", "<=>") for c in ready):
        return 0
    return 1 if ready else 2 if ties else 3


def _join_next_input(left: Node, right: Node, pending: list[Expression]) -> Join:
    """Join an input on all pending conditions over both sides; one that can fail is used only if it
    ties the input, and if it is no disjunction."""
    names, schema = {*left.names, *right.names}, left.schema + right.schema
    local = [c for c in pending if columns_of(c) <= names]
    sure = [c for c in local if len(disjuncts(c)) == 1 and _ties_inputs(c, left, right)]
    own = [c for c in local if c in sure or cannot_fail(c, schema)]
    pending[:] = [c for c in pending if c not in own]
    return Join(left, right, conjunction(own))


def _ties_inputs(condition: Expression, left: Node, right: Node) -> bool:
    return _reads_only(condition, [left]) and _reads_only(condition, [right])


def _reads_only(condition: Expression, nodes: Sequence[Node]) -> bool:
    reads = columns_of(condition)
    return any(not reads.isdisjoint(node.names) for node in nodes)
