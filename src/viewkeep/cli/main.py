"""The entry point: commands, version, and errors for people."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from viewkeep.cli.command import Command, group
from viewkeep.cli.lake import capture, tables, views
from viewkeep.cli.lake.answers import query, read
from viewkeep.cli.lake.changes import changes
from viewkeep.cli.lake.ingest import ingest, quarantine
from viewkeep.cli.lake.live import live
from viewkeep.cli.lake.open_lake import FAILED
from viewkeep.cli.lake.page import report, serve
from viewkeep.cli.lake.refreshes import history, refresh, status, vacuum, verify
from viewkeep.cli.lake.tables import apply, init
from viewkeep.cli.lake.watch import watch
from viewkeep.cli.project import check, new, plan, up
from viewkeep.cli.query.explain import explain
from viewkeep.cli.query.maintain import maintain
from viewkeep.cli.screen import DEBUG, print_error
from viewkeep.errors import ViewkeepError

BAD_INPUT = 2
"""The exit code for input that is not understood, as for wrong options."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

_DEBUG = "--debug"
"""A flag of every command, at any place; `run` takes it away before commands see it."""


app = group(add_completion=True)
for one in (explain, maintain):
    app.command(cls=Command, rich_help_panel="One query, in one process")(one)
PROJECT = "A project: tables, views and tests in files"
for part in (new, plan, up):
    app.command(cls=Command, rich_help_panel=PROJECT)(part)
app.command("test", cls=Command, rich_help_panel=PROJECT)(check)
LAKE = "A lake: tables, and views that are kept fresh, with or without Spark"
for each in (
    *(init, apply, ingest, quarantine),
    *(read, query, changes, live),
    *(refresh, watch, status, history, verify, vacuum),
    *(serve, report),
):
    app.command(cls=Command, rich_help_panel=LAKE)(each)
app.add_typer(capture.app, name="capture", rich_help_panel=LAKE)
app.add_typer(tables.app, name="table", rich_help_panel=LAKE)
app.add_typer(views.app, name="view", rich_help_panel=LAKE)


def _show_version(is_set: bool) -> None:
    if is_set:
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
    debug: Annotated[
        bool,
        typer.Option(_DEBUG, metavar="", help="Show the traceback of an error."),
    ] = False,
) -> None:
    """Keep the results of queries fresh while the data under them changes."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error is one message, with its traceback only under `--debug`."""
    for stream in (sys.stdout, sys.stderr):
        # Names may hold letters that the terminal cannot show.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    words = list(sys.argv[1:] if arguments is None else arguments)
    DEBUG.set(_DEBUG in words)
    try:
        app([word for word in words if word != _DEBUG], prog_name="viewkeep")
    except ViewkeepError as error:
        print_error(error)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        print_error(error)
        sys.exit(FAILED)
