"""Values as notebooks show them: small pieces of HTML, in which every text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

_CELL = 'style="text-align:left"'


def facts_html(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """A title, and names with what they mean; empty ones are left out.

    >>> facts_html("cost", [("rows", 3), ("error", ""), ("by", "<id>")])
    '<b>cost</b><table><tr><th style="text-align:left">rows</th>\
<td style="text-align:left">3</td></tr><tr><th style="text-align:left">by</th>\
<td style="text-align:left">&lt;id&gt;</td></tr></table>'
    """
    told = [(name, value) for name, value in pairs if value not in ("", None)]
    lines = (
        f"<tr><th {_CELL}>{escape(name)}</th><td {_CELL}>{escape(str(value))}</td></tr>"
        for name, value in told
    )
    return f"<b>{escape(title)}</b><table>{''.join(lines)}</table>"


def rows_html(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under the names of their columns.

    >>> rows_html(["a"], [("<b>",), (None,)]).count("&lt;b&gt;")
    1
    """
    head = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in columns)
    lines = "".join(f"<tr>{''.join(map(_cell_html, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def text_html(title: str, text: str) -> str:
    """A title, and text as it is."""
    return f"<b>{escape(title)}</b><pre>{escape(text)}</pre>"


def _cell_html(value: object) -> str:
    return f"<td {_CELL}>{'<i>NULL</i>' if value is None else escape(str(value))}</td>"
