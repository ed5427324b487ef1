"""The rows of a table, a view or a query, for people and programs."""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from viewkeep.report.lake.refreshes import FORMAT
from viewkeep.report.lake.row_changes import named_row_json
from viewkeep.report.lines import rows_table
from viewkeep.report.live.maintenance import count_text

Json = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
NUMBERS = ("int", "uint", "float", "double", "decimal")
"""How the names of number types begin; such columns are aligned to the right."""


def answer_page(columns: Mapping[str, str], rows: Rows, has_more: bool) -> RenderableType:
    """A line for each row, under the names of columns, which have these types."""
    table = rows_table(columns, [list(each.values()) for each in rows])
    for column, kind in zip(table.columns, columns.values(), strict=True):
        column.justify = "right" if kind.startswith(NUMBERS) else "left"
    if not rows:
        return Group(table, Text("no rows", "dim"))
    shown = count_text(len(rows), "row")
    note = f"the first {shown}; --limit 0 shows all" if has_more else shown
    return Group(table, Text(f"\n{note}", "dim"))


def answer_json(columns: Mapping[str, str], rows: Rows, has_more: bool) -> Json:
    """The same for programs; decimals, dates and times are texts."""
    row_list = [named_row_json(each) for each in rows]
    return {"format": FORMAT, "columns": dict(columns), "rows": row_list, "more": has_more}


def answer_csv(columns: Sequence[str], rows: Rows) -> str:
    """The same for spreadsheets, with a header; NULL is an empty field.

    >>> answer_csv(["a", "b"], [{"a": 1, "b": None}, {"a": 2, "b": 'x"y'}])
    'a,b\\n1,\\n2,"x""y"\\n'
    """
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(each.values() for each in rows)
    return buffer.getvalue()
