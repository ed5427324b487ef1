"""Functions that are compositions of others, so that every engine computes them.

What a composition does not cover, such as a format in `unix_timestamp`, is left to Spark.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date
from math import e, nan, pi
from typing import Protocol

from viewkeep.query.expressions import Literal, literal
from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    MOMENTS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
)
from viewkeep.query.types.functions import UNITS_OF_A_DAY
from viewkeep.query.types.internal_functions import ENTRY
from viewkeep.query.types.rules import is_numeric
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.scope import Scalar


class Composer(Protocol):
    """What makes expressions at the place of a call."""

    def call(self, function: str, *arguments: Scalar) -> Scalar:
        """A known function."""

    def cast(self, argument: Scalar, target: Type) -> Scalar:
        """A value of another type."""


ANY_NUMBER = -1
"""The count of the arguments of functions that take any number of them."""

Compose = Callable[[Composer, Sequence[Scalar]], Scalar | None]
"""The composition of a call, or None where there is none."""


def compose_call(name: str, composer: Composer, arguments: Sequence[Scalar]) -> Scalar | None:
    """A call as calls of other functions; None for what is no composition."""
    entry = COMPOSED.get(name)
    if entry is None or entry[0] not in (ANY_NUMBER, len(arguments)):
        return None
    return entry[1](composer, arguments)


def _constant_scalar(value: Literal) -> Scalar:
    return Scalar(value, TypedValue(value.type, value.value is None, value.value))


_ZERO, _ONE, _EPOCH = (_constant_scalar(literal(each)) for each in (0, 1, date(1970, 1, 1)))


def _compose_cast(target: Type) -> tuple[int, Compose]:
    return 1, lambda make, a: make.cast(a[0], target)


def _compose_weekday(make: Composer, day: Scalar) -> Scalar:
    """Days since Monday."""
    since = make.call("+", make.call("dayofweek", day), _constant_scalar(literal(5)))
    return make.call("%", since, _constant_scalar(literal(7)))


def _compose_of_date(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    return _compose_weekday(make, a[0]) if a[0].typed.type in MOMENTS else None


def _compose_contains(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    if any(each.typed.type != STRING for each in a):
        return None
    return make.call(">", make.call("locate", a[1], a[0]), _ZERO)


def _compose_is_nan(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    return (
        make.call("<=>", a[0], _constant_scalar(literal(nan)))
        if a[0].typed.type == DOUBLE
        else None
    )


def _first_day_of_unit(make: Composer, day: Scalar, unit: str) -> Scalar | None:
    """The first day of the unit that a day is in."""
    names = {"mm": "month", "mon": "month", "yyyy": "year", "yy": "year", "dd": "day"}
    match names.get(unit, unit):
        case "day":
            return day
        case "week":
            return make.call("date_sub", day, _compose_weekday(make, day))
        case "month":
            return make.call("date_sub", day, make.call("-", make.call("day", day), _ONE))
        case "year":
            return make.call("date_sub", day, make.call("-", make.call("dayofyear", day), _ONE))
        case "quarter":
            before = make.call("-", make.call("month", day), _ONE)
            over = make.call("negate", make.call("%", before, _constant_scalar(literal(3))))
            start = make.call("date_sub", day, make.call("-", make.call("day", day), _ONE))
            return make.call("add_months", start, over)
    return None


def _compose_trunc(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    unit = a[1].typed.value
    days = ("day", "dd")  # trunc() knows no days, and is NULL
    if a[0].typed.type not in MOMENTS or not isinstance(unit, str):
        return None
    return (
        None
        if unit.lower() in days
        else _first_day_of_unit(make, make.cast(a[0], DATE), unit.lower())
    )


def _compose_date_trunc(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    unit = a[0].typed.value
    if a[1].typed.type not in MOMENTS or not isinstance(unit, str):
        return None
    if unit.lower() in UNITS_OF_A_DAY:
        name = _constant_scalar(literal(unit.lower()))
        return make.call("date_trunc", name, make.cast(a[1], TIMESTAMP))
    start = _first_day_of_unit(make, make.cast(a[1], DATE), unit.lower())
    return None if start is None else make.cast(start, TIMESTAMP)


def _compose_nanvl(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    if {each.typed.type for each in a} != {DOUBLE}:
        return None
    is_nan = make.call("<=>", a[0], _constant_scalar(literal(nan)))
    return make.call("case", is_nan, a[1], a[0])


def _compose_pmod(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    """The remainder that is not negative; a negative divisor is left to Spark."""
    divisor = a[1].typed.value
    if any(each.typed.type not in INTEGRAL for each in a) or not isinstance(divisor, int):
        return None
    if isinstance(divisor, bool) or divisor <= 0:
        return None
    rest = make.call("%", a[0], a[1])
    return make.call("case", make.call("<", rest, _ZERO), make.call("+", rest, a[1]), rest)


def _compose_try_divide(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    if any(each.typed.type not in (*INTEGRAL, DOUBLE) for each in a):
        return None
    return make.call("/", a[0], make.call("nullif", a[1], _ZERO))


def _compose_unix_timestamp(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    if a[0].typed.type not in MOMENTS:
        return None
    micros = make.call("unix_micros", make.cast(a[0], TIMESTAMP))
    return make.call("div", micros, _constant_scalar(literal(1_000_000)))  # towards 1970


def _compose_decode(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    """CASE over pairs of a value and a result, where NULL equals NULL; of two arguments, bytes."""
    if len(a) < 3:
        return None
    value, *rest = a
    pairs = zip(rest[::2], rest[1::2], strict=False)
    branches = [part for key, r in pairs for part in (make.call("<=>", value, key), r)]
    return make.call("case", *branches, *(rest[-1:] if len(rest) % 2 else ()))


def _compose_date_format(make: Composer, a: Sequence[Scalar]) -> Scalar | None:
    """Formats whose parts stand in the text of a date, at these places and of these lengths."""
    places = {"yyyy": (1, 4), "MM": (6, 2), "dd": (9, 2)}
    form = a[1].typed.value
    if a[0].typed.type not in MOMENTS or not isinstance(form, str):
        return None
    parts = re.split("((?<!y)yyyy(?!y)|(?<!M)MM(?!M)|(?<!d)dd(?!d))", form)
    if any(re.search(r"[A-Za-z'\[\]{}#]", each) for each in parts[::2]):
        return None  # other letters of a format
    day = make.cast(make.cast(a[0], DATE), STRING)
    texts = [_constant_scalar(literal(parts[0]))]
    for name, mark in zip(parts[1::2], parts[2::2], strict=True):
        start, size = (_constant_scalar(literal(each)) for each in places[name])
        texts += [make.call("substring", day, start, size), _constant_scalar(literal(mark))]
    return make.call("concat", *texts) if len(parts) > 1 else None


def _compose_element_at(name: str) -> tuple[int, Compose]:
    """An element of an array by its place; the value of a map by its key."""
    return 2, lambda make, a: make.call(ENTRY if a[0].typed.type.name == "map" else name, *a)


def _compose_scaled(factor: float) -> tuple[int, Compose]:
    """A number times a constant, which Java rounds in the same way."""
    number = _constant_scalar(literal(factor))
    return 1, lambda make, a: make.call("*", make.cast(a[0], DOUBLE), number)


def _compose_concat_ws(make: Composer, a: Sequence[Scalar]) -> Scalar:
    """Arrays are joined first; one without elements adds nothing, not even a separator."""
    if not a or not isinstance(a[0].typed.value, str):
        return make.call("concat_ws", *a)

    def part(argument: Scalar) -> Scalar:
        kind = argument.typed.type
        if kind.name != "array" or kind.parts[0].type != STRING:
            return argument
        elements = make.call("array_compact", argument)
        has_some = make.call("<", _ZERO, make.call("size", elements))
        return make.call("case", has_some, make.call("array_join", elements, a[0]))

    return make.call("concat_ws", a[0], *map(part, a[1:]))


COMPOSED: dict[str, tuple[int, Compose]] = {
    "element_at": _compose_element_at("element_at"),
    "try_element_at": _compose_element_at("try_element_at"),
    "degrees": _compose_scaled(57.29577951308232),
    "radians": _compose_scaled(0.017453292519943295),
    "decode": (ANY_NUMBER, _compose_decode),
    "concat_ws": (ANY_NUMBER, _compose_concat_ws),
    "date_format": (2, _compose_date_format),
    "nvl2": (3, lambda make, a: make.call("case", make.call("isnotnull", a[0]), a[1], a[2])),
    "zeroifnull": (1, lambda make, a: make.call("coalesce", a[0], _ZERO)),
    "nullifzero": (1, lambda make, a: make.call("nullif", a[0], _ZERO)),
    "equal_null": (2, lambda make, a: make.call("<=>", a[0], a[1])),
    "contains": (2, _compose_contains),
    "instr": (2, lambda make, a: make.call("locate", a[1], a[0])),
    "btrim": (1, lambda make, a: make.call("trim", a[0])),
    "negative": (1, lambda make, a: make.call("negate", a[0])),
    "positive": (1, lambda make, a: a[0] if is_numeric(a[0].typed.type) else None),
    "isnan": (1, _compose_is_nan),
    "nanvl": (2, _compose_nanvl),
    "pmod": (2, _compose_pmod),
    "try_divide": (2, _compose_try_divide),
    "unix_timestamp": (1, _compose_unix_timestamp),
    "to_unix_timestamp": (1, _compose_unix_timestamp),
    "pi": (0, lambda make, a: _constant_scalar(literal(pi))),
    "e": (0, lambda make, a: _constant_scalar(literal(e))),
    "weekday": (1, _compose_of_date),
    "to_date": _compose_cast(DATE),
    "trunc": (2, _compose_trunc),
    "date_trunc": (2, _compose_date_trunc),
    "unix_date": (
        1,
        lambda make, a: make.call("datediff", a[0], _EPOCH) if a[0].typed.type == DATE else None,
    ),
    "date_from_unix_date": (
        1,
        lambda make, a: (
            make.call("date_add", _EPOCH, a[0]) if a[0].typed.type in INTEGRAL[:3] else None
        ),
    ),
    **{kind.name: _compose_cast(kind) for kind in (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE)},
    **{kind.name: _compose_cast(kind) for kind in (BOOLEAN, STRING, BINARY, DATE, TIMESTAMP)},
    "decimal": _compose_cast(DECIMAL(10, 0)),
}
"""The functions, by how many arguments they take."""
