"""A relation as a small aligned table, like those of ivm_lecture part 1."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

SHOWN = 20


def render_table(
    schema: Sequence[str], entries: Iterable[tuple[tuple[Any, ...], Any]], size: int
) -> str:
    """Columns, an arrow and the payload; at most 20 rows.

    >>> print(render_table(("employee", "age"), [(("Elise", 35), 2), (("Joe", 30), 10)], 2))
    employee  age  ->  #
    Elise     35   ->  2
    Joe       30   ->  10
    """
    lines = [[*schema, "->", "#"]]
    lines += [[*map(str, row), "->", str(payload)] for row, payload in islice(entries, SHOWN)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text_lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    if size > SHOWN:
        text_lines.append(f"... and {size - SHOWN} more")
    return "\n".join(text_lines)
