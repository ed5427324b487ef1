"""Arithmetic on decimals as Spark has it: the result, rounded half up to the scale of its type."""

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

_WIDE = Context(prec=1000, rounding=ROUND_HALF_UP)
_JAVA = Context(prec=34, rounding=ROUND_HALF_EVEN)
_QUOTIENT = Context(prec=39, rounding=ROUND_HALF_UP)
_WHOLE_QUOTIENT = Context(prec=39, rounding=ROUND_DOWN)


def decimal_arithmetic(
    operator: str, precision: int, scale: int, first: Decimal, second: Decimal
) -> Decimal:
    """An operation whose exact result may have more digits than any decimal.

    >>> decimal_arithmetic("/", 38, 6, Decimal("2.00"), Decimal(3))
    Decimal('0.666667')
    """
    if operator in ("/", "%", "div") and not second:
        raise ZeroDivisionError("division by zero")
    match operator:
        case "+":
            exact = _WIDE.add(first, second)
        case "-":
            exact = _WIDE.subtract(first, second)
        case "*":
            exact = _WIDE.multiply(first, second)
        case "/":
            exact = _QUOTIENT.divide(first, second)
        case "%":
            exact = _WIDE.subtract(first, _WIDE.multiply(_decimal_quotient(first, second), second))
        case "div":
            exact = _decimal_quotient(first, second)
        case _:
            raise ValueError(f"{operator} is no operator")
    return in_scale(exact, precision, scale)


def negative_decimal(precision: int, scale: int, value: Decimal) -> Decimal:
    """The negative of a decimal: of more than 34 digits, the last are rounded."""
    return in_scale(_JAVA.minus(value), precision, scale)


def in_scale(exact: Decimal, precision: int, scale: int) -> Decimal:
    """A number rounded half up; an error if it has too many digits."""
    result = exact.quantize(_decimal_unit(scale), context=_WIDE)
    if result and result.adjusted() >= precision - scale:
        raise ValueError(f"{exact} does not fit in decimal({precision}, {scale})")
    return result


@lru_cache(maxsize=128)
def _decimal_unit(scale: int) -> Decimal:
    return Decimal(1).scaleb(-scale)


def _decimal_quotient(first: Decimal, second: Decimal) -> Decimal:
    """Spark refuses one with more than 39 digits, but for zeros at its end."""
    exact = _WIDE.divide_int(first, second)
    if exact != _WHOLE_QUOTIENT.plus(exact):
        raise ValueError("the quotient has too many digits")
    return exact
