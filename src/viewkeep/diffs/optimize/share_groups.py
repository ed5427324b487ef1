"""Rule: groups that a view computes twice are computed, and kept, once.

A common table that is used twice is translated twice, over scans with names of their own. Two
subtrees are the same where they differ in the names of columns only: the second one becomes the
first with its columns renamed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Output,
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
from viewkeep.query.expressions import Column, Expression, substitute
from viewkeep.query.traversal import inputs_of, walk, with_children


@dataclass(frozen=True)
class _Shape:
    """A subtree whatever its columns are called: equal for the same rows. `names` are those of its
    columns, by the names that the subtree gives them."""

    value: tuple[object, ...]
    names: Mapping[str, str]


def share_groups(root: Node) -> Node:
    """The tree, in which equal groups are one operator."""
    shapes: dict[Node, _Shape] = {}
    for node in walk(root):
        shapes[node] = _group_shape(node, [shapes[child] for child in inputs_of(node)])
    first: dict[object, Node] = {}
    results: dict[Node, Node] = {}
    for node in walk(root):
        copy = with_children(node, tuple(results[child] for child in inputs_of(node)))
        results[node] = copy
        if isinstance(node, GroupBy | Distinct):
            earlier = first.setdefault(shapes[node].value, node)
            if earlier is not node:
                results[node] = _renamed_group(
                    results[earlier], shapes[earlier].names, shapes[node].names
                )
    return results[root]


def _renamed_group(node: Node, own: Mapping[str, str], target: Mapping[str, str]) -> Node:
    columns = {general: name for name, general in own.items()}
    outputs = (Output(name, Column(columns[general])) for name, general in target.items())
    return Project(node, tuple(outputs))


def _group_shape(node: Node, below: list[_Shape]) -> _Shape:
    kind, values = type(node).__name__, [each.value for each in below]
    match node:
        case Scan():
            names = dict(zip(node.names, node.table.names, strict=True))
            return _Shape((kind, node.name, node.table, node.state), names)
        case Stored():
            return _Shape((kind, node.name), {name: name for name in node.names})
        case Values():
            return _Shape((kind, node.rows), _numbered_names("v", node.names))
        case Unnest():
            own = _numbered_names(f"e{len(below[0].names)}.", node.elements)
            value = (kind, below[0].names[node.column], node.outer, *values)
            return _Shape(value, {**below[0].names, **own})
        case Select():
            condition = _expression_shape(node.condition, below[0].names)
            return _Shape((kind, condition, *values), below[0].names)
        case Project():
            parts = tuple(_expression_shape(o.expression, below[0].names) for o in node.outputs)
            return _Shape((kind, parts, *values), _numbered_names("p", node.names))
        case Join() | SemiJoin() | AntiJoin():
            sides = {name: f"l.{general}" for name, general in below[0].names.items()}
            both = sides | {name: f"r.{general}" for name, general in below[1].names.items()}
            condition = _expression_shape(node.condition, both)
            return _Shape((kind, condition, *values), both if isinstance(node, Join) else sides)
        case UnionAll():
            orders = tuple(tuple(s.names[n] for n in node.names) for s in below)
            return _Shape((kind, orders, *values), _numbered_names("u", node.names))
        case GroupBy():
            keys = {name: below[0].names[name] for name in node.keys}
            aggregates = tuple(_aggregate_shape(each, below[0].names) for each in node.aggregates)
            own = _numbered_names("a", [a.name for a in node.aggregates])
            return _Shape((kind, tuple(keys.values()), aggregates, *values), keys | own)
        case Distinct():
            return _Shape((kind, *values), below[0].names)
        case Window():
            return _window_shape(node, below[0])


def _window_shape(node: Window, below: _Shape) -> _Shape:
    names = below.names
    columns = tuple(
        (
            column.function,
            tuple(_expression_shape(each, names) for each in column.arguments),
            column.frame,
            column.ignore_nulls,
        )
        for column in node.columns
    )
    order = tuple((names[o.column], o.descending, o.nulls_first) for o in node.order_by)
    partition = tuple(names[name] for name in node.partition_by)
    ties = tuple(names[name] for name in node.ties)
    own = _numbered_names(f"w{len(names)}.", [column.name for column in node.columns])
    value = ("Window", columns, partition, order, ties, node.limit, node.reserve, below.value)
    return _Shape(value, {**names, **own})


def _aggregate_shape(aggregate: AggregateColumn, names: Mapping[str, str]) -> tuple[object, ...]:
    arguments = tuple(_expression_shape(each, names) for each in aggregate.arguments)
    order = tuple(
        replace(o, expression=_expression_shape(o.expression, names)) for o in aggregate.order
    )
    return aggregate.function, aggregate.argument is None, arguments, order, aggregate.type


def _numbered_names(letter: str, names: tuple[str, ...] | list[str]) -> dict[str, str]:
    return {name: f"{letter}{number}" for number, name in enumerate(names)}


def _expression_shape(expression: Expression, names: Mapping[str, str]) -> Expression:
    return substitute(expression, lambda column: Column(names[column.name]))
