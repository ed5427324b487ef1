"""The row groups of a Parquet file that may hold some keys, by their bounds."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

ROWS_AT_ONCE, BYTES_AT_ONCE = 1 << 20, 1 << 26
"""About so much is read at a time, at least one row group."""

Values = dict[str, tuple[list[Any], bool]]
"""By column its sorted values, and whether NULL is one of them."""


def groups_near(footer: Any, keys: Sequence[pa.Table]) -> Iterator[list[int]]:
    """The row groups that may have a key of one of the tables, some at a time."""
    if not footer.num_row_groups:
        return
    first = footer.row_group(0)
    places = {first.column(i).path_in_schema: i for i in range(first.num_columns)}
    key_values = [_values(some) for some in keys]
    chosen: list[int] = []
    rows = size = 0
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if any(_may_have(group, places, values) for values in key_values):
            chosen.append(number)
            rows, size = rows + group.num_rows, size + group.total_byte_size
        if rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield chosen
            chosen, rows, size = [], 0, 0
    if chosen:
        yield chosen


def _values(keys: pa.Table) -> Values:
    values = {}
    for name in keys.column_names:
        column = keys[name]
        values[name] = sorted(set(column.drop_null().to_pylist())), bool(column.null_count)
    return values


def _may_have(group: Any, places: dict[str, int], values: Values) -> bool:
    return all(_may_have_one(group, places.get(name), *each) for name, each in values.items())


def _may_have_one(group: Any, place: int | None, values: list[Any], null: bool) -> bool:
    bounds = None if place is None else group.column(place).statistics
    if bounds is None or not bounds.has_min_max:
        return True  # also where all are NULL
    if null and (bounds.null_count is None or bounds.null_count):
        return True
    low, high = bounds.min, bounds.max
    if values and type(low) is not type(values[0]):
        return True  # stored as another type
    at = bisect_left(values, low)
    return at < len(values) and bool(values[at] <= high)
