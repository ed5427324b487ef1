"""The rows of a kept relation that a refresh changes, and changes after each other as one."""

from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.files.key_match import without
from viewkeep.tables.relations import OverlaidRows, StoredRows


@dataclass(frozen=True)
class RowChanges:
    """The rows of a kept relation that change, as they were and as they are now.

    A row that is updated or replaced is in both; one that stays as it is is in neither.
    """

    old_rows: pa.Table
    new_rows: pa.Table

    @property
    def is_empty(self) -> bool:
        """Whether all rows stay as they are."""
        return not (self.old_rows.num_rows or self.new_rows.num_rows)


def changed_relation(
    relation: StoredRows | OverlaidRows, changes: RowChanges, ids: tuple[str, ...]
) -> OverlaidRows:
    """A relation with some of its rows changed."""
    covered = pa.concat_tables([t.select(list(ids)) for t in (changes.old_rows, changes.new_rows)])
    if isinstance(relation, StoredRows):
        return OverlaidRows(relation, changes.new_rows, covered)
    live = pa.concat_tables(
        [without(relation.live, covered), _columns_like(relation.live, changes.new_rows)]
    )
    hidden = pa.concat_tables([relation.covered, _columns_like(relation.covered, covered)])
    return OverlaidRows(relation.base, live, hidden)


def compose_row_changes(first: RowChanges, then: RowChanges, ids: tuple[str, ...]) -> RowChanges:
    """Two changes as one, from before the first to after the second."""
    names = list(ids)
    first_keys = pa.concat_tables([first.old_rows.select(names), first.new_rows.select(names)])
    touched_then = pa.concat_tables([then.old_rows.select(names), then.new_rows.select(names)])
    old_rows = pa.concat_tables(
        [first.old_rows, _columns_like(first.old_rows, without(then.old_rows, first_keys))]
    )
    new_rows = pa.concat_tables(
        [without(first.new_rows, touched_then), _columns_like(first.new_rows, then.new_rows)]
    )
    return RowChanges(old_rows, new_rows)


def _columns_like(one: pa.Table, other: pa.Table) -> pa.Table:
    """Columns in the order, and of the types, of another table."""
    return other.select(one.column_names).cast(one.schema)
