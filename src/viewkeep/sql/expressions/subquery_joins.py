"""The joins that bring the values of subqueries to the rows around them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeep.query.algebra import Join, Node
from viewkeep.query.expressions import TRUE, Call, Column, Expression, columns_of, conjunction
from viewkeep.query.types.inference import type_of
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.joins import join
from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.expressions.correlation import Link, Outer

FAR_COLUMN = "a subquery that reads this of the query around it"
"""The construct that a subquery of a subquery is refused for."""


@dataclass(frozen=True, slots=True)
class OneRow:
    """A join partner with at most one match per outer row; with `always`, exactly one."""

    right: Node
    condition: Expression
    always: bool


class SubqueryJoins:
    """The rows of subqueries that are joined to outer rows, in this order; `place` is the
    expression that is translated, for errors."""

    def __init__(self, context: Context, outer: Outer) -> None:
        self._context, self.outer = context, outer
        self._joins: list[OneRow] = []
        self.place: exp.Expr = exp.Null()

    def attached(self, node: Node) -> Node:
        """The rows, each with the values of the subqueries for it."""
        for each in self._joins:
            if each.always:
                node = Join(node, each.right, each.condition)
            else:
                node = join("left", node, each.right, each.condition)
        return node

    @property
    def count(self) -> int:
        """How many joins there are."""
        return len(self._joins)

    def forget_after(self, count: int) -> None:
        """Leave out all joins but the first: those of a translation that was given up."""
        del self._joins[count:]

    def add_constant(self, right: Node) -> None:
        """Join one row to every outer row."""
        self._joins.append(OneRow(right, TRUE, True))

    def add(self, right: Node, links: Sequence[Link], columns: Sequence[str]) -> None:
        """Join rows whose columns equal the outer expressions of the links."""
        pairs = zip(links, columns, strict=True)
        same = [Call(each.operator, (each.outer, Column(c))) for each, c in pairs]
        outer = {field.name for field in self.outer.schema}
        if any(columns_of(each.outer) - outer for each in links):
            raise self._context.source.unsupported(FAR_COLUMN, self.place)
        self._joins.append(OneRow(right, conjunction(same), not links))

    def column(self, node: Node, name: str) -> Scalar:
        """A column of the last join; it may be NULL unless that join always has a match."""
        typed = type_of(Column(name), node.schema)
        missing = not self._joins[-1].always
        return Scalar(Column(name), TypedValue(typed.type, typed.nullable or missing))
