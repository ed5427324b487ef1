"""The ring Z of integers: multiplicities and counts."""

import operator
from dataclasses import dataclass
from typing import Any

from viewkeep.errors import RingError
from viewkeep.rings.ring import Ring


@dataclass(frozen=True)
class Integers(Ring[int]):
    """(Z, +, *, 0, 1): a positive payload counts copies, a negative one is a pending delete."""

    name = "integers"
    zero = 0
    one = 1

    # Built-in functions, since counting is most of what maintenance does; the type checker wants
    # the parameters to be named as in Ring, which nobody calls by name.
    add = staticmethod(operator.add)  # type: ignore[assignment]
    multiply = staticmethod(operator.mul)  # type: ignore[assignment]
    is_zero = staticmethod(operator.not_)  # type: ignore[assignment]

    def negate(self, element: int) -> int:
        return -element

    def from_integer(self, n: int) -> int:
        return n

    def from_value(self, value: Any) -> int:
        """The integer itself.

        >>> INTEGERS.from_value(1.5)
        Traceback (most recent call last):
        viewkeep.errors.RingError: 1.5 is not an integer; use REALS or DECIMALS to sum such values
        """
        if not isinstance(value, int):
            raise RingError(
                f"{value!r} is not an integer; use REALS or DECIMALS to sum such values"
            )
        return int(value)


INTEGERS = Integers()
