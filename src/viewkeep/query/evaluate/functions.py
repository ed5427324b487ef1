"""What each scalar function computes from values that are not NULL, as Spark SQL does in ANSI mode.

Exact decimals keep 38 significant digits, rounded half up; the scale that Spark takes from the
column types is not applied. Beside a double, a decimal becomes a double.
"""

import math
import operator
import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache, partial
from numbers import Number
from typing import Any

from viewkeep.query.evaluate.array_functions import ARRAY_FUNCTIONS, concat_arrays, map_value
from viewkeep.query.evaluate.text_functions import TEXT_FUNCTIONS
from viewkeep.query.types.data_types import MAX_PRECISION
from viewkeep.query.types.internal_functions import COMPARABLE, ENTRY, FIELD, ITEM

DECIMALS = Context(prec=MAX_PRECISION, rounding=ROUND_HALF_UP)
"""How exact decimals are computed."""

WIDE = Context(prec=1000, rounding=ROUND_HALF_UP)
"""Holds the digits of every double."""

_NUMBERS = frozenset((int, float, Decimal))

# Arithmetic.


def _arithmetic_function(
    plain: Callable[[Any, Any], Any], exact: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """An operation on numbers: `plain` on integers and doubles, `exact` on decimals."""

    def compute(left: Any, right: Any) -> Any:
        left_kind, right_kind = type(left), type(right)
        if left_kind is right_kind and (left_kind is int or left_kind is float):
            return plain(left, right)
        if (left_kind is Decimal or left_kind is int) and (
            right_kind is Decimal or right_kind is int
        ):
            return exact(left, right)
        left, right = _require_number(left), _require_number(right)
        if not isinstance(left, Decimal) and not isinstance(right, Decimal):
            return plain(left, right)
        if isinstance(left, float) or isinstance(right, float):
            return plain(float(left), float(right))
        return exact(left, right)

    return compute


def _require_number(value: Any) -> Any:
    if type(value) not in _NUMBERS and (isinstance(value, bool) or not isinstance(value, Number)):
        raise TypeError(f"{value!r} is not a number")
    return value


def _arithmetic_with_days(
    sign: int, compute: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """Addition or subtraction that also moves a date by days."""

    def move(left: Any, right: Any) -> Any:
        if type(left) is date:
            return left + timedelta(days=sign * operator.index(right))
        return compute(left, right)

    return move


def _checked_division(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Tells a division by zero from other results that do not exist."""

    def divide(left: Any, right: Any) -> Any:
        if right == 0:
            raise ZeroDivisionError
        return compute(left, right)

    return divide


def _remainder_value(left: Any, right: Any) -> Any:
    """The rest has the sign of the dividend."""
    if isinstance(left, float) or isinstance(right, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    return abs(left) % abs(right) * (1 if left >= 0 else -1)


def _quotient_value(left: Any, right: Any) -> int:
    """The quotient without its fraction, rounded towards zero."""
    if isinstance(left, float) or isinstance(right, float):
        return int(left / right)
    quotient = int(abs(left) // abs(right))
    return quotient if (left >= 0) == (right >= 0) else -quotient


def _negative_value(value: Any) -> Any:
    return DECIMALS.minus(value) if isinstance(value, Decimal) else -_require_number(value)


def _absolute_value(value: Any) -> Any:
    return DECIMALS.abs(value) if isinstance(value, Decimal) else abs(_require_number(value))


def as_decimal(value: Any) -> Decimal:
    """A number as the decimal that it prints as."""
    return (
        Decimal(repr(float(value))) if isinstance(value, float) else Decimal(_require_number(value))
    )


def _round_value(value: Any, places: int = 0) -> Any:
    """Rounds half up, away from zero."""
    exact = as_decimal(value)
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent <= places:
        return value
    rounded = exact.quantize(Decimal(1).scaleb(-places), context=WIDE)
    if isinstance(value, Decimal):
        return rounded if places >= 0 else rounded.quantize(Decimal(1), context=WIDE)
    return float(rounded) + 0.0 if isinstance(value, float) else int(rounded)  # + 0.0: no -0.0


def _floor_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.to_integral_value(ROUND_FLOOR)
    return 0 if value != value else math.floor(_require_number(value))


def _ceil_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.to_integral_value(ROUND_CEILING)
    return 0 if value != value else math.ceil(_require_number(value))


def _sqrt_value(value: Any) -> float:
    number = float(_require_number(value))
    return math.nan if number < 0 else math.sqrt(number)


def _ln_value(value: Any) -> float | None:
    number = float(_require_number(value))
    return None if number <= 0 else math.log(number)


def _exp_value(value: Any) -> float:
    try:
        return math.exp(_require_number(value))
    except OverflowError:
        return math.inf


def _power_value(base: Any, exponent: Any) -> float:
    """As Java's Math.pow: out of range is infinite, out of the domain is NaN."""
    base, exponent = float(_require_number(base)), float(_require_number(exponent))
    if abs(base) == 1 and not math.isfinite(exponent):
        return math.nan
    try:
        return math.pow(base, exponent)
    except ValueError:
        if base:
            return math.nan
    except OverflowError:
        pass
    negative = math.copysign(1, base) < 0 and math.fmod(exponent, 2) in (1, -1)
    return -math.inf if negative else math.inf


def _sign_value(value: Any) -> float:
    number = float(_require_number(value))
    return math.copysign(1.0, number) if number and number == number else number


# Text.


@lru_cache(maxsize=1024)
def like_pattern(pattern: str) -> re.Pattern[str]:
    r"""The regular expression of a LIKE pattern, where \ escapes %, _ and itself.

    >>> [bool(like_pattern("a_%").fullmatch(text)) for text in ("a", "ab", "abc")]
    [False, True, True]
    """
    parts = []
    for token in re.findall(r"\\?.", pattern, re.DOTALL):
        if token[0] == "\\" and token[1:] not in ("%", "_", "\\"):
            raise ValueError(f"in the pattern {pattern!r} the escape \\ must precede %, _ or \\")
        parts.append({"%": ".*", "_": "."}.get(token, re.escape(token[-1])))
    return re.compile("".join(parts), re.DOTALL)


def _like_value(text: str, pattern: str) -> bool:
    return like_pattern(pattern).fullmatch(text) is not None


def _text_value(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _length_value(value: Any) -> int:
    return len(value) if isinstance(value, bytes) else len(_text_value(value))


def _substring_value(text: str, start: int, length: int | None = None) -> str:
    """Counts from 1, or from the end when negative; what lies outside of the text is empty."""
    first = start - 1 if start > 0 else start + len(text) if start < 0 else 0
    end = len(text) if length is None else first + length
    return _text_value(text)[max(first, 0) : max(end, 0)]


def _concat_values(*parts: Any) -> Any:
    return concat_arrays(*parts) if isinstance(parts[0], tuple) else "".join(parts)


def _replace_value(text: str, old: str, new: str = "") -> str:
    return str.replace(text, old, new) if old else _text_value(text)


def _left_value(text: str, count: int) -> str:
    return _text_value(text)[: max(count, 0)]


def _right_value(text: str, count: int) -> str:
    return _text_value(text)[max(len(text) - count, 0) :] if count > 0 else ""


def _locate_value(part: str, text: str) -> int:
    return str.find(text, part) + 1


# Dates.


def midnight(value: Any) -> Any:
    """A date as the timestamp of its midnight; anything else as it is."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value


def _day_value(value: date) -> date:
    if not isinstance(value, date):
        raise TypeError(f"{value!r} is not a date")
    return value.date() if isinstance(value, datetime) else value


def _add_days(start: date, days: int) -> date:
    return _day_value(start) + timedelta(days=operator.index(days))


def _subtract_days(start: date, days: int) -> date:
    return _day_value(start) - timedelta(days=operator.index(days))


def _shift_months(start: Any, months: int) -> Any:
    """The same day so many months later, or the last one of a shorter month."""
    year, month = divmod(start.year * 12 + start.month - 1 + operator.index(months), 12)
    last = monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last))


_UNITS = {
    "WEEK": timedelta(weeks=1),
    "DAY": timedelta(days=1),
    "DAYOFYEAR": timedelta(days=1),
    "HOUR": timedelta(hours=1),
    "MINUTE": timedelta(minutes=1),
    "SECOND": timedelta(seconds=1),
    "MILLISECOND": timedelta(milliseconds=1),
    "MICROSECOND": timedelta(microseconds=1),
}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def _timestampadd_value(unit: str, amount: int, start: Any) -> Any:
    start_moment, unit = midnight(start), unit.upper()
    if not isinstance(start_moment, datetime):
        raise TypeError(f"{start!r} is not a timestamp")
    if unit in _MONTHS:
        return _shift_months(start_moment, amount * _MONTHS[unit])
    if unit not in _UNITS:
        raise ValueError(f"unknown unit {unit!r}; there are {', '.join((*_MONTHS, *_UNITS))}")
    return start_moment + operator.index(amount) * _UNITS[unit]


_UNIX = {"seconds": 1_000_000, "millis": 1000, "micros": 1}
"""Units of time since 1970, in microseconds."""
_EPOCH = datetime(1970, 1, 1)
_MONTH_NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def _unix_value(size: int, time_: datetime) -> int:
    return (time_ - _EPOCH) // timedelta(microseconds=size)


def _timestamp_value(size: int, count: int) -> datetime:
    return _EPOCH + timedelta(microseconds=operator.index(count) * size)


def _date_trunc_value(unit: str, time_: datetime) -> datetime:
    return time_ - (time_ - datetime.min) % _UNITS[unit.upper()]


def _last_day_value(value: date) -> date:
    day = _day_value(value)
    return day.replace(day=monthrange(day.year, day.month)[1])


def _not_value(value: Any) -> bool:
    if value is not True and value is not False:
        raise TypeError(f"{value!r} is not a boolean")
    return not value


_LONGEST = 10_000_000
"""The most values of a sequence that is computed here."""


def _sequence_value(first: Any, last: Any) -> tuple[Any, ...]:
    """All values between two, both included, upwards or downwards."""
    if isinstance(first, date):
        days = (last - first).days
        return tuple(first + timedelta(days=each) for each in _sequence_value(0, days))
    if abs(last - first) >= _LONGEST:
        raise ValueError(f"a sequence from {first} to {last} is too long")
    step = 1 if first <= last else -1
    return tuple(range(first, last + step, step))


def _item_value(array: tuple[Any, ...], place: int) -> Any:
    if not 0 <= place < len(array):
        raise ValueError(f"no element {place} in an array of {len(array)}")
    return array[place]


STRICT: dict[str, Callable[..., Any]] = {
    "+": _arithmetic_with_days(1, _arithmetic_function(operator.add, DECIMALS.add)),
    "-": _arithmetic_with_days(-1, _arithmetic_function(operator.sub, DECIMALS.subtract)),
    "*": _arithmetic_function(operator.mul, DECIMALS.multiply),
    "/": _arithmetic_function(operator.truediv, _checked_division(DECIMALS.divide)),
    "%": _arithmetic_function(
        _checked_division(_remainder_value), _checked_division(DECIMALS.remainder)
    ),
    "div": _arithmetic_function(
        _quotient_value, _checked_division(lambda a, b: int(DECIMALS.divide_int(a, b)))
    ),
    "negate": _negative_value,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "~": operator.invert,
    "not": _not_value,
    COMPARABLE: lambda value: value,
    "abs": _absolute_value,
    "round": _round_value,
    "floor": _floor_value,
    "ceil": _ceil_value,
    "sqrt": _sqrt_value,
    "ln": _ln_value,
    "exp": _exp_value,
    "power": _power_value,
    "sign": _sign_value,
    "like": _like_value,
    "upper": str.upper,
    "lower": str.lower,
    "trim": lambda text: str.strip(text, " "),
    "ltrim": lambda text: str.lstrip(text, " "),
    "rtrim": lambda text: str.rstrip(text, " "),
    "length": _length_value,
    "substring": _substring_value,
    "concat": _concat_values,
    "replace": _replace_value,
    "left": _left_value,
    "right": _right_value,
    "locate": _locate_value,
    "startswith": str.startswith,
    "endswith": str.endswith,
    **TEXT_FUNCTIONS,
    **ARRAY_FUNCTIONS,
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1,
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "weekofyear": lambda day: day.isocalendar().week,
    "hour": lambda time_: time_.hour,
    "minute": lambda time_: time_.minute,
    "second": lambda time_: time_.second,
    "date_add": _add_days,
    "date_sub": _subtract_days,
    "datediff": lambda end, start: (_day_value(end) - _day_value(start)).days,
    "add_months": lambda start, months: _shift_months(_day_value(start), months),
    "last_day": _last_day_value,
    "timestampadd": _timestampadd_value,
    "date_trunc": _date_trunc_value,
    "dayname": lambda day: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][day.weekday()],
    "monthname": lambda day: _MONTH_NAMES[day.month - 1],
    "make_date": lambda year, month, day: date(year, month, day),
    **{f"unix_{unit}": partial(_unix_value, size) for unit, size in _UNIX.items()},
    **{f"timestamp_{unit}": partial(_timestamp_value, size) for unit, size in _UNIX.items()},
    "sequence": _sequence_value,
    FIELD: lambda struct, name, place: struct[place],
    ITEM: _item_value,
    ENTRY: map_value,
}
"""The functions that are NULL when an argument is, on values that are not."""
