"""What was inserted, updated and deleted in the base tables.

`values` and `rows` check what comes from outside; `log` nets modifications into a `batch`, the
effective changes of one table; `columns` hands its parts to other engines; `source` is where
batches come from.
"""

from viewkeep.changes.batch import ChangeBatch, RowUpdate, compose
from viewkeep.changes.columns import delete_columns, insert_columns, update_columns
from viewkeep.changes.log import Delete, Insert, Modification, Update, net
from viewkeep.changes.rows import ChangeError, Key, Row, RowFormat
from viewkeep.changes.source import ChangeSource, MemoryTable, difference
from viewkeep.changes.values import MisfitError, column_converter, converter, shown

__all__ = [
    "ChangeBatch",
    "ChangeError",
    "ChangeSource",
    "Delete",
    "Insert",
    "Key",
    "MemoryTable",
    "MisfitError",
    "Modification",
    "Row",
    "RowFormat",
    "RowUpdate",
    "Update",
    "column_converter",
    "compose",
    "converter",
    "delete_columns",
    "difference",
    "insert_columns",
    "net",
    "shown",
    "update_columns",
]
