"""Windows with a limit have some rows behind the limit as a reserve, which a selection takes off.

When one of the first rows goes, the next one is in the reserve, and the input is not read.
"""

from dataclasses import replace

from viewkeep.query.algebra import Node, Select, Window
from viewkeep.query.expressions import Call, Column, literal
from viewkeep.query.traversal import rewrite_tree

LEAST, MOST = 16, 1000
"""Rows of a reserve: as many as are asked for, within these bounds; the lower one is not for
partitions, of which there may be many."""


def reserve_rows(root: Node) -> Node:
    """The tree with a reserve for every window with a limit."""
    return rewrite_tree(root, _window_with_reserve)


def _window_with_reserve(node: Node) -> Node:
    if not isinstance(node, Window) or not node.limit or node.reserve:
        return node
    reserve = min(node.limit if node.partition_by else max(node.limit, LEAST), MOST)
    longer = replace(node, limit=node.limit + reserve, reserve=reserve)
    return Select(longer, Call("<=", (Column(node.columns[0].name), literal(node.limit))))
