"""Keys of collected diffs as filters of scans.

Spark pushes `column IN (...)` into Parquet scans, where it rules out files and row groups; a join
with the same keys reads everything.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.diffs.sql_text import quote

MAX_KEYS = 1000
"""The most keys that are listed; of more, only the least and the greatest are told."""


@dataclass(frozen=True)
class Keys:
    """The values that a column may have; `exact` if it has all of them, and no others."""

    values: pa.ChunkedArray
    exact: bool


def is_listable(kind: pa.DataType) -> bool:
    """Whether values of a type mean the same as literals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date32(kind))


def meets(column: str, keys: Keys, null_safe: bool) -> tuple[Column, bool]:
    """Whether a column has one of the keys, and whether the condition is not wider than that."""
    values = pc.unique(keys.values.combine_chunks())
    found: list[Any] = values.drop_null().to_pylist()
    own = F.col(quote(column))
    listed = len(found) <= MAX_KEYS
    if not found:
        condition = F.lit(False)
    elif listed:
        condition = own.isin(found)
    else:
        condition = own.between(min(found), max(found))
    if null_safe and values.null_count:
        condition = condition | own.isNull()
    return condition, listed and keys.exact


def misses(condition: Column) -> Column:
    """Whether a condition is not TRUE: FALSE or NULL."""
    return ~F.coalesce(condition, F.lit(False))
