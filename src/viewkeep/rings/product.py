"""The product of rings: several aggregates maintained at once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from viewkeep.errors import RingError
from viewkeep.rings.ring import Ring

Elements = tuple[Any, ...]


@dataclass(frozen=True)
class ProductRing(Ring[Elements]):
    """D1 x ... x Dk with every operation componentwise.

    The payload is zero only when every component is, so a count beside a sum keeps a group whose
    sum happens to be 0.

    >>> from viewkeep.rings.integers import INTEGERS
    >>> from viewkeep.rings.reals import REALS
    >>> count_and_sum = ProductRing(INTEGERS, REALS)
    >>> count_and_sum.add((1, 2.5), (1, -2.5))
    (2, 0.0)
    """

    rings: tuple[Ring[Any], ...]

    def __init__(self, *rings: Ring[Any]) -> None:
        if not rings:
            raise RingError("a product of rings needs at least one ring")
        object.__setattr__(self, "rings", rings)

    @cached_property
    def subtractable(self) -> bool:  # type: ignore[override]  # follows from the components
        return all(ring.subtractable for ring in self.rings)

    @cached_property
    def name(self) -> str:
        return " x ".join(ring.name for ring in self.rings)

    @cached_property
    def zero(self) -> Elements:
        return tuple(ring.zero for ring in self.rings)

    @cached_property
    def one(self) -> Elements:
        return tuple(ring.one for ring in self.rings)

    def add(self, left: Elements, right: Elements) -> Elements:
        return tuple([r.add(a, b) for r, a, b in zip(self.rings, left, right, strict=True)])

    def multiply(self, left: Elements, right: Elements) -> Elements:
        return tuple([r.multiply(a, b) for r, a, b in zip(self.rings, left, right, strict=True)])

    def negate(self, element: Elements) -> Elements:
        return tuple([r.negate(a) for r, a in zip(self.rings, element, strict=True)])

    def is_zero(self, element: Elements) -> bool:
        return all(r.is_zero(a) for r, a in zip(self.rings, element, strict=True))

    def equal(self, left: Elements, right: Elements) -> bool:
        return all(r.equal(a, b) for r, a, b in zip(self.rings, left, right, strict=True))

    def counted(self, counter: list[int]) -> "ProductRing":
        return ProductRing(*(ring.counted(counter) for ring in self.rings))

    def from_integer(self, n: int) -> Elements:
        return tuple([ring.from_integer(n) for ring in self.rings])
