"""Scalar expressions as Spark SQL text; names are quoted and texts escaped."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isfinite

from viewkeep.query.expressions import (
    PRECEDENCE,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OpaqueCall,
    Value,
    back_quote,
    conjuncts,
    literal,
)
from viewkeep.query.types.data_types import VOID, Type, parse_type
from viewkeep.query.types.internal_functions import COMPARABLE, FIELD, PARTS, SINGLE, TRY_CAST

_INTERVALS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


def expression(node: Expression) -> str:
    """A scalar expression.

    >>> print(expression(Call("<=>", (Column("a"), Literal("it's", literal("").type)))))
    `a` <=> 'it\\'s'
    """
    match node:
        case Column():
            return back_quote(node.name)
        case Literal():
            return _literal_text(node)
        case Cast():
            return f"CAST({expression(node.argument)} AS {_type_text(node.type)})"
        case Call("and"):
            return conjunction_text(conjuncts(node))
        case Call():
            return _spark_call_text(node)
        case OpaqueCall():
            return node.filled(map(_text_in_brackets, node.arguments))


def conjunction_text(parts: Sequence[Expression]) -> str:
    """All of the conditions, without brackets around each AND, which would nest deeply."""
    if len(parts) == 1:
        return expression(parts[0])
    return " AND ".join(map(_text_in_brackets, parts))


def _text_in_brackets(node: Expression) -> str:
    """In brackets where it is more than one word to the parser."""
    text = expression(node)
    operator = isinstance(node, Call) and (node.function in PRECEDENCE or node.function in _FORMS)
    operator = operator or isinstance(node, OpaqueCall)
    return f"({text})" if operator else text


def _spark_call_text(call: Call) -> str:
    form = _FORMS.get(call.function)
    if form is not None:
        return form(*map(_text_in_brackets, call.arguments))
    match call.function, call.arguments:
        case "not", (argument,):
            return f"NOT {_text_in_brackets(argument)}"
        case "negate", (argument,):
            return f"-({expression(argument)})"
        case name, (struct, Literal(str(part)), _) if name == FIELD:
            return f"{_text_in_brackets(struct)}.{back_quote(part)}"
        case name, (values, place) if name in PARTS:
            return f"{_text_in_brackets(values)}[{expression(place)}]"
        case name, (value, Literal(str(target))) if name == TRY_CAST:
            return f"TRY_CAST({expression(value)} AS {_type_text(parse_type(target))})"
        case "timestampadd", (Literal(str(unit)), amount, moment):
            return _timestampadd_text(unit.upper(), amount, _text_in_brackets(moment))
        case name, (left, right) if name in PRECEDENCE:
            return f"{_text_in_brackets(left)} {name.upper()} {_text_in_brackets(right)}"
    return f"{call.function.upper()}({', '.join(map(expression, call.arguments))})"


def _timestampadd_text(unit: str, amount: Expression, moment: str) -> str:
    match amount:
        case Literal(int(count)) if unit in _INTERVALS:
            return f"({moment} + INTERVAL '{count}' {unit})"
    if not unit.isalpha():
        raise ValueError(f"{unit!r} is not a unit of time")
    return f"TIMESTAMPADD({unit}, {expression(amount)}, {moment})"


def _in_text(item: str, *choices: str) -> str:
    return f"{item} IN ({', '.join(choices)})"


def _case_text(*parts: str) -> str:
    """Conditions and results alternate; the odd one at the end is ELSE."""
    pairs = zip(parts[:-1:2], parts[1::2], strict=True)
    branches = "".join(f" WHEN {condition} THEN {result}" for condition, result in pairs)
    default = f" ELSE {parts[-1]}" if len(parts) % 2 else ""
    return f"CASE{branches}{default} END"


_EXACT_JSON = (
    "MAP('ignoreNullFields', 'false', "
    "'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)
"""Options with which different values have different texts."""

_MANY_ROWS = "a scalar subquery has more than one row"

_FORMS: dict[str, Callable[..., str]] = {
    "isnull": lambda argument: f"{argument} IS NULL",
    "isnotnull": lambda argument: f"{argument} IS NOT NULL",
    "in": _in_text,
    "case": _case_text,
    "like": lambda text, pattern: f"{text} LIKE {pattern}",
    "div": lambda left, right: f"{left} DIV {right}",
    "&": lambda left, right: f"{left} & {right}",
    "|": lambda left, right: f"{left} | {right}",
    "^": lambda left, right: f"{left} ^ {right}",
    "~": lambda argument: f"~{argument}",
    SINGLE: lambda value, rows: f"IF({rows} > 1, RAISE_ERROR('{_MANY_ROWS}'), {value})",
    COMPARABLE: lambda argument: f"TO_JSON(STRUCT({argument} AS v), {_EXACT_JSON})",
}
"""The functions that have a syntax of their own, besides the operators."""


def _literal_text(node: Literal) -> str:
    """A constant; where its text alone would have another type, with a cast."""
    if node.type == VOID:
        return "NULL"
    text = _spark_value_text(node.value)
    plain = node.value is not None and literal(node.value).type == node.type
    if plain and not isinstance(node.value, Decimal):
        return text
    return f"CAST({text} AS {_type_text(node.type)})"


def _type_text(type_: Type) -> str:
    """A type; names of parts keep their case."""
    return str(type_) if type_.parts else str(type_).upper()


def _spark_value_text(value: Value) -> str:
    match value:
        case None | bool():
            return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
        case int() if value < 0:
            return f"({value})"  # two minus signs in a row start a comment
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case str():
            return _string_text(value)
        case float():
            return _double_text(value)
        case Decimal():
            return f"{value:f}"
        case int():
            return str(value)


def _string_text(value: str) -> str:
    """A backslash escapes in Spark; two quotes in a row would join two strings."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _double_text(value: float) -> str:
    if not isfinite(value):
        name = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{name}' AS DOUBLE)"
    text = repr(value).upper()
    text = text if "E" in text else f"{text}E0"
    return f"({text})" if value < 0 or text[0] == "-" else text
