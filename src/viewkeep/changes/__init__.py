"""What was inserted, updated and deleted in the base tables.

`values` and `rows` check what comes from outside; `log` nets modifications into a `batch`, the
effective changes of one table, row by row; `tables/` nets them in columns.
"""

from viewkeep.changes.batch import ChangeBatch, RowUpdate, compose_batches
from viewkeep.changes.log import Delete, Insert, Modification, Play, Update, net
from viewkeep.changes.rows import ChangeError, Key, Row, RowFormat
from viewkeep.changes.values import MisfitError, column_converter, converter, short_value

__all__ = [
    "ChangeBatch",
    "ChangeError",
    "Delete",
    "Insert",
    "Key",
    "MisfitError",
    "Modification",
    "Play",
    "Row",
    "RowFormat",
    "RowUpdate",
    "Update",
    "column_converter",
    "compose_batches",
    "converter",
    "net",
    "short_value",
]
