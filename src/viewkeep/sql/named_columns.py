"""Columns that the text of a query may read, where nothing but the text is known."""

from sqlglot import exp

from viewkeep.errors import UnreadableError
from viewkeep.sql.parse import single_query
from viewkeep.sql.source import Source


def may_name_column(sql: str, column: str) -> bool:
    """Whether a query may read a column: by its name, by `*`, or by a NATURAL JOIN.

    >>> may_name_column("SELECT max_by(pid, price), count(*) FROM parts", "colour")
    False
    >>> may_name_column("SELECT * FROM parts", "colour")
    True
    """
    source = Source(sql)
    try:
        query = single_query(source)
    except UnreadableError:  # Spark reads more
        return True
    return any(_names(node, column.lower()) for node in query.walk())


def _names(node: exp.Expr, column: str) -> bool:
    match node:
        case exp.Star():
            return not (isinstance(node.parent, exp.Func) and node.parent.name.lower() == "count")
        case exp.Join():
            return str(node.args.get("method") or "").upper() == "NATURAL"
        case exp.Identifier():
            return node.name.lower() == column
    return False
