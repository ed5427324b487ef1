"""Types written out as casts, so that DuckDB computes with the types of Spark SQL.

DuckDB has other result types than Spark (a sum of bigint is a hugeint, a quotient of decimals a
double) and other meanings of some casts and functions by type. A cast to the type that a value
has anyway changes nothing in Spark, and tells DuckDB, and `sql/transpile.py`, what is meant.
"""

from dataclasses import replace

from viewkeep.query.algebra import (
    AggregateColumn,
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
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal
from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    VOID,
    Type,
)
from viewkeep.query.types.inference import Schema, find_field, type_of
from viewkeep.query.types.rules import decimal_type, is_decimal

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
    Project sum_1 as s
      Project cast(sum_1 as decimal(18, 2)) as sum_1
        GroupBy sum(u.m) as sum_1
          Scan u
    """
    return rewrite(node, _typed_node)


def _typed_node(node: Node) -> Node:
    match node:
        case Select():
            condition = _typed(node.condition, node.child.schema)
            return node if condition == node.condition else replace(node, condition=condition)
        case Join() | SemiJoin() | AntiJoin():
            condition = _typed(node.condition, node.left.schema + node.right.schema)
            return node if condition == node.condition else replace(node, condition=condition)
        case Project():
            schema = node.child.schema
            outputs = tuple(Output(o.name, _typed(o.expression, schema)) for o in node.outputs)
            return node if outputs == node.outputs else replace(node, outputs=outputs)
        case GroupBy():
            return _typed_groups(node)
    return node


def _typed_groups(node: GroupBy) -> Node:
    """Sums and averages are cast after they are computed."""
    schema = node.child.schema
    typed = tuple(
        a if a.argument is None else replace(a, argument=_typed(a.argument, schema))
        for a in node.aggregates
    )
    exact = {a.name for a in typed if a.function == "avg" and is_decimal(_result(node, a.name))}
    computed = [part for a in typed for part in (_sum_and_count(a) if a.name in exact else (a,))]
    grouped = GroupBy(node.child, node.keys, tuple(computed))
    widened = {a.name for a in typed if a.function in ("sum", "avg")} - exact
    if not widened and not exact:
        return grouped
    outputs = []
    for field in node.schema:
        value: Expression = Column(field.name)
        if field.name in exact:
            value = Cast(_typed_call(_average(field.name), grouped.schema), field.type)
        elif field.name in widened:
            value = Cast(value, field.type)
        outputs.append(Output(field.name, value))
    return Project(grouped, tuple(outputs))


def _result(node: GroupBy, name: str) -> Type:
    return find_field(name, node.schema).type


def _sum_and_count(average: AggregateColumn) -> tuple[AggregateColumn, AggregateColumn]:
    """What Spark computes an exact average from; DuckDB's own average is a double."""
    total = AggregateColumn(f"{average.name}#exact sum", "sum", average.argument)
    return total, AggregateColumn(f"{average.name}#exact count", "count", average.argument)


def _average(name: str) -> Call:
    number = Call("nullif", (Column(f"{name}#exact count"), Literal(0, BIGINT)))
    return Call("/", (Column(f"{name}#exact sum"), number))


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
        case "/" if is_decimal(result):
            pairs = zip(arguments, types, strict=True)
            arguments = tuple(Cast(argument, decimal_type(type_)) for argument, type_ in pairs)
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
