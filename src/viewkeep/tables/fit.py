"""Columns of any kind as Arrow columns of a declared type, by the definition of `changes.values`.

Whole columns are cast where Arrow's cast agrees with the definition, or fails; all others, and
those that failed, are converted value by value, which also finds the value that does not fit.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.changes import MisfitError, column_converter
from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import arrow_column, arrow_type

Values: TypeAlias = "Sequence[Any] | pa.ChunkedArray"

_MILLIS_OF_A_DAY = 24 * 60 * 60 * 1000
_DAYS = (date.min.toordinal() - date(1970, 1, 1).toordinal(),
         date.max.toordinal() - date(1970, 1, 1).toordinal())  # fmt: skip
_MICROS = tuple((each - datetime(1970, 1, 1)) // (datetime.resolution)
                for each in (datetime.min, datetime.max))  # fmt: skip


class ColumnMisfitError(Exception):
    """A value that does not fit, by its place in the column, and why."""

    def __init__(self, row: int, misfit: str) -> None:
        self.row, self.misfit = row, misfit
        super().__init__(misfit)


def fit_column(values: Values, field: Field, in_key: bool) -> pa.ChunkedArray:
    """The values in the declared type, or a `ColumnMisfitError`.

    >>> from viewkeep.query.types.data_types import INT
    >>> fit_column(pa.chunked_array([[1.0, None]]), Field("n", INT), in_key=False).to_pylist()
    [1, None]
    """
    if not isinstance(values, pa.ChunkedArray):
        return _fit_value_by_value(values, field, in_key)
    plain = _decoded_column(values)
    cast = None if field.type.parts else _cast_exactly(plain, arrow_type(field.type))
    if cast is None or _has_suspects(cast, field, in_key):
        return _fit_value_by_value(plain, field, in_key)
    return cast


def _fit_value_by_value(values: Values, field: Field, in_key: bool) -> pa.ChunkedArray:
    convert, fitted = column_converter(field, in_key), []
    for row, value in enumerate(values):
        try:
            fitted.append(
                convert(_python_value_of_arrow(value) if isinstance(value, pa.Scalar) else value)
            )
        except MisfitError as misfit:
            raise ColumnMisfitError(row, str(misfit)) from None
    return pa.chunked_array([arrow_column(field.type, fitted)])


def _python_value_of_arrow(scalar: Any) -> Any:
    if pa.types.is_date64(scalar.type) and (scalar.value or 0) % _MILLIS_OF_A_DAY:
        raise MisfitError("a date64 with a time of the day; give a date32, or round it")
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        kind = str(scalar.type)
        problem = "is no valid UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise MisfitError(f"a value of type {kind}: {problem}; convert it first") from None


def _decoded_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without the encodings in which equal values are stored once."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_run_end_encoded(column.type):
        return pa.chunked_array(
            [pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type
        )
    return column


def _cast_exactly(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray | None:
    """The column cast, or None where values have to be looked at one by one."""
    if column.type == target:
        return column
    if not _casts_alike(column.type, target):
        return None
    with suppress(pa.ArrowException):
        if pa.types.is_timestamp(column.type) and column.type.tz is None and target.tz is not None:
            column = column.cast(pa.timestamp(column.type.unit, "UTC"))
        return column.cast(target)
    return None


def _casts_alike(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow's cast gives what the definition gives, or fails."""
    kinds = pa.types
    if kinds.is_null(source):
        return True
    if kinds.is_integer(source):
        return bool(kinds.is_integer(target) or kinds.is_floating(target))
    if kinds.is_floating(source):
        return bool(kinds.is_floating(target) and source.bit_width <= target.bit_width)
    if kinds.is_decimal(source) and kinds.is_decimal(target):
        whole = target.precision - target.scale >= source.precision - source.scale
        return bool(whole and target.scale >= source.scale)
    if kinds.is_date64(source):
        return bool(kinds.is_date32(target))
    if kinds.is_timestamp(source):
        return bool(kinds.is_timestamp(target) and (source.tz is None or target.tz is not None))
    if kinds.is_binary(target):
        return bool(kinds.is_large_binary(source) or kinds.is_fixed_size_binary(source))
    return bool(kinds.is_string(target) and source in (pa.large_string(), pa.string_view()))


def _has_suspects(column: pa.ChunkedArray, field: Field, in_key: bool) -> bool:
    """Whether a column of the right type may have values that do not fit all the same."""
    kinds, kind = pa.types, column.type
    if column.null_count and not field.nullable:
        return True
    if in_key and kinds.is_floating(kind):
        return bool(pc.any(pc.is_nan(column), min_count=0).as_py())
    if kinds.is_date32(kind):
        return _exceeds_range(column.cast(pa.int32()), *_DAYS)
    if kinds.is_timestamp(kind):
        return _exceeds_range(column.cast(pa.int64()), *_MICROS)
    return bool(kinds.is_string(kind) and not _is_text_column(column))


def _exceeds_range(column: pa.ChunkedArray, least: int, most: int) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and not least <= ends["min"] <= ends["max"] <= most


def _is_text_column(column: pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
