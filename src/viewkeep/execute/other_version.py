"""The rows of one version of a table by those of another, where the changes between them are known.

    post[k]  =  pre[k] without the changed keys  +  the new rows of k;   pre[k] likewise

A script that compares what keys have before and after a change looks them up once.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.execute.backend import Relations, Source
from viewkeep.execute.near_rows import KeyValues
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import Rows, key_of
from viewkeep.query.types.inference import find_field
from viewkeep.tables.arrow_rows import to_rows
from viewkeep.tables.relations import StoredRows
from viewkeep.tables.table_changes import TableChanges

_OTHER = {"pre": "post", "post": "pre"}


@dataclass(frozen=True)
class OtherVersion:
    """The other version of a table, and the changes that lead from it to this one."""

    source: Source
    changes: TableChanges

    @property
    def key(self) -> frozenset[str]:
        """The key of the table, by which changed rows are known."""
        return frozenset(self.changes.table.key)

    def rows(
        self, names: tuple[str, ...], read: Collection[str], near: Mapping[Row, Rows], by: KeyValues
    ) -> dict[Row, Rows]:
        """The rows of this version by their keys, from those of the other one; columns that are
        not read, of which the key is none, are NULL."""
        fields = tuple(find_field(name, self.changes.table.columns) for name in names)
        key, own = key_of(self.changes.table.key, fields), key_of(by.names, fields)
        new, old = (
            _rows_of_table(each, names, read)
            for each in (self.changes.new_rows, self.changes.old_rows)
        )
        changed = {key(row) for row in (*new, *old)}
        rows = {
            value: [row for row in matches if key(row) not in changed]
            for value, matches in near.items()
        }
        for row in new:
            if own(row) in rows:
                rows[own(row)].append(row)
        return rows


def other_version(relations: Relations, source: Source) -> OtherVersion | None:
    """The other version of a table, if the changes between the two are known."""
    if isinstance(source, str) or (source[0], "post") not in relations:
        return None
    after = relations[source[0], "post"]
    if not isinstance(after, StoredRows) or after.changes is None:
        return None
    other = source[0], _OTHER[source[1]]
    return OtherVersion(other, after.changes if other[1] == "pre" else after.changes.inverse())


def _rows_of_table(table: pa.Table, names: tuple[str, ...], read: Collection[str]) -> Rows:
    columns = [
        table[name] if name in read else pa.nulls(table.num_rows, table.schema.field(name).type)
        for name in names
    ]
    return to_rows(pa.table(columns, names=list(names)))
