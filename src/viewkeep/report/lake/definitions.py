"""The tables and views of a lake as they are defined."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from viewkeep.report.amounts import duration, size, times
from viewkeep.report.lake.freshness import freshness
from viewkeep.report.lake.refreshes import FORMAT
from viewkeep.report.lines import comma_list, lines_table, pairs_table, rows_table
from viewkeep.report.live.maintenance import count_text, row_json
from viewkeep.report.style import BAD, FAIR, section

if TYPE_CHECKING:  # they load what reads a lake
    from viewkeep.lake.descriptions import TableDescription, ViewDescription
    from viewkeep.lake.views.status import ViewStatus

Json = dict[str, Any]
Row = tuple[Any, ...]


def tables_page(tables: Sequence["TableDescription"]) -> Group:
    """A line for each base table, then what is wrong."""
    if not tables:
        return Group(Text("no tables yet; `viewkeep table create` makes one"))
    columns = ("table", "rows", "size", "version", "written by", "key", "columns", "read by")
    table = lines_table(columns, ("rows", "size", "version"))
    for each in tables:
        table.add_row(
            Text(each.name, "bold"),
            _number_text(each.rows),
            "-" if each.size is None else size(each.size),
            _number_text(each.version),
            "Viewkeep" if each.owned else "others",
            comma_list(each.key),
            _columns_text(each.columns),
            comma_list(each.readers),
        )
    problems = [Text(f"{each.name}: {each.problem}", BAD) for each in tables if each.problem]
    rejected = [
        Text(f"{each.name}: {count_text(each.quarantined, 'record')} in quarantine", FAIR)
        for each in tables
        if each.quarantined
    ]
    return Group(table, *problems, *rejected)


def views_page(views: Sequence["ViewDescription"]) -> Group:
    """A line for each view."""
    if not views:
        return Group(Text("no views yet; `viewkeep view create` makes one"))
    table = lines_table(("view", "reads", "read by", "strategy", "policy", "key", "columns"))
    for each in views:
        name = Text(each.name, "bold")
        table.add_row(
            name if each.ready else name.append(" (unfinished)", BAD),
            comma_list(each.reads),
            comma_list(each.readers),
            each.strategy,
            each.policy,
            comma_list(each.key),
            _columns_text(each.columns),
        )
    return Group(table)


def view_page(view: "ViewDescription", status: "ViewStatus", rows: Sequence[Row] | None) -> Group:
    """One view: its SQL, its columns, how it is kept, how fresh it is, and perhaps rows of it."""
    facts = pairs_table(_view_facts(view, status))
    sql = Syntax(view.sql.strip(), "sql", background_color="default", word_wrap=True)
    sections = (
        []
        if rows is None
        else [section("First rows", _first_rows_section(tuple(view.columns), rows))]
    )
    return Group(section(f"View {view.name}", facts), section("SQL", sql), *sections)


def _view_facts(view: "ViewDescription", status: "ViewStatus") -> Iterator[tuple[str, str | Text]]:
    yield "reads", comma_list(view.reads)
    yield "read by", comma_list(view.readers)
    yield "columns", _columns_text(view.columns)
    yield "key", comma_list(view.key)
    request = f" (asked for: {view.strategy})" if view.strategy != status.strategy else ""
    layout = f", layout {view.layout}" if view.layout != "auto" else ""
    yield "strategy", f"{status.strategy}{request}, policy {view.policy}{layout}"
    yield "rows", f"{status.rows:,}"
    yield "freshness", freshness(status)
    if status.last is not None:
        speed = f", {times(status.speed_up)} faster than anew" if status.speed_up else ""
        run = f"{status.last.strategy} in {duration(status.last.seconds)}"
        yield "refreshed", f"version {status.last.version}, {run}{speed}"
    if status.balance is not None:
        yield "balance", str(status.balance)
        yield from (("heavy", str(each)) for each in status.balance.heavy)
    yield "folder", view.location
    if status.advice:
        yield "advice", status.advice
    if status.problem:
        yield "problem", Text(status.problem, BAD)


def _first_rows_section(names: Sequence[str], rows: Sequence[Row]) -> RenderableType:
    return rows_table(names, rows) if rows else Text("no rows", "dim")


def _columns_text(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def _number_text(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def vacuum_page(files: Mapping[str, int], dry_run: bool) -> Group:
    """How many files were removed, or would be."""
    table = lines_table(("table, view or cache", "files"), ("files",))
    for name, count in files.items():
        table.add_row(Text(name, "bold"), f"{count:,}")
    outcome = "would be removed" if dry_run else "removed"
    return Group(table, Text(f"{count_text(sum(files.values()), 'file')} {outcome}"))


def vacuum_json(files: Mapping[str, int], dry_run: bool) -> Json:
    """The same for programs."""
    return {"format": FORMAT, "dry_run": dry_run, "files": dict(files)}


def tables_json(tables: Iterable["TableDescription"]) -> Json:
    """The tables for programs."""
    return {"format": FORMAT, "tables": [asdict(each) for each in tables]}


def views_json(views: Iterable["ViewDescription"]) -> Json:
    """The views for programs."""
    return {"format": FORMAT, "views": [asdict(each) for each in views]}


def view_json(view: "ViewDescription", status: Json, rows: Sequence[Row] | None) -> Json:
    """One view for programs, with its status, and rows if they were asked for."""
    first_rows = {} if rows is None else {"first_rows": [row_json(row) for row in rows]}
    return {"format": FORMAT, "view": asdict(view), "status": status["views"][0], **first_rows}
