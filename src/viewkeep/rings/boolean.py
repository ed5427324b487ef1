"""The Boolean semiring: whether a tuple is there at all."""

from dataclasses import dataclass
from typing import Any

from viewkeep.rings.ring import Ring


@dataclass(frozen=True)
class Booleans(Ring[bool]):
    """({false, true}, or, and, false, true): set semantics, without deletes.

    >>> BOOLEAN.from_integer(3)
    True
    >>> BOOLEAN.from_integer(-1)
    Traceback (most recent call last):
    viewkeep.errors.RingError: the Booleans have no subtraction: ...
    """

    subtractable = False
    name = "Booleans"
    zero = False
    one = True

    def add(self, left: bool, right: bool) -> bool:
        return left or right

    def multiply(self, left: bool, right: bool) -> bool:
        return left and right

    def is_zero(self, element: bool) -> bool:
        return not element

    def from_value(self, value: Any) -> bool:
        return bool(value)


BOOLEAN = Booleans()
