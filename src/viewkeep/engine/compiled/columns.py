"""Columns of Arrow and NumPy as codes of their format, without a Python object for each value."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewkeep.engine.compiled.formats import (
    DAYS,
    FLOATS,
    INTEGERS,
    MICROSECONDS,
    PLAIN,
    Column,
    Decimals,
    Format,
)

_FIRST, _LAST = -719_162, 2_932_896
"""The days of the first and the last date that Python knows."""

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY = 86_400_000_000
MOST_DIGITS = 18
"""Scales of decimals beyond it leave no room for digits before the point."""


@dataclass(frozen=True)
class TypedCodes:
    """Codes of a format; those of nulls stand for nothing, and `null` tells which they are."""

    format: Format
    codes: Column
    null: NDArray[np.bool_] | None = None


def array_codes(values: NDArray[Any]) -> TypedCodes | None:
    """An array of numbers; None for all others, and for numbers that do not fit."""
    if values.dtype.kind == "f":
        return _float_codes(values.astype(np.float64))
    if values.dtype.kind not in "iu" or not _within(values, -PLAIN + 1, PLAIN - 1):
        return None
    return TypedCodes(INTEGERS, np.ascontiguousarray(values, np.int64))


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts."""
    import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def arrow_codes(column: Any) -> TypedCodes | None:
    """An Arrow array; None where its values need a dictionary, or a look at each."""
    import pyarrow as pa

    kind, null = column.type, None
    if column.null_count:
        null = column.is_null().to_numpy(zero_copy_only=False)
    types = pa.types
    codes: TypedCodes | None = None
    if types.is_integer(kind) or (types.is_floating(kind) and not types.is_float16(kind)):
        codes = array_codes(_values(column, null))
    elif types.is_decimal128(kind) and 0 <= kind.scale <= MOST_DIGITS:
        codes = _decimal_codes(column, kind.scale, null)
    elif types.is_date32(kind):
        days = _values(column.cast(pa.int32()), null).astype(np.int64)
        codes = TypedCodes(DAYS, days) if _within(days, _FIRST, _LAST) else None
    elif types.is_timestamp(kind) and kind.tz is None and kind.unit in _MICROSECONDS:
        codes = _moment_codes(_values(column.cast(pa.int64()), null), _MICROSECONDS[kind.unit])
    return None if codes is None else TypedCodes(codes.format, codes.codes, null)


def _values(column: Any, null: NDArray[np.bool_] | None) -> NDArray[Any]:
    """The values of a column, zeros where they are null."""
    filled = column if null is None else column.fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _float_codes(values: NDArray[np.float64]) -> TypedCodes | None:
    if np.isnan(values).any():
        return None
    return TypedCodes(FLOATS, np.ascontiguousarray(values + 0.0).view(np.int64))


def _decimal_codes(column: Any, scale: int, null: NDArray[np.bool_] | None) -> TypedCodes | None:
    """Decimals of Arrow are integers of 128 bits: of those that fit, the lower half."""
    halves = np.frombuffer(column.buffers()[1], np.int64)
    halves = halves[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    codes, high = np.ascontiguousarray(halves[:, 0]), halves[:, 1]
    if null is not None:
        codes, high = np.where(null, 0, codes), np.where(null, 0, high)
    if not (codes >> 63 == high).all() or not _within(codes, -PLAIN + 1, PLAIN - 1):
        return None
    return TypedCodes(Decimals(scale), codes)


def _moment_codes(values: NDArray[np.int64], factor: int) -> TypedCodes | None:
    if not _within(values, _FIRST * (_DAY // factor), (_LAST + 1) * (_DAY // factor) - 1):
        return None
    return TypedCodes(MICROSECONDS, np.ascontiguousarray(values, np.int64) * factor)


def _within(values: NDArray[Any], least: int, most: int) -> bool:
    return not len(values) or (int(values.min()) >= least and int(values.max()) <= most)
