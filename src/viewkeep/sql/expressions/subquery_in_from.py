"""A subquery in the FROM of another one that reads the rows around both: it is a LATERAL one."""

from sqlglot import exp

from viewkeep.query.algebra import Node, Select
from viewkeep.sql.blocks.block import Block
from viewkeep.sql.blocks.context import Context, LateralJoin
from viewkeep.sql.blocks.scope import Scope, ScopeColumn
from viewkeep.sql.expressions.translator import Translator, attached


def reads_one_subquery(select: exp.Select) -> bool:
    """Whether all of FROM is one subquery."""
    clause = select.args.get("from_")
    if clause is None or not isinstance(clause.this, exp.Subquery):
        return False
    others = [each.args.get(n) for each in (select, clause.this) for n in ("joins", "laterals")]
    return not any(others) and not clause.this.args.get("pivots")


def block_beside(select: exp.Select, left: Node, context: Context) -> Block:
    """FROM and WHERE of a query over one subquery, for each of the rows beside it, whose columns
    `context.outer` names; all clauses may read them."""
    table = select.args["from_"].this
    assert context.outer is not None, "the rows beside it have names"
    rows = context.lateral_rows(table.this, left, context.outer, LateralJoin(False))
    alias = table.args.get("alias")
    names = [each.name for each in alias.columns] if alias else []
    names = names or [name for name, _ in rows.columns]
    if len(names) != len(rows.columns):
        problem = f"{len(names)} names for {len(rows.columns)} columns"
        raise context.source.error(problem, table)
    scalars = [scalar for _, scalar in rows.columns]
    columns = map(ScopeColumn, [table.alias] * len(names), names, scalars)
    scope = Scope(tuple(columns), context.outer)
    where = select.args.get("where")
    if where is None:
        return Block(rows.node, scope, ())
    translator = Translator(context.source, scope, correlated=True)
    translator.attachments = context.attachments(rows.node)
    condition = translator.condition(where.this).expression
    return Block(Select(attached(rows.node, translator), condition), scope, ())
