"""The ring of reals, as floating-point numbers: fast sums that round."""

from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any

from viewkeep.errors import RingError
from viewkeep.rings.ring import Ring


@dataclass(frozen=True)
class Reals(Ring[float]):
    """(R, +, *, 0, 1) in double precision.

    Rounding makes the ring laws approximate, so `equal` has a tolerance. `is_zero` has none: a
    tolerance there would drop small true sums. Conversely a sum may round to zero while tuples
    remain, or keep a tiny rest when none do; to know which groups exist, carry a count beside
    it: `ProductRing(INTEGERS, REALS)`. `DECIMALS` are exact.
    """

    name = "reals"
    zero = 0.0
    one = 1.0

    relative_tolerance: float = 1e-9
    absolute_tolerance: float = 1e-9

    def add(self, left: float, right: float) -> float:
        return left + right

    def multiply(self, left: float, right: float) -> float:
        return left * right

    def negate(self, element: float) -> float:
        return -element

    def is_zero(self, element: float) -> bool:
        return element == 0

    def equal(self, left: float, right: float) -> bool:
        return isclose(
            left, right, rel_tol=self.relative_tolerance, abs_tol=self.absolute_tolerance
        )

    def from_integer(self, n: int) -> float:
        return float(n)

    def from_value(self, value: Any) -> float:
        """The value as a float; infinities and NaN are refused, since they never cancel.

        >>> REALS.from_value(float("nan"))
        Traceback (most recent call last):
        viewkeep.errors.RingError: nan is not a finite number, so it cannot be summed and removed
        """
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise RingError(f"{value!r} is not a number a float can hold") from None
        if not isfinite(number):
            raise RingError(f"{value!r} is not a finite number, so it cannot be summed and removed")
        return number


REALS = Reals()
