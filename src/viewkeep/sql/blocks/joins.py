"""Outer joins as unions of joins and antijoins padded with NULLs."""

from viewkeep.query.algebra import AntiJoin, Join, Node, Output, Project, SemiJoin, UnionAll
from viewkeep.query.expressions import Cast, Column, Expression, literal


def join(kind: str, left: Node, right: Node, condition: Expression) -> Node:
    """A join of any kind, from the operators of the algebra.

        L LEFT JOIN R ON c = (L JOIN R ON c) UNION ALL (rows of L without a match, NULLs for R)

    and a full outer join adds the rows of R without a match.
    """
    match kind:
        case "semi":
            return SemiJoin(left, right, condition)
        case "anti":
            return AntiJoin(left, right, condition)
    inner = Join(left, right, condition)
    branches: list[Node] = [inner]
    if kind in ("left", "full"):
        branches.append(_null_padded(AntiJoin(left, right, condition), inner))
    if kind in ("right", "full"):
        branches.append(_null_padded(AntiJoin(right, left, condition), inner))
    return UnionAll(tuple(branches)) if len(branches) > 1 else inner


def _null_padded(unmatched: Node, inner: Node) -> Node:
    """Rows of one side, with NULL for every column of the other."""
    own = set(unmatched.names)
    outputs = [
        Output(c.name, Column(c.name) if c.name in own else Cast(literal(None), c.type))
        for c in inner.schema
    ]
    return Project(unmatched, tuple(outputs))
