"""What CAST computes from a value that is not NULL, as Spark SQL does in ANSI mode.

A value that does not read as the target, or does not fit in it, is an error and not NULL.
"""

import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any

from viewkeep.query.evaluate.decimals import in_scale
from viewkeep.query.evaluate.functions import as_decimal
from viewkeep.query.types.data_types import BIGINT, INT, INTEGRAL, SMALLINT, TINYINT, Type

_BITS = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
WHOLE = re.compile(r"[+-]?[0-9]+")
FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_DOUBLE = re.compile(FRACTION.pattern + "[df]?", re.IGNORECASE)
_SPECIAL = re.compile(r"nan|[+-]?inf(inity)?", re.IGNORECASE)
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T](.*))?)?)?")
_TIME = re.compile(r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6})([0-9]*))?)?)?")
_TRUTHS = dict.fromkeys(("t", "true", "y", "yes", "1"), True)
_TRUTHS |= dict.fromkeys(("f", "false", "n", "no", "0"), False)


def cast_to(target: Type) -> Callable[[Any], Any]:
    """The function that converts a value to a type.

    >>> cast_to(INT)("-7"), cast_to(Type("string"))(1e7), cast_to(Type("boolean"))("yes")
    (-7, '1.0E7', True)
    """
    if target in INTEGRAL:
        return partial(_to_integer, _BITS[target])
    if target.name == "decimal":
        return partial(_to_decimal, target.precision or 0, target.scale or 0)
    if target.is_nested:
        return lambda value: value  # only NULL has another type before
    return _CASTS[target.name]


def _to_integer(bits: int, value: Any) -> int:
    if isinstance(value, str):
        result = int(_text_of_form(WHOLE, value, "an integer"))
    elif isinstance(value, bool):
        result = int(value)
    else:
        result = math.trunc(_finite_decimal(value))
    if not -(1 << bits - 1) <= result < 1 << bits - 1:
        raise ValueError(f"{result} does not fit in {bits} bits")
    return result


def _to_decimal(precision: int, scale: int, value: Any) -> Decimal | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        exact = Decimal(_text_of_form(FRACTION, value, "a number"))
    else:
        exact = Decimal(value) if isinstance(value, bool) else _finite_decimal(value)
    return in_scale(exact, precision, scale)


def _finite_decimal(value: Any) -> Decimal:
    exact = as_decimal(value)
    if not exact.is_finite():
        raise ValueError(f"{value} is not finite")
    return exact


def _to_double(value: Any) -> float:
    if not isinstance(value, str):
        return float(value if isinstance(value, bool | float) else as_decimal(value))
    special = _SPECIAL.fullmatch(value.strip())
    return float(value if special else _text_of_form(_DOUBLE, value, "a number").rstrip("dDfF"))


def _to_float(value: Any) -> float:
    """The nearest number of 32 bits."""
    number = _to_double(value)
    try:
        [result] = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(result)


def _to_string(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _print_double(float(value))
        case Decimal():
            return f"{value if value else abs(value):f}"  # Spark has no -0
        case datetime():
            text = value.isoformat(sep=" ")
            return text.rstrip("0") if value.microsecond else text
        case bytes():
            return value.decode()
    return str(value)


def _print_double(value: float) -> str:
    """As Java prints it: with an exponent below a thousandth and from ten million on."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits))
    power = len(text) - 1 + int(exponent)
    return f"{'-' * sign}{text[0]}.{text[1:].rstrip('0') or '0'}E{power}"


def _to_boolean(value: Any) -> bool:
    if not isinstance(value, str):
        return value if isinstance(value, bool) else as_decimal(value) != 0
    truth = _TRUTHS.get(value.strip().lower())
    if truth is None:
        raise ValueError(f"{value!r} is not a boolean")
    return truth


def _to_date(value: Any) -> date:
    if isinstance(value, str):
        return read_date(value)[0]
    if not isinstance(value, date):
        raise TypeError(f"{value!r} is not a date")
    return value.date() if isinstance(value, datetime) else value


def _to_timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return datetime.combine(_to_date(value), time())
    return read_timestamp(value)[0]


def read_date(text: str) -> tuple[date, str]:
    """The date that a text starts with, and what follows it."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    year, month, day, rest = match.groups()
    return date(int(year), int(month or 1), int(day or 1)), rest or ""


def read_timestamp(text: str) -> tuple[datetime, str]:
    """A time, and the digits below a microsecond, which it cannot hold."""
    day, rest = read_date(text)
    match = _TIME.fullmatch(rest) if rest else None
    if rest and not match:
        raise ValueError(f"{text!r} is not a timestamp")
    hour, minute, second, fraction, finer_digits = match.groups("0") if match else "00000"
    micros = int(fraction.ljust(6, "0"))
    return datetime.combine(day, time(int(hour), int(minute), int(second), micros)), finer_digits


def _to_binary(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return str.encode(value)


def _text_of_form(form: re.Pattern[str], text: str, kind: str) -> str:
    if not form.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not {kind}")
    return text.strip()


_CASTS: dict[str, Callable[[Any], Any]] = {
    "boolean": _to_boolean,
    "double": _to_double,
    "float": _to_float,
    "string": _to_string,
    "binary": _to_binary,
    "date": _to_date,
    "timestamp": _to_timestamp,
    "timestamp_ntz": _to_timestamp,
    "void": lambda value: None,
}
