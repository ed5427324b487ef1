"""Windows on rows in memory, with exactly the values that Spark SQL gives.

Rows of a partition are put in order once. A function is then computed for each row from its place,
or from the rows of its frame, which are a slice of the ordered ones.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from viewkeep.query.algebra import Window, aggregate_of
from viewkeep.query.evaluate.exact import InexactError, compile_exact
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.order import sort_value
from viewkeep.query.evaluate.rows import COMPILED, Rows, aggregate_function, key_of
from viewkeep.query.types.inference import find_field
from viewkeep.query.windows import RANGE, RANKING, ROWS, Frame, Order, WindowColumn

MOST_STEPS = 200_000
"""The most rows that the frames of one column may have together."""

Values = list[Any]
Compute = Callable[["Partition"], Values]


class Partition:
    """The rows of a partition in order; `starts` and `ends` bound the peers of each."""

    def __init__(self, node: Window, rows: Rows) -> None:
        self.rows, self.order_by = rows, node.order_by
        names = [field.name for field in node.child.schema]
        self.places = [names.index(each.column) for each in node.order_by]
        key = key_of([each.column for each in node.order_by], node.child.schema)
        keys = list(map(key, rows))
        self.starts, self.ends = list(range(len(rows))), list(range(len(rows)))
        for i in range(1, len(rows)):
            if keys[i] == keys[i - 1]:
                self.starts[i] = self.starts[i - 1]
        for i in reversed(range(len(rows))):
            follows = i + 1 < len(rows) and self.starts[i + 1] == self.starts[i]
            self.ends[i] = self.ends[i + 1] if follows else i + 1

    def slices(self, frame: Frame) -> list[tuple[int, int]]:
        """The frame of each row: where it starts, and where it ends."""
        if frame.unit == RANGE and frame.has_offset:
            return self._range_slices(frame)
        slices, size = [], len(self.rows)
        for i in range(size):
            rows = frame.unit == ROWS
            start = 0 if frame.start is None else i + frame.start if rows else self.starts[i]
            end = size if frame.end is None else i + frame.end + 1 if rows else self.ends[i]
            slices.append((min(max(start, 0), size), min(max(end, 0), size)))
        return slices

    def _range_slices(self, frame: Frame) -> list[tuple[int, int]]:
        """Frames by the values of the one order column; NULLs are a range of their own."""
        [order], [place] = self.order_by, self.places
        sign = -1 if order.descending else 1
        values = [row[place] for row in self.rows]
        not_null = [i for i, value in enumerate(values) if value is not None]
        first = not_null[0] if not_null else 0
        numbers = [sign * _offset_number(values[i]) for i in not_null]
        slices, size = [], len(values)
        for i, value in enumerate(values):
            start, end = self.starts[i], self.ends[i]
            if value is not None:
                number = sign * _offset_number(value)
                if frame.start is not None:
                    start = first + bisect_left(numbers, number + frame.start)
                if frame.end is not None:
                    end = first + bisect_right(numbers, number + frame.end)
            start = 0 if frame.start is None else start
            end = size if frame.end is None else end
            slices.append((start, end))
        return slices


def window(node: Window, rows: Iterable[Row]) -> Rows:
    """Every row with the columns of a window."""
    key = key_of(node.partition_by, node.child.schema)
    partitions: dict[Row, Rows] = {}
    for row in rows:
        partitions.setdefault(key(row), []).append(row)
    computed = _window_columns(node)
    result: Rows = []
    for members in partitions.values():
        result += _window_rows(node, computed, members)
    return result


def _window_rows(node: Window, columns: Sequence[Compute], rows: Rows) -> Rows:
    """The rows of one partition; places count in the order that ties decide."""
    partition = Partition(node, _rows_in_order(node, rows)[: node.limit])
    values = [compute(partition) for compute in columns]
    return [
        row + added for row, added in zip(partition.rows, zip(*values, strict=True), strict=True)
    ]


def _rows_in_order(node: Window, rows: Rows) -> Rows:
    """Sorted by the last column first: sorting keeps the order of equal rows."""
    names = [field.name for field in node.child.schema]
    ordered = list(rows)
    for order in reversed((*node.order_by, *map(Order, node.ties))):
        place = names.index(order.column)
        ordered.sort(key=_row_sort_key(place, order), reverse=order.descending)
    return ordered


def _row_sort_key(place: int, order: Order) -> Callable[[Row], Any]:
    null = (-1 if order.nulls_first != order.descending else 1,)

    def key(row: Row) -> Any:
        value = row[place]
        return null if value is None else (0, *sort_value(value))

    return key


def _offset_number(value: Any) -> int:
    """The value of an order column in the units of an offset."""
    match value:
        case datetime():
            return (value - datetime(1970, 1, 1, tzinfo=value.tzinfo)) // timedelta(microseconds=1)
        case date():
            return value.toordinal()
        case bool() | float():
            raise InexactError("a range over numbers that are not whole")
        case int():
            return value
    raise InexactError(f"a range over {type(value).__name__}")


# --- functions ------------------------------------------------------------------------------------


@lru_cache(maxsize=COMPILED)
def _window_columns(node: Window) -> list[Compute]:
    return [_window_column(node, each) for each in node.columns]


def _window_column(node: Window, column: WindowColumn) -> Compute:
    if column.function in RANKING:
        return _rank_column(column)
    if column.function in ("lag", "lead"):
        return _lag_column(node, column)
    assert column.frame is not None
    if column.function in _CHOICES:
        return _frame_value_column(node, column, column.frame)
    return _frame_aggregate_column(node, column, column.frame)


def _rank_column(column: WindowColumn) -> Compute:
    match column.function:
        case "row_number":
            return lambda p: list(range(1, len(p.rows) + 1))
        case "rank":
            return lambda p: [start + 1 for start in p.starts]
        case "dense_rank":
            return _dense_rank_values
        case "percent_rank":
            return lambda p: [start / max(len(p.rows) - 1, 1) for start in p.starts]
        case "cume_dist":
            return lambda p: [end / len(p.rows) for end in p.ends]
    buckets = compile_exact(column.arguments[0], ())(())
    return lambda p: _ntile_values(len(p.rows), buckets)


def _dense_rank_values(partition: Partition) -> Values:
    ranks, rank = [], 0
    for i, start in enumerate(partition.starts):
        rank += start == i
        ranks.append(rank)
    return ranks


def _ntile_values(size: int, buckets: int) -> Values:
    """Buckets of equal size; the first ones have one row more."""
    smaller, larger = divmod(size, buckets)
    sizes = [smaller + (i < larger) for i in range(min(buckets, size))]
    return [number for number, count in enumerate(sizes, 1) for _ in range(count)]


def _lag_column(node: Window, column: WindowColumn) -> Compute:
    """The value so many rows away, of which NULLs may not count; else the default."""
    schema = node.child.schema
    value, *more = [compile_exact(each, schema) for each in column.arguments]
    distance = more[0](()) if more else 1
    step = -distance if column.function == "lag" else distance
    default = more[1] if len(more) > 1 else lambda row: None

    def shifted(partition: Partition) -> Values:
        values = list(map(value, partition.rows))
        there = [i for i, v in enumerate(values) if v is not None or not column.ignore_nulls]
        result = []
        for i, row in enumerate(partition.rows):
            place = _place_at_distance(there, i, step)
            result.append(default(row) if place is None else values[place])
        return result

    return shifted


def _place_at_distance(there: list[int], place: int, step: int) -> int | None:
    """The place that is so many of some places after another one, or before it."""
    if step == 0:
        return place
    index = bisect_right(there, place) + step - 1 if step > 0 else bisect_left(there, place) + step
    return there[index] if 0 <= index < len(there) else None


_CHOICES: dict[str, Callable[[Values, int], Any]] = {
    "first_value": lambda values, number: values[0] if values else None,
    "last_value": lambda values, number: values[-1] if values else None,
    "nth_value": lambda values, number: values[number - 1] if number <= len(values) else None,
}


def _frame_value_column(node: Window, column: WindowColumn, frame: Frame) -> Compute:
    value = compile_exact(column.arguments[0], node.child.schema)
    number = compile_exact(column.arguments[1], ())(()) if len(column.arguments) > 1 else 1
    choose = _CHOICES[column.function]

    def chosen(values: Values) -> Any:
        there = [v for v in values if v is not None] if column.ignore_nulls else values
        return choose(there, number)

    return _column_over_frames(frame, lambda rows: list(map(value, rows)), chosen)


def _frame_aggregate_column(node: Window, column: WindowColumn, frame: Frame) -> Compute:
    aggregate = aggregate_of(column)
    result = find_field(column.name, node.schema).type
    compute = aggregate_function(aggregate, node.child.schema, result)
    return _column_over_frames(frame, lambda rows: rows, compute)


def _column_over_frames(
    frame: Frame, prepare: Callable[[Rows], Values], compute: Callable[[Values], Any]
) -> Compute:
    """A function of the rows of each frame; equal frames are computed once."""

    def over_slices(partition: Partition) -> Values:
        slices = partition.slices(frame)
        if sum(max(end - start, 0) for start, end in set(slices)) > MOST_STEPS:
            raise InexactError("frames of too many rows")
        prepared = prepare(partition.rows)
        results = {(start, end): compute(prepared[start:end]) for start, end in set(slices)}
        return [results[each] for each in slices]

    return over_slices
