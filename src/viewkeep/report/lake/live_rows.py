"""The rows of a live view, and what changes in them, for people and programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from viewkeep.report.lake.refreshes import FORMAT
from viewkeep.report.lake.row_changes import Change, named_row_json, row_change_json
from viewkeep.report.lines import rows_table
from viewkeep.report.live.maintenance import count_text

Json = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def live_rows_page(columns: Sequence[str], rows: Rows, more: int) -> RenderableType:
    """A line for each row; `more` are not shown."""
    table = rows_table(columns, [list(each.values()) for each in rows])
    if more:
        return Group(table, Text(f"and {count_text(more, 'row')} more: --limit 0 shows all", "dim"))
    return table if rows else Text("no rows", "dim")


def live_rows_json(view: str, versions: Mapping[str, int], rows: Rows, more: int) -> Json:
    """The same for programs, with the versions of the tables that the rows reflect."""
    row_list = [named_row_json(each) for each in rows]
    return {
        "format": FORMAT,
        "view": view,
        "versions": dict(versions),
        "rows": row_list,
        "more": more,
    }


def live_change_json(versions: Mapping[str, int], change: Change) -> Json:
    """One change, with the versions of the tables after it."""
    return {"versions": dict(versions), **row_change_json(change)}
