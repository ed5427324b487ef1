"""What DuckDB's own functions cannot do as Spark does, in Python: few values need it."""

import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import wraps
from typing import Any
from unicodedata import category

import duckdb

from viewkeep.query.evaluate.decimals import decimal_arithmetic, in_scale, negative_decimal

_WIDE = Context(prec=1000, rounding=ROUND_HALF_UP)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_HEXADECIMAL = re.compile(r"[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+", re.IGNORECASE)
_SPECIAL = re.compile(r"nan|[+-]?inf(inity)?", re.IGNORECASE)
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_CHANGED = frozenset("\u019b\u0264\u0295\ua7d3\ua7d5\U0001171e")
"""Characters that got another case, or lost theirs, after Unicode 14."""
_BLANKS = "".join(map(chr, (*range(0x21), 0x7F)))
_SPACES = "".join(map(chr, range(0x21)))


def register_python_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the functions known to a database; once is enough for all of its cursors."""
    for name, (function, arguments, result) in _FUNCTIONS.items():
        try:
            connection.create_function(f"viewkeep_{name}", function, arguments, result)
            if name in TRIED_FUNCTIONS:
                tried = _tried_function(function)
                connection.create_function(  # type: ignore[call-overload]  # a name will do
                    f"viewkeep_try_{name}", tried, arguments, result, null_handling="special"
                )
        except (duckdb.NotImplementedException, duckdb.CatalogException):
            return


def _tried_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with NULL in place of an error; DuckDB asks for as many names as arguments."""

    def value(*arguments: Any) -> Any:
        if None in arguments:
            return None
        try:
            return function(*arguments)
        except (ValueError, ArithmeticError):
            return None

    return wraps(function)(value)


def _python_arithmetic(operator: str, left: str, right: str, precision: int, scale: int) -> str:
    """A decimal operation whose exact result may have more digits than any decimal."""
    first, second = Decimal(left), Decimal(right)
    match operator:
        case "div":
            return str(
                _python_wrapped_integer(int(decimal_arithmetic(operator, 38, 0, first, second)))
            )
        case "negate":
            result = negative_decimal(precision, scale, first)
        case _:
            result = decimal_arithmetic(operator, precision, scale, first, second)
    return f"{result:f}"


def _python_wrapped_integer(value: int) -> int:
    """The lowest 64 bits: Spark does not look for an overflow here."""
    return (value + 2**63) % 2**64 - 2**63


def _python_decimal(text: str, precision: int, scale: int) -> str:
    stripped = text.strip(_SPACES)
    if not _DECIMAL.fullmatch(stripped):
        raise ValueError(f"{text!r} is not a number")
    return f"{in_scale(Decimal(stripped), precision, scale):f}"


def _python_double(text: str) -> float:
    stripped = text.strip(_SPACES)
    if _SPECIAL.fullmatch(stripped):
        return float(stripped)
    number = stripped[:-1] if stripped[-1:] in tuple("dDfF") else stripped
    if _NUMBER.fullmatch(number):
        return float(number)
    if _HEXADECIMAL.fullmatch(number):
        try:
            return float.fromhex(number)
        except OverflowError:
            return math.copysign(math.inf, -1 if number[0] == "-" else 1)
    raise ValueError(f"{text!r} is not a number")


def _python_float(text: str) -> float:
    """The nearest number of 32 bits; the nearest of 64 bits may be in the middle of two."""
    double = _python_double(text)
    single = _python_single(double)
    stripped = text.strip(_SPACES).rstrip("dDfF")
    if not math.isfinite(double) or not _NUMBER.fullmatch(stripped):
        return single
    exact = Fraction(stripped)
    if exact != Fraction(double):
        return (
            _python_single(
                math.nextafter(double, math.inf if exact > Fraction(double) else -math.inf)
            )
            if (_is_between_floats(double))
            else single
        )
    return single


def _is_between_floats(double: float) -> bool:
    below = _python_single(math.nextafter(double, -math.inf))
    return below != _python_single(math.nextafter(double, math.inf))


def _python_single(value: float) -> float:
    try:
        result: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return result


def _python_days(text: str) -> int:
    """The days since 1970 of a date."""
    match = _DATE.fullmatch(text.strip(_BLANKS))
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    sign, digits, month, day = match.groups()
    year = int(digits) * (-1 if sign == "-" else 1)
    return _days_since_1970(year, int(month or 1), int(day or 1), text)


def _days_since_1970(year: int, month: int, day: int, text: str) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        raise ValueError(f"{text!r} is not a date")
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    return days + sum(lengths[: month - 1]) + day - 719163


def _python_round(value: float, places: int) -> float:
    """Rounds half up, away from zero, what the number prints as."""
    if not math.isfinite(value):
        return value
    exact = Decimal(repr(value))
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent <= places:
        return value + 0.0
    return float(exact.quantize(Decimal(1).scaleb(-places), context=_WIDE)) + 0.0


def _python_number_text(text: str) -> str:
    """A number that DuckDB has printed, as Java prints it."""
    exact = Decimal(text)
    if not exact.is_finite():
        return "NaN" if exact.is_nan() else f"{'-' if exact.is_signed() else ''}Infinity"
    sign, digits, _ = exact.normalize(_WIDE).as_tuple()
    digits_text = "".join(map(str, digits))
    return f"{'-' * sign}{digits_text[0]}.{digits_text[1:] or '0'}E{exact.adjusted()}"


def _python_upper(text: str) -> str:
    return _text_of_stable_characters(text).upper()


def _python_lower(text: str) -> str:
    return _text_of_stable_characters(text).lower()


def _python_reverse(text: str) -> str:
    return text[::-1]


def _text_of_stable_characters(text: str) -> str:
    """A text of characters that this Python knows, and newer versions treat in the same way."""
    if any(category(each) == "Cn" or each in _CHANGED for each in text):
        raise ValueError(f"{text!r} in other case needs Spark: its characters are too new")
    return text


_FUNCTIONS: dict[str, tuple[Any, list[Any], str]] = {
    "arithmetic": (
        _python_arithmetic,
        ["VARCHAR", "VARCHAR", "VARCHAR", "INTEGER", "INTEGER"],
        "VARCHAR",
    ),
    "decimal": (_python_decimal, ["VARCHAR", "INTEGER", "INTEGER"], "VARCHAR"),
    "double": (_python_double, ["VARCHAR"], "DOUBLE"),
    "float": (_python_float, ["VARCHAR"], "FLOAT"),
    "number": (_python_number_text, ["VARCHAR"], "VARCHAR"),
    "days": (_python_days, ["VARCHAR"], "INTEGER"),
    "round": (_python_round, ["DOUBLE", "INTEGER"], "DOUBLE"),
    "upper": (_python_upper, ["VARCHAR"], "VARCHAR"),
    "lower": (_python_lower, ["VARCHAR"], "VARCHAR"),
    "reverse": (_python_reverse, ["VARCHAR"], "VARCHAR"),
}
"""Every function with the types of its arguments and of its result."""

TRIED_FUNCTIONS = ("arithmetic", "decimal", "double", "float", "days")
"""Those that fail, which are there a second time with NULL in place of the error."""
