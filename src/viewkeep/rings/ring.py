"""What a payload must be able to do: the commutative ring (or semiring) of a relation."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from viewkeep.errors import RingError

D = TypeVar("D")


class Ring(ABC, Generic[D]):
    """A commutative ring (D, +, *, 0, 1) (ivm_lecture part 1, "Rings").

    Elements are immutable values. Each operation on relations asks for the least it needs: union
    for `add`, join for `multiply`, marginalisation for both, deletion for `negate`. A semiring
    sets `subtractable` to False and leaves `negate` alone; deleting then raises a `RingError`.

    A ring of your own is one small class, used through one instance:

    >>> class ClockHours(Ring[int]):
    ...     name, zero, one = "integers modulo 12", 0, 1
    ...     def add(self, left, right): return (left + right) % 12
    ...     def multiply(self, left, right): return (left * right) % 12
    ...     def negate(self, element): return -element % 12
    >>> clock = ClockHours()
    >>> clock.add(7, 8), clock.from_integer(-1), clock.is_zero(clock.multiply(3, 4))
    (3, 11, True)
    """

    subtractable: bool = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The ring's name in messages, a plural such as "integers"."""

    @property
    @abstractmethod
    def zero(self) -> D:
        """The neutral element of addition, the payload of every absent tuple."""

    @property
    @abstractmethod
    def one(self) -> D:
        """The neutral element of multiplication, the payload of a tuple present once."""

    @abstractmethod
    def add(self, left: D, right: D) -> D:
        """left + right."""

    @abstractmethod
    def multiply(self, left: D, right: D) -> D:
        """left * right."""

    def negate(self, element: D) -> D:
        """The element that sums with `element` to zero."""
        if self.subtractable:
            raise RingError(
                f"{type(self).__name__} must define negate, or set subtractable = False"
            )
        raise RingError(
            f"the {self.name} have no subtraction: a delete cannot be undone from the payload "
            "alone; use insert-only updates or an ordered multiset per group"
        )

    def counted(self, counter: list[int]) -> "Ring[D]":
        """The same ring, which adds to the counter what an operation does beyond one step.

        For rings whose elements grow with the data; all others have nothing to add.
        """
        return self

    def is_zero(self, element: D) -> bool:
        """Whether an entry with this payload must disappear; exact, never within a tolerance."""
        return bool(element == self.zero)

    def equal(self, left: D, right: D) -> bool:
        """Whether two elements are the same, within rounding where the ring rounds."""
        return bool(left == right)

    def from_integer(self, n: int) -> D:
        """The n-fold sum of one, which turns a multiplicity into a payload."""
        if n < 0:
            return self.negate(self.from_integer(-n))
        total, power = self.zero, self.one
        while n:
            if n & 1:
                total = self.add(total, power)
            power = self.add(power, power)
            n >>= 1
        return total

    def from_value(self, value: Any) -> D:
        """The standard lift of a data value, for rings whose elements are data values."""
        raise RingError(
            f"the {self.name} have no standard lift for {value!r}; give a lifting function"
        )
