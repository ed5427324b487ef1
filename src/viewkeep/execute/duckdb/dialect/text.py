"""Parts of DuckDB's text: names, types, constants, and expressions with what is known of them.

The text of an expression has, in DuckDB, exactly the type that Spark gives the expression.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from viewkeep.query.expressions import Literal, Value
from viewkeep.query.types.data_types import TIMESTAMP, Type

_NAMES = {
    "string": "VARCHAR",
    "binary": "BLOB",
    "void": "INTEGER",
    "timestamp_ntz": "TIMESTAMP",
}


@dataclass(frozen=True, slots=True)
class Text:
    """An expression in DuckDB: its text, its type, and whether it may be NULL or an error."""

    sql: str
    type: Type
    nullable: bool = True
    fails: bool = False
    value: Value = None
    """The value of a literal."""


Build = Callable[[list[Text], Type], Text]
"""From the texts of the arguments and the type of the result to the text of a call."""


def quote_name(name: str) -> str:
    """A name as DuckDB quotes it.

    >>> print(quote_name("x#post"), quote_name('a"b'))
    "x#post" "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def type_name(type_: Type) -> str:
    """DuckDB's name of a type.

    >>> from viewkeep.query.types.data_types import parse_type
    >>> print(type_name(parse_type("array<struct<a:decimal(4,1)>>")))
    STRUCT("a" DECIMAL(4, 1))[]
    """
    parts = [nested_type_name(part.type) for part in type_.parts]
    match type_.name:
        case "array":
            return f"{parts[0]}[]"
        case "map":
            return f"MAP({', '.join(parts)})"
        case "struct":
            names = [quote_name(part.name) for part in type_.parts]
            return f"STRUCT({', '.join(map('{} {}'.format, names, parts))})"
    return _NAMES.get(type_.name, str(type_).upper())


def nested_type_name(type_: Type) -> str:
    """In values that are only carried, moments stay as they are read."""
    return "TIMESTAMP WITH TIME ZONE" if type_ == TIMESTAMP else type_name(type_)


def string(value: str) -> str:
    """A text as DuckDB quotes it.

    >>> print(string("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def literal_text(node: Literal) -> Text:
    """A constant, with its type around it."""
    if node.value is None:
        sql = f"CAST(NULL AS {type_name(node.type)})"
    else:
        sql = f"CAST({_literal_value_sql(node.value)} AS {type_name(node.type)})"
    return Text(sql, node.type, node.value is None, value=node.value)


def error(message: str) -> str:
    """An expression that raises an error when it is evaluated."""
    return f"error({string(message)})"


def strict_text(
    arguments: Sequence[Text],
    build: Callable[..., str],
    type_: Type,
    fails: bool = False,
    order: Sequence[int] | None = None,
    nullable: bool | None = None,
) -> Text:
    """A function that is NULL when an argument is, and does not compute those after a NULL.

    Spark computes arguments from left to right, or in the `order` told here; an argument that
    would fail does not if one before it is NULL.
    """
    sql = build(*(argument.sql for argument in arguments))
    ordered = [arguments[i] for i in order or range(len(arguments))]
    for i in reversed(range(len(ordered))):
        if ordered[i].nullable and any(later.fails for later in ordered[i + 1 :]):
            sql = f"CASE WHEN {ordered[i].sql} IS NOT NULL THEN {sql} END"
    fails = fails or any(argument.fails for argument in arguments)
    if nullable is None:
        nullable = any(argument.nullable for argument in arguments)
    return Text(sql, type_, nullable, fails)


def _literal_value_sql(value: Value) -> str:
    match value:
        case None | bool():
            return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
        case datetime():
            return f"'{value.isoformat(sep=' ')}'"
        case date():
            return f"'{value.isoformat()}'"
        case bytes():
            return f"from_hex('{value.hex()}')"
        case str():
            return string(value)
        case float():
            return f"'{value!r}'"
        case Decimal():
            return f"'{value:f}'"
        case int():
            return str(value)
