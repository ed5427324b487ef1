"""Columns that tell the rows of an operator apart, so that an order by them leaves no choice."""

from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
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
from viewkeep.query.expressions import Column


def tie_columns(node: Node) -> tuple[str, ...]:
    """Columns in which two rows are equal only if they are in all: keys of tables and groups where
    they are there, else all columns that can be compared.

    >>> from viewkeep.query.tables import Table
    >>> tie_columns(Scan("parts", Table({"pid": "int", "price": "int"}, key=["pid"]), "p"))
    ('p.pid',)
    """
    match node:
        case Scan() if node.table.key:
            return tuple(f"{node.alias}.{column}" for column in node.table.key)
        case Select() | Window():
            return tie_columns(node.child)
        case Unnest():
            return (*tie_columns(node.child), node.elements[0])
        case SemiJoin() | AntiJoin():
            return tie_columns(node.left)
        case Join():
            return tie_columns(node.left) + tie_columns(node.right)
        case GroupBy():
            return node.keys
        case Project():
            return _ties_of_projection(node)
        case Scan() | Stored() | Values() | UnionAll() | Distinct():
            return _comparable_columns(node)


def _ties_of_projection(node: Project) -> tuple[str, ...]:
    plain = {o.expression.name: o.name for o in node.outputs if isinstance(o.expression, Column)}
    below = tie_columns(node.child)
    if all(name in plain for name in below):
        return tuple(plain[name] for name in below)
    return _comparable_columns(node)


def _comparable_columns(node: Node) -> tuple[str, ...]:
    return tuple(field.name for field in node.schema if not field.type.has_map)
