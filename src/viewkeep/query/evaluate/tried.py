"""Operations that are NULL where others fail: TRY_CAST, try_divide and their kin."""

from collections.abc import Callable
from functools import cache
from typing import Any

from viewkeep.query.evaluate.casts import cast_to
from viewkeep.query.evaluate.functions import STRICT
from viewkeep.query.types.data_types import parse_type
from viewkeep.query.types.internal_functions import TRIED, TRY_CAST


def without_failure(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives None where another one finds no value.

    >>> without_failure(int)("x"), without_failure(int)("7")
    (None, 7)
    """

    def value(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (ValueError, ArithmeticError):
            return None

    return value


@cache
def _cast_by_name(name: str) -> Callable[[Any], Any]:
    return without_failure(cast_to(parse_type(name)))


TRIED_FUNCTIONS: dict[str, Callable[..., Any]] = {
    TRY_CAST: lambda value, name: _cast_by_name(name)(value),
    **{name: without_failure(STRICT[operator]) for name, operator in TRIED.items()},
}
"""What they compute of values that are not NULL."""

OVERFLOWING = frozenset({"try_add", "try_subtract", "try_multiply"})
"""Those that are NULL for numbers outside of a type, and so nothing without types."""
