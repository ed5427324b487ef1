"""Renaming the columns of a translated query."""

from collections.abc import Sequence

from viewkeep.query.algebra import Distinct, Node, Output, Project
from viewkeep.query.expressions import Column
from viewkeep.sql.blocks.context import Places


def with_names(node: Node, names: Sequence[str]) -> Node:
    """The same rows under other column names, if they differ."""
    return node if list(node.names) == list(names) else rename_outputs(node, names, Places())


def rename_outputs(node: Node, names: Sequence[str], places: Places) -> Node:
    """The same rows under other column names; a projection on top is relabelled in place."""
    match node:
        case Distinct():
            return places.move(node, Distinct(rename_outputs(node.child, names, places)))
        case Project():
            expressions = [output.expression for output in node.outputs]
            return Project(node.child, tuple(map(Output, names, expressions)))
    return Project(node, tuple(map(Output, names, map(Column, node.names))))
