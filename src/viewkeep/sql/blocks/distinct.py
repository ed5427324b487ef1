"""Every row once, where rows can be compared."""

from sqlglot import exp

from viewkeep.query.algebra import Distinct, Node
from viewkeep.query.types.signatures import ONLY_CARRIED
from viewkeep.sql.blocks.context import Context


def distinct_of_query(node: Node, query: exp.Expr, context: Context) -> Node:
    """The rows of a query, each once."""
    refuse_incomparable(node, query, context)
    return Distinct(node)


def refuse_incomparable(node: Node, query: exp.Expr, context: Context) -> None:
    """An error with the column whose values cannot be compared."""
    for field in node.schema:
        if field.type.has_map:
            problem = f'column "{field.name}" is {field.type}, and rows would be compared'
            raise context.source.error(f"{problem}: {ONLY_CARRIED}", query)
