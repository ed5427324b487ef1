"""Output tuples as one Arrow table."""

from collections.abc import Iterable, Sequence
from typing import Any

from viewkeep.errors import MissingLibraryError, SchemaError

try:
    import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
except ImportError:
    problem = "Arrow tables need pyarrow: pip install 'viewkeep[compiled]'"
    raise MissingLibraryError(problem) from None

Row = tuple[Any, ...]


def table_of_batches(names: Sequence[str], batches: Iterable["pa.RecordBatch"]) -> "pa.Table":
    """Record batches as one table; a column of integers in one and of floats in another is one of
    floats."""
    tables = [pa.Table.from_batches([batch]) for batch in _checked(names, batches)]
    if not tables:
        return table_of_rows(names, [])
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, TypeError) as error:
        raise _mixed(names, error) from error


def table_of_rows(names: Sequence[str], rows: Sequence[Row]) -> "pa.Table":
    """Rows as a table, with the types of their values."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    try:
        arrays = [pa.array(list(column)) for column in columns]
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise _mixed(names, error) from error
    return pa.Table.from_arrays(arrays, list(names))


def _checked(
    names: Sequence[str], batches: Iterable["pa.RecordBatch"]
) -> Iterable["pa.RecordBatch"]:
    try:
        yield from batches
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise _mixed(names, error) from error


def _mixed(names: Sequence[str], error: Exception) -> SchemaError:
    columns = ", ".join(names)
    return SchemaError(f"({columns}): no Arrow type holds all values of a column: {error}")
