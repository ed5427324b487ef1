"""Floats whose sums and products never round, so that what is deleted leaves nothing behind."""

from math import inf
from typing import Union


class ExactFloat:
    """mantissa * 2^exponent, with both exact: what every finite float is.

    >>> parts = [ExactFloat.of(x) for x in (0.1, 0.2, 0.3)]
    >>> total = parts[0] + parts[1] + parts[2]
    >>> float(total), bool(total + -parts[0] + -parts[1] + -parts[2])
    (0.6, False)
    """

    __slots__ = ("exponent", "mantissa")

    def __init__(self, mantissa: int, exponent: int = 0) -> None:
        self.mantissa, self.exponent = mantissa, exponent

    @staticmethod
    def of(value: float) -> "ExactFloat":
        """The number that a finite float stands for."""
        mantissa, denominator = value.as_integer_ratio()
        return ExactFloat(mantissa, 1 - denominator.bit_length())

    def __add__(self, other: Union["ExactFloat", int]) -> "ExactFloat":
        other = _exact_operand(other)
        if other is NotImplemented:
            return NotImplemented
        low = min(self.exponent, other.exponent)
        left = self.mantissa << (self.exponent - low)
        return ExactFloat(left + (other.mantissa << (other.exponent - low)), low)

    __radd__ = __add__

    def __mul__(self, other: Union["ExactFloat", int]) -> "ExactFloat":
        other = _exact_operand(other)
        if other is NotImplemented:
            return NotImplemented
        return ExactFloat(self.mantissa * other.mantissa, self.exponent + other.exponent)

    __rmul__ = __mul__

    def __neg__(self) -> "ExactFloat":
        return ExactFloat(-self.mantissa, self.exponent)

    def __bool__(self) -> bool:
        return self.mantissa != 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactFloat | int):
            return NotImplemented
        return not self + -other

    def __hash__(self) -> int:
        return hash(float(self))

    def __float__(self) -> float:
        """The nearest float; a sum beyond the largest is infinite, as sums of floats are."""
        try:
            if self.exponent >= 0:
                return float(self.mantissa << self.exponent)
            return self.mantissa / (1 << -self.exponent)
        except OverflowError:
            return inf if self.mantissa > 0 else -inf

    def __repr__(self) -> str:
        return f"ExactFloat({self.mantissa}, {self.exponent})"


def _exact_operand(value: ExactFloat | int) -> ExactFloat:
    if isinstance(value, ExactFloat):
        return value
    return ExactFloat(value) if isinstance(value, int) else NotImplemented
