"""Bounds of the columns of a Parquet file, as a table's log has them.

They are kept only for types whose bounds all engines read in the same way: integers, dates and
short strings.
"""

import sys
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.arrow_rows import declared_type, has_bounds
from viewkeep.tables.failures import StorageError

LONGEST_BOUND = 64
"""Longer strings have shorter bounds."""


def column_bounds(
    footer: Any, count_nulls: Callable[[str], int]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, int]]:
    """The least and greatest values and the NULLs of columns, over all row groups.

    Every column that can have bounds has some: readers take what is missing for NULL.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    places = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    groups = [footer.row_group(n) for n in range(footer.num_row_groups if footer.num_rows else 0)]
    for field in footer.schema.to_arrow_schema():
        if not has_bounds(declared_type(field.type)):
            continue
        name, place = field.name, places[field.name]
        stats = [each.column(place).statistics for each in groups]
        null_counts = [each.null_count for each in stats if each is not None]
        is_complete = len(null_counts) == len(stats) and None not in null_counts
        nulls[name] = sum(null_counts) if is_complete else count_nulls(name)
        if nulls[name] < footer.num_rows:
            least[name], greatest[name] = _bounds_of_column(field, stats)
    return least, greatest, nulls


def _bounds_of_column(field: pa.Field, stats: Sequence[Any]) -> tuple[Any, Any]:
    """The bounds of a column; dates that have no form in the log are refused."""
    try:
        return _bounds_of_values(field.type, stats)
    except OverflowError as error:
        raise StorageError(
            f'column "{field.name}" has a date before the year 1 or after 9999, which tables do '
            "not hold; leave such rows out, or give another date"
        ) from error


def _bounds_of_values(kind: pa.DataType, stats: Sequence[Any]) -> tuple[Any, Any]:
    """Bounds of values that are not all NULL; of long strings, none are written."""
    if any(each is None for each in stats):
        return _WIDEST[str(kind)]
    bounded = [each for each in stats if each.has_min_max]
    if sum(each.num_values for each in bounded) < sum(each.num_values for each in stats):
        return _WIDEST[str(kind)]
    first, last = min(each.min for each in bounded), max(each.max for each in bounded)
    return (
        (shorten_bound(first), shorten_bound(last, up=True))
        if isinstance(first, str)
        else (first, last)
    )


_WIDEST: dict[str, tuple[Any, Any]] = {
    **{f"int{n}": (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)},
    "date32[day]": (date.min, date.max),
    "string": ("", chr(sys.maxunicode) * LONGEST_BOUND),
}


def shorten_bound(text: str, up: bool = False) -> str:
    """The text or, of a long one, a short text that is not greater; with `up`, not less.

    >>> shorten_bound("b" * 99, up=True) == "b" * 63 + "c"
    True
    """
    if len(text) <= LONGEST_BOUND:
        return text
    start = text[:LONGEST_BOUND]
    if not up:
        return start
    start = start.rstrip(chr(sys.maxunicode))
    if not start:
        return text
    # The next character; between those below and above are no characters.
    return start[:-1] + ("\ue000" if start[-1] == "\ud7ff" else chr(ord(start[-1]) + 1))
