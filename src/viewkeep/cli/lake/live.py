"""`viewkeep live`: a view in the engine of this process, and what changes in it."""

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeep.cli.lake.names import complete_view
from viewkeep.cli.lake.open_lake import AsJson, LakePath, open_keeper, print_answer
from viewkeep.cli.screen import show, write

if TYPE_CHECKING:
    from viewkeep.keeper import LiveView


def live(
    view: Annotated[
        str,
        typer.Argument(
            help="Name of a view.",
            autocompletion=complete_view,
            show_default=False,
        ),
    ],
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", metavar="", help="Go on with what changes from now on, until Ctrl-C."
        ),
    ] = False,
    every: Annotated[
        float, typer.Option(help="Look so often when following.", metavar="SECONDS", min=0.01)
    ] = 0.1,
    limit: Annotated[
        int, typer.Option(help="Rows to show, 0 for all.", metavar="ROWS", min=0)
    ] = 20,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Show a view as its tables are now, kept by the engine of this process: nothing is refreshed.

    With --follow, what changes in it is told as soon as its tables change; a transaction is told as
    one. With --follow and --json, the rows are one line, and every change is one.

    **Examples**

    ```text
    viewkeep live cost

    viewkeep live cost --follow --json
    ```
    """
    with open_keeper(lake, "reading ...") as keeper:
        live_view = keeper.live(view)
        changes = list[dict[str, Any]]()
        live_view.subscribe(
            lambda output_changes: changes.extend(live_view.row_changes(output_changes))
        )
        _show_rows(live_view, limit, follow, as_json)
        while follow:
            live_view.catch_up()
            _show_changes(live_view, changes, as_json)
            changes.clear()
            time.sleep(every)


def _show_rows(live_view: "LiveView", limit: int, is_line: bool, as_json: bool) -> None:
    from viewkeep.report.lake.live_rows import live_rows_json, live_rows_page

    rows = live_view.to_arrow()
    first_rows = rows.slice(0, limit or rows.num_rows).to_pylist()
    hidden_count = rows.num_rows - len(first_rows)
    document = (
        live_rows_json(live_view.name, live_view.versions, first_rows, hidden_count)
        if as_json
        else {}
    )
    if as_json and is_line:
        write(json.dumps(document) + "\n")
        return
    print_answer(
        as_json,
        lambda: document,
        lambda: live_rows_page(rows.column_names, first_rows, hidden_count),
    )


def _show_changes(live_view: "LiveView", changes: list[dict[str, Any]], as_json: bool) -> None:
    from viewkeep.report.lake.live_rows import live_change_json
    from viewkeep.report.lake.row_changes import row_changes_page

    if as_json:
        lines = (json.dumps(live_change_json(live_view.versions, each)) for each in changes)
        write("".join(f"{line}\n" for line in lines))
    elif changes:
        columns = list(changes[0]["before"] or changes[0]["after"])
        show(row_changes_page(columns, changes))
