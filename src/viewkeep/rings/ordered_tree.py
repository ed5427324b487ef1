"""Persistent search trees: values in order, each with a count that is not zero.

A height-balanced tree (Adelson-Velsky and Landis) whose nodes are never changed: an insert copies
the nodes on its path, so that whoever holds a tree keeps what it held. Every node knows the extreme
values below it and how many of its counts are negative. Multiplying all counts by a number touches
the root alone: what is pending for the nodes below is passed on when they are next copied.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from viewkeep.errors import RingError


class Node:
    """A value with its count, and the trees of smaller and of larger values."""

    __slots__ = (
        "count",
        "height",
        "highest",
        "left",
        "lowest",
        "negative",
        "pending",
        "right",
        "size",
        "value",
    )

    def __init__(self, value: Any, count: int, left: "Tree" = None, right: "Tree" = None) -> None:
        self.value: Any = value
        self.count: int = count
        self.left: Tree = left
        self.right: Tree = right
        self.pending: int = 1
        self.lowest: Any = value
        self.highest: Any = value
        height, size, negative = 0, 1, int(count < 0)
        if left is not None:
            height, size = left.height, size + left.size
            negative += left.negative
            self.lowest = left.lowest
        if right is not None:
            height, size = max(height, right.height), size + right.size
            negative += right.negative
            self.highest = right.highest
        self.height: int = height + 1
        self.size: int = size
        self.negative: int = negative


Tree = Node | None
"""A root, or None for no values."""

Visits = list[int]
"""A cell that counts the nodes that operations look at."""


def add_value(tree: Tree, value: Any, count: int, visits: Visits) -> Tree:
    """The tree with so many more copies of a value, in O(log n); fewer, if negative."""
    visits[0] += 1
    if tree is None:
        return Node(value, count)
    left, right = subtrees(tree)
    side = compare_values(value, tree.value)
    if side < 0:
        return _balanced_tree(tree.value, tree.count, add_value(left, value, count, visits), right)
    if side > 0:
        return _balanced_tree(tree.value, tree.count, left, add_value(right, value, count, visits))
    total = tree.count + count
    return (
        Node(tree.value, total, left, right) if total else _concatenated_trees(left, right, visits)
    )


def merge(left: Tree, right: Tree, visits: Visits) -> Tree:
    """The sum of two trees: the values of the smaller one go into the larger one."""
    if left is None or right is None:
        return left or right
    large, small = (left, right) if left.size >= right.size else (right, left)
    total: Tree = large
    for value, count in entries(small):
        total = add_value(total, value, count, visits)
    return total


def scale(tree: Tree, factor: int) -> Tree:
    """The tree with all counts times a factor, in O(1)."""
    if tree is None or factor == 1:
        return tree
    if not factor:
        return None
    scaled: Node = object.__new__(Node)
    scaled.value, scaled.count = tree.value, tree.count * factor
    scaled.left, scaled.right, scaled.pending = tree.left, tree.right, tree.pending * factor
    scaled.lowest, scaled.highest = tree.lowest, tree.highest
    scaled.height, scaled.size = tree.height, tree.size
    scaled.negative = tree.negative if factor > 0 else tree.size - tree.negative
    return scaled


def entries(tree: Tree) -> Iterator[tuple[Any, int]]:
    """The values with their counts, in order."""
    if tree is not None:
        left, right = subtrees(tree)
        yield from entries(left)
        yield tree.value, tree.count
        yield from entries(right)


def build(pairs: Sequence[tuple[Any, int]]) -> Tree:
    """The tree of values that come in order."""
    if not pairs:
        return None
    middle = len(pairs) // 2
    value, count = pairs[middle]
    return Node(value, count, build(pairs[:middle]), build(pairs[middle + 1 :]))


def find(tree: Tree, value: Any) -> int:
    """The count of a value; zero if it is absent."""
    factor = 1
    while tree is not None:
        side = compare_values(value, tree.value)
        if not side:
            return tree.count * factor
        factor *= tree.pending
        tree = tree.left if side < 0 else tree.right
    return 0


def subtrees(node: Node) -> tuple[Tree, Tree]:
    """The trees below, with what is pending for them."""
    if node.pending == 1:
        return node.left, node.right
    return scale(node.left, node.pending), scale(node.right, node.pending)


def compare_values(value: Any, other: Any) -> int:
    """-1, 0 or 1; values that are not below, above or equal to each other are refused."""
    try:
        if value < other:
            return -1
        if value == other:
            return 0
        if other < value:
            return 1
    except (TypeError, ArithmeticError):
        pass
    raise RingError(f"cannot order {value!r} and {other!r}: they have no min and max")


def require_ordered(value: Any) -> None:
    """Refuse what has no place in any order, such as NaN."""
    try:
        ordered = bool(value <= value)
    except (TypeError, ArithmeticError):
        ordered = False
    if not ordered:
        raise RingError(f"cannot order {value!r}: it has no min and max")


def _tree_height(tree: Tree) -> int:
    return 0 if tree is None else tree.height


def _balanced_tree(value: Any, count: int, left: Tree, right: Tree) -> Node:
    """A node over trees whose heights differ by at most two."""
    if left is not None and left.height > _tree_height(right) + 1:
        outer, inner = subtrees(left)
        if inner is not None and inner.height > _tree_height(outer):
            low, high = subtrees(inner)
            return Node(
                inner.value,
                inner.count,
                Node(left.value, left.count, outer, low),
                Node(value, count, high, right),
            )
        return Node(left.value, left.count, outer, Node(value, count, inner, right))
    if right is not None and right.height > _tree_height(left) + 1:
        inner, outer = subtrees(right)
        if inner is not None and inner.height > _tree_height(outer):
            low, high = subtrees(inner)
            return Node(
                inner.value,
                inner.count,
                Node(value, count, left, low),
                Node(right.value, right.count, high, outer),
            )
        return Node(right.value, right.count, Node(value, count, left, inner), outer)
    return Node(value, count, left, right)


def _concatenated_trees(left: Tree, right: Tree, visits: Visits) -> Tree:
    """Two trees of about one height, all values of the first below those of the second."""
    if left is None or right is None:
        return left or right
    first, rest = _without_lowest(right, visits)
    return _balanced_tree(first.value, first.count, left, rest)


def _without_lowest(node: Node, visits: Visits) -> tuple[Node, Tree]:
    """The node of the smallest value, and the tree without it."""
    visits[0] += 1
    left, right = subtrees(node)
    if left is None:
        return node, right
    lowest, rest = _without_lowest(left, visits)
    return lowest, _balanced_tree(node.value, node.count, rest, right)
