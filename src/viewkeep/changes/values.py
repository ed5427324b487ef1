"""Values that fit a declared type, in the one Python form that each type has here.

This is the only definition of "fits a column": rows, frames and files of every kind are measured by
it. A value fits if the column can hold exactly what it says; a float also where the nearest number
of the column's width is meant. Equal values of a column then compare equal, hash equal and build
typed columns, wherever they came from: an int given for a double becomes a float, one given for a
decimal a Decimal.
"""

import struct
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

from viewkeep.changes.nested_values import nested_converter
from viewkeep.query.types.data_types import INTEGRAL, MAX_PRECISION, Field, Type

Convert = Callable[[Any], Any]

EXACT_INTS = {"float": 2**24, "double": 2**53}
"""The ints up to which every int is a float of that type."""


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


def column_converter(field: Field, in_key: bool) -> Convert:
    """As `converter`, for the values of a column, which may be NULL where that is declared."""
    convert = (key_converter if in_key else converter)(field.type)
    nullable = field.nullable

    def with_null(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if not nullable:
            raise MisfitError(f"NULL in a {'key' if in_key else 'NOT NULL column'}; give a value")
        return None

    return with_null


def converter(type_: Type) -> Convert:
    """The function that brings a value (not NULL) into the form of a type, or raises `MisfitError`.

    >>> from viewkeep.query.types.data_types import DECIMAL
    >>> converter(DECIMAL(10, 2))(7)
    Decimal('7.00')
    """
    if type_ in INTEGRAL:
        return _fit_integer(8 * 2 ** INTEGRAL.index(type_))
    if type_.name == "decimal":
        return _fit_decimal(type_)
    if type_.parts or type_.name == "struct":
        return nested_converter(type_, converter, _wrong_type)
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


def _python_scalar(value: Any) -> Any:
    """A scalar of numpy as the Python value that it stands for."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return value
    if isinstance(value, numpy.datetime64):
        cut = value.astype("datetime64[us]")
        if cut != value:
            raise _wrong_type(value, "a time in whole microseconds")
        return value.item() if numpy.datetime_data(value.dtype)[0] == "D" else cut.item()
    return value.item()


def _fit_integer(bits: int) -> Convert:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert(value: Any) -> Any:
        number = value if type(value) is int else _fit_whole_number(value)
        if not least <= number <= most:
            raise MisfitError(
                f"{short_value(number)} is out of range; give an int from {least} to {most}"
            )
        return number

    return convert


def _fit_whole_number(value: Any) -> int:
    """An int; pandas makes floats of integers that stand beside missing ones."""
    number = _python_scalar(value)
    # True is an int to Python; in SQL it is not.
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _wrong_type(value, "an int")
    if isinstance(number, float) and not number.is_integer():
        raise MisfitError(f"{number!r} is no whole number; round it, or declare a double")
    if isinstance(number, float) and abs(number) > EXACT_INTS["double"]:
        raise MisfitError(
            f"{number!r} is a float, too large to tell which whole number is meant; give an int"
        )
    return int(number)


def _fit_decimal(type_: Type) -> Convert:
    unit = Decimal(1).scaleb(-(type_.scale or 0))
    limit = Decimal(1).scaleb((type_.precision or 0) - (type_.scale or 0))
    # One digit more, for a number that is rounded up to the limit before it is refused.
    exact = Context(prec=MAX_PRECISION + 1)

    def convert(value: Any) -> Any:
        plain = _python_scalar(value)
        if not isinstance(plain, int | Decimal) or isinstance(plain, bool):
            raise _wrong_type(value, "a Decimal or an int")
        number = Decimal(plain)
        if not number.is_finite() or number.copy_abs() >= limit:
            raise MisfitError(
                f"{short_value(plain)} is out of range; "
                f"give one above {-limit:f} and below {limit:f}"
            )
        result = number.quantize(unit, context=exact)
        # Rounding would make the stored value another one than the caller believes it is.
        if result != number:
            raise MisfitError(
                f"{short_value(plain)} has too many digits; "
                f"round it to {type_.scale} after the point"
            )
        return result

    return convert


def _fit_floating(type_: str) -> Convert:
    """Ints are exact, so they are kept exactly or refused; floats are near to what is meant."""
    most = EXACT_INTS[type_]

    def convert(value: Any) -> Any:
        number = value if type(value) is float else _python_scalar(value)
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise _wrong_type(value, "a float or an int")
        if isinstance(number, int) and not -most <= number <= most:
            raise MisfitError(
                f"the int {short_value(number)} is too large to be held exactly; "
                "give a float if a near number will do, or declare a decimal"
            )
        return float(number) if type_ == "double" else _nearest_float(float(number))

    return convert


def _nearest_float(number: float) -> float:
    """The nearest number of 32 bits; 0.1 has one, and a number beyond all of them has none."""
    try:
        [nearest] = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        raise MisfitError(f"{number!r} is too large for a float; declare a double") from None
    if not nearest and number:
        raise MisfitError(f"{number!r} is too small for a float; give 0, or declare a double")
    return float(nearest)


def _fit_date(value: Any) -> Any:
    if type(value) is date:
        return value
    plain = _python_scalar(value)
    if isinstance(plain, datetime):
        raise _wrong_type(value, "a datetime.date, as of .date()")
    if not isinstance(plain, date):
        raise _wrong_type(value, "a datetime.date")
    return date(plain.year, plain.month, plain.day)


def _fit_timestamp(value: Any) -> Any:
    """A moment, as a time in UTC without a zone; a time without a zone is one in UTC."""
    plain = _python_scalar(value)
    # pandas' NaT is a datetime that does not equal itself.
    if not isinstance(plain, datetime) or plain != plain:
        raise _wrong_type(value, "a datetime.datetime")
    if getattr(plain, "nanosecond", 0):
        raise MisfitError(f"{plain} has parts of a microsecond; round it")
    try:
        if plain.tzinfo is not None:
            plain = plain.astimezone(UTC)
        if type(plain) is datetime:
            return plain.replace(tzinfo=None, fold=0)
        return datetime(*plain.timetuple()[:6], plain.microsecond)
    except (OverflowError, ValueError):
        raise MisfitError(f"{value} is out of range; give a year from 1 to 9999 in UTC") from None


def _fit_local_time(value: Any) -> Any:
    """A time that is no moment."""
    if getattr(_python_scalar(value), "tzinfo", None) is not None:
        raise _wrong_type(value, "a datetime.datetime without a time zone")
    return _fit_timestamp(value)


def _fit_string(value: Any) -> Any:
    if not isinstance(value, str):
        raise _wrong_type(value, "a str")
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError:
        raise MisfitError(
            f"{short_value(value)} has half a character (a surrogate), which is no text; "
            "decode it anew"
        ) from None
    return value if type(value) is str else str.__str__(value)


def _fit_binary(value: Any) -> Any:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong_type(value, "bytes")
    return bytes(value)


def _fit_boolean(value: Any) -> Any:
    plain = _python_scalar(value)
    if not isinstance(plain, bool):
        raise _wrong_type(value, "a bool")
    return plain


def _fit_void(value: Any) -> Any:
    raise _wrong_type(value, "NULL")


_CONVERTERS: dict[str, Convert] = {
    "boolean": _fit_boolean,
    "float": _fit_floating("float"),
    "double": _fit_floating("double"),
    "string": _fit_string,
    "binary": _fit_binary,
    "date": _fit_date,
    "timestamp": _fit_timestamp,
    "timestamp_ntz": _fit_local_time,
    "void": _fit_void,
}

_MOST_SHOWN = 80


def short_value(value: Any) -> str:
    """A value as errors show it: one line, and not too long."""
    try:
        text = str(value) if isinstance(value, int | Decimal) else repr(value)
    except ValueError:  # Python prints no ints of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def _wrong_type(value: Any, expected: str) -> MisfitError:
    return MisfitError(f"{short_value(value)} is of type {type(value).__name__}; give {expected}")
