"""Values that fit a declared type, in the one Python form that each type has here.

Equal values of a column then compare equal, hash equal and build typed columns, wherever they
came from: an int given for a double becomes a float, one given for a decimal a Decimal.
"""

import struct
from collections.abc import Callable
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any

from viewkeep.query.types import INTEGRAL, MAX_PRECISION, Type

Convert = Callable[[Any], Any]


class MisfitError(Exception):
    """Why a value does not fit and what to give instead; the caller adds table and column."""


def same(first: Any, second: Any) -> bool:
    """Whether two values or rows are the same: SQL's equality, and NULL and NaN equal themselves.

    >>> same(1.0, 1.5), same(None, None), same((1, float("nan")), (1, float("nan")))
    (False, True, True)
    """
    if first == second:
        return True
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first != first and second != second)


def converter(type_: Type) -> Convert:
    """The function that brings a value (not NULL) into the form of a type, or raises `MisfitError`.

    >>> from viewkeep.query.types import DECIMAL
    >>> converter(DECIMAL(10, 2))(7)
    Decimal('7.00')
    """
    if type_ in INTEGRAL:
        return _integer(8 * 2 ** INTEGRAL.index(type_))
    if type_.name == "decimal":
        return _decimal(type_)
    return _CONVERTERS[type_.name]


def key_converter(type_: Type) -> Convert:
    """As `converter`, for a key column, where a NaN would be a row that nobody can name."""
    convert = converter(type_)

    def without_nan(value: Any) -> Any:
        fitted = convert(value)
        if fitted != fitted:
            raise MisfitError("NaN in a key; give a number")
        return fitted

    return without_nan


def _integer(bits: int) -> Convert:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert(value: Any) -> Any:
        # True is an int to Python; in SQL it is not.
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong_type(value, "an int")
        if not least <= value <= most:
            raise MisfitError(f"{value} is out of range; give an int from {least} to {most}")
        return value

    return convert


def _decimal(type_: Type) -> Convert:
    unit = Decimal(1).scaleb(-(type_.scale or 0))
    limit = Decimal(1).scaleb((type_.precision or 0) - (type_.scale or 0))
    # One digit more, for a number that is rounded up to the limit before it is refused.
    exact = Context(prec=MAX_PRECISION + 1)

    def convert(value: Any) -> Any:
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            raise _wrong_type(value, "a Decimal or an int")
        number = Decimal(value)
        if not number.is_finite() or number.copy_abs() >= limit:
            raise MisfitError(
                f"{value} is out of range; give a number between {-limit:f} and {limit:f}"
            )
        result = number.quantize(unit, context=exact)
        # Rounding would make the stored value another one than the caller believes it is.
        if result != number:
            raise MisfitError(
                f"{value} has too many digits; round it to {type_.scale} after the point"
            )
        return result

    return convert


def _double(value: Any) -> Any:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong_type(value, "a float or an int")
    try:
        return float(value)
    except OverflowError:
        raise MisfitError(
            "the int is too large for a double; declare a decimal or a string"
        ) from None


def _float(value: Any) -> Any:
    number = _double(value)
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        raise MisfitError(f"{value} is too large for a float; declare a double") from None


def _date(value: Any) -> Any:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _wrong_type(value, "a datetime.date")
    return value


def _timestamp(value: Any) -> Any:
    # pandas' NaT is a datetime that does not equal itself.
    if not isinstance(value, datetime) or value != value:
        raise _wrong_type(value, "a datetime.datetime")
    if value.tzinfo is not None:
        raise MisfitError(f"{value} has a time zone; convert it to local time without one")
    return value


def _instance_of(wanted: type, name: str) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, wanted):
            raise _wrong_type(value, name)
        return value

    return convert


def _void(value: Any) -> Any:
    raise _wrong_type(value, "NULL")


_CONVERTERS: dict[str, Convert] = {
    "boolean": _instance_of(bool, "a bool"),
    "float": _float,
    "double": _double,
    "string": _instance_of(str, "a str"),
    "binary": _instance_of(bytes, "bytes"),
    "date": _date,
    "timestamp": _timestamp,
    "void": _void,
}


def _wrong_type(value: Any, wanted: str) -> MisfitError:
    return MisfitError(f"{value!r} is of type {type(value).__name__}; give {wanted}")
