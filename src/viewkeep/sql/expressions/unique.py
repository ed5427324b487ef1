"""Which columns tell the rows of a query apart."""

from collections.abc import Set as AbstractSet

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
from viewkeep.query.expressions import Call, Column, Expression, conjuncts, constant_column
from viewkeep.query.types.inference import Schema


def is_unique(node: Node, columns: AbstractSet[str]) -> bool:
    """Whether no two rows agree on these columns, as far as keys and constants tell.

    >>> from viewkeep.query.tables import Table
    >>> parts = Scan("parts", Table({"pid": "int", "price": "int"}, key=["pid"]), "p")
    >>> is_unique(parts, {"p.pid"}), is_unique(parts, {"p.price"})
    (True, False)
    """
    match node:
        case Scan():
            key = {f"{node.alias}.{column}" for column in node.table.key}
            return bool(key) and key <= columns
        case Select():
            return is_unique(node.child, _columns_fixed(columns, node.condition, node.schema))
        case Project():
            values = [o.expression for o in node.outputs if o.name in columns]
            return is_unique(node.child, {v.name for v in values if isinstance(v, Column)})
        case Distinct():
            return set(node.names) <= columns or is_unique(node.child, columns)
        case GroupBy():
            return set(node.keys) <= columns
        case SemiJoin() | AntiJoin():
            return is_unique(node.left, columns)
        case Window():
            return is_unique(node.child, columns)
        case Unnest():
            own = columns & set(node.child.names)
            return node.elements[0] in columns and is_unique(node.child, own)
        case Join():
            fixed_columns = _columns_fixed(columns, node.condition, node.schema)
            sides = (node.left, node.right), (node.right, node.left)
            return any(_join_is_unique(node, *pair, fixed_columns) for pair in sides)
        case Values():
            return len(node.rows) == 1
        case Stored() | UnionAll():
            return False


def _join_is_unique(node: Join, first: Node, second: Node, columns: AbstractSet[str]) -> bool:
    """Whether the columns identify a row of the first side, and with it one of the second."""
    if not is_unique(first, columns & set(first.names)):
        return False
    fixed_columns = _columns_fixed(columns | set(first.names), node.condition, node.schema)
    return is_unique(second, fixed_columns & set(second.names))


def _columns_fixed(
    columns: AbstractSet[str], condition: Expression, schema: Schema
) -> AbstractSet[str]:
    """The columns with those that the condition pins to a constant or to one of them."""
    types = {field.name: field.type for field in schema}
    fixed_columns = set(columns)
    for _ in range(2):
        for part in conjuncts(condition):
            pinned = constant_column(part)
            if pinned is not None:
                fixed_columns.add(pinned)
            match part:
                case Call("=", (Column(a), Column(b))) if types[a] == types[b]:
                    fixed_columns |= {a, b} if {a, b} & fixed_columns else set()
    return fixed_columns
