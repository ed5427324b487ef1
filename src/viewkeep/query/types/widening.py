"""Types that hold all values of another type exactly: what a column may become without loss."""

from viewkeep.query.types.data_types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    SMALLINT,
    TIMESTAMP_NTZ,
    TINYINT,
    Type,
)

_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
"""The digits before the point that a decimal needs for all values of an integer type (those that
Delta's type widening asks for)."""


def is_widening(old: Type, new: Type) -> bool:
    """Whether every value of the old type is one of the new type, as Delta widens types.

    >>> from viewkeep.query.types.data_types import DECIMAL
    >>> is_widening(INT, BIGINT), is_widening(INT, DECIMAL(12, 2)), is_widening(BIGINT, DOUBLE)
    (True, True, False)
    """
    if old in INTEGRAL and new in INTEGRAL:
        return INTEGRAL.index(old) < INTEGRAL.index(new)
    if new.name == "decimal":
        return _widens_to_decimal(old, new)
    return (old, new) in {
        *((each, DOUBLE) for each in (FLOAT, TINYINT, SMALLINT, INT)),
        (DATE, TIMESTAMP_NTZ),
    }


def _widens_to_decimal(old: Type, new: Type) -> bool:
    new_digits = (new.precision or 0) - (new.scale or 0)
    if old in _DIGITS:
        return new_digits >= _DIGITS[old]
    if old.name != "decimal" or old == new:
        return False
    old_digits = (old.precision or 0) - (old.scale or 0)
    return new_digits >= old_digits and (new.scale or 0) >= (old.scale or 0)
