"""The min and max semirings: MIN and MAX of a column over a join, while nothing is deleted."""

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Number
from typing import Any

from viewkeep.errors import RingError
from viewkeep.rings.ring import Ring


class Extremum(Ring[Any]):
    """A tropical semiring (values + absent, choose the extreme, +, absent, 0).

    `zero` is None, "no value yet"; `one` is 0, so that an unlifted variable leaves the extreme of
    the lifted one alone. Values of any ordered type (strings, dates) may be lifted at one
    variable, since 0 is neutral for them too; multiplying two of them has no meaning and is an
    error. The lift of None is `zero`: like SQL, the extreme of a column ignores nulls.
    """

    subtractable = False
    zero = None
    one = 0

    @abstractmethod
    def beats(self, left: Any, right: Any) -> bool:
        """Whether left is at least as extreme as right."""

    def add(self, left: Any, right: Any) -> Any:
        if left is None:
            return right
        if right is None:
            return left
        try:
            if self.beats(left, right):
                return left
            if self.beats(right, left):
                return right
        except TypeError:
            pass
        # Also reached by NaN, which beats nothing and is beaten by nothing.
        raise RingError(f"the {self.name} cannot order {left!r} and {right!r}")

    def multiply(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return None
        if left == 0:
            return right
        if right == 0:
            return left
        # Checked first because "a" + "b" would succeed, and mean nothing.
        if isinstance(left, Number) and isinstance(right, Number):
            try:
                return left + right  # type: ignore[operator]  # Number declares no arithmetic
            except TypeError:
                pass
        raise RingError(
            f"the {self.name} cannot multiply {left!r} by {right!r}: "
            "lift one variable only, or numbers of one kind"
        )

    def is_zero(self, element: Any) -> bool:
        return element is None

    def from_value(self, value: Any) -> Any:
        if value != value:
            raise RingError(f"the {self.name} cannot order {value!r}")
        return value


@dataclass(frozen=True)
class Minimum(Extremum):
    """(min, +).

    >>> MIN.add(3, 5), MIN.add("fig", "date"), MIN.multiply(3, 5), MIN.add(None, 7)
    (3, 'date', 8, 7)
    """

    name = "min semiring's elements"

    def beats(self, left: Any, right: Any) -> bool:
        return bool(left <= right)


@dataclass(frozen=True)
class Maximum(Extremum):
    """(max, +).

    >>> MAX.add(3, 5), MAX.multiply("fig", MAX.one)
    (5, 'fig')
    >>> MAX.negate(3)
    Traceback (most recent call last):
    viewkeep.errors.RingError: the max semiring's elements have no subtraction: ...
    """

    name = "max semiring's elements"

    def beats(self, left: Any, right: Any) -> bool:
        return bool(left >= right)


MIN = Minimum()
MAX = Maximum()
