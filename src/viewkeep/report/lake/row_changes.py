"""What happened to a table or view, for people and programs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from viewkeep.report.lake.refreshes import FORMAT
from viewkeep.report.lines import rows_table
from viewkeep.report.live.maintenance import cell, row_json
from viewkeep.report.style import BAD, FAIR, GOOD

Json = dict[str, Any]
Change = Mapping[str, Any]
"""A row of `Keeper.changes`: its operation, its version, and the rows before and after."""

_STYLES = {"insert": GOOD, "update": FAIR, "delete": BAD}


def row_changes_page(columns: Sequence[str], changes: Sequence[Change]) -> RenderableType:
    """A line for each change; of an update, old and new values where they differ."""
    if not changes:
        return Text("no changes", "dim")
    lines = [
        [each["version"], Text(each["operation"], _STYLES[each["operation"]]), *_change_cells(each)]
        for each in changes
    ]
    return rows_table(["version", "change", *columns], lines)


def _change_cells(change: Change) -> list[str]:
    before, after = change["before"], change["after"]
    if before is None or after is None:
        return [cell(value) for value in (before or after).values()]
    pairs = zip(before.values(), after.values(), strict=True)
    return [
        cell(new) if _equal_values(old, new) else f"{cell(old)} -> {cell(new)}"
        for old, new in pairs
    ]


def _equal_values(old: Any, new: Any) -> bool:
    """NaN is itself, and -0.0 is not 0.0."""
    return type(old) is type(new) and repr(old) == repr(new)


def row_changes_json(name: str, version: int, changes: Iterable[Change]) -> Json:
    """The same for programs, with the version that the last change led to."""
    change_list = [row_change_json(each) for each in changes]
    return {"format": FORMAT, "name": name, "version": version, "changes": change_list}


def row_change_json(change: Change) -> Json:
    """One change."""
    rows = {state: _changed_row_json(change[state]) for state in ("before", "after")}
    return {"version": change["version"], "operation": change["operation"], **rows}


def _changed_row_json(row: Mapping[str, Any] | None) -> Json | None:
    return None if row is None else dict(zip(row, row_json(tuple(row.values())), strict=True))
