"""The ring of exact decimal numbers: sums of money that never round."""

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from viewkeep.errors import RingError
from viewkeep.rings.ring import Ring

# The default context rounds to 28 digits. This one has room for every realistic sum and turns
# the first digit that would be lost into an error. A limit is needed: 1E+999999 + 1 is exact
# too, but would quietly take all memory.
DIGITS = 100_000
EXACT = decimal.Context(
    prec=DIGITS,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow],
)


def _exact_result(operation: Callable[..., Decimal], *operands: Decimal) -> Decimal:
    try:
        return operation(*operands)
    except decimal.DecimalException:
        operand_texts = ", ".join(f"{operand:.6g}" for operand in operands)
        raise RingError(
            f"the exact result of {operand_texts} needs more than {DIGITS} digits"
        ) from None


@dataclass(frozen=True)
class Decimals(Ring[Decimal]):
    """Finite decimal fractions with exact + and *; division is not a ring operation.

    >>> big, cent = Decimal("1E+30"), Decimal("0.01")
    >>> big + cent == big
    True
    >>> DECIMALS.add(DECIMALS.add(big, cent), DECIMALS.negate(big))
    Decimal('0.01')
    """

    name = "exact decimals"
    zero = Decimal(0)
    one = Decimal(1)

    def add(self, left: Decimal, right: Decimal) -> Decimal:
        return _exact_result(EXACT.add, left, right)

    def multiply(self, left: Decimal, right: Decimal) -> Decimal:
        return _exact_result(EXACT.multiply, left, right)

    def negate(self, element: Decimal) -> Decimal:
        return _exact_result(EXACT.minus, element)

    def is_zero(self, element: Decimal) -> bool:
        return not element

    def from_integer(self, n: int) -> Decimal:
        return Decimal(n)

    def from_value(self, value: Any) -> Decimal:
        """The value as a decimal, without rounding.

        >>> DECIMALS.from_value(0.1)
        Traceback (most recent call last):
        viewkeep.errors.RingError: 0.1 is not an exact decimal; use Decimal(str(value)) or REALS
        """
        # Decimal(0.1) is 0.1000000000000000055..., which nobody who asks for exactness means.
        if not isinstance(value, int | Decimal):
            raise RingError(f"{value!r} is not an exact decimal; use Decimal(str(value)) or REALS")
        number = Decimal(value)
        if not number.is_finite():
            raise RingError(f"{value!r} is not a finite number, so it cannot be summed and removed")
        return number


DECIMALS = Decimals()
