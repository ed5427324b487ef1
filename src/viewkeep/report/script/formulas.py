"""Formulas of delta scripts on any screen."""

from collections.abc import Callable, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from viewkeep.diffs.show.operators import ascii_text
from viewkeep.report.style import HEADING


class Symbols:
    """Text with symbols of the algebra; words take their place where there is only ASCII."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._text_of_screen(options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._text_of_screen(options))

    def _text_of_screen(self, options: ConsoleOptions) -> Text:
        if not options.ascii_only:
            return self._text
        return Text("").join(
            Text(ascii_text(part.plain), part.style) for part in _styled_parts(self._text)
        )


def _styled_parts(text: Text) -> Sequence[Text]:
    """The parts of a text that have one style each."""
    cuts = sorted({cut for span in text.spans for cut in (span.start, span.end)})
    parts = text.divide(cuts)
    return [Text(part.plain, part.spans[0].style if part.spans else "") for part in parts]


class Formulas:
    """Lines that are made for the width of the screen."""

    def __init__(self, lines: Callable[[int], Sequence[str]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines(options.max_width):
            yield Text(ascii_text(line) if options.ascii_only else line)


def plain_columns(*titles: str) -> Table:
    """A table without lines, with titles if there are any."""
    table = Table(
        *titles,
        box=None,
        show_header=bool(titles),
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style=HEADING,
    )
    for column in table.columns:
        column.overflow = "fold"  # a name is broken rather than cut
    return table


def indented_line(line: str) -> Padding:
    """A line of a tree; where it is too long it goes on at its own indentation."""
    content = line.lstrip()
    return Padding(Text(content), (0, 0, 0, len(line) - len(content)))
