"""The entry point: commands, version, and errors for people."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from viewkeep.cli import tables, views
from viewkeep.cli.command import Command, group
from viewkeep.cli.explain import explain
from viewkeep.cli.maintain import maintain
from viewkeep.cli.refreshes import history, refresh, status, vacuum, verify
from viewkeep.cli.screen import tell
from viewkeep.cli.tables import apply, init
from viewkeep.errors import ViewkeepError

BAD_INPUT = 2
"""The exit code for input that is not understood, as for wrong options."""


app = group()
for one in (explain, maintain):
    app.command(cls=Command, rich_help_panel="One query, in one process")(one)
LAKE = "A lake: tables, and views that are kept fresh, on Spark"
for each in (init, apply, refresh, status, history, verify, vacuum):
    app.command(cls=Command, rich_help_panel=LAKE)(each)
app.add_typer(tables.app, name="table", rich_help_panel=LAKE)
app.add_typer(views.app, name="view", rich_help_panel=LAKE)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"viewkeep {version('viewkeep')}")
        raise typer.Exit


@app.callback()
def viewkeep(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Keep the results of queries fresh while the data under them changes."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command; what is wrong with the input is said in one message, never as a trace."""
    for stream in (sys.stdout, sys.stderr):
        # Names may hold letters that the terminal cannot show.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    try:
        app(arguments)
    except ViewkeepError as error:
        tell(error)
        sys.exit(BAD_INPUT)
