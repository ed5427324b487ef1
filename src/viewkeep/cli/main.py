"""The entry point: commands, version, and errors for people."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from viewkeep.cli.explain import explain
from viewkeep.cli.maintain import maintain
from viewkeep.errors import ViewkeepError

BAD_INPUT = 2
"""The exit code for input that is not understood, as for wrong options."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(explain)
app.command()(maintain)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"viewkeep {version('viewkeep')}")
        raise typer.Exit


@app.callback()
def viewkeep(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
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
        _tell(error)
        sys.exit(BAD_INPUT)


def _tell(error: ViewkeepError) -> None:
    from rich.console import Console
    from rich.text import Text

    place = "".join(f"{note}: " for note in getattr(error, "__notes__", ()))
    message = Text.assemble(("error: ", "bold red"), place, str(error))
    Console(stderr=True, highlight=False, soft_wrap=True).print(message)
