"""Tables with a line for each thing, and pairs of a name and what it means."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from viewkeep.report.live.maintenance import cell
from viewkeep.report.style import HEADING


def lines_table(columns: Sequence[str], right: Sequence[str] = ()) -> Table:
    """A table with a rule below its titles; the columns of `right` hold numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style=HEADING)
    for name in columns:
        justify = "right" if name in right else "left"
        table.add_column(Text(name), overflow="fold", justify=justify)  # type: ignore[arg-type]
    return table


def pairs_table(pairs: Iterable[tuple[str, str | Text]]) -> Table:
    """Names and what they mean, without lines."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, meaning in pairs:
        table.add_row(name, meaning if isinstance(meaning, Text) else Text(meaning))
    return table


def rows_table(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Rows of data; texts in the first line name the columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*(v if isinstance(v, Text) else Text(cell(v)) for v in row))
    return table


def comma_list(names: Iterable[str]) -> str:
    """Names with commas, or a dash.

    >>> comma_list(["a", "b"]), comma_list([])
    ('a, b', '-')
    """
    return ", ".join(names) or "-"
