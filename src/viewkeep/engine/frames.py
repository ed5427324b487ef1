"""Tables with named columns: Arrow, pandas, polars and whatever streams Arrow data."""

from collections.abc import Iterable, Sequence
from typing import Any

from viewkeep.errors import SchemaError, did_you_mean


def as_table(data: Any, relation: str) -> Any:
    """Frames that stream Arrow data (polars, record batches, DuckDB) as Arrow tables; other data
    as it is. A lazy frame of polars is computed."""
    if _is_lazy(data):
        data = _collected(data, relation)
    streams = hasattr(data, "__arrow_c_stream__") and not hasattr(data, "itertuples")
    # Asking the type runs no query: polars computes the columns of a LazyFrame when they are read.
    has_columns = any(hasattr(type(data), name) for name in ("columns", "column_names", "schema"))
    if not streams or not has_columns or is_arrow(data):
        return data
    kind = type(data).__name__
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
    except ImportError:
        install = "pip install 'viewkeep[compiled]'"
        raise SchemaError(f"rows of {relation}: a {kind} is read by pyarrow: {install}") from None
    try:
        return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(f"rows of {relation}: this {kind} is no table: {error}") from error


def _is_lazy(data: Any) -> bool:
    """Whether data is a frame of polars that is yet to be computed."""
    return all(hasattr(type(data), name) for name in ("collect", "collect_schema"))


def _collected(data: Any, relation: str) -> Any:
    try:
        return data.collect()
    except Exception as error:  # polars has errors of many classes
        raise SchemaError(f"rows of {relation}: polars cannot compute them: {error}") from error


def is_arrow(data: Any) -> bool:
    """Whether data is an Arrow table."""
    return hasattr(data, "to_batches") and hasattr(data, "column_names")


def is_pandas(data: Any) -> bool:
    """Whether data is a pandas frame."""
    return hasattr(data, "itertuples") and hasattr(data, "columns")


def field_names(data: Any) -> tuple[str, ...]:
    """The names of the fields of a structured NumPy array; none for anything else."""
    return getattr(getattr(data, "dtype", None), "names", None) or ()


def select_columns(
    names: list[str], relation: str, columns: Sequence[str], whole: Sequence[str] = ()
) -> list[int]:
    """The places of a relation's columns in a table: by name, or by position if no name fits.

    `whole` are all columns of the relation's table where the query binds only some. In R(a, a)
    names cannot tell the columns apart.

    >>> select_columns(["b", "a"], "R", ["a", "b"]), select_columns(["x", "y"], "R", ["a", "b"])
    ([1, 0], [0, 1])
    >>> select_columns(["b", "c"], "R", ["a", "b"])
    Traceback (most recent call last):
    viewkeep.errors.SchemaError: rows of R(a, b): the table (b, c) has b, but not a; \
name all its columns as R does, or none to have them read by position
    """
    place = f"rows of {relation}({', '.join(columns)})"
    table = f"the table ({', '.join(names)})"
    repeated = len(set(columns)) < len(columns)
    fitting = [] if repeated else [name for name in names if name in (*columns, *whole)]
    if not fitting:
        return _by_position(names, columns, whole, f"{place}: {table}")
    twice = [column for column in columns if names.count(column) > 1]
    if twice:
        raise SchemaError(f"{place}: {table} has {_commas(twice)} more than once")
    missing = [column for column in columns if column not in names]
    if missing:
        raise SchemaError(
            f"{place}: {table} has {_commas(dict.fromkeys(fitting))}, but not {_commas(missing)}; "
            f"name all its columns as {relation} does, or none to have them read by position"
            + did_you_mean(missing[0], [name for name in names if name not in columns])
        )
    return [names.index(column) for column in columns]


def _by_position(
    names: list[str], columns: Sequence[str], whole: Sequence[str], place: str
) -> list[int]:
    if len(names) in (len(columns), len(whole)):
        return list(range(len(names)))
    raise SchemaError(
        f"{place} has none of these columns, and not as many of its own: name them so, or give "
        f"{len(columns)} columns in this order" + did_you_mean(columns[0] if columns else "", names)
    )


def _commas(names: Iterable[str]) -> str:
    return ", ".join(names)
