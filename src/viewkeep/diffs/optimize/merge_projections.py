"""Rule: a projection of a projection is one projection."""

from collections import Counter

from viewkeep.diffs.rules.build import is_whole
from viewkeep.query.algebra import Node, Output, Project
from viewkeep.query.expressions import Column, Expression, Literal, subexpressions, substitute
from viewkeep.query.traversal import rewrite_tree


def merge_projections(node: Node) -> Node:
    """Put projections together, and leave out those that change nothing.

    A computed column that is read more than once stays where it is computed once.
    """
    return rewrite_tree(node, _merged_projection)


def _merged_projection(node: Node) -> Node:
    if not isinstance(node, Project):
        return node
    child = node.child
    if isinstance(child, Project):
        inner = {output.name: output.expression for output in child.outputs}
        if _is_computed_once(node, inner):
            outputs = tuple(
                Output(o.name, _expression_over_inner(o.expression, inner)) for o in node.outputs
            )
            return _merged_projection(Project(child.child, outputs))
    return child if is_whole(child, {o.name: o.expression for o in node.outputs}) else node


def _expression_over_inner(expression: Expression, inner: dict[str, Expression]) -> Expression:
    return substitute(expression, lambda column: inner[column.name])


def _is_computed_once(node: Project, inner: dict[str, Expression]) -> bool:
    reads = Counter(
        part.name
        for o in node.outputs
        for part in subexpressions(o.expression)
        if isinstance(part, Column)
    )
    return all(
        count == 1 or isinstance(inner[name], Column | Literal) for name, count in reads.items()
    )
