"""Which queries DuckDB computes exactly as Spark SQL does in ANSI mode, and why others not."""

from collections.abc import Iterator

from viewkeep.query import expressions
from viewkeep.query.algebra import (
    AntiJoin,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    show,
    walk,
)
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal
from viewkeep.query.types.data_types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    VOID,
    Type,
)
from viewkeep.query.types.inference import Schema, type_of

_LOGIC = frozenset(["and", "or", "not", "isnull", "isnotnull", "case", "coalesce", "nullif"])
_COMPARISONS = frozenset(["=", "<>", "<", "<=", ">", ">=", "<=>", "in"])
_ARITHMETIC = frozenset(["+", "-", "*"])
_PLAIN = (BOOLEAN, *INTEGRAL, STRING, BINARY, DATE, VOID)


def inexact(node: Node) -> str | None:
    """Why DuckDB would not compute a query as Spark does, or None if it does.

    >>> from viewkeep.query.tables import Table
    >>> from viewkeep.query.expressions import literal
    >>> parts = Scan("parts", Table({"pid": "int", "name": "string"}), "p")
    >>> inexact(Select(parts, Call(">", (Column("p.pid"), literal(3)))))
    >>> inexact(Select(parts, Call("=", (Call("upper", (Column("p.name"),)), literal("A")))))
    'upper(p.name): upper() of string is not known to be the same in DuckDB'
    """
    for each in walk(node):
        for reason in _reasons(each):
            return reason
    return None


def _reasons(node: Node) -> Iterator[str]:
    if isinstance(node, Scan | Stored):
        for field in node.schema:
            if not _is_plain(field.type):
                yield f'column "{field.name}" has the type {field.type}'
    for expression, schema in _expressions(node):
        for part in expressions.subexpressions(expression):
            reason = _reason(part, schema)
            if reason is not None:
                yield f"{show(part)}: {reason}"
    if isinstance(node, GroupBy):
        for aggregate in node.aggregates:
            if aggregate.function in ("sum", "avg") and aggregate.argument is not None:
                argument = type_of(aggregate.argument, node.child.schema).type
                if aggregate.function == "avg" or argument not in INTEGRAL:
                    yield f"{aggregate.function}() of {argument}"


def _expressions(node: Node) -> Iterator[tuple[Expression, Schema]]:
    match node:
        case Select():
            yield node.condition, node.child.schema
        case Join() | SemiJoin() | AntiJoin():
            yield node.condition, node.left.schema + node.right.schema
        case Project():
            yield from ((output.expression, node.child.schema) for output in node.outputs)
        case GroupBy():
            for aggregate in node.aggregates:
                if aggregate.argument is not None:
                    yield aggregate.argument, node.child.schema


def _reason(expression: Expression, schema: Schema) -> str | None:
    match expression:
        case Column() | Literal():
            return None
        case Cast():
            source = type_of(expression.argument, schema).type
            widens = source in INTEGRAL and expression.type in (*INTEGRAL, STRING, DOUBLE)
            if widens or source in (expression.type, VOID):
                return None
            return (
                f"a cast from {source} to {expression.type} is not known to be the same in DuckDB"
            )
        case Call(function, arguments):
            types = [type_of(argument, schema).type for argument in arguments]
            if function in _LOGIC or (function in _COMPARISONS and _are_alike(types)):
                return None
            if function in _ARITHMETIC and all(t in INTEGRAL for t in types):
                return None
            names = ", ".join(map(str, types))
            return f"{function}() of {names} is not known to be the same in DuckDB"


def _are_alike(types: list[Type]) -> bool:
    """DuckDB compares floating-point numbers and decimals of many digits in other ways."""
    same = len({type_ for type_ in types if type_ != VOID}) <= 1
    return all(type_ in INTEGRAL for type_ in types) or (
        same and not any(type_ in (DOUBLE, FLOAT) for type_ in types)
    )


def _is_plain(type_: Type) -> bool:
    return type_ in (*_PLAIN, DOUBLE, FLOAT) or type_.name == "decimal"
