"""The row groups of a Parquet file that may hold some keys, by their bounds."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.file_marks import FileMark, file_mark
from viewkeep.tables.row_differences import Mask

ROWS_AT_ONCE, BYTES_AT_ONCE = 1 << 20, 1 << 26
"""About so much is read at a time, at least one row group."""
MOST_FOOTERS = 256
"""The most files whose footers are remembered."""

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class _ColumnBounds:
    """The least and greatest values of the row groups that tell them, and which may have NULLs."""

    is_known: Mask
    least: Values
    greatest: Values
    has_nulls: Mask

    def may_have(self, values: Values, null: bool) -> Mask:
        """The row groups that may have one of some sorted values, or NULL."""
        mask = ~self.is_known  # also where all are NULL
        if null:
            mask |= self.has_nulls
        if not len(values) or not len(self.least):
            return mask
        if values.dtype != self.least.dtype or type(values[0]) is not type(self.least[0]):
            return np.ones(len(mask), np.bool_)  # stored as another type
        at = np.searchsorted(values, self.least)
        inside = at < len(values)
        inside[inside] = values[at[inside]] <= self.greatest[inside]
        mask[self.is_known] |= inside
        return mask


class GroupBounds:
    """The footer of a file, and the bounds of its row groups in vectors."""

    def __init__(self, footer: Any) -> None:
        self.footer = footer
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        sizes = [group.num_rows for group in groups]
        self.starts = np.cumsum([0, *sizes])
        """The place of the first row of each group, and behind the last one."""
        self._bytes = np.array([group.total_byte_size for group in groups], np.int64)
        columns = groups[0].num_columns if groups else 0
        self._places = {groups[0].column(i).path_in_schema: i for i in range(columns)}
        self._columns: dict[str, _ColumnBounds] = {}

    def near(self, keys: Sequence[pa.Table]) -> Mask:
        """The row groups that may have a key of one of the tables."""
        mask = np.zeros(len(self._bytes), np.bool_)
        for some in keys:
            own = np.full(len(self._bytes), bool(some.num_rows), np.bool_)
            for name in some.column_names:
                if name in self._places and not pa.types.is_floating(some[name].type):
                    own &= self._bounds_by_group(name).may_have(*_sorted_values(some[name]))
            mask |= own
        return mask

    def rows_near(self, keys: Sequence[pa.Table]) -> int:
        """How many rows these row groups have."""
        return int(np.diff(self.starts)[self.near(keys)].sum())

    def portions(self, keys: Sequence[pa.Table]) -> Iterator[list[int]]:
        """The row groups that may have a key of one of the tables, some at a time."""
        batch: list[int] = []
        rows = size = 0
        for number in np.flatnonzero(self.near(keys)):
            batch.append(int(number))
            rows += int(self.starts[number + 1] - self.starts[number])
            size += int(self._bytes[number])
            if rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
                yield batch
                batch, rows, size = [], 0, 0
        if batch:
            yield batch

    def places(self, groups: Sequence[int]) -> npt.NDArray[np.int64]:
        """The places of the rows of some groups in the file."""
        spans = [np.arange(self.starts[n], self.starts[n + 1]) for n in groups]
        return np.concatenate([np.zeros(0, np.int64), *spans])

    def _bounds_by_group(self, name: str) -> _ColumnBounds:
        if name not in self._columns:
            self._columns[name] = _column_bounds(self.footer, self._places[name])
        return self._columns[name]


def groups_near(footer: Any, keys: Sequence[pa.Table]) -> Iterator[list[int]]:
    """The row groups that may have a key of one of the tables, some at a time."""
    return GroupBounds(footer).portions(keys)


def _column_bounds(footer: Any, place: int) -> _ColumnBounds:
    groups = range(footer.num_row_groups)
    stats = [footer.row_group(number).column(place).statistics for number in groups]
    with_bounds = [each for each in stats if each is not None and each.has_min_max]
    return _ColumnBounds(
        np.array([each is not None and each.has_min_max for each in stats], np.bool_),
        _value_vector([each.min for each in with_bounds]),
        _value_vector([each.max for each in with_bounds]),
        np.array([each is None or each.null_count != 0 for each in stats], np.bool_),
    )


def _sorted_values(column: pa.ChunkedArray) -> tuple[Values, bool]:
    """The values of a column in order, and whether NULL is one of them."""
    values = column.drop_null()
    if pa.types.is_integer(column.type):
        return np.unique(values.to_numpy()).astype(np.int64), bool(column.null_count)
    return _value_vector(sorted(set(values.to_pylist()))), bool(column.null_count)


def _value_vector(values: list[Any]) -> Values:
    if values and all(isinstance(each, int) for each in values):
        return np.array(values, np.int64)
    vector = np.empty(len(values), object)
    vector[:] = values
    return vector


class Footers:
    """Footers of local files that this process has read: files of Delta tables never change."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._bounds: OrderedDict[str, tuple[FileMark | None, GroupBounds]] = OrderedDict()

    def get(self, path: str, read: Callable[[], Any]) -> GroupBounds:
        """The bounds of a file, whose footer is read if it is not known."""
        mark = file_mark(path)
        entry = self._bounds.get(path)
        if entry is not None and mark is not None and entry[0] == mark:
            return entry[1]
        bounds = GroupBounds(read())
        with self._lock:
            self._bounds[path] = mark, bounds
            while len(self._bounds) > self._most:
                self._bounds.popitem(last=False)
        return bounds


FOOTERS = Footers(MOST_FOOTERS)
