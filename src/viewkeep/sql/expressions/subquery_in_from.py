"""Subqueries in the FROM of another one that read the rows around both: they are LATERAL ones."""

from sqlglot import exp

from viewkeep.query.algebra import Node, Select
from viewkeep.sql.blocks.block import Block
from viewkeep.sql.blocks.context import Context, LateralJoin
from viewkeep.sql.blocks.scope import Scope, ScopeColumn
from viewkeep.sql.expressions.translator import Translator, attached


def reads_subqueries(select: exp.Select) -> bool:
    """Whether FROM is subqueries, perhaps joined with each other and with tables."""
    clause = select.args.get("from_")
    if clause is None or select.args.get("laterals"):
        return False
    joins = select.args.get("joins") or []
    tables = [clause.this, *(each.this for each in joins)]
    plain = all(
        isinstance(each, exp.Subquery | exp.Table)
        and not any(each.args.get(part) for part in ("joins", "laterals", "pivots"))
        for each in tables
    )
    inner = all(each.kind in ("", "INNER", "CROSS") and not _is_special(each) for each in joins)
    return plain and inner and any(isinstance(each, exp.Subquery) for each in tables)


def _is_special(join: exp.Join) -> bool:
    return any(join.args.get(part) for part in ("side", "method", "using"))


def block_beside(select: exp.Select, left: Node, context: Context) -> Block:
    """FROM and WHERE of a query over subqueries, for each of the rows beside it, whose columns
    `context.outer` names; all clauses may read them."""
    block = Block(left, Scope((), context.outer), ())
    block = _table_beside(select.args["from_"].this, block, context)
    for join in select.args.get("joins") or ():
        block = _table_beside(join.this, block, context)
        if join.args.get("on") is not None:
            block = _rows_where(join.args["on"], block, context)
    where = select.args.get("where")
    return block if where is None else _rows_where(where.this, block, context)


def _table_beside(table: exp.Expr, block: Block, context: Context) -> Block:
    """The rows with those that a table of FROM has for each of them."""
    assert context.outer is not None, "the rows beside it have names"
    query = table.this if isinstance(table, exp.Subquery) else _query_of_table(table)
    rows = context.lateral_rows(query, block.node, context.outer, LateralJoin(False))
    names = table.alias_column_names or [name for name, _ in rows.columns]
    if len(names) != len(rows.columns):
        problem = f"{len(names)} names for {len(rows.columns)} columns"
        raise context.source.error(problem, table)
    scalars = [scalar for _, scalar in rows.columns]
    columns = map(ScopeColumn, [table.alias_or_name] * len(names), names, scalars)
    return Block(rows.node, Scope((*block.scope.columns, *columns), context.outer), ())


def _query_of_table(table: exp.Expr) -> exp.Expr:
    bare = table.copy()
    bare.set("alias", None)
    return exp.Select(expressions=[exp.Star()]).from_(bare, copy=False)


def _rows_where(condition: exp.Expr, block: Block, context: Context) -> Block:
    translator = Translator(context.source, block.scope, correlated=True)
    translator.attachments = context.attachments(block.node)
    holds = translator.condition(condition).expression
    return Block(Select(attached(block.node, translator), holds), block.scope, ())
