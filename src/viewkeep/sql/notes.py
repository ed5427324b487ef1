"""What the text of a view asks for that a view does not have."""

from viewkeep.errors import UnreadableError
from viewkeep.sql.blocks.top import has_top
from viewkeep.sql.idioms import PLACEMENTS
from viewkeep.sql.parse import single_query
from viewkeep.sql.source import Source


def note_of(sql: str) -> str:
    """A note about what is left out; empty if there is nothing.

    >>> note_of("SELECT a FROM r ORDER BY a")
    'ORDER BY is left out, since a view has no order; order what is read from it'
    >>> note_of("SELECT a FROM r ORDER BY a LIMIT 3")
    ''
    >>> note_of("SELECT a FROM r SORT BY a")
    'SORT BY is left out, since the rows of a view lie where its layout puts them'
    """
    try:
        query = single_query(Source(sql))
    except UnreadableError:  # Spark reads more
        return ""
    placements = [n for n in query.args if n in PLACEMENTS and query.args[n] is not None]
    if placements:
        word = f"{placements[0].upper()} BY"
        return f"{word} is left out, since the rows of a view lie where its layout puts them"
    if query.args.get("order") is None or has_top(query):
        return ""
    return "ORDER BY is left out, since a view has no order; order what is read from it"
