"""Numbers of distinct values beside other aggregates, computed in one pass over the rows.

SQL's front end makes a group-by over distinct rows of each `count(DISTINCT x)`, and joins the parts
on their keys. A ring that keeps the values of a group counts them beside all other aggregates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeep.query.aggregates import COUNT_DISTINCT
from viewkeep.query.algebra import (
    AggregateColumn,
    Distinct,
    GroupBy,
    Join,
    Node,
    Output,
    Project,
)
from viewkeep.query.expressions import TRUE, Call, Column, Expression, conjuncts
from viewkeep.query.traversal import with_children
from viewkeep.query.types.data_types import BIGINT
from viewkeep.query.types.inference import find_field

_INEXACT = ("double", "float")
"""Types with values that have no order."""


@dataclass(frozen=True)
class _Groups:
    """Groups of rows, and what each column of theirs is called above."""

    base: Node
    keys: tuple[str, ...]
    aggregates: tuple[AggregateColumn, ...]
    outputs: tuple[Output, ...]

    def over(self, base: Node) -> Node:
        """The group-by over rows, and its columns as they are called."""
        return Project(GroupBy(base, self.keys, self.aggregates), self.outputs)


def in_one_pass(tree: Node) -> Node:
    """The tree with a single group-by for aggregates over the same groups, where values have an
    order: those of floats do not (NaN)."""
    results: dict[Node, Node] = {}

    def visit(node: Node) -> Node:
        if node not in results:
            groups = _groups_of(node)
            if groups is not None and any(a.function == COUNT_DISTINCT for a in groups.aggregates):
                results[node] = groups.over(visit(groups.base))
            else:
                results[node] = with_children(node, tuple(map(visit, node.children)))
        return results[node]

    return visit(tree)


def _groups_of(node: Node) -> _Groups | None:
    """What a part, or a join of parts, computes of the same groups; None where it is something
    else."""
    match node:
        case GroupBy(child=Distinct(child=Project(child=base, outputs=outputs))):
            aggregates = _distinct_counts(node, outputs)
            return None if aggregates is None else _named(node, base, aggregates)
        case GroupBy(child=base):
            return _named(node, base, node.aggregates)
        case Join(left=left, right=Project(child=right, outputs=outputs)):
            first, second = _groups_of(left), _groups_of(right)
            if first is None or second is None or first.base is not second.base:
                return None
            names = {each.name for each in first.aggregates}
            if first.keys != second.keys or names & {each.name for each in second.aggregates}:
                return None
            if not _meet_on_keys(node, first, outputs):
                return None
            renamed = tuple(
                Output(each.name, _renamed(each.expression, second.outputs)) for each in outputs
            )
            aggregates = (*first.aggregates, *second.aggregates)
            return _Groups(first.base, first.keys, aggregates, (*first.outputs, *renamed))
    return None


def _named(node: GroupBy, base: Node, aggregates: tuple[AggregateColumn, ...]) -> _Groups:
    outputs = tuple(Output(name, Column(name)) for name in node.names)
    return _Groups(base, node.keys, aggregates, outputs)


def _renamed(expression: Expression, outputs: Sequence[Output]) -> Expression:
    """A column of the groups by what it is below."""
    assert isinstance(expression, Column)
    return next(each.expression for each in outputs if each.name == expression.name)


def _distinct_counts(
    node: GroupBy, outputs: Sequence[Output]
) -> tuple[AggregateColumn, ...] | None:
    """The aggregates of a group-by over distinct keys and values, over all rows."""
    values = {each.name: each.expression for each in outputs if each.name not in node.keys}
    plain = all(Column(o.name) == o.expression for o in outputs if o.name in node.keys)
    if not plain or len(values) != 1 or len(outputs) != len(node.keys) + 1:
        return None
    ((name, value),) = values.items()
    type_ = find_field(name, node.child.schema).type
    if type_.is_nested or type_.name in _INEXACT:
        return None
    if any(a.function != "count" or a.argument != Column(name) for a in node.aggregates):
        return None
    return tuple(
        replace(each, function=COUNT_DISTINCT, argument=value, type=BIGINT)
        for each in node.aggregates
    )


def _meet_on_keys(node: Join, groups: _Groups, outputs: Sequence[Output]) -> bool:
    """Whether a join brings each group together with itself, that of NULL too."""
    if not all(isinstance(each.expression, Column) for each in outputs):
        return False
    own = {each.expression: each.name for each in outputs}
    equal = {(key, own.get(Column(key))) for key in groups.keys}
    met = set[tuple[str, str | None]]()
    for condition in conjuncts(node.condition) if node.condition != TRUE else ():
        match condition:
            case Call("=" | "<=>" as operator, (Column(left), Column(right))):
                nullable = find_field(right, node.right.schema).nullable
                if operator == "=" and nullable:
                    return False
                met.add((left, right))
            case _:
                return False
    return met == equal
