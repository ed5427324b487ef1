"""Keys of collected diffs as filters of scans.

Spark pushes `column IN (...)` into Parquet scans, where it rules out files and row groups; a join
with the same keys reads everything. Conditions are text: a call to Spark for every key would take
longer than the scan.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.query.expressions import back_quote, literal
from viewkeep.query.types.data_types import DATE, INTEGRAL, STRING, Type
from viewkeep.sql.expression_text import expression

MAX_KEYS = 2000
"""The most keys that are listed; of more, only the least and the greatest are told."""


@dataclass(frozen=True)
class Keys:
    """The values that a column may have; `exact` if it has all of them, and no others."""

    values: pa.ChunkedArray
    exact: bool


def is_listable(kind: pa.DataType) -> bool:
    """Whether values of a type mean the same as literals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date32(kind))


def has_literals(type_: Type) -> bool:
    """`is_listable` for a declared type."""
    return type_ in (*INTEGRAL, STRING, DATE)


def one_of(column: str, values: Iterable[Any]) -> str:
    """The condition that a column has one of some values; NULL is a value.

    >>> one_of("a", [2, None])
    '(`a` IN (2) OR `a` IS NULL)'
    """
    distinct = dict.fromkeys(values)
    literals = [expression(literal(value)) for value in distinct if value is not None]
    parts = [f"{back_quote(column)} IN ({', '.join(literals)})"] if literals else []
    parts += [f"{back_quote(column)} IS NULL"] if None in distinct else []
    return f"({' OR '.join(parts) or 'FALSE'})"


def between(column: str, values: Iterable[Any]) -> str:
    """A condition of any length's worth of keys that holds where a column has one of them.

    >>> between("a", [7, 2, None])
    '(`a` BETWEEN 2 AND 7 OR `a` IS NULL)'
    """
    distinct = set(values)
    ends = distinct - {None}
    least, most = (expression(literal(end(ends))) for end in (min, max))
    null = f" OR {back_quote(column)} IS NULL" if None in distinct else ""
    return f"({back_quote(column)} BETWEEN {least} AND {most}{null})"


def meets(column: str, keys: Keys, null_safe: bool) -> tuple[Column, bool]:
    """Whether a column has one of the keys, and whether the condition is not wider than that."""
    values = pc.unique(keys.values.combine_chunks())
    distinct: list[Any] = (values if null_safe else values.drop_null()).to_pylist()
    is_list = len(distinct) <= MAX_KEYS
    text = one_of(column, distinct) if is_list else between(column, distinct)
    return F.expr(text), is_list and keys.exact


def misses(condition: Column) -> Column:
    """Whether a condition is not TRUE: FALSE or NULL."""
    return ~F.coalesce(condition, F.lit(False))
