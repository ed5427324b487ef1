"""Python numbers as they come: exact for int, Decimal and Fraction, rounded for float."""

from dataclasses import dataclass
from typing import Any

from viewkeep.rings.ring import Ring


@dataclass(frozen=True)
class Numbers(Ring[Any]):
    """Sums of whatever numbers the data holds; the kinds must go together (not Decimal with float).

    >>> NUMBERS.add(1, 2.5)
    3.5
    """

    name = "numbers"
    zero = 0
    one = 1
    subtractable = True

    def add(self, left: Any, right: Any) -> Any:
        return left + right

    def multiply(self, left: Any, right: Any) -> Any:
        return left * right

    def negate(self, element: Any) -> Any:
        return -element

    def is_zero(self, element: Any) -> bool:
        return not element

    def from_integer(self, n: int) -> Any:
        return n


NUMBERS = Numbers()
