"""`viewkeep changes`: what happened to a table or view, and what happens to it now."""

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeep.cli.lake.names import complete_name
from viewkeep.cli.lake.open_lake import AsJson, LakePath, open_keeper, print_answer
from viewkeep.cli.screen import show, write

if TYPE_CHECKING:
    from viewkeep.keeper import Keeper


def changes(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a table or view.", autocompletion=complete_name, show_default=False
        ),
    ],
    since: Annotated[
        int | None,
        typer.Option(
            help="Changes after this version; by default all, from the empty table on.",
            metavar="VERSION",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", metavar="", help="Go on with what changes from now on, until Ctrl-C."
        ),
    ] = False,
    every: Annotated[
        float, typer.Option(help="Look so often when following.", metavar="SECONDS", min=0.01)
    ] = 1.0,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Tell what happened to a table or view: inserts, updates with both rows, and deletes.

    With --follow and --json, every change is one line.

    **Examples**

    ```text
    viewkeep changes cost --since 3

    viewkeep changes orders --follow --json
    ```
    """
    from viewkeep.report.lake.row_changes import row_changes_json, row_changes_page

    with open_keeper(lake, "reading ...") as keeper:
        newest = keeper.version(name)
        if not follow:
            changes = _change_rows(keeper, name, since, newest)
            columns = _changed_columns(keeper, name)
            print_answer(
                as_json,
                lambda: row_changes_json(name, newest, changes),
                lambda: row_changes_page(columns, changes),
            )
            return
        _follow_changes(keeper, name, newest if since is None else since, every, as_json)


def _follow_changes(keeper: "Keeper", name: str, since: int, every: float, as_json: bool) -> None:
    """Tell every change after a version, as soon as it is there."""
    from viewkeep.report.lake.row_changes import row_change_json, row_changes_page

    while True:
        newest = keeper.version(name)
        if newest > since:
            changes = _change_rows(keeper, name, since, newest)
            if as_json:
                write("".join(json.dumps(row_change_json(each)) + "\n" for each in changes))
            elif changes:
                show(row_changes_page(_changed_columns(keeper, name), changes))
            since = newest
        time.sleep(every)


def _change_rows(
    keeper: "Keeper", name: str, since: int | None, until: int
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = keeper.changes(name, since, until, backend="duckdb").to_pylist()
    return rows


def _changed_columns(keeper: "Keeper", name: str) -> list[str]:
    row = keeper.changes(name, since=keeper.version(name), backend="duckdb").schema.field("after")
    return [field.name for field in row.type]
