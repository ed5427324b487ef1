"""Keys of rows looked up in vectors. NULL is a value of a key, and so is NaN; 0.0 equals -0.0.

A column of keys is indexed by its values: each leads to the first place where it stands. Further
columns are indexed pair by pair: two places make a number, which is the value of the next index.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.query.evaluate.order import normal
from viewkeep.tables.arrow_rows import column_values

Places = npt.NDArray[np.int64]
"""Positions of rows; -1 where there is none."""

DENSE_SHARE = 16
"""Whole numbers are addressed directly if they span at most so many times the number of keys."""
DENSE_LEAST = 1 << 16
FILTER_SPAN = 1 << 25
"""Whole numbers that span at most so many, and not too many times the values that are looked up,
tell by a bit each which of these may be there: most are not."""
FILTER_SHARE = 256
FEW_ROWS = 400
"""So few keys and rows are met one by one in less time than vectors take to be set up."""


@dataclass(frozen=True)
class KeyIndex:
    """Where each key stands first in a table of keys.

    >>> index = KeyIndex(pa.table({"a": [1, None, 1], "b": ["x", "y", "x"]}))
    >>> index.places(pa.table({"b": ["y", "y", "x"], "a": [None, 1, 1]})).tolist()
    [1, -1, 0]
    """

    keys: pa.Table

    def places(self, rows: pa.Table) -> Places:
        """For each row, the place of the first key that it has; -1 if it has none."""
        names = self.keys.column_names
        if not self.keys.num_rows or not names:
            return np.full(rows.num_rows, 0 if self.keys.num_rows else -1, np.int64)
        kinds = pa.schema([pa.field(name, rows[name].type) for name in names])
        if kinds.types != self.keys.schema.types:
            return KeyIndex(self.keys.cast(kinds)).places(rows)
        if self._has_few_keys(rows.num_rows):
            place = self._first_places.get
            return np.fromiter(
                (place(key, -1) for key in _key_tuples(rows.select(names))), np.int64
            )
        places = self._column_indexes[0].places(rows[names[0]])
        for name, column, pairs in zip(
            names[1:], self._column_indexes[1:], self._pair_indexes[0], strict=True
        ):
            places = pairs.places(self._pair_column(places, column.places(rows[name])))
        return places

    @property
    def own_places(self) -> Places:
        """For each key, the place of the first equal one."""
        return self.places(self.keys) if self._has_few_keys(0) else self._pair_indexes[1]

    @property
    def count(self) -> int:
        """How many different keys there are."""
        return int((self.own_places == np.arange(self.keys.num_rows)).sum())

    @cached_property
    def repeated(self) -> int | None:
        """The place of the first key that equals an earlier one, if there is one."""
        again = np.flatnonzero(self.own_places != np.arange(self.keys.num_rows))
        return int(again[0]) if len(again) else None

    def _has_few_keys(self, rows: int) -> bool:
        """Whether there are few keys and rows, of types whose values Python tells apart."""
        few = self.keys.num_rows + rows <= FEW_ROWS and self.keys.num_columns > 1
        return few and all(map(_is_plain_type, self.keys.schema.types))

    @cached_property
    def _first_places(self) -> dict[tuple[Any, ...], int]:
        keys = _key_tuples(self.keys)
        return dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))

    @cached_property
    def _column_indexes(self) -> list["_ColumnIndex"]:
        return [_ColumnIndex(column) for column in self.keys.columns]

    @cached_property
    def _pair_indexes(self) -> tuple[list["_ColumnIndex"], Places]:
        """The indexes of pairs, and where the keys themselves stand first."""
        if not self._column_indexes:
            return [], np.zeros(self.keys.num_rows, np.int64)
        indexes = []
        places = self._column_indexes[0].places(self.keys[0])
        for column in self._column_indexes[1:]:
            pairs = self._pair_column(places, column.places(column.values))
            indexes.append(_ColumnIndex(pairs))
            places = indexes[-1].places(pairs)
        return indexes, places

    def _pair_column(self, first: Places, second: Places) -> pa.ChunkedArray:
        count = self.keys.num_rows
        pairs = np.where((first < 0) | (second < 0), -1, first * count + second)
        return pa.chunked_array([pa.array(pairs)])


@dataclass(frozen=True)
class _ColumnIndex:
    """Where each value stands first in a column."""

    values: pa.ChunkedArray

    def places(self, column: pa.ChunkedArray) -> Places:
        """For each value of another column of the same type, its place; -1 if it has none."""
        if pa.types.is_nested(column.type):  # Arrow looks no such values up
            place = self._nested_places.get
            return np.fromiter((place(value, -1) for value in _nested_values(column)), np.int64)
        if self._dense_places is not None:
            return _places_by_address(self._least, self._dense_places, column)
        if 0 < self._span <= min(FILTER_SPAN, FILTER_SHARE * len(column)):
            return self._filtered_places(column)
        return self._hashed_places(column)

    def _hashed_places(self, column: pa.ChunkedArray) -> Places:
        places = pc.index_in(_normal_floats(column), value_set=self._value_set)
        return _integer_values(places.fill_null(-1))

    def _filtered_places(self, column: pa.ChunkedArray) -> Places:
        """Only values that the filter lets through are hashed."""
        places = np.full(len(column), -1, np.int64)
        values = _integer_values(column.fill_null(0) if column.null_count else column)
        # As unsigned ones, numbers below the least are large: the last bit stands for them too.
        addresses = np.minimum((values - self._least).view(np.uint64), np.uint64(self._span))
        passed = np.flatnonzero(self._filter[addresses.view(np.int64)])
        places[passed] = self._hashed_places(column.take(pa.array(passed)))
        return places

    @cached_property
    def _nested_places(self) -> dict[Any, int]:
        values = _nested_values(self.values)
        return dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))

    @cached_property
    def _value_set(self) -> pa.Array:
        return _one_array(_normal_floats(self.values))

    @cached_property
    def _numbers(self) -> Places:
        """The values as whole numbers; none where they are others, or some are NULL."""
        is_whole = _is_whole_number(self.values.type) and not self.values.null_count
        return _integer_values(self.values) if is_whole else np.zeros(0, np.int64)

    @cached_property
    def _least(self) -> int:
        return int(self._numbers.min())

    @cached_property
    def _span(self) -> int:
        """How many numbers there are from the least to the most of the values."""
        return int(self._numbers.max()) - self._least + 1 if len(self._numbers) else 0

    @cached_property
    def _dense_places(self) -> Places | None:
        """For each number from the least one on, the place; None if they are sparse."""
        if not 0 < self._span <= max(DENSE_SHARE * len(self._numbers), DENSE_LEAST):
            return None
        places = np.full(self._span, -1, np.int64)
        # Backwards: of equal values, the first one is written last.
        last = len(self._numbers) - 1
        places[self._numbers[::-1] - self._least] = np.arange(last, -1, -1)
        return places

    @cached_property
    def _filter(self) -> npt.NDArray[np.bool_]:
        """For each number from the least one on, whether it is a value; the last one is none."""
        bits = np.zeros(self._span + 1, np.bool_)
        bits[self._numbers - self._least] = True
        return bits


def _places_by_address(least: int, places: Places, column: pa.ChunkedArray) -> Places:
    values = _integer_values(column.fill_null(0) if column.null_count else column)
    inside = (values >= least) & (values < least + len(places))
    if column.null_count:
        inside &= pc.is_valid(column).to_numpy()
    if inside.all():
        return places[values - least]
    addresses = np.full(len(values), -1, np.int64)
    addresses[inside] = places[values[inside] - least]
    return addresses


def _integer_values(column: pa.ChunkedArray) -> Places:
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    integers: Places = column.to_numpy().astype(np.int64, copy=False)
    return integers


def _normal_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow takes 0.0 and -0.0 for different values, and NaNs of different bits."""
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, pa.scalar(0.0, column.type)))


def _nested_values(column: pa.ChunkedArray) -> list[Any]:
    return list(map(normal, column_values(column)))


def _key_tuples(keys: pa.Table) -> list[tuple[Any, ...]]:
    """The keys of a table as tuples."""
    return list(zip(*(column.to_pylist() for column in keys.columns), strict=True))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def _is_whole_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind))


def _is_plain_type(kind: pa.DataType) -> bool:
    return _is_whole_number(kind) or bool(pa.types.is_string(kind) or pa.types.is_boolean(kind))
