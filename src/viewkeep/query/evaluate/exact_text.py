"""Text as a value of a type: as CAST reads it, but nothing that the text says is lost.

CAST rounds decimals to the scale of the type, drops the time of a date and the digits below a
microsecond, and makes infinity of a number that is too large.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from viewkeep.query.evaluate.casts import FRACTION, WHOLE, cast_to, read_date, read_timestamp
from viewkeep.query.types.data_types import DATE, DOUBLE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, Type


def read_exactly(type_: Type) -> Callable[[str], Any]:
    """The function from text to the value it says, which may still be none of the type's.

    >>> from viewkeep.query.types.data_types import DECIMAL, INT
    >>> read_exactly(DECIMAL(4, 1))("1.55"), read_exactly(INT)("7")
    (Decimal('1.55'), 7)
    """
    if type_.name == "decimal":
        return _decimal_of_text
    return _READERS.get(type_, cast_to(type_))


def _decimal_of_text(text: str) -> Decimal:
    if not FRACTION.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a number")
    return Decimal(text.strip())


def _double_of_text(text: str) -> float | int:
    """A whole number is exact; any other is near to what is meant."""
    if WHOLE.fullmatch(text.strip()):
        return int(text)
    number: float = cast_to(DOUBLE)(text)
    if FRACTION.fullmatch(text.strip()):
        if math.isinf(number):
            raise ValueError(f"{text} is too large for a double; declare a decimal or a string")
        if not number and _decimal_of_text(text):
            raise ValueError(f"{text} is too small for a double; give 0")
    return number


def _date_of_text(text: str) -> Any:
    day, rest = read_date(text)
    if rest:
        raise ValueError(f"{text!r} has a time, which a date cannot hold; leave it out")
    return day


def _timestamp_of_text(text: str) -> Any:
    moment, finer_digits = read_timestamp(text)
    if finer_digits.strip("0"):
        raise ValueError(f"{text!r} has parts of a microsecond; round it")
    return moment


_READERS: dict[Type, Callable[[str], Any]] = {
    DOUBLE: _double_of_text,
    FLOAT: _double_of_text,
    DATE: _date_of_text,
    TIMESTAMP: _timestamp_of_text,
    TIMESTAMP_NTZ: _timestamp_of_text,
}
