"""Columns whose values follow from those of others: all rows that agree in these agree in them."""

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
    Window,
)
from viewkeep.query.expressions import Call, Column, Expression, Literal, columns_of, conjuncts

Names = frozenset[str]


def determined_columns(node: Node, columns: Names) -> Names:
    """The columns that follow from some of a node's, by keys, groups and equalities.

    >>> from viewkeep.query.tables import Table
    >>> parts = Scan("parts", Table({"pid": "int", "price": "int"}, key=["pid"]), "p")
    >>> sorted(determined_columns(parts, frozenset({"p.pid"})))
    ['p.pid', 'p.price']
    """
    match node:
        case Scan():
            key = {f"{node.alias}.{column}" for column in node.table.key}
            return frozenset(node.names) if key and key <= columns else columns
        case Select():
            return _determined_fixpoint((node.child,), node.condition, columns)
        case Join():
            return _determined_fixpoint((node.left, node.right), node.condition, columns)
        case SemiJoin() | AntiJoin():
            return determined_columns(node.left, columns)
        case Window():
            input_columns = columns.intersection(node.child.names)
            return columns | determined_columns(node.child, input_columns)
        case Distinct():
            return determined_columns(node.child, columns)
        case GroupBy():
            return frozenset(node.names) if columns.issuperset(node.keys) else columns
        case Project():
            return _determined_by_projection(node, columns)
    return columns


def _determined_by_projection(node: Project, columns: Names) -> Names:
    outputs = [(each.name, each.expression) for each in node.outputs]
    plain = (e.name for name, e in outputs if name in columns and isinstance(e, Column))
    below = determined_columns(node.child, frozenset(plain))
    return columns | {name for name, expression in outputs if columns_of(expression) <= below}


def _determined_fixpoint(inputs: tuple[Node, ...], condition: Expression, columns: Names) -> Names:
    while True:
        more = _determined_by_equalities(condition, columns)
        for each in inputs:
            more |= determined_columns(each, more.intersection(each.names))
        if more == columns:
            return columns
        columns = more


def _determined_by_equalities(condition: Expression, columns: Names) -> Names:
    for part in conjuncts(condition):
        match part:
            case Call("=", (Column(first), Column(second))) if {first, second} & columns:
                columns |= {first, second}
            case Call("=", (Column(name), Literal())) | Call("=", (Literal(), Column(name))):
                columns |= {name}
    return columns
