"""The values that a LATERAL subquery reads of the rows beside it, each once.

A subquery that reads them anywhere is computed for all of these values at once, and joined to the
rows that have them (unnesting of arbitrary queries: the domain of a dependent join).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeep.query.algebra import Distinct, Node, Output, Project
from viewkeep.query.expressions import Column, Expression, columns_of, substitute
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.scope import Scalar, Scope
from viewkeep.sql.expressions.correlation import Link


@dataclass(frozen=True, slots=True)
class Domain:
    """The distinct values, what they are called in the subquery, and what they are beside it."""

    node: Node
    scope: Scope
    links: tuple[Link, ...]

    @property
    def values(self) -> Mapping[str, Expression]:
        """The expressions over the rows beside the subquery, by the columns of the domain."""
        return dict(zip(self.node.names, (each.outer for each in self.links), strict=True))


def domain_of(
    query: exp.Expr, left: Node, context: Context, values: Mapping[str, Expression] | None = None
) -> Domain | None:
    """The domain of a subquery beside rows, or beside groups of them by some values; None where it
    reads none of them, or maps."""
    assert context.outer is not None, "the rows around have names"
    identifiers = {each.name.lower() for each in query.find_all(exp.Identifier)}
    columns = [each for each in context.outer.columns if each.name.lower() in identifiers]
    if not columns or any(each.scalar.typed.type.has_map for each in columns):
        return None
    alias = context.names.take("lateral")
    names = [f"{alias}.{i}" for i in range(1, len(columns) + 1)]
    outer = [each.scalar.expression for each in columns]
    of_rows = [substitute(each, lambda c: (values or {}).get(c.name, c)) for each in outer]
    if any(columns_of(each) - set(left.names) for each in of_rows):
        return None
    node = Distinct(Project(left, tuple(map(Output, names, of_rows))))
    domain_columns = [
        replace(each, scalar=Scalar(Column(name), each.scalar.typed))
        for name, each in zip(names, columns, strict=True)
    ]
    scope = Scope(tuple(domain_columns), context.outer.outer)
    links = [Link(Column(n), "<=>", value) for n, value in zip(names, outer, strict=True)]
    return Domain(node, scope, tuple(links))
