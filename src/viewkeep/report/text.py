"""Renderables as plain text."""

from io import StringIO

from rich.console import Console, RenderableType


def plain_text(renderable: RenderableType, width: int = 80, ascii_only: bool = False) -> str:
    """The text without colour, in lines of at most `width` characters and no trailing blanks.

    >>> from rich.text import Text
    >>> plain_text(Text("update O(1)", "bold green"))
    'update O(1)\\n'
    """
    buffer = StringIO()
    console = Console(
        file=buffer,
        width=width,
        color_system=None,
        force_terminal=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    options = console.options.update(width=width)
    options.encoding = "ascii" if ascii_only else "utf-8"
    for line in console.render_lines(renderable, options, pad=False):
        buffer.write("".join(segment.text for segment in line).rstrip() + "\n")
    return buffer.getvalue()
