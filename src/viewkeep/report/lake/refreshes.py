"""What refreshes did: one line for each view, or for each refresh of a view."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from viewkeep.lake import RefreshReport
from viewkeep.report.amounts import duration
from viewkeep.report.lines import lines_table
from viewkeep.report.style import BAD, GOOD

FORMAT = 1
"""The version of the JSON documents about lakes."""

NUMBERS = ("rows", "changed", "jobs", "seconds", "expected", "version")
Json = dict[str, Any]


def refresh_page(reports: Sequence[RefreshReport]) -> Group:
    """A refresh of several views, in their order; then what went wrong."""
    if not reports:
        return Group(Text("no views yet"))
    columns = ("view", "strategy", "changes", "changed", "rows", "jobs", "seconds")
    table = lines_table(columns, NUMBERS)
    for each in reports:
        table.add_row(Text(each.view, "bold"), *_refresh_cells(each))
    return Group(table, *_refresh_reasons(reports), *_refresh_errors(reports))


def history_page(view: str, reports: Sequence[RefreshReport], more: int = 0) -> Group:
    """The refreshes of a view, newest first, with what they were expected to take if that is
    known of one."""
    columns = ("version", "when (UTC)", "strategy", "changes", "changed", "rows", "seconds")
    has_expected = any(each.expected_seconds is not None for each in reports)
    table = lines_table((*columns, *(("expected",) if has_expected else ())), NUMBERS)
    table.columns[1].no_wrap = True
    for each in reports:
        strategy, changes, changed, rows, _, seconds = _refresh_cells(each)
        cells = (str(each.version), time_text(each.at), strategy, changes, changed, rows, seconds)
        table.add_row(*cells, *((_expected_text(each),) if has_expected else ()))
    note = [Text(f"and {more:,} older: --limit 0 shows all", "dim")]
    return Group(_refresh_table(f"Refreshes of {view}", table), *(note if more else ()))


def time_text(milliseconds: int) -> str:
    """A time for people.

    >>> time_text(1_700_000_000_000)
    '2023-11-14 22:13'
    """
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def strategy_text(report: RefreshReport) -> Text:
    """What was done, in colour: green where changes were brought in."""
    if report.error:
        return Text("failed", BAD)
    if report.strategy == "none":
        return Text("nothing to do", "dim")
    return Text(report.strategy, GOOD if report.strategy in ("id", "tuple") else "")


def changes_text(changes: Mapping[str, int]) -> str:
    """The changed rows of each input.

    >>> changes_text({"parts": 1200, "devices": 3})
    'parts 1,200, devices 3'
    """
    return ", ".join(f"{name} {count:,}" for name, count in changes.items()) or "-"


def _refresh_cells(each: RefreshReport) -> Iterable[RenderableType]:
    yield strategy_text(each)
    yield Text(changes_text(each.changes))
    yield from (
        "all" if each.from_scratch or each.strategy == "recompute" else f"{each.rows_changed:,}",
        f"{each.rows:,}",
    )
    yield from (str(each.jobs), duration(each.seconds))


def _expected_text(each: RefreshReport) -> str:
    seconds = each.expected_seconds
    return "-" if seconds is None else duration(seconds)


def _refresh_table(title: str, table: Table) -> Table:
    table.title, table.title_justify, table.title_style = title, "left", "bold"
    return table


def _refresh_reasons(reports: Sequence[RefreshReport]) -> Iterable[Text]:
    for each in reports:
        if each.from_scratch and each.reason and not each.error:
            yield Text(f"{each.view} was computed anew: {each.reason}", "dim")


def _refresh_errors(reports: Sequence[RefreshReport]) -> Iterable[Text]:
    for each in reports:
        if each.error:
            yield Text.assemble((f"{each.view}: ", "bold"), (each.error, BAD))


def refresh_json(reports: Iterable[RefreshReport]) -> Json:
    """A refresh for programs."""
    return {"format": FORMAT, "refreshes": [report_json(each) for each in reports]}


def history_json(view: str, reports: Iterable[RefreshReport]) -> Json:
    """The refreshes of a view for programs, newest first."""
    return {"format": FORMAT, "view": view, "refreshes": [report_json(each) for each in reports]}


def report_json(report: RefreshReport) -> Json:
    """One refresh of one view; `at` is in milliseconds since 1970."""
    return report.notes()
