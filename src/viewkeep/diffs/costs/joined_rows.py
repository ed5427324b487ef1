"""How many rows the joins of a query pass on, by numbers of rows alone.

A join is expected to find one partner for each row of its larger side, and conditions on either
side to leave the same share of its result: an engine joins first what leaves the fewest rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from viewkeep.query.algebra import AntiJoin, GroupBy, Join, Node, Scan, Select, SemiJoin, UnionAll
from viewkeep.query.expressions import Call, Column, Expression, Literal, conjuncts
from viewkeep.query.traversal import walk

SHARES = {"=": 0.1, "like": 0.1, "<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3}
"""The share of rows for which a comparison of a column with a value is expected to hold."""


@dataclass(frozen=True)
class _JoinPart:
    """So many rows, of which conditions leave a share."""

    whole: float
    share: float = 1.0

    @property
    def rows(self) -> float:
        return self.whole * self.share


def joined_rows(query: Node, tables: Mapping[str, int]) -> float:
    """The rows that all joins of a query pass on; those that look for partners only count the rows
    of their larger side.

    >>> from viewkeep.query.tables import Table
    >>> a, b = (Scan(name, Table({"x": "int"}), name) for name in "ab")
    >>> join = Join(a, b, Call("=", (Column("a.x"), Column("b.x"))))
    >>> joined_rows(join, {"a": 1000, "b": 10})
    1000.0
    """
    parts: dict[Node, _JoinPart] = {}
    total = 0.0
    for node in walk(query):
        children = [parts[child] for child in node.children]
        parts[node] = _join_part(node, children, tables)
        if isinstance(node, Join):
            total += parts[node].rows
        elif isinstance(node, SemiJoin | AntiJoin):
            total += max(each.rows for each in children)
    return total


def _join_part(node: Node, children: list[_JoinPart], tables: Mapping[str, int]) -> _JoinPart:
    match node:
        case Scan():
            return _JoinPart(tables.get(node.name, 1))
        case Select():
            shares = map(_selection_share, conjuncts(node.condition))
            return _JoinPart(children[0].whole, children[0].share * prod(shares))
        case Join():
            whole = [each.whole for each in children]
            size = max(whole) if _has_equality(node.condition) else prod(whole)
            return _JoinPart(size, prod(each.share for each in children))
        case UnionAll():
            return _JoinPart(sum(each.rows for each in children))
        case GroupBy(keys=()):
            return _JoinPart(1)
    return children[0] if children else _JoinPart(1)


def _selection_share(part: Expression) -> float:
    match part:
        case Call(function, (Column(), Literal())):
            return SHARES.get(function, 1.0)
    return 1.0


def _has_equality(condition: Expression) -> bool:
    return any(
        isinstance(each, Call) and each.function in ("=", "<=>") for each in conjuncts(condition)
    )
