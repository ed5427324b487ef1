"""`viewkeep serve` and `viewkeep report`: the page about a lake, live or as one file."""

import os
import secrets
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from viewkeep.cli.lake.open_lake import (
    FAILED,
    AsJson,
    LakePath,
    find_lake,
    open_keeper,
    print_confirmation,
)
from viewkeep.cli.screen import print_error, write
from viewkeep.errors import ViewkeepError

TOKEN = "VIEWKEEP_TOKEN"


def serve(
    port: Annotated[
        int, typer.Option(help="Port; 0 takes a free one.", metavar="PORT", min=0, max=65535)
    ] = 8585,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. Other than this machine's own, a token is needed.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            envvar=TOKEN,
            help="What browsers have to bring; made up where it is needed and not given.",
            metavar="TEXT",
            show_default=False,
        ),
    ] = None,
    query_limit: Annotated[
        float,
        typer.Option(
            help="Seconds after which a query of the playground is ended; 0 for no limit.",
            metavar="SECONDS",
            min=0,
        ),
    ] = 60,
    show: Annotated[
        bool, typer.Option("--open", metavar="", help="Open the page in the browser.")
    ] = False,
    lake: LakePath = None,
) -> None:
    """Show a lake in the browser: lineage, freshness, history, plans, rows; and a playground.

    Nothing in the page changes the lake. It is told to this machine only; with another --host, to
    those who have the token that is printed, or that of the environment variable VIEWKEEP_TOKEN.
    Needs the extra viewkeep[page].

    **Examples**

    ```text
    viewkeep serve --open

    viewkeep serve --host 0.0.0.0 --port 8585
    ```
    """
    try:
        from viewkeep.page.documents import lake_document
        from viewkeep.page.server import is_local, make_app
        from viewkeep.page.server import serve as run
    except ModuleNotFoundError as error:
        missing = f"the library {error.name} is not installed, which the page needs"
        print_error(ViewkeepError(f"{missing}: pip install 'viewkeep[page]' installs it"))
        raise typer.Exit(FAILED) from None

    key = token if token is not None else "" if is_local(host) else secrets.token_urlsafe(24)
    if not key and not is_local(host):
        raise ViewkeepError("an empty token would let everybody in: leave --token out")

    def started(bound: int) -> None:
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{bound}/" + (f"?token={key}" if key else "")
        write(f"{address}\nCtrl-C stops it\n")
        if show:
            webbrowser.open(address)

    with open_keeper(lake, "opening ...") as keeper, open_keeper(lake, "opening ...") as other:
        place = _place(lake)
        lake_document(keeper, place)  # what is read once is there when the first browser asks
        app = make_app(keeper, place, key, playground=other, query_seconds=query_limit or None)
    run(app, host, port, started)


def report(
    output: Annotated[
        str, typer.Option("--output", "-o", help="File to write.", metavar="FILE")
    ] = "lake.html",
    rows: Annotated[
        bool,
        typer.Option(
            "--rows/--no-rows", metavar="", help="Put in first rows and last changes, or not."
        ),
    ] = True,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Write the page about a lake as one file, which needs no server and loads nothing.

    The file holds the first rows of tables and views, unless --no-rows leaves them out: give it to
    nobody who may not see them.

    **Examples**

    ```text
    viewkeep report -o lake.html

    viewkeep report --no-rows
    ```
    """
    from viewkeep.page.documents import report_document
    from viewkeep.page.html import page_html

    with open_keeper(lake, "reading ...") as keeper:
        page = page_html(report_document(keeper, _place(lake), rows))
    try:
        Path(output).write_text(page, encoding="utf-8")
    except OSError as error:
        raise ViewkeepError(f'cannot write "{output}": {error.strerror}') from None
    print_confirmation(as_json, {"file": output, "bytes": len(page.encode())}, f"wrote {output}")


def _place(lake: str | None) -> str:
    place = find_lake(lake) or "."
    return place if "://" in place else os.path.abspath(place)
