"""Selections of the first row numbers of an order become limits of its window.

`SELECT ... FROM (SELECT ..., row_number() OVER (ORDER BY x) AS n FROM t) WHERE n <= 10` asks for
the first ten rows, with PARTITION BY for those of each partition. Only where row numbers are all
that the window computes: other functions would see fewer rows.
"""

from collections.abc import Callable
from dataclasses import replace

from viewkeep.query.algebra import Node, Select, Window
from viewkeep.query.expressions import Call, Column, Expression, Literal, conjuncts
from viewkeep.query.traversal import rewrite_tree

_MOST: dict[str, Callable[[int], int]] = {
    "<=": lambda n: n,
    "<": lambda n: n - 1,
    "=": lambda n: n,
}


def limit_windows(root: Node) -> Node:
    """The tree with limits where selections ask for the first rows; the selections stay."""
    return rewrite_tree(root, _window_with_limit)


def _window_with_limit(node: Node) -> Node:
    if not isinstance(node, Select) or not isinstance(node.child, Window):
        return node
    window = node.child
    if window.reserve or any(each.function != "row_number" for each in window.columns):
        return node
    names = {each.name for each in window.columns}
    bounds = [_last_row_number(part, names) for part in conjuncts(node.condition)]
    limits = [each for each in (*bounds, window.limit) if each is not None]
    if not limits:
        return node
    return replace(node, child=replace(window, limit=max(min(limits), 0)))


def _last_row_number(condition: Expression, names: set[str]) -> int | None:
    """The last row number for which a condition on it can be true."""
    match condition:
        case Call(function, (Column(name), Literal(int(most)))) if (
            function in _MOST and name in names and not isinstance(most, bool)
        ):
            return _MOST[function](most)
    return None
