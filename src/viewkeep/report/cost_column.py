"""Formulas with their costs beside them."""

import re
from collections.abc import Sequence
from textwrap import wrap

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

GAP, TIE = "  ", "\N{NO-BREAK SPACE}"
NARROWEST = 20
"""Formulas are not broken into shorter lines than this."""


class CostColumn:
    """Formulas, each with its cost in a column to the right of its last line.

    In a table the cost of a formula that is too long would stand beside its first line, in the
    middle of what is read.
    """

    def __init__(self, lines: Sequence[tuple[str, str]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widest = max((len(cost) for _, cost in self._lines), default=0)
        room = max(options.max_width - widest - len(GAP), NARROWEST)
        wrapped = [_formula_lines(formula, room) for formula, _ in self._lines]
        column = max((len(line) for lines in wrapped for line in lines), default=0)
        for (*first, last), (_, cost) in zip(wrapped, self._lines, strict=True):
            yield from map(Text, first)
            yield Text(f"{last:{column}}{GAP}{cost}".rstrip())


def _formula_lines(formula: str, room: int) -> list[str]:
    """A formula in lines that leave short lists of arguments whole."""
    tied = re.sub(
        rf"\([^()]{{,{NARROWEST - 2}}}\)", lambda match: match[0].replace(" ", TIE), formula
    )
    lines = wrap(tied, room, subsequent_indent="    ")
    return [line.replace(TIE, " ") for line in lines]
