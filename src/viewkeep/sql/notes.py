"""What the text of a view asks for that a view does not have."""

from viewkeep.sql.blocks.top import has_top
from viewkeep.sql.parse import single_query
from viewkeep.sql.source import Source


def note_of(sql: str) -> str:
    """A note about what is left out; empty if there is nothing.

    >>> note_of("SELECT a FROM r ORDER BY a")
    'ORDER BY is left out, since a view has no order; order what is read from it'
    >>> note_of("SELECT a FROM r ORDER BY a LIMIT 3")
    ''
    """
    query = single_query(Source(sql))
    if query.args.get("order") is None or has_top(query):
        return ""
    return "ORDER BY is left out, since a view has no order; order what is read from it"
