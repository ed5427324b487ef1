"""Numbers of the kind the data holds, summed without rounding."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Integral, Real
from typing import Any

from viewkeep.errors import RingError
from viewkeep.rings.decimals import DECIMALS
from viewkeep.rings.exact_float import ExactFloat
from viewkeep.rings.ring import Ring


@dataclass(frozen=True)
class Numbers(Ring[Any]):
    """Exact sums and products of ints, Decimals, Fractions or floats; of one kind, and ints.

    A float is taken as the number it stands for: a sum is rounded once, when it is read, and
    whatever was inserted and deleted again is gone from it.

    >>> total = NUMBERS.add(NUMBERS.from_value(0.1), NUMBERS.from_value(0.2))
    >>> NUMBERS.to_value(total), NUMBERS.to_value(NUMBERS.add(total, NUMBERS.from_value(-0.2)))
    (0.30000000000000004, 0.1)
    """

    name = "numbers"
    zero = 0
    one = 1
    subtractable = True

    def add(self, left: Any, right: Any) -> Any:
        try:
            if isinstance(left, Decimal) or isinstance(right, Decimal):
                return DECIMALS.add(left, right)
            return left + right
        except TypeError:
            raise self._mixed_kinds_error(left, right) from None

    def multiply(self, left: Any, right: Any) -> Any:
        try:
            if isinstance(left, Decimal) or isinstance(right, Decimal):
                return DECIMALS.multiply(left, right)
            return left * right
        except TypeError:
            raise self._mixed_kinds_error(left, right) from None

    def negate(self, element: Any) -> Any:
        return DECIMALS.negate(element) if isinstance(element, Decimal) else -element

    def is_zero(self, element: Any) -> bool:
        return not element

    def from_integer(self, n: int) -> Any:
        return n

    def from_value(self, value: Any) -> Any:
        """The number as an element; NaN and infinities are refused, since they never cancel.

        >>> NUMBERS.from_value("7")
        Traceback (most recent call last):
        viewkeep.errors.RingError: '7' is not a number
        """
        match value:
            case Decimal():
                return DECIMALS.from_value(value)
            case Fraction():
                return value
            case Integral():
                return int(value)
            case Real() if isfinite(value):
                return ExactFloat.of(float(value))
            case Real():
                raise RingError(f"{value!r} is not a finite number")
            case _:
                raise RingError(f"{value!r} is not a number")

    def to_value(self, element: Any) -> Any:
        """The element as a number of the kind that was put in."""
        return float(element) if isinstance(element, ExactFloat) else element

    def _mixed_kinds_error(self, left: Any, right: Any) -> RingError:
        kinds = " with ".join(type(self.to_value(each)).__name__ for each in (left, right))
        return RingError(f"cannot combine {kinds}: convert the data to numbers of one kind")


NUMBERS = Numbers()
