"""Scalar expressions: columns (or query variables), literals, calls, casts, and what only Spark
knows."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from math import isfinite
from typing import TypeAlias

from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    Type,
)

Value: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the input, or a variable of a conjunctive query."""

    name: str

    def __str__(self) -> str:
        return quote_identifier(self.name)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant with its type."""

    value: Value
    type: Type

    def __str__(self) -> str:
        return _print_literal(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator applied to arguments; `function` is its lower-case name.

    >>> print(Call("*", (Column("price"), Call("-", (literal(1), Column("discount"))))))
    price * (1 - discount)
    """

    function: str
    arguments: tuple["Expression", ...]

    def __str__(self) -> str:
        return _print_call(self)


@dataclass(frozen=True, slots=True)
class Cast:
    """A value converted to another type."""

    argument: "Expression"
    type: Type

    def __str__(self) -> str:
        return f"cast({self.argument} as {self.type})"


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """An expression that only Spark computes: its text between the arguments, and its type.

    >>> print(OpaqueCall(("soundex(", ")"), (Column("name"),), STRING))
    soundex(name)
    """

    text: tuple[str, ...]
    arguments: tuple["Expression", ...]
    type: Type

    def filled(self, arguments: Iterable[str]) -> str:
        """The text with the texts of arguments in their places."""
        first, *rest = self.text
        return first + "".join(a + part for a, part in zip(arguments, rest, strict=True))

    def __str__(self) -> str:
        return self.filled(map(str, self.arguments))


Expression: TypeAlias = Column | Literal | Call | Cast | OpaqueCall

TRUE = Literal(True, BOOLEAN)
"""The condition that always holds."""

PRECEDENCE = {
    "or": 1,
    "and": 2,
    "not": 3,
    "=": 4,
    "<>": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "<=>": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
    "negate": 7,
}
"""Operators written between (or before) their arguments, loosest first."""

KEYWORDS = frozenset({"and", "or", "not", "true", "false", "null", "cast", "as"})
"""Words that cannot be bare identifiers in the notation."""


def literal(value: Value) -> Literal:
    """The literal of a Python value, typed as Spark SQL types it.

    >>> print(literal(3).type, literal("x").type, literal(Decimal("1.50")).type, sep=", ")
    int, string, decimal(3, 2)
    """
    return Literal(value, _literal_type(value))


def columns_of(expression: Expression) -> frozenset[str]:
    """The names of the columns an expression reads."""
    return frozenset(node.name for node in subexpressions(expression) if isinstance(node, Column))


def subexpressions(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside it, outermost first."""
    yield expression
    match expression:
        case Call() | OpaqueCall():
            for argument in expression.arguments:
                yield from subexpressions(argument)
        case Cast():
            yield from subexpressions(expression.argument)
        case Column() | Literal():
            pass


def rename_columns(expression: Expression, rename: Callable[[str], str]) -> Expression:
    """The same expression over renamed columns."""
    return substitute(expression, lambda column: Column(rename(column.name)))


def substitute(expression: Expression, replace: Callable[[Column], Expression]) -> Expression:
    """The same expression with every column replaced by an expression.

    >>> print(substitute(Call("+", (Column("x"), literal(1))), lambda column: Column("y")))
    y + 1
    """
    match expression:
        case Column():
            return replace(expression)
        case Literal():
            return expression
        case Call():
            arguments = tuple(substitute(a, replace) for a in expression.arguments)
            return Call(expression.function, arguments)
        case OpaqueCall():
            arguments = tuple(substitute(a, replace) for a in expression.arguments)
            return OpaqueCall(expression.text, arguments, expression.type)
        case Cast():
            return Cast(substitute(expression.argument, replace), expression.type)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a conjunction.

    >>> [str(part) for part in conjuncts(Call("and", (Column("p"), Column("q"))))]
    ['p', 'q']
    """
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for argument in expression.arguments for part in conjuncts(argument))
    return (expression,)


def conjunction(parts: Iterable[Expression]) -> Expression:
    """All parts joined with AND; TRUE when there are none.

    >>> print(conjunction([Column("p"), Column("q")]), conjunction([]))
    p and q true
    """
    parts = tuple(part for part in parts if part != TRUE)
    return reduce(lambda left, right: Call("and", (left, right)), parts) if parts else TRUE


def constant_column(condition: Expression) -> str | None:
    """The column that a condition pins to one constant, if it does: `c = 3` pins c."""
    match condition:
        case Call("=", (Column(name), Literal(value))) | Call("=", (Literal(value), Column(name))):
            return name if value is not None else None
    return None


def back_quote(name: str) -> str:
    """A name in back quotes.

    >>> print(back_quote("x#post"), back_quote("a`b"))
    `x#post` `a``b`
    """
    return "`" + name.replace("`", "``") + "`"


def quote_identifier(name: str) -> str:
    """A name as the notation writes it: bare where it can be, else in back quotes.

    >>> print(quote_identifier("price"), quote_identifier("order date"))
    price `order date`
    """
    # Not str.isidentifier: it allows the middle dot, which the notation reads as a product.
    plain = re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in KEYWORDS
    return name if plain else back_quote(name)


def _print_call(call: Call) -> str:
    precedence = PRECEDENCE.get(call.function)
    match call.arguments:
        case (argument,) if call.function == "not":
            return f"not {_print_operand(argument, 3)}"
        case (Literal() as argument,) if call.function == "negate":
            return f"-({argument})"  # without brackets it would read as a negative literal
        case (argument,) if call.function == "negate":
            return f"-{_print_operand(argument, 8)}"
        case (left, right) if precedence is not None:
            # Comparisons do not chain, so both of their sides bind tighter.
            left_level = precedence + 1 if precedence == PRECEDENCE["="] else precedence
            first, second = _print_operand(left, left_level), _print_operand(right, precedence + 1)
            return f"{first} {call.function} {second}"
    return f"{quote_identifier(call.function)}({', '.join(map(str, call.arguments))})"


def _print_operand(expression: Expression, level: int) -> str:
    loose = isinstance(expression, Call) and PRECEDENCE.get(expression.function, 9) < level
    return f"({expression})" if loose else str(expression)


def _print_literal(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case datetime():
            return f"timestamp '{value.isoformat(sep=' ')}'"
        case date():
            return f"date '{value.isoformat()}'"
        case bytes():
            return f"x '{value.hex()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case float():
            return _print_float(value)
        case Decimal():
            text = f"{value:f}"
            return text if "." in text else f"decimal '{text}'"
        case int():
            return str(value)


def _print_float(value: float) -> str:
    """A float always shows its exponent, so that it is not read back as an exact decimal."""
    text = repr(value)
    if not isfinite(value):
        return f"double '{text}'"
    return text if "e" in text else f"{text}e0"


def _literal_type(value: Value) -> Type:
    match value:
        case None:
            return VOID
        case bool():
            return BOOLEAN
        case int():
            return INT if -(2**31) <= value < 2**31 else BIGINT
        case float():
            return DOUBLE
        case Decimal():
            return _decimal_literal_type(value)
        case str():
            return STRING
        case bytes():
            return BINARY
        case datetime():
            return TIMESTAMP
        case date():
            return DATE


def _decimal_literal_type(value: Decimal) -> Type:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a finite decimal")
    scale = max(-exponent, 0)
    return DECIMAL(max(len(digits) + max(exponent, 0), scale), scale)
