"""The clock of a view as rows: at one moment, and as the change from one to another."""

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.query.clock import CLOCK, CLOCK_TABLE, clock_row
from viewkeep.tables.arrow_rows import to_arrow
from viewkeep.tables.table_changes import TableChanges


def clock_rows(clock: int) -> pa.Table:
    """The one row of the clock."""
    return to_arrow(CLOCK_TABLE.columns, [clock_row(clock)])


def clock_changes(before: int, after: int) -> TableChanges:
    """The clock moved."""
    none = TableChanges.none(CLOCK, CLOCK_TABLE)
    rows = (none.inserts, none.deletes, clock_rows(before), clock_rows(after))
    return TableChanges(CLOCK, CLOCK_TABLE, *rows).effective()
