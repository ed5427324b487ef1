"""Rule: columns that nothing reads are not computed, and joins below group-bys are narrow."""

from dataclasses import replace

from viewkeep.diffs.rules.build import keep
from viewkeep.query.algebra import GroupBy, Node, Project, Scan, Select, UnionAll, Window
from viewkeep.query.columns_read import (
    aggregates_needed,
    branches_need,
    needed_columns,
    outputs_needed,
    window_needed,
)
from viewkeep.query.traversal import inputs_of, walk, with_children


def drop_columns(root: Node) -> Node:
    """Compute only what is read, and project joins below group-bys on it: their rows may be kept.

    IDs are added back where they are needed (`diffs/passes/identify.py`).
    """
    needs = needed_columns(root)
    results: dict[Node, Node] = {}

    def visit(node: Node) -> Node:
        if node not in results:
            results[node] = _node_without_columns(
                node, tuple(map(visit, inputs_of(node))), needs[node]
            )
        return results[node]

    return visit(root)


def _node_without_columns(node: Node, inputs: tuple[Node, ...], columns: frozenset[str]) -> Node:
    match node:
        case Project():
            return Project(inputs[0], outputs_needed(node, columns))
        case GroupBy():
            group = replace(node, child=inputs[0], aggregates=aggregates_needed(node, columns))
            return replace(group, child=_columns_of_groups(group))
        case Window():
            return _window_without_columns(node, inputs[0], columns)
        case UnionAll():
            names = branches_need(node, columns)
            return UnionAll(tuple(keep(each, names) for each in inputs))
    return with_children(node, inputs)


def _window_without_columns(node: Window, child: Node, columns: frozenset[str]) -> Node:
    """A window over what is read: all its columns are compared when its partitions change."""
    window = window_needed(node, columns)
    if window is None:
        return child
    reads = columns | window.reads
    return replace(
        window, child=keep(child, [n for n in child.names if n in reads] or child.names[:1])
    )


def _columns_of_groups(group: GroupBy) -> Node:
    """The input of a group-by, projected to the columns read, where it is more than a part of a
    table."""
    child = group.child
    if all(isinstance(each, Scan | Select) for each in walk(child)):
        return child
    reads = frozenset(group.keys).union(*(each.reads for each in group.aggregates))
    return keep(child, [name for name in child.names if name in reads] or child.names[:1])
