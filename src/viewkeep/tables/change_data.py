"""The change data feed of a table: the changed rows of a commit, in a file that its entry names.

Readers of the feed (`load_cdf` of deltalake, `table_changes` of Spark) take these rows in place of
all rows of files that were rewritten. A commit without such a file tells its files as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import STRING, Field
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import DataFile, LakeTable
from viewkeep.tables.net_changes import take_rows
from viewkeep.tables.row_differences import Mask, differing_rows
from viewkeep.tables.table_changes import TableChanges, rows_schema

FOLDER = "_change_data"
CHANGE_TYPE = "_change_type"
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"


@dataclass(frozen=True)
class RowPairs:
    """Rows of a table by what happens to them, updated ones before and after at the same places."""

    deletes: pa.Table
    before: pa.Table
    after: pa.Table
    inserts: pa.Table

    @property
    def count(self) -> int:
        """How many rows are inserted, deleted or updated."""
        parts = (self.deletes, self.after, self.inserts)
        return sum(int(each.num_rows) for each in parts)

    def write(self, table: LakeTable, fields: Sequence[Field]) -> DataFile | None:
        """Write the rows as a file of the feed; None if there are none."""
        parts = {
            DELETE: self.deletes,
            BEFORE: self.before,
            AFTER: self.after,
            INSERT: self.inserts,
        }
        typed = [
            rows.append_column(CHANGE_TYPE, pa.repeat(kind, rows.num_rows))
            for kind, rows in parts.items()
            if rows.num_rows
        ]
        if not typed:
            return None
        names = [*(field.name for field in fields), CHANGE_TYPE]
        schema = arrow_schema([*fields, Field(CHANGE_TYPE, STRING)])
        rows = pa.concat_tables(typed).select(names).cast(schema)
        return ParquetFolder(table).write(rows, f"{FOLDER}/cdc", bounds=False)


def pair_rows(keys: Sequence[str], old: pa.Table, new: pa.Table) -> RowPairs:
    """Pair old and new rows by key: a pair is an update, or no change where both rows are equal."""
    olds, news = (KeyIndex(rows.select(list(keys))) for rows in (old, new))
    if not keys or olds.repeated is not None or news.repeated is not None:
        return RowPairs(old, old.slice(0, 0), new.slice(0, 0), new)
    places = olds.places(news.keys)
    is_update = places >= 0
    is_kept = np.zeros(old.num_rows, np.bool_)
    is_kept[places[is_update]] = True
    before, after = take_rows(old, places[is_update]), _rows_in_mask(new, is_update)
    differs = differing_rows(before, after, old.column_names)
    return RowPairs(
        _rows_in_mask(old, ~is_kept), _rows_in_mask(before, differs), _rows_in_mask(after, differs),
        _rows_in_mask(new, ~is_update),
    )  # fmt: skip


def _rows_in_mask(rows: pa.Table, mask: Mask) -> pa.Table:
    return rows if mask.all() else rows.filter(pa.array(mask))


def read_change_data(table: LakeTable, name: str, declared: Table, path: str) -> TableChanges:
    """The changes that a file tells, in the columns that are declared."""
    rows = ParquetFolder(table).read_path(path, [*declared.columns, Field(CHANGE_TYPE, STRING)])
    kinds, schema = rows[CHANGE_TYPE], rows_schema(declared)

    def part(kind: str) -> pa.Table:
        return rows.filter(pc.equal(kinds, kind)).select(schema.names).cast(schema)

    parts = (part(kind) for kind in (INSERT, DELETE, BEFORE, AFTER))
    return TableChanges(name, declared, *parts).effective()
