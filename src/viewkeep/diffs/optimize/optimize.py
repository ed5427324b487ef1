"""Pass 0: the view as an optimizer would write it, with the same columns and rows.

Rules go from tree to tree in the order of `RULES`; each is a file of its own. Expressions that can
fail (division, overflow, casts: Spark's ANSI mode) are never computed for rows for which the view
as it is written would not compute them.
"""

from functools import lru_cache, reduce

from viewkeep.diffs.optimize.drop_columns import drop_columns
from viewkeep.diffs.optimize.limit_windows import limit_windows
from viewkeep.diffs.optimize.merge_projections import merge_projections
from viewkeep.diffs.optimize.order_joins import order_joins
from viewkeep.diffs.optimize.push_selections import push_selections
from viewkeep.diffs.optimize.reserve_rows import reserve_rows
from viewkeep.diffs.optimize.share_groups import share_groups
from viewkeep.query.algebra import Node

RULES = (
    push_selections,
    limit_windows,
    reserve_rows,
    order_joins,
    share_groups,
    drop_columns,
    merge_projections,
)
"""Selections down and into joins -> windows with limits, where only first rows are asked for ->
some rows more behind these -> joins without cross products -> equal groups once -> narrow inputs of
group-bys -> one projection for several."""


@lru_cache(maxsize=64)  # a view has scripts for many kinds of changes
def optimize(view: Node) -> Node:
    """The view after all rules.

    >>> from viewkeep.query.algebra import Join, Scan, Select
    >>> from viewkeep.query.expressions import Call, Column
    >>> from viewkeep.query.tables import Table
    >>> r, s = (Scan(name, Table({"a": "int"}, key=["a"]), name) for name in "rs")
    >>> print(optimize(Select(Join(r, s), Call("=", (Column("r.a"), Column("s.a"))))))
    Join on r.a = s.a
      Scan r
      Scan s
    """
    return reduce(lambda node, rule: rule(node), RULES, view)
