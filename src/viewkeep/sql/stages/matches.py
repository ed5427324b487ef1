"""Semijoins and antijoins as joins with the distinct values that rows are looked for by.

L semijoin R = L join distinct(keys of R)        L antijoin R = L - L semijoin R
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from viewkeep.query.algebra import AntiJoin, Distinct, Join, Node, Output, Project, Select, SemiJoin
from viewkeep.query.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    literal,
)
from viewkeep.query.flatten import NotConjunctive

Equality = tuple[str, Expression, Expression]
"""An operator, what it compares on the left, and on the right."""


@dataclass
class _Parts:
    """The conditions of a semijoin by the side that they read, and its equalities."""

    left: list[Expression] = field(default_factory=list)
    right: list[Expression] = field(default_factory=list)
    equalities: list[Equality] = field(default_factory=list)


def joined_matches(node: SemiJoin, fresh_name: Callable[[], str]) -> Node:
    """The rows of a semijoin, by a join that finds at most one partner for each."""
    parts = _parts(node)
    prefix = fresh_name()
    keys = [right for _, _, right in parts.equalities] or [literal(1)]
    outputs = tuple(Output(f"{prefix}.{i}", key) for i, key in enumerate(keys))
    partners = Distinct(Project(_filtered(node.right, parts.right), outputs))
    equal = [
        Call(operator, (left, Column(output.name)))
        for (operator, left, _), output in zip(parts.equalities, outputs, strict=False)
    ]
    join = Join(_filtered(node.left, parts.left), partners, conjunction(equal))
    return Project(join, tuple(Output(name, Column(name)) for name in node.left.names))


def single_antijoins(node: AntiJoin) -> AntiJoin | None:
    """NOT IN, which a NULL on either side answers, as antijoins of conditions without NULLs."""
    parts = conjuncts(node.condition)
    for place, part in enumerate(parts):
        match part:
            case Call("coalesce", (Call("=", (first, second)), otherwise)) if otherwise == TRUE:
                others = (*parts[:place], *parts[place + 1 :])
                cases = [part.arguments[0], *(Call("isnull", (e,)) for e in (first, second))]
                result: Node = node.left
                for case in cases:
                    result = AntiJoin(result, node.right, conjunction((case, *others)))
                assert isinstance(result, AntiJoin)
                return result
    return None


def _parts(node: SemiJoin) -> _Parts:
    parts, left, right = _Parts(), frozenset(node.left.names), frozenset(node.right.names)
    for part in conjuncts(node.condition):
        names = columns_of(part)
        if part == TRUE:
            continue
        if names <= left:
            parts.left.append(part)
        elif names <= right:
            parts.right.append(part)
        else:
            parts.equalities.append(_equality(part, left, right, node))
    return parts


def _equality(
    part: Expression, left: frozenset[str], right: frozenset[str], node: SemiJoin
) -> Equality:
    match part:
        case Call("=" | "<=>" as operator, (first, second)):
            if columns_of(first) <= left and columns_of(second) <= right:
                return operator, first, second
            if columns_of(second) <= left and columns_of(first) <= right:
                return operator, second, first
    raise NotConjunctive("IN, EXISTS or an outer join on something else than equalities", node)


def _filtered(node: Node, conditions: list[Expression]) -> Node:
    return Select(node, conjunction(conditions)) if conditions else node
