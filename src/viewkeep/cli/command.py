"""Commands and groups of commands with a plain `--help`."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


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


class CommandGroup(TyperGroup):
    """A group of commands, with a plain `--help` too."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option, without a type."""
        return _without_type(super().get_help_option(ctx))

    def get_params(self, ctx: Any) -> list[Any]:
        """The options; those of Typer that install completion are flags too."""
        for each in self.params:
            if each.name in ("install_completion", "show_completion"):
                _without_type(each)
        return super().get_params(ctx)


def group(**options: Any) -> typer.Typer:
    """The program, or a part of it with commands of its own."""
    return typer.Typer(
        cls=CommandGroup,
        **{"add_completion": False, **options},
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
