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


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The inputs of an operator."""
    return node.children


def walk(node: Node) -> Iterator[Node]:
    """Every operator of the tree once, inputs before the operators that use them."""
    visited: set[Node] = set()

    def visit(node: Node) -> Iterator[Node]:
        if node not in visited:
            for child in inputs_of(node):
                yield from visit(child)
            visited.add(node)
            yield node

    return visit(node)


def rewrite_tree(node: Node, rule: Callable[[Node], Node]) -> Node:
    """The tree with the rule applied to every operator, bottom-up; shared subtrees stay shared."""
    results: dict[Node, Node] = {}

    def visit(node: Node) -> Node:
        if node not in results:
            results[node] = rule(with_children(node, tuple(map(visit, inputs_of(node)))))
        return results[node]

    return visit(node)


def with_children(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same operator over other inputs; the operator itself where they are its own."""
    if len(inputs) == len(inputs_before := inputs_of(node)) and all(
        map(is_, inputs, inputs_before)
    ):
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
    same_columns = len(inputs) == len(inputs_before) and all(
        map(_equal_schemas, inputs, inputs_before)
    )
    return node.over(**new) if same_columns else replace(node, **new)


def _equal_schemas(first: Node, second: Node) -> bool:
    return first.schema is second.schema or first.schema == second.schema
