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
"""A row of `Keeper.changes`: its operation, its version, and the rows before and after; those of
live views have no version."""

_STYLES = {"insert": GOOD, "update": FAIR, "delete": BAD}


def row_changes_page(columns: Sequence[str], changes: Sequence[Change]) -> RenderableType:
    """A line for each change; of an update, old and new values where they differ."""
    if not changes:
        return Text("no changes", "dim")
    places = [name for name in ("version",) if name in changes[0]]
    lines = [
        [*(each[name] for name in places), _operation_text(each), *_change_cells(each)]
        for each in changes
    ]
    return rows_table([*places, "change", *columns], lines)


def _operation_text(change: Change) -> Text:
    return Text(change["operation"], _STYLES[change["operation"]])


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
    about = {name: change[name] for name in ("version", "operation") if name in change}
    rows = {state: change[state] for state in ("before", "after")}
    return about | {
        name: None if row is None else named_row_json(row) for name, row in rows.items()
    }


def named_row_json(row: Mapping[str, Any]) -> Json:
    """A row by its columns."""
    return dict(zip(row, row_json(tuple(row.values())), strict=True))
