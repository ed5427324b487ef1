"""How Spark SQL (ANSI mode) combines types: widening, and the result types of arithmetic.

Decimals follow Spark's rules: every operation asks for the digits it may need, and what does not
fit in 38 digits loses scale, but never below 6.
"""

from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    MAX_PRECISION,
    MOMENTS,
    SMALLINT,
    STRING,
    TINYINT,
    VOID,
    Type,
)

_KEPT_SCALE = 6
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}


def is_decimal(type_: Type) -> bool:
    """Whether the type is an exact decimal."""
    return type_.name == "decimal"


def is_numeric(type_: Type) -> bool:
    """Whether arithmetic works on the type."""
    return type_ in INTEGRAL or type_ in (FLOAT, DOUBLE) or is_decimal(type_)


def is_castable(source: Type, target: Type) -> bool:
    """Whether CAST takes values of one type to the other."""
    if source in (target, VOID):
        return True
    if source.is_nested or target.is_nested:
        return False
    if STRING in (source, target):
        return True
    if source in MOMENTS and target in MOMENTS:
        return True
    numbers = is_numeric(source) or source == BOOLEAN, is_numeric(target) or target == BOOLEAN
    return all(numbers) and BINARY not in (source, target)


def common_type(first: Type, second: Type) -> Type | None:
    """The type that both fit without a cast Spark refuses to add, if there is one.

    >>> print(common_type(INT, BIGINT), common_type(DECIMAL(5, 2), INT), common_type(INT, FLOAT))
    bigint decimal(12, 2) double
    """
    if first == second or second == VOID:
        return first
    if first == VOID:
        return second
    if first in MOMENTS and second in MOMENTS:
        return max(first, second, key=MOMENTS.index)
    if is_numeric(first) and is_numeric(second):
        return _common_number_type(first, second)
    return None


def arithmetic_type(operator: str, first: Type, second: Type) -> Type | None:
    """The result type of `+ - * / %` on two numbers.

    >>> print(arithmetic_type("/", INT, INT), arithmetic_type("*", DECIMAL(5, 2), DECIMAL(3, 1)))
    double decimal(9, 3)
    """
    common = common_type(first, second)
    if common is None or not (is_numeric(common) or common == VOID):
        return None
    if operator == "/" and first == VOID:
        return DOUBLE
    if is_decimal(common):
        return _decimal_arithmetic_type(operator, decimal_type(first), decimal_type(second))
    return DOUBLE if operator == "/" or common == VOID else common


def decimal_type(type_: Type) -> Type:
    """The decimal that holds every value of an exact number type."""
    return DECIMAL(_DIGITS[type_], 0) if type_ in _DIGITS else type_


def bounded_decimal(precision: int, scale: int) -> Type:
    """The decimal with at most 38 digits, cut from the left."""
    return DECIMAL(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def digits(type_: Type) -> tuple[int, int]:
    """Precision and scale of a decimal."""
    return type_.precision or 0, type_.scale or 0


def _common_number_type(first: Type, second: Type) -> Type:
    if first in INTEGRAL and second in INTEGRAL:
        return max(first, second, key=INTEGRAL.index)
    if first in (FLOAT, DOUBLE) or second in (FLOAT, DOUBLE):
        return DOUBLE  # also for float and int: a float cannot hold every int
    (p1, s1), (p2, s2) = digits(decimal_type(first)), digits(decimal_type(second))
    digits_before_point, scale = max(p1 - s1, p2 - s2), max(s1, s2)
    return bounded_decimal(
        digits_before_point + scale, min(scale, MAX_PRECISION - digits_before_point)
    )  # digits before the point stay


def _decimal_arithmetic_type(operator: str, first: Type, second: Type) -> Type:
    if VOID in (first, second):  # NULL takes the type of the other side
        first = second = second if first == VOID else first
    (p1, s1), (p2, s2) = digits(first), digits(second)
    scale = max(s1, s2)
    match operator:
        case "*":
            return _decimal_in_precision(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(_KEPT_SCALE, s1 + p2 + 1)
            return _decimal_in_precision(p1 - s1 + s2 + scale, scale)
        case "%":
            return _decimal_in_precision(min(p1 - s1, p2 - s2) + scale, scale)
    return _decimal_in_precision(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _decimal_in_precision(precision: int, scale: int) -> Type:
    if precision <= MAX_PRECISION:
        return DECIMAL(precision, scale)
    digits_before_point = precision - scale
    return DECIMAL(MAX_PRECISION, max(MAX_PRECISION - digits_before_point, min(scale, _KEPT_SCALE)))
