"""The widest way to show something that the screen has room for."""

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement

UNLIMITED = 10_000


class FirstThatFits:
    """Of several ways to show the same, the widest first: the first that breaks no word."""

    def __init__(self, *choices: RenderableType) -> None:
        self._choices = choices

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        anywhere = options.update(max_width=UNLIMITED)
        for choice in self._choices[:-1]:
            if Measurement.get(console, anywhere, choice).minimum <= options.max_width:
                yield choice
                return
        yield self._choices[-1]
