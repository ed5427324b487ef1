"""Rows that users give, in whatever form they have them, as Arrow tables with declared types."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes import RowFormat
from viewkeep.errors import SchemaError, did_you_mean
from viewkeep.query.tables import Table
from viewkeep.tables.fit import ColumnMisfitError, Values, fit_column
from viewkeep.tables.spark_rows import frame_rows, is_spark_frame

Columns = list[tuple[str, Values]]


def read_user_rows(
    name: str, what: str, rows: Any, table: Table, required: Sequence[str]
) -> pa.Table:
    """Rows of a user as Arrow: with all `required` columns, and with none that the table lacks.

    `rows` is a Spark, pandas or polars DataFrame, anything else of Arrow, or a list of mappings or
    tuples; tuples have the columns of the table in order. Every value fits its column.
    """
    place = f'table "{name}", {what}'
    columns = _columns_of_rows(place, rows, required)
    check_columns(place, [column for column, _ in columns], table, required)
    by_name = dict(columns)
    fields = [field for field in table.columns if field.name in by_name]
    arrays = []
    for field in fields:
        try:
            arrays.append(fit_column(by_name[field.name], field, field.name in table.key))
        except ColumnMisfitError as error:
            where = _row_place(name, what, table, by_name, error.row)
            raise SchemaError(
                f'{where}: column "{field.name}" ({field.type}): {error.misfit}'
            ) from None
    return pa.Table.from_arrays(arrays, [field.name for field in fields])


def _row_place(name: str, what: str, table: Table, columns: Mapping[str, Values], row: int) -> str:
    key = [columns[column][row] if column in columns else None for column in table.key]
    values = tuple(each.as_py() if isinstance(each, pa.Scalar) else each for each in key)
    return RowFormat(name, table).place(values, what)


def _columns_of_rows(place: str, rows: Any, required: Sequence[str]) -> Columns:
    if rows is None:
        return [(each, []) for each in required]
    if isinstance(rows, pa.Table) or is_spark_frame(rows):
        return _columns_of_arrow(rows if isinstance(rows, pa.Table) else frame_rows(rows))
    if hasattr(rows, "iterrows"):  # a DataFrame of pandas
        return [(str(name), _pandas_column(values)) for name, values in rows.items()]
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        try:
            return _columns_of_arrow(pa.table(rows))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SchemaError(f"{place}: Arrow cannot read the rows: {error}") from error
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping):
        return _row_columns(place, list(rows), required)
    raise SchemaError(
        f"{place}: {type(rows).__name__} is no rows; "
        "give a DataFrame, an Arrow table, or a list of dicts or tuples"
    )


def _columns_of_arrow(table: pa.Table) -> Columns:
    return list(zip(table.column_names, table.columns, strict=True))


def _pandas_column(values: Any) -> Values:
    """A column of pandas, where what is missing is NULL: also NaN, which means that there."""
    if values.dtype != object:
        try:
            array = pa.array(values, from_pandas=True)
            return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        except (pa.ArrowException, TypeError, ValueError):
            pass  # a type that only pandas has: its values are looked at one by one
    pairs = zip(values, values.isna(), strict=True)
    return [None if missing else value for value, missing in pairs]


def _row_columns(place: str, rows: list[Any], required: Sequence[str]) -> Columns:
    if not rows:
        return _columns_of_rows(place, None, required)
    if all(isinstance(row, Mapping) for row in rows):
        names = list(rows[0])
        if any(row.keys() != rows[0].keys() for row in rows):
            raise SchemaError(f"{place}: all rows name the same columns; these do not")
        return [(name, [row[name] for row in rows]) for name in names]
    names = list(required)
    if any(not isinstance(row, tuple | list) or len(row) != len(names) for row in rows):
        raise SchemaError(f"{place}: a row is a tuple of {len(names)}: ({', '.join(names)})")
    columns = map(list, zip(*rows, strict=True))
    return list(zip(names, columns, strict=True))


def check_columns(place: str, names: Sequence[str], table: Table, required: Sequence[str]) -> None:
    """Refuse columns that the table does not have or that stand twice, and missing ones."""
    for number, name in enumerate(names):
        if name not in table.names:
            hint = did_you_mean(str(name), table.names)
            raise SchemaError(f'{place}: no column "{name}" ({", ".join(table.names)}){hint}')
        if name in names[:number]:
            raise SchemaError(f'{place}: the column "{name}" stands twice; leave one out')
    missing = [name for name in required if name not in names]
    if missing:
        raise SchemaError(f"{place}: no column {', '.join(missing)}; give it")
