"""A relation in two layers: rows that Spark reads, and a few on the driver that replace some.

Looking keys up reads the base only, and the driver does the rest; reading everything joins both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame

from viewkeep.query.evaluate_rows import Rows
from viewkeep.spark.matching import key_tuples
from viewkeep.spark.rows import to_rows


@dataclass(frozen=True)
class Layered:
    """`live` are rows that are there, `covered` the IDs of the base rows that are not."""

    base: DataFrame
    live: pa.Table
    covered: pa.Table
    joined: Callable[[], DataFrame]

    @cached_property
    def frame(self) -> DataFrame:
        """All rows, as Spark reads them."""
        return self.joined()

    def completed(self, rows: pa.Table) -> Rows:
        """Rows of the base without those that are covered, and all rows that replace them."""
        ids = key_tuples(rows.select(self.covered.column_names))
        hidden = self._hidden
        kept = [row for row, key in zip(to_rows(rows), ids, strict=True) if key not in hidden]
        return kept + self._shown(rows.column_names)

    @cached_property
    def _hidden(self) -> set[tuple[object, ...]]:
        return set(key_tuples(self.covered))

    def _shown(self, names: Sequence[str]) -> Rows:
        return to_rows(self.live.select(list(names)))
