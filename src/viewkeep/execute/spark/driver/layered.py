"""A relation in two layers: rows that Spark reads, and a few on the driver that replace some.

Looking keys up reads the base only, and the driver does the rest; reading everything joins both.
"""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession

from viewkeep.execute.spark.driver.collect import local
from viewkeep.execute.spark.driver.key_filter import Keys, is_listable, meets, misses
from viewkeep.execute.spark.driver.scanned import ScannedFiles
from viewkeep.execute.spark.scans import anti_join
from viewkeep.query.evaluate.rows import Rows
from viewkeep.query.expressions import back_quote
from viewkeep.tables.arrow_rows import to_rows
from viewkeep.tables.files.key_match import key_tuples


@dataclass(frozen=True)
class LayeredRows:
    """`live` are rows that are there, `covered` the IDs of the base rows that are not."""

    spark: SparkSession
    base: DataFrame | ScannedFiles
    live: pa.Table
    covered: pa.Table

    @cached_property
    def frame(self) -> DataFrame:
        """All rows, as Spark reads them."""
        names = [back_quote(name) for name in self._base_frame.columns]
        live_rows = local(
            self.spark, self.live, self._base_frame.select(*self._layer_columns).schema
        ).frame
        return self._uncovered_frame().union(live_rows.selectExpr(*names))

    def completed(self, rows: pa.Table) -> Rows:
        """Rows of the base without those that are covered, and all rows that replace them."""
        ids = key_tuples(rows.select(self.covered.column_names))
        hidden = self._hidden_keys
        base_rows = [row for row, key in zip(to_rows(rows), ids, strict=True) if key not in hidden]
        return base_rows + to_rows(self.live.select(rows.column_names))

    @property
    def _base_frame(self) -> DataFrame:
        return self.base.frame if isinstance(self.base, ScannedFiles) else self.base

    @property
    def _layer_columns(self) -> list[str]:
        return [back_quote(name) for name in self.live.column_names]

    @cached_property
    def _hidden_keys(self) -> set[tuple[object, ...]]:
        return set(key_tuples(self.covered))

    def _uncovered_frame(self) -> DataFrame:
        ids = self.covered
        if ids.num_columns == 1 and is_listable(ids.schema.field(0).type):
            mask, exact = meets(ids.column_names[0], Keys(ids[0], True), null_safe=True)
            if exact:
                return self._base_frame.where(misses(mask))
        return anti_join(self.spark, self._base_frame, ids)
