"""The degree-m matrix ring: the sums from which a linear regression is learned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from viewkeep.errors import RingError, did_you_mean
from viewkeep.rings.lifting import Lift
from viewkeep.rings.reals import REALS
from viewkeep.rings.ring import Ring


@dataclass(frozen=True)
class Moments:
    """(c, s, Q): a count, m sums and m x m sums of products, over the variables' positions.

    Sparse, since a payload near the leaves of a view tree knows few variables: absent means zero,
    and of the symmetric Q only the cells (i, j) with i <= j are kept.
    """

    count: Any
    sums: Mapping[int, Any] = field(default_factory=dict)
    products: Mapping[tuple[int, int], Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MatrixRing(Ring[Moments]):
    """The degree-m matrix ring over named variables (triangle_ivm_epsilon, section 7; F-IVM).

    (c1, s1, Q1) * (c2, s2, Q2) = (c1 c2, c2 s1 + c1 s2, c2 Q1 + c1 Q2 + s1 s2^T + s2 s1^T).
    The numbers are from `scalars`: the reals, or an exact ring.

    >>> ring = MatrixRing(("x", "y"))
    >>> point = ring.multiply(ring.lift("x")(2.0), ring.lift("y")(3.0))
    >>> ring.count_of(point), ring.sum_of(point, "x"), ring.sum_of_products(point, "y", "x")
    (1.0, 2.0, 6.0)
    """

    variables: tuple[str, ...]
    scalars: Ring[Any] = REALS

    @property
    def name(self) -> str:
        return f"degree-{len(self.variables)} matrices over the {self.scalars.name}"

    @cached_property
    def zero(self) -> Moments:
        return Moments(self.scalars.zero)

    @cached_property
    def one(self) -> Moments:
        return Moments(self.scalars.one)

    def add(self, left: Moments, right: Moments) -> Moments:
        return Moments(
            self.scalars.add(left.count, right.count),
            self._sum_of_parts(left.sums, right.sums),
            self._sum_of_parts(left.products, right.products),
        )

    def multiply(self, left: Moments, right: Moments) -> Moments:
        return Moments(
            self.scalars.multiply(left.count, right.count),
            self._sum_of_parts(
                self._scaled_part(left.sums, right.count), self._scaled_part(right.sums, left.count)
            ),
            self._sum_of_parts(
                self._scaled_part(left.products, right.count),
                self._scaled_part(right.products, left.count),
                self._outer_products(left.sums, right.sums),
            ),
        )

    def negate(self, element: Moments) -> Moments:
        minus_one = self.scalars.negate(self.scalars.one)
        return Moments(
            self.scalars.negate(element.count),
            self._scaled_part(element.sums, minus_one),
            self._scaled_part(element.products, minus_one),
        )

    def is_zero(self, element: Moments) -> bool:
        return self.scalars.is_zero(element.count) and not element.sums and not element.products

    def equal(self, left: Moments, right: Moments) -> bool:
        return (
            self.scalars.equal(left.count, right.count)
            and self._equal_parts(left.sums, right.sums)
            and self._equal_parts(left.products, right.products)
        )

    def from_integer(self, n: int) -> Moments:
        return Moments(self.scalars.from_integer(n))

    def lift(self, variable: str) -> Lift[Moments]:
        """g_j(x) = (1, x e_j, x^2 e_jj)."""
        i = self._variable_position(variable)

        def lifted(value: Any) -> Moments:
            x = self.scalars.from_value(value)
            sums, squares = {i: x}, {(i, i): self.scalars.multiply(x, x)}
            return Moments(self.scalars.one, self._sum_of_parts(sums), self._sum_of_parts(squares))

        return lifted

    def count_of(self, element: Moments) -> Any:
        """SUM(1)."""
        return element.count

    def sum_of(self, element: Moments, variable: str) -> Any:
        """SUM(variable)."""
        return element.sums.get(self._variable_position(variable), self.scalars.zero)

    def sum_of_products(self, element: Moments, first: str, second: str) -> Any:
        """SUM(first * second)."""
        i, j = sorted((self._variable_position(first), self._variable_position(second)))
        return element.products.get((i, j), self.scalars.zero)

    def _variable_position(self, variable: str) -> int:
        if variable not in self.variables:
            hint = did_you_mean(variable, self.variables)
            raise RingError(f'no variable "{variable}" in the {self.name}{hint}')
        return self.variables.index(variable)

    def _sum_of_parts(self, *parts: Mapping[Any, Any]) -> dict[Any, Any]:
        total: dict[Any, Any] = {}
        for part in parts:
            for cell, value in part.items():
                total[cell] = self.scalars.add(total[cell], value) if cell in total else value
        # Zeros are dropped, so that a zero element is recognised by being empty.
        return {cell: value for cell, value in total.items() if not self.scalars.is_zero(value)}

    def _scaled_part(self, part: Mapping[Any, Any], factor: Any) -> dict[Any, Any]:
        multiply = self.scalars.multiply
        return {cell: multiply(value, factor) for cell, value in part.items()}

    def _outer_products(
        self, left: Mapping[int, Any], right: Mapping[int, Any]
    ) -> dict[tuple[int, int], Any]:
        """s1 s2^T + s2 s1^T on and above the diagonal."""
        add, multiply = self.scalars.add, self.scalars.multiply
        cells: dict[tuple[int, int], Any] = {}
        for i, x in left.items():
            for j, y in right.items():
                cell, value = (min(i, j), max(i, j)), multiply(x, y)
                # On the diagonal the product and its transpose fall on the same cell.
                value = add(value, value) if i == j else value
                cells[cell] = add(cells[cell], value) if cell in cells else value
        return cells

    def _equal_parts(self, left: Mapping[Any, Any], right: Mapping[Any, Any]) -> bool:
        zero, equal = self.scalars.zero, self.scalars.equal
        return all(equal(left.get(k, zero), right.get(k, zero)) for k in {*left, *right})
