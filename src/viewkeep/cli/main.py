"""The entry point: commands, version, and errors for people."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from viewkeep.cli.explain import explain
from viewkeep.cli.maintain import maintain
from viewkeep.errors import ViewkeepError

BAD_INPUT = 2
"""The exit code for input that is not understood, as for wrong options."""


def _without_type(option: Any) -> Any:
    """A flag takes no value, so `<bool>` beside it misleads; other flags say so themselves."""
    if option is not None:
        option.metavar = ""
    return option


class Command(TyperCommand):
    """A command with a plain `--help`."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option, without a type."""
        return _without_type(super().get_help_option(ctx))


class Commands(TyperGroup):
    """The program, with a plain `--help` too."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option, without a type."""
        return _without_type(super().get_help_option(ctx))


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=Command)(explain)
app.command(cls=Command)(maintain)


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
        _tell(error)
        sys.exit(BAD_INPUT)


def _tell(error: ViewkeepError) -> None:
    from rich.console import Console
    from rich.text import Text

    place = "".join(f"{note}: " for note in getattr(error, "__notes__", ()))
    message = Text.assemble(("error: ", "bold red"), place, str(error))
    Console(stderr=True, highlight=False, soft_wrap=True).print(message)
