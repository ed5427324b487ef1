"""Caches as Delta tables that small changes are appended to: base files and one overlay.

The overlay is a small file of rows that replace the base rows with the same IDs; its column
`#live` tells the rows that are there from those that are deleted. Reading a cache reads the base
without the IDs of the overlay, and the rows of the overlay that live; no shuffle, one broadcast.
When the overlay has become large, the cache is written anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.model import INSERT, UPDATE
from viewkeep.diffs.script import Materialized, Script
from viewkeep.query.types.data_types import BOOLEAN, Field
from viewkeep.tables.files.key_match import without
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import DataFile, LakeTable, Snapshot
from viewkeep.tables.relations import OverlaidRows, StoredRows

LIVE = "#live"
OVERLAY = "overlay"
OVERLAY_ROWS = 20_000
"""An overlay may always have so many rows,"""
OVERLAY_SHARE = 0.05
"""or this share of the rows of the base."""
GROUP_ROWS = 8192
"""Rows of a row group of the base: a key that is looked up costs one of them, as long as it is one
of the columns that the base is ordered by."""


@dataclass(frozen=True)
class Cache:
    """One version of a cache; `names` are the columns of its table by their names in the script."""

    materialized: Materialized
    table: LakeTable
    snapshot: Snapshot
    names: Mapping[str, str]

    @staticmethod
    def fields(kept: Materialized, names: Mapping[str, str]) -> tuple[Field, ...]:
        """The columns of a cache's table."""
        columns = (Field(names[f.name], f.type, nullable=True) for f in kept.definition.schema)
        return (*columns, Field(LIVE, BOOLEAN))

    @cached_property
    def base(self) -> tuple[DataFile, ...]:
        """The files below the overlay."""
        return tuple(each for each in self.snapshot.files if not _is_overlay(each))

    @property
    def _cache_overlay_files(self) -> list[DataFile]:
        return [each for each in self.snapshot.files if _is_overlay(each)]

    @cached_property
    def overlay(self) -> pa.Table:
        """The rows of the overlay."""
        rows = ParquetFolder(self.table).read(self._cache_overlay_files, self.snapshot.fields)
        names = {stored: name for name, stored in self.names.items()}
        return rows.rename_columns([names.get(each, each) for each in rows.column_names])

    def relation(self) -> StoredRows | OverlaidRows:
        """The rows of the cache."""
        snapshot = replace(self.snapshot, fields=self._cache_fields, files=self.base)
        base = StoredRows(self.table, snapshot, snapshot.files, self.names)
        if not self._cache_overlay_files or not self.overlay.num_rows:
            return base
        return OverlaidRows(
            base, self._live_overlay, self.overlay.select(list(self.materialized.ids))
        )

    def rows(self) -> pa.Table:
        """The rows of the cache, in memory."""
        base = ParquetFolder(self.table).read(self.base, self._cache_fields)
        base = base.rename_columns(list(self.names))
        covered = self.overlay.select(list(self.materialized.ids))
        return pa.concat_tables([without(base, covered), self._live_overlay.cast(base.schema)])

    @property
    def _live_overlay(self) -> pa.Table:
        return self.overlay.filter(self.overlay[LIVE]).drop_columns([LIVE])

    def changed(self, old_ids: pa.Table, new_rows: pa.Table) -> list[DataFile]:
        """The files of the cache after a change: `old_ids` has IDs, `new_rows` whole rows."""
        ids = list(self.materialized.ids)
        dead = pa.concat_tables([old_ids.select(ids), new_rows.select(ids)])
        rest = without(self.overlay, dead)
        overlay = pa.concat_tables(
            [
                rest,
                self._dead_rows(without(old_ids.select(ids), new_rows.select(ids))),
                self._live_rows(new_rows),
            ],
        )
        columns = [self.names.get(each, each) for each in overlay.column_names]
        stored = overlay.rename_columns(columns)
        return [*self.base, ParquetFolder(self.table).write(stored, OVERLAY)]

    @property
    def is_heavy(self) -> bool:
        """Whether the overlay should become part of the base."""
        base = sum(each.rows for each in self.base)
        return bool(self.overlay.num_rows > max(OVERLAY_ROWS, OVERLAY_SHARE * base))

    @property
    def _cache_fields(self) -> tuple[Field, ...]:
        return tuple(each for each in self.snapshot.fields if each.name != LIVE)

    def _live_rows(self, rows: pa.Table) -> pa.Table:
        return self._padded_rows(rows, live=True)

    def _dead_rows(self, ids: pa.Table) -> pa.Table:
        return self._padded_rows(ids, live=False)

    def _padded_rows(self, rows: pa.Table, live: bool) -> pa.Table:
        """Rows with all columns of the table; those that are not known are NULL."""
        schema, count = self.overlay.schema, rows.num_rows
        by_name = {name: rows[name] for name in rows.column_names}
        by_name[LIVE] = pa.array([live] * count, pa.bool_())
        columns = [
            by_name[f.name].cast(f.type) if f.name in by_name else pa.nulls(count, f.type)
            for f in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)


def order_of(script: Script, name: str) -> tuple[str, ...]:
    """The IDs by which most diffs name rows of a cache or the view: looking them up then reads few
    pages."""
    kept = next(each for each in script.materialized if each.name == name)
    schemas = [each.schema for each in script.applies() if each.target == name]
    some = [each for each in schemas if set(each.ids) < set(kept.ids) and each.kind != INSERT]
    some.sort(key=lambda schema: schema.kind != UPDATE)
    return some[0].ids if some else kept.ids[:1]


def _is_overlay(file: DataFile) -> bool:
    return file.path.startswith(f"{OVERLAY}-")
