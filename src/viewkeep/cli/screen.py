"""Where output goes: in colour to a terminal, as plain text elsewhere."""

import sys
from contextvars import ContextVar
from traceback import format_exception
from typing import TYPE_CHECKING

from viewkeep.errors import brief

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDEST = 120
"""Lines longer than this are hard to read."""


def show(page: "RenderableType", stderr: bool = False) -> None:
    """Print a page in a width that people can read."""
    from rich.console import Console

    from viewkeep.report.text import plain_text

    console = Console(highlight=False, stderr=stderr)
    width = min(console.width, WIDEST)
    if console.is_terminal:
        console.print(page, width=width)
    else:
        ascii_only = not console.encoding.startswith("utf")
        write(plain_text(page, width, ascii_only), stderr)


DEBUG: ContextVar[bool] = ContextVar("DEBUG", default=False)
"""Whether errors are shown with their tracebacks."""


def print_error(error: BaseException) -> None:
    """Print an error on standard error."""
    from rich.console import Console
    from rich.text import Text

    if DEBUG.get():
        write("".join(format_exception(error)), stderr=True)
    place = "".join(f"{note}: " for note in getattr(error, "__notes__", ()))
    message = Text.assemble(("error: ", "bold red"), place, brief(error))
    Console(stderr=True, highlight=False, soft_wrap=True).print(message)


def write(text: str, stderr: bool = False) -> None:
    """Write text as it is."""
    stream = sys.stderr if stderr else sys.stdout
    stream.write(text)
    stream.flush()  # here, where a reader that went away is no error
