"""Columns that have the same value in every row of a query."""

from collections.abc import Iterator, Mapping

from viewkeep.query.algebra import AntiJoin, Join, Node, Project, Select, SemiJoin
from viewkeep.query.expressions import Call, Column, Expression, conjuncts
from viewkeep.query.types.data_types import BINARY, BOOLEAN, INTEGRAL, MOMENTS, STRING, Type
from viewkeep.query.types.inference import find_field
from viewkeep.query.types.rules import is_decimal

_Pair = tuple[str, str]


def column_classes(node: Node) -> Mapping[str, tuple[str, ...]]:
    """For columns of a node those that always have the same value, by equalities of conditions.

    Only types whose equal values cannot be told apart: 0.0 equals -0.0, and is another value.

    >>> from viewkeep.query.algebra import Scan
    >>> from viewkeep.query.tables import Table
    >>> parts = Scan("parts", Table({"pid": "int", "price": "int"}, key=["pid"]), "p")
    >>> uses = Scan("uses", Table({"did": "int", "pid": "int"}, key=["did", "pid"]), "u")
    >>> join = Join(parts, uses, Call("=", (Column("p.pid"), Column("u.pid"))))
    >>> dict(column_classes(join))
    {'p.pid': ('u.pid',), 'u.pid': ('p.pid',)}
    """
    classes: dict[str, tuple[str, ...]] = {}
    for first, second in _equal_pairs(node):
        merged = tuple(
            dict.fromkeys((*classes.get(first, (first,)), *classes.get(second, (second,))))
        )
        classes |= dict.fromkeys(merged, merged)
    return {name: tuple(n for n in same if n != name) for name, same in classes.items()}


def _equal_pairs(node: Node) -> Iterator[_Pair]:
    match node:
        case Select():
            yield from _equalities(node, node.condition)
            yield from _equal_pairs(node.child)
        case Join():
            yield from _equalities(node, node.condition)
            yield from _equal_pairs(node.left)
            yield from _equal_pairs(node.right)
        case SemiJoin() | AntiJoin():
            yield from _equal_pairs(node.left)
        case Project():
            yield from _projected_pairs(node)


def _equalities(node: Select | Join, condition: Expression) -> Iterator[_Pair]:
    for part in conjuncts(condition):
        match part:
            case Call("=", (Column(first), Column(second))):
                types = {find_field(each, node.schema).type for each in (first, second)}
                if len(types) == 1 and _has_one_form(types.pop()):
                    yield first, second


def _has_one_form(type_: Type) -> bool:
    """Whether values that are equal are the same value."""
    return type_ in (*INTEGRAL, *MOMENTS, STRING, BINARY, BOOLEAN) or is_decimal(type_)


def _projected_pairs(node: Project) -> Iterator[_Pair]:
    below = column_classes(node.child)
    first_names: dict[str, str] = {}
    for output in node.outputs:
        match output.expression:
            case Column(column):
                for each in (column, *below.get(column, ())):
                    if each in first_names:
                        yield first_names[each], output.name
                        break
                first_names.setdefault(column, output.name)
