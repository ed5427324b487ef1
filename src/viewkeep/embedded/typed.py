"""Types written out as casts, so that DuckDB computes with the types of Spark SQL.

DuckDB has other result types than Spark (a sum of bigint is a hugeint, a quotient of decimals a
double) and other meanings of some casts and functions by type. A cast to the type that a value
has anyway changes nothing in Spark, and tells DuckDB, and `sql/transpile.py`, what is meant.
"""

from dataclasses import replace

from viewkeep.query.algebra import (
    AntiJoin,
    GroupBy,
    Join,
    Node,
    Output,
    Project,
    Select,
    SemiJoin,
    rewrite,
)
from viewkeep.query.expressions import Call, Cast, Column, Expression
from viewkeep.query.inference import Schema, type_of
from viewkeep.query.type_rules import is_decimal
from viewkeep.query.types import BINARY, DATE, DOUBLE, FLOAT, INT, STRING, VOID, Type

_DATE_PARTS = ("year", "quarter", "month", "day", "dayofweek", "dayofyear", "weekofyear")
_OTHER_RESULT = frozenset(
    (*_DATE_PARTS, "hour", "minute", "second", "datediff", "floor", "ceil", "length", "locate")
)
"""Functions whose results are of another type in DuckDB."""

_DECIMAL_RESULT = frozenset(("+", "-", "*", "/", "%", "round"))
"""Functions whose results have other digits in DuckDB when they are decimals."""


def with_types(node: Node) -> Node:
    """The same query with casts where DuckDB would use another type.

    >>> from viewkeep.query.tables import Table
    >>> from viewkeep.sql.parse import parse_view
    >>> tables = {"u": Table({"m": "decimal(8, 2)"})}
    >>> print(with_types(parse_view("select sum(m) as s from u", tables)))
    Project cast(sum(u.m) as decimal(18, 2)) as sum(u.m)
      GroupBy sum(u.m) as sum(u.m)
        Scan u
    """
    return rewrite(node, _typed_node)


def _typed_node(node: Node) -> Node:
    match node:
        case Select():
            return replace(node, condition=_typed(node.condition, node.child.schema))
        case Join() | SemiJoin() | AntiJoin():
            schema = node.left.schema + node.right.schema
            return replace(node, condition=_typed(node.condition, schema))
        case Project():
            schema = node.child.schema
            outputs = [Output(o.name, _typed(o.expression, schema)) for o in node.outputs]
            return replace(node, outputs=tuple(outputs))
        case GroupBy():
            return _typed_groups(node)
    return node


def _typed_groups(node: GroupBy) -> Node:
    """Sums and averages are cast after they are computed."""
    schema = node.child.schema
    aggregates = tuple(
        a if a.argument is None else replace(a, argument=_typed(a.argument, schema))
        for a in node.aggregates
    )
    grouped = replace(node, aggregates=aggregates)
    widened = {a.name for a in aggregates if a.function in ("sum", "avg")}
    if not widened:
        return grouped
    return Project(
        grouped,
        tuple(
            Output(f.name, Cast(Column(f.name), f.type) if f.name in widened else Column(f.name))
            for f in grouped.schema
        ),
    )


def _typed(expression: Expression, schema: Schema) -> Expression:
    match expression:
        case Call():
            return _typed_call(expression, schema)
        case Cast():
            source = type_of(expression.argument, schema).type
            return Cast(_shown(_typed(expression.argument, schema), source), expression.type)
    return expression


def _typed_call(call: Call, schema: Schema) -> Expression:
    arguments = tuple(_typed(argument, schema) for argument in call.arguments)
    types = [type_of(argument, schema).type for argument in call.arguments]
    result = type_of(call, schema).type
    match call.function:
        case "length" | "div":
            arguments = tuple(map(_shown, arguments, types))
        case "+" | "-" if types[0] == DATE:
            arguments = (arguments[0], Cast(arguments[1], INT))
    typed = Call(call.function, arguments)
    other_digits = is_decimal(result) and call.function in _DECIMAL_RESULT
    return Cast(typed, result) if call.function in _OTHER_RESULT or other_digits else typed


def _shown(argument: Expression, type_: Type) -> Expression:
    """The argument with its type around it, where what is done to it depends on that type."""
    told = is_decimal(type_) or type_ in (DOUBLE, FLOAT, STRING, BINARY)
    already = isinstance(argument, Cast) or type_ == VOID
    return Cast(argument, type_) if told and not already else argument
