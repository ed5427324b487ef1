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


def determined_columns(node: Node, known: Names) -> Names:
    """The columns that follow from some of a node's, by keys, groups and equalities.

    >>> from viewkeep.query.tables import Table
    >>> parts = Scan("parts", Table({"pid": "int", "price": "int"}, key=["pid"]), "p")
    >>> sorted(determined_columns(parts, frozenset({"p.pid"})))
    ['p.pid', 'p.price']
    """
    match node:
        case Scan():
            key = {f"{node.alias}.{column}" for column in node.table.key}
            return frozenset(node.names) if key and key <= known else known
        case Select():
            return _fixpoint((node.child,), node.condition, known)
        case Join():
            return _fixpoint((node.left, node.right), node.condition, known)
        case SemiJoin() | AntiJoin():
            return determined_columns(node.left, known)
        case Window():
            own = known.intersection(node.child.names)
            return known | determined_columns(node.child, own)
        case Distinct():
            return determined_columns(node.child, known)
        case GroupBy():
            return frozenset(node.names) if known.issuperset(node.keys) else known
        case Project():
            return _projected(node, known)
    return known


def _projected(node: Project, known: Names) -> Names:
    outputs = [(each.name, each.expression) for each in node.outputs]
    plain = (e.name for name, e in outputs if name in known and isinstance(e, Column))
    below = determined_columns(node.child, frozenset(plain))
    return known | {name for name, expression in outputs if columns_of(expression) <= below}


def _fixpoint(inputs: tuple[Node, ...], condition: Expression, known: Names) -> Names:
    while True:
        more = _with_equal(condition, known)
        for each in inputs:
            more |= determined_columns(each, more.intersection(each.names))
        if more == known:
            return known
        known = more


def _with_equal(condition: Expression, known: Names) -> Names:
    for part in conjuncts(condition):
        match part:
            case Call("=", (Column(first), Column(second))) if {first, second} & known:
                known |= {first, second}
            case Call("=", (Column(name), Literal())) | Call("=", (Literal(), Column(name))):
                known |= {name}
    return known
