"""Window functions: what a column of a window computes, over which rows, and of which type.

A frame is told by the offsets of its ends: 0 is the current row (with its peers in a range), less
than 0 is before it, and None is the end of the partition. In a range an offset is in units of the
order column: numbers, days of a date, microseconds of a timestamp.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeep.errors import QueryError, did_you_mean
from viewkeep.query.expressions import Expression
from viewkeep.query.types.aggregates import AGGREGATES, aggregate_result
from viewkeep.query.types.data_types import DOUBLE, INT, INTEGRAL, Type
from viewkeep.query.types.rules import common_type
from viewkeep.query.types.signatures import TypedValue

ROWS, RANGE = "rows", "range"

RANKING = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
"""Functions of the place of a row."""

OFFSET = ("lag", "lead")
"""Functions of a row so many places away."""

VALUES = ("first_value", "last_value", "nth_value")
"""Functions of one row of the frame."""

WINDOW_FUNCTIONS = (*RANKING, *OFFSET, *VALUES)
"""The functions that only windows have; every aggregate is one of a window as well."""

_BY_PLACE = ("row_number", "ntile", *OFFSET)
_DOUBLES = ("percent_rank", "cume_dist")


@dataclass(frozen=True, slots=True)
class Order:
    """A column by which rows are ordered; by default as in Spark."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        nulls = "first" if self.nulls_first else "last"
        usual = self.nulls_first != self.descending
        direction = " desc" if self.descending else ""
        return f"{self.column}{direction}{'' if usual else f' nulls {nulls}'}"


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows around each row that a function looks at."""

    unit: str
    start: int | None = None
    end: int | None = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole partition."""
        return self.start is None and self.end is None

    @property
    def has_offset(self) -> bool:
        """Whether an end is some way from the current row."""
        return bool(self.start) or bool(self.end)

    def __str__(self) -> str:
        start = "unbounded preceding" if self.start is None else _frame_bound(self.start)
        end = "unbounded following" if self.end is None else _frame_bound(self.end)
        return f"{self.unit} between {start} and {end}"


WHOLE = Frame(RANGE, None, None)
"""The frame of windows without an order."""


@dataclass(frozen=True, slots=True)
class WindowColumn:
    """A column that a window computes; ranking and offset functions have no frame."""

    name: str
    function: str
    arguments: tuple[Expression, ...] = ()
    frame: Frame | None = None
    ignore_nulls: bool = False

    @property
    def is_by_place(self) -> bool:
        """Whether it tells rows apart that are equal in the order columns."""
        rows = self.frame is not None and self.frame.unit == ROWS
        return rows or self.function in _BY_PLACE


def window_result(function: str, arguments: Sequence[TypedValue]) -> TypedValue:
    """The type of a window function.

    >>> print(window_result("rank", []).type)
    int
    """
    if function in AGGREGATES:
        return aggregate_result(function, arguments, grouped=False)
    if function not in WINDOW_FUNCTIONS:
        names = (*WINDOW_FUNCTIONS, *AGGREGATES)
        raise QueryError(f"unknown window function {function}(){did_you_mean(function, names)}")
    _check_window_arguments(function, arguments)
    if function in RANKING:
        return TypedValue(DOUBLE if function in _DOUBLES else INT, nullable=False)
    return TypedValue(_window_value_type(function, arguments), nullable=True)


_COUNTS = {"ntile": (1, 1), "lag": (1, 3), "lead": (1, 3), "nth_value": (2, 2)}
_PLACES = {"ntile": 0, "lag": 1, "lead": 1, "nth_value": 1}


def _check_window_arguments(function: str, arguments: Sequence[TypedValue]) -> None:
    least, most = _COUNTS.get(function, (1, 1) if function in VALUES else (0, 0))
    if not least <= len(arguments) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        ending = "" if count.endswith("1") else "s"
        raise QueryError(f"{function}() takes {count} argument{ending}, but has {len(arguments)}")
    place = _PLACES.get(function)
    if place is not None and place < len(arguments):
        argument, smallest = arguments[place], -(2**31) if function in OFFSET else 1
        is_integer = argument.type in INTEGRAL and isinstance(argument.value, int)
        if not is_integer or not isinstance(argument.value, int) or argument.value < smallest:
            kind = "an integer" if function in OFFSET else "a positive integer"
            raise QueryError(f"argument {place + 1} of {function}() must be {kind} literal")


def _window_value_type(function: str, arguments: Sequence[TypedValue]) -> Type:
    value = arguments[0].type
    if len(arguments) < 3:
        return value
    common = common_type(value, arguments[2].type)
    if common is None:
        raise QueryError(f"{function}(): {value} and its default {arguments[2].type} do not fit")
    return common


def _frame_bound(offset: int) -> str:
    if offset == 0:
        return "current row"
    return f"{abs(offset)} {'preceding' if offset < 0 else 'following'}"
