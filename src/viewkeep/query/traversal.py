"""How passes go through an algebra tree: its operators in order, and the tree with others.

A subtree that is used in several places is met once, and stays shared when it is rewritten.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import is_
from typing import Any

from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Values,
    Window,
)


def children(node: Node) -> tuple[Node, ...]:
    """The inputs of an operator."""
    return node.children


def walk(node: Node) -> Iterator[Node]:
    """Every operator of the tree once, inputs before the operators that use them."""
    seen: set[Node] = set()

    def visit(node: Node) -> Iterator[Node]:
        if node not in seen:
            for child in children(node):
                yield from visit(child)
            seen.add(node)
            yield node

    return visit(node)


def rewrite(node: Node, rule: Callable[[Node], Node]) -> Node:
    """The tree with the rule applied to every operator, bottom-up; shared subtrees stay shared."""
    done: dict[Node, Node] = {}

    def visit(node: Node) -> Node:
        if node not in done:
            done[node] = rule(with_children(node, tuple(map(visit, children(node)))))
        return done[node]

    return visit(node)


def with_children(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same operator over other inputs; the operator itself where they are its own."""
    if len(inputs) == len(own := children(node)) and all(map(is_, inputs, own)):
        return node
    match node:
        case Scan() | Stored() | Values():
            return node
        case Select() | Project() | GroupBy() | Distinct() | Window() | Unnest():
            new: dict[str, Any] = {"child": inputs[0]}
        case Join() | SemiJoin() | AntiJoin():
            new = {"left": inputs[0], "right": inputs[1]}
        case UnionAll():
            new = {"inputs": inputs}
    same_columns = len(inputs) == len(own) and all(map(_have_same_columns, inputs, own))
    return node.over(**new) if same_columns else replace(node, **new)


def _have_same_columns(first: Node, second: Node) -> bool:
    return first.schema is second.schema or first.schema == second.schema
