"""What is left of a query when some of its inputs are empty.

A script is made for all kinds of changes; most batches have a few. What depends on an empty diff
is found here and is not run.
"""

from collections.abc import Callable
from dataclasses import replace

from viewkeep.query.algebra import AntiJoin, GroupBy, Node, Stored, UnionAll
from viewkeep.query.traversal import inputs_of, with_children


def prune(node: Node, is_empty: Callable[[str], bool]) -> Node | None:
    """The query without its empty parts, or None if it has no rows.

    >>> from viewkeep.query.algebra import Join
    >>> from viewkeep.query.types.data_types import INT, Field
    >>> a, b = (Stored(name, (Field(name, INT),)) for name in "ab")
    >>> print(prune(AntiJoin(a, b), lambda name: name == "b"))
    a
    >>> prune(Join(a, b), lambda name: name == "b") is None
    True
    """
    results: dict[Node, Node | None] = {}

    def visit(node: Node) -> Node | None:
        if node not in results:
            results[node] = _pruned_node(node, tuple(map(visit, inputs_of(node))), is_empty)
        return results[node]

    return visit(node)


def _pruned_node(
    node: Node, inputs: tuple[Node | None, ...], is_empty: Callable[[str], bool]
) -> Node | None:
    there = tuple(each for each in inputs if each is not None)
    match node:
        case Stored() if is_empty(node.name):
            return None
        case _ if len(there) == len(inputs):
            return with_children(node, there)
        case AntiJoin() if inputs[0] is not None:
            return inputs[0]
        case UnionAll() if there:
            return there[0] if len(there) == 1 else replace(node, inputs=there)
        case GroupBy(keys=()):
            return node  # it has one row, also of nothing
    return None
