"""What is left of a query when some of its inputs are empty.

A script is made for all kinds of changes; most batches have a few. What depends on an empty diff
is found here, on the driver, and costs no Spark job.
"""

from collections.abc import Callable
from dataclasses import replace

from viewkeep.query.algebra import (
    AntiJoin,
    GroupBy,
    Join,
    Node,
    SemiJoin,
    Stored,
    UnionAll,
    children,
    with_children,
)


def prune(node: Node, is_empty: Callable[[str], bool]) -> Node | None:
    """The query without its empty parts, or None if it has no rows.

    >>> from viewkeep.query.types import INT, Field
    >>> a, b = (Stored(name, (Field(name, INT),)) for name in "ab")
    >>> print(prune(AntiJoin(a, b), lambda name: name == "b"))
    a
    >>> prune(Join(a, b), lambda name: name == "b") is None
    True
    """
    done: dict[Node, Node | None] = {}

    def visit(node: Node) -> Node | None:
        if node not in done:
            done[node] = _pruned(node, [visit(child) for child in children(node)], is_empty)
        return done[node]

    return visit(node)


def _pruned(node: Node, inputs: list[Node | None], is_empty: Callable[[str], bool]) -> Node | None:
    there = tuple(each for each in inputs if each is not None)
    match node:
        case Stored():
            return None if is_empty(node.name) else node
        case AntiJoin() if inputs[0] is not None and inputs[1] is None:
            return inputs[0]
        case UnionAll() if there:
            return there[0] if len(there) == 1 else replace(node, inputs=there)
        case GroupBy(keys=()) if not there:
            return node  # it has one row, also of nothing
        case Join() | SemiJoin() | AntiJoin() if len(there) < 2:
            return None
    return None if inputs and not there else with_children(node, there)
