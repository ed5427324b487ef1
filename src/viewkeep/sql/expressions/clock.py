"""Calls that read the clock, and parts of a query that have values joined to them."""

from sqlglot import exp

from viewkeep.query.clock import AT, CALLS, TODAY


def clock_column(node: exp.Expr) -> str | None:
    """The column of the clock that a call reads; None for what is none."""
    match node:
        case exp.CurrentDate():
            return None if node.this else TODAY
        case exp.CurrentTimestamp():
            return None if node.this else AT
        case exp.Anonymous() if not node.expressions:
            return CALLS.get(node.name.lower())
    return None


def is_joined(node: exp.Expr) -> bool:
    """Whether an expression has a subquery, or reads the clock: both are joined to the rows."""
    return any(isinstance(e, exp.Query) or clock_column(e) is not None for e in node.walk())
