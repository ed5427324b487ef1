"""Constants of SQL: numbers, dates, timestamps, intervals, and the names of types."""

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from viewkeep.errors import SchemaError
from viewkeep.query.expressions import Literal, literal
from viewkeep.query.types.data_types import (
    BIGINT,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGRAL,
    MAX_PRECISION,
    MOMENTS,
    Type,
    parse_type,
)
from viewkeep.sql.source import Source

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS = {"DAY": 1, "WEEK": 7}
_TIMES = ("HOUR", "MINUTE", "SECOND")


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of one unit: MONTH, DAY, HOUR, MINUTE or SECOND."""

    amount: int
    unit: str

    def negated(self) -> "Span":
        """The same way back."""
        return Span(-self.amount, self.unit)


def number(node: exp.Literal, source: Source, negative: bool = False) -> Literal:
    """A number: digits are an int, a point makes a decimal, an exponent a double."""
    text = node.name.lower()
    whole = text.isdigit()
    text = f"-{text}" if negative else text
    try:
        if whole:
            return _integer_literal(int(text))
        return literal(float(text)) if "e" in text else literal(Decimal(text))
    except (ValueError, InvalidOperation):
        raise source.error(f'"{node.name}" is not a number', node) from None


def read_text(text: str, target: Type) -> Literal | None:
    """The literal that a string stands for as a date or a timestamp, if it reads as one.

    >>> str(read_text("2024-2-29", DATE)), read_text("soon", DATE)
    ("date '2024-02-29'", None)
    """
    try:
        if target == DATE:
            year, month, day = map(int, text.strip().split("-"))
            return Literal(date(year, month, day), DATE)
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return Literal(moment, target) if moment.tzinfo is None else None


def typed_literal(constant: Literal, target: Type) -> Literal | None:
    """A constant cast to a type, where the result is beyond doubt."""
    match constant.value:
        case str(text) if target in MOMENTS:
            return read_text(text, target)
        case str(text) if target in INTEGRAL and re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            return typed_literal(Literal(int(text), BIGINT), target)
        case int(value) if target in INTEGRAL and not isinstance(value, bool):
            bits = 8 << INTEGRAL.index(target)
            return Literal(value, target) if -(1 << bits - 1) <= value < 1 << bits - 1 else None
        case int(value) if target == DOUBLE and not isinstance(value, bool):
            return Literal(float(value), DOUBLE)
    return None


def read_interval(node: exp.Interval, source: Source) -> Span:
    """An interval literal of one unit."""
    unit = node.args.get("unit")
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    amount = node.this
    text = amount.name if isinstance(amount, exp.Literal) else ""
    if isinstance(amount, exp.Neg) and isinstance(amount.this, exp.Literal):
        text = f"-{amount.this.name}"
    try:
        count = int(text)
    except ValueError:
        raise source.unsupported("an interval that is not a whole number", node) from None
    if name in _MONTHS:
        return Span(count * _MONTHS[name], "MONTH")
    if name in _DAYS:
        return Span(count * _DAYS[name], "DAY")
    if name in _TIMES:
        return Span(count, name)
    raise source.unsupported("an interval of several units", node)


def read_type(node: exp.DataType, source: Source) -> Type:
    """A type name in CAST or CREATE TABLE."""
    text = node.sql("spark")
    if node.this not in exp.DataType.NESTED_TYPES:  # whose parts have names
        text = text.lower()
    try:
        return parse_type(text)
    except SchemaError as error:
        raise source.error(str(error), node) from None


def _integer_literal(value: int) -> Literal:
    if -(2**63) <= value < 2**63:
        return literal(value)
    digits = len(str(abs(value)))
    if digits > MAX_PRECISION:
        raise ValueError(value)
    return Literal(Decimal(value), DECIMAL(digits, 0))
