"""Schemas of relations: tuples of distinct column names, and where columns stand in them."""

from collections.abc import Iterable
from typing import Any

from viewkeep.errors import SchemaError, did_you_mean


def check_schema(columns: Iterable[str]) -> tuple[str, ...]:
    """The columns as a tuple; an error if they are text, or one is named twice."""
    if isinstance(columns, str):
        raise SchemaError(f"a schema is a tuple of column names, not the text {columns!r}")
    schema = tuple(columns)
    if len(set(schema)) != len(schema):
        raise SchemaError(f"columns named twice: ({', '.join(schema)})")
    return schema


def positions_in_schema(schema: tuple[str, ...], columns: tuple[str, ...]) -> tuple[int, ...]:
    """Where distinct columns stand in a schema.

    >>> positions_in_schema(("a", "b", "c"), ("c", "a"))
    (2, 0)
    """
    for column in columns:
        if column not in schema:
            hint = did_you_mean(column, schema)
            raise SchemaError(f'no column "{column}" in ({", ".join(schema)}){hint}')
    if len(set(columns)) != len(columns):
        raise SchemaError(f"columns named twice: ({', '.join(columns)})")
    return tuple(map(schema.index, columns))


def same_positions(schema: tuple[str, ...], columns: tuple[str, ...]) -> tuple[int, ...]:
    """Where columns stand in a schema that has the same ones, in any order."""
    if sorted(columns) != sorted(schema):
        raise SchemaError(
            f"cannot add a relation over ({', '.join(schema)}) to one over ({', '.join(columns)})"
        )
    return positions_in_schema(schema, columns)


def misfit(row: Any, schema: tuple[str, ...]) -> SchemaError:
    """The error of a row that is no tuple of the schema's length."""
    return SchemaError(
        f"row {row!r} does not fit ({', '.join(schema)}): expected a tuple of {len(schema)} values"
    )
