"""How values of one type are codes of 64 bits without a dictionary, one by one and as columns.

A format is for a set of variables whose values meet in joins. Numbers of a format stand for scaled
integers, so that machine code can sum them: see `Units`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

PLAIN = 2**62
"""Integers within +-PLAIN are their own codes; values of a dictionary are coded from here on."""

NULL = 0x7FF8_0000_0000_0001
"""The code of None: no number, no place in a dictionary, no float (it is one of the NaNs)."""

Column = NDArray[np.int64]

_SMALL = 2**26
"""Integers below it may stand among floats: their products are floats without rounding too."""


class Format(ABC):
    """A bijection between values of one type and codes."""

    title: ClassVar[str]
    """What such values are called."""
    base: ClassVar[int] = 0
    """What numbers are scaled by powers of; 0 for what is no number."""
    scale: int = 0
    """Codes are values times base^scale."""
    order: ClassVar[str] = ""
    """How codes are ordered as their values are: i as integers, f as bits of floats, t as the texts
    that they stand for; else not."""

    @abstractmethod
    def code(self, value: Any) -> int | None:
        """The code of a value, None if it is not of this format."""

    @abstractmethod
    def values(self, codes: Column) -> list[Any]:
        """The values of codes, none of which is NULL."""


@dataclass(frozen=True)
class Integers(Format):
    """Integers as they are; everything that joins them later has a dictionary."""

    title = "integers"
    base = 1
    order = "i"

    def code(self, value: Any) -> int | None:
        return value if type(value) is int and -PLAIN < value < PLAIN else None

    def values(self, codes: Column) -> list[Any]:
        return list(codes.tolist())


@dataclass(frozen=True)
class Decimals(Format):
    """Decimals with at most so many digits behind the point, as integers of the last one."""

    title = "decimals"
    scale: int = 0
    base = 10
    order = "i"

    def code(self, value: Any) -> int | None:
        if (type(value) is Decimal and value.is_finite()) or type(value) is int:
            if type(value) is Decimal and not -40 < value.adjusted() < 40:
                return None
            numerator, denominator = value.as_integer_ratio()
            number, rest = divmod(numerator * 10**self.scale, denominator)
            return number if not rest and -PLAIN < number < PLAIN else None
        return None

    def values(self, codes: Column) -> list[Any]:
        scale = -self.scale
        return [Decimal(code).scaleb(scale) for code in codes.tolist()]


@dataclass(frozen=True)
class Floats(Format):
    """Floats as their bits; the two zeros are one."""

    title = "floats"
    base = 2
    order = "f"

    def code(self, value: Any) -> int | None:
        if isinstance(value, float):
            return None if value != value else int(np.float64(value + 0.0).view(np.int64))
        if type(value) is int and -_SMALL < value < _SMALL:
            return int(np.float64(value).view(np.int64))
        return None

    def values(self, codes: Column) -> list[Any]:
        return list(codes.view(np.float64).tolist())


_EPOCH, _FIRST_DAY = datetime(1970, 1, 1), date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Days(Format):
    """Dates as days since 1970."""

    title = "dates"
    order = "i"

    def code(self, value: Any) -> int | None:
        return value.toordinal() - _FIRST_DAY if type(value) is date else None

    def values(self, codes: Column) -> list[Any]:
        return [date.fromordinal(code + _FIRST_DAY) for code in codes.tolist()]


@dataclass(frozen=True)
class Microseconds(Format):
    """Timestamps without a zone as microseconds since 1970."""

    title = "timestamps"
    order = "i"

    def code(self, value: Any) -> int | None:
        if type(value) is not datetime or value.tzinfo is not None:
            return None
        past = value - _EPOCH
        return past.days * _DAY + past.seconds * 1_000_000 + past.microseconds

    def values(self, codes: Column) -> list[Any]:
        return [_EPOCH + timedelta(microseconds=code) for code in codes.tolist()]


@dataclass(frozen=True)
class TextCodes(Format):
    """Texts by a dictionary of their own, which `Coder` holds (`texts.py`)."""

    title = "texts"
    order = "t"

    def code(self, value: Any) -> int | None:
        return None

    def values(self, codes: Column) -> list[Any]:
        raise NotImplementedError("the dictionary decodes")


@dataclass(frozen=True)
class Mixed(Format):
    """Integers as they are, and all else by the dictionary."""

    title = "other values"

    def code(self, value: Any) -> int | None:
        return None

    def values(self, codes: Column) -> list[Any]:
        raise NotImplementedError("the dictionary decodes")


INTEGERS, FLOATS, DAYS, MICROSECONDS, TEXTS, MIXED = (
    Integers(),
    Floats(),
    Days(),
    Microseconds(),
    TextCodes(),
    Mixed(),
)
BY_DICTIONARY = (INTEGERS, MIXED)
"""Formats of which other values may be coded by the dictionary."""


def format_of(value: Any) -> Format:
    """The format for a value; that of all values which have none is mixed.

    >>> format_of(Decimal("1.50")), format_of("text")
    (Decimals(scale=2), TextCodes())
    """
    kind = type(value)
    if kind is int or isinstance(value, np.integer):
        return INTEGERS if -PLAIN < value < PLAIN else MIXED
    if kind is Decimal:
        exponent = value.as_tuple().exponent
        fits = isinstance(exponent, int) and exponent >= -18
        own = Decimals(max(0, -exponent)) if fits else MIXED
        return own if own.code(value) is not None else MIXED
    if isinstance(value, float):
        return FLOATS
    if kind is str:
        return TEXTS
    if kind is date:
        return DAYS
    if kind is datetime and value.tzinfo is None:
        return MICROSECONDS
    return MIXED


def common(first: Format | None, second: Format) -> Format:
    """The format that holds the values of both: the narrowest there is.

    >>> common(INTEGERS, Decimals(2)), common(FLOATS, DAYS)
    (Decimals(scale=2), Mixed())
    """
    if first is None or first == second:
        return second
    if isinstance(first, Decimals) and isinstance(second, Decimals):
        return Decimals(max(first.scale, second.scale))
    for one, other in ((first, second), (second, first)):
        if one == INTEGERS and isinstance(other, Decimals | Floats):
            return other
    return MIXED


def rescaled(codes: Column, source: Format, target: Format) -> Column | None:
    """Codes of one format as those of another that holds them; None where some do not fit."""
    if source == target or (source == INTEGERS and target == MIXED):
        return codes
    if isinstance(target, Decimals) and source.base in (1, 10):
        factor = 10 ** (target.scale - source.scale)
        if factor >= PLAIN or _largest(codes) * factor >= PLAIN:
            return None
        return codes * np.int64(factor)
    if target == FLOATS and source == INTEGERS and _largest(codes) < _SMALL:
        return codes.astype(np.float64).view(np.int64)
    return None


def _largest(codes: Column) -> int:
    return max(int(codes.max()), -int(codes.min())) if len(codes) else 0


def whole_again(value: Any) -> Any:
    """A decimal or float that may have been an integer, as that: it goes with both.

    >>> whole_again(2.0), whole_again(Decimal("2.50"))
    (2, Decimal('2.50'))
    """
    small = isinstance(value, float | Decimal) and -_SMALL < value < _SMALL
    return int(value) if small and value == int(value) else value
