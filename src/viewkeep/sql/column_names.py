"""Names of output columns that the text of a view does not give, in a form that Delta allows."""

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from viewkeep.errors import UnreadableError
from viewkeep.query.tables import Table
from viewkeep.sql.blocks.context import FreshNames
from viewkeep.sql.parse import single_query
from viewkeep.sql.source import Source

_SIGNS = re.compile(r"_*\W+_*")


def stored_names(sql: str, names: Sequence[str], tables: Mapping[str, Table]) -> list[str]:
    """The names of a view's columns: those that Spark makes of expressions become plain, every run
    of signs an underscore, and two alike are told apart.

    >>> stored_names("SELECT count(*), count(1), a AS `b c` FROM t", ["count(1)"] * 2 + ["b c"], {})
    ['count_1', 'count_1_2', 'b c']
    """
    fresh = FreshNames()
    source_names = _source_names(sql, tables)
    return [
        fresh.take(name if name in source_names else _plain_column_name(name)) for name in names
    ]


def _plain_column_name(name: str) -> str:
    return _SIGNS.sub("_", name).strip("_") or "column"


def _source_names(sql: str, tables: Mapping[str, Table]) -> set[str]:
    """The names that stand in the text or that tables have: these are nobody's to change."""
    source = Source(sql)
    try:
        identifiers = {each.name for each in single_query(source).find_all(exp.Identifier)}
    except UnreadableError:  # Spark reads more
        identifiers = {token.text for token in source.tokens}
    return identifiers | {field.name for table in tables.values() for field in table.columns}
