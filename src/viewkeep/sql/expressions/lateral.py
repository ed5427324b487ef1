"""LATERAL subqueries: rows beside those that a subquery has for each of them.

A subquery of plain rows is a join whose condition is what links it to the rows around it. Groups,
DISTINCT, windows and LIMIT are computed for all values of the links at once, and joined by them; an
aggregate of all rows is joined from the left, since it has a row also where there are none. A
set operation combines what its sides are. A subquery that reads the rows beside it elsewhere than
in WHERE is computed for all values that it reads of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from sqlglot import exp

from viewkeep.errors import UnsupportedError
from viewkeep.query.algebra import Join, Node, Output, Project, Select
from viewkeep.query.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    literal,
)
from viewkeep.query.types.inference import type_of
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.block import chooses_rows, translate_block
from viewkeep.sql.blocks.clauses import is_grouped, refuse_clauses
from viewkeep.sql.blocks.context import Context, LateralJoin, LateralRows, with_common_tables
from viewkeep.sql.blocks.inline_tables import inline_common_tables
from viewkeep.sql.blocks.items import Item, item_names, select_items
from viewkeep.sql.blocks.joins import join
from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.blocks.set_operation import combine
from viewkeep.sql.blocks.top import has_top, top_of_outputs, without_brackets
from viewkeep.sql.expressions.correlation import Outer
from viewkeep.sql.expressions.domain import Domain, domain_of
from viewkeep.sql.expressions.subquery_in_from import block_beside, reads_subqueries
from viewkeep.sql.expressions.subquery_joins import SubqueryJoins
from viewkeep.sql.expressions.subquery_rows import Answer, SubqueryRows, Total
from viewkeep.sql.expressions.translator import Translator, attached


def lateral_rows(query: exp.Expr, left: Node, context: Context, kind: LateralJoin) -> LateralRows:
    """Join rows with a LATERAL subquery, which reads them as `context.outer`."""
    try:
        return _lateral_as_written(query, left, context, kind)
    except UnsupportedError:
        without_tables = inline_common_tables(without_brackets(query))
        if without_tables is None:
            raise
        return _lateral_as_written(without_tables, left, context, kind)


def rows_by_domain(
    query: exp.Expr, outer: Outer, rows: SubqueryRows, context: Context
) -> Answer | Total | None:
    """The rows of a subquery for each of the values that it reads of the query around, which is
    `context.outer`; None where it reads none."""
    inner_query = without_brackets(query)
    domain = domain_of(inner_query, outer.rows, context, outer.values)
    return None if domain is None else _lateral_by_domain(inner_query, domain, rows, context)


def _lateral_as_written(
    query: exp.Expr, left: Node, context: Context, kind: LateralJoin
) -> LateralRows:
    inner_query = without_brackets(query)
    if isinstance(inner_query, exp.Select) and _is_lateral_row_by_row(inner_query):
        refuse_clauses(inner_query, context.source)
        inside = with_common_tables(inner_query, context)
        if inner_query.args.get("from_") is None and inner_query.args.get("where") is None:
            return _lateral_without_from(inner_query, left, inside, kind)
        try:
            return _lateral_join(inner_query, left, inside, kind)
        except UnsupportedError:
            if not reads_subqueries(inner_query):
                raise
        return _lateral_over_subquery(inner_query, left, inside, kind)
    assert context.outer is not None, "the rows around have names"
    around = Translator(context.source, context.outer)
    joins = SubqueryJoins(context, Outer(left, left.schema, {}))
    rows = SubqueryRows(context, joins)
    try:
        answer = rows.open(query, around)
    except UnsupportedError:
        if _is_union_all(inner_query) and not kind.outer:
            return _lateral_set_operation(
                inner_query, left, with_common_tables(inner_query, context)
            )
        domain = domain_of(inner_query, left, context)
        if domain is None:
            raise
        answer = _lateral_by_domain(inner_query, domain, rows, context)
    if isinstance(answer, Total):
        return _lateral_join_beside_total(answer, joins.attached(left), kind, around, query)
    return _lateral_join_beside(answer, left, kind)


def _is_union_all(query: exp.Expr) -> TypeGuard[exp.Union]:
    return isinstance(query, exp.Union) and not (query.args.get("distinct") or has_top(query))


def _lateral_by_domain(
    query: exp.Expr, domain: Domain, rows: SubqueryRows, context: Context
) -> Answer | Total:
    """The rows of a subquery for each of the values that it reads."""
    if isinstance(query, exp.Select):
        return rows.open_by_domain(query, domain)
    if not isinstance(query, exp.SetOperation):
        raise context.source.unsupported("LATERAL with LIMIT behind brackets", query)
    inside = with_common_tables(query, replace(context, outer=domain.scope))
    sides = _lateral_set_operation(query, domain.node, inside)
    names = tuple(name for name, _ in sides.columns)
    node = top_of_outputs(query, sides.node, context, names, domain.node.names)
    return Answer(node, domain.links, names)


def _lateral_set_operation(query: exp.SetOperation, left: Node, context: Context) -> LateralRows:
    """A set operation of two LATERAL subqueries: its sides are joined to the rows one by one, then
    combined; but for UNION ALL, the rows must be distinct."""
    refuse_clauses(query, context.source)
    alias = context.names.take("lateral")
    sides = [
        lateral_rows(side, left, context, LateralJoin(False))
        for side in (query.this, query.expression)
    ]
    first, second = (_items_beside_lateral(side, left, alias) for side in sides)
    node = combine(first, second, query, context)
    names = [name for name, _ in sides[0].columns]
    return _lateral_rows(node, names, [Column(name) for name in first.names[len(left.names) :]])


def _items_beside_lateral(rows: LateralRows, left: Node, alias: str) -> Node:
    """The columns of the rows beside a subquery, then its own."""
    own = [Output(f"{alias}.{i}", s.expression) for i, (_, s) in enumerate(rows.columns, start=1)]
    return Project(rows.node, (*(Output(name, Column(name)) for name in left.names), *own))


def _is_lateral_row_by_row(select: exp.Select) -> bool:
    """Whether each row of a query comes of one row of its FROM."""
    return not (is_grouped(select) or chooses_rows(select) or select.args.get("distinct"))


def _lateral_without_from(
    select: exp.Select, left: Node, context: Context, kind: LateralJoin
) -> LateralRows:
    """A subquery without FROM has one row, computed of the row beside it."""
    assert context.outer is not None, "the rows around have names"
    translator = Translator(context.source, context.outer)
    translator.attachments = context.attachments(left)
    items = select_items(select, translator)
    values = [item.scalar.expression for item in items]
    rows = _lateral_rows(attached(left, translator), item_names(items, context.source), values)
    if kind.on is None:
        return rows
    condition = kind.on(rows.columns).expression
    return _lateral_rows(
        rows.node, item_names(items, context.source), [_lateral_if(condition, v) for v in values]
    )


def _lateral_join(
    select: exp.Select, left: Node, context: Context, kind: LateralJoin
) -> LateralRows:
    block = translate_block(select, context, correlated=True)
    translator = Translator(context.source, block.scope, correlated=True)
    translator.attachments = context.attachments(block.node)
    items = select_items(select, translator)
    names, right = item_names(items, context.source), attached(block.node, translator)
    condition = conjunction(block.correlated)
    values = [item.scalar.expression for item in items]
    if not kind.outer:
        return _lateral_rows(Join(left, right, condition), names, values)
    match_flag = f"{context.names.take('lateral')}.there"
    own_columns = [Output(name, Column(name)) for name in right.names]
    marked = Project(right, (*own_columns, Output(match_flag, literal(True))))
    node = join(
        "left", left, marked, _lateral_on_condition(kind, condition, left, right, names, values)
    )
    return _lateral_rows(
        node, names, [_lateral_item_or_null(item, match_flag, right) for item in items]
    )


def _lateral_over_subquery(
    select: exp.Select, left: Node, context: Context, kind: LateralJoin
) -> LateralRows:
    """A query over a subquery that reads the rows beside itself: that one is the LATERAL one."""
    if kind.outer:
        domain = domain_of(select, left, context)
        if domain is None:
            raise context.source.unsupported("a subquery in FROM of this LATERAL one", select)
        inside = replace(context, outer=domain.scope)
        rows = _lateral_over_subquery(select, domain.node, inside, LateralJoin(False))
        alias = context.names.take("lateral")
        node = _items_beside_lateral(rows, domain.node, alias)
        return _lateral_join_beside(
            Answer(node, domain.links, tuple(name for name, _ in rows.columns)), left, kind
        )
    block = block_beside(select, left, context)
    translator = Translator(context.source, block.scope, correlated=True)
    translator.attachments = context.attachments(block.node)
    items = select_items(select, translator)
    return _lateral_rows(
        attached(block.node, translator),
        item_names(items, context.source),
        [item.scalar.expression for item in items],
    )


def _lateral_on_condition(
    kind: LateralJoin,
    links: Expression,
    left: Node,
    right: Node,
    names: Sequence[str],
    values: Sequence[Expression],
) -> Expression:
    """The condition of an outer join: what links the subquery, and what ON asks for."""
    if kind.on is None:
        return links
    columns = _lateral_rows(Join(left, right), names, values).columns
    return conjunction([links, kind.on(columns).expression])


def _lateral_item_or_null(item: Item, match_flag: str, right: Node) -> Expression:
    """An item of the subquery; NULL beside a row for which it has none."""
    expression = item.scalar.expression
    if isinstance(expression, Column) and columns_of(expression) <= set(right.names):
        return expression
    return _lateral_if(Call("isnotnull", (Column(match_flag),)), expression)


def _lateral_if(condition: Expression, value: Expression) -> Expression:
    return Call("case", (condition, value))


def _lateral_join_beside(answer: Answer, left: Node, kind: LateralJoin) -> LateralRows:
    """Join rows with those of a subquery that have the same values of the links."""
    pairs = zip(answer.links, answer.keys, strict=True)
    condition = conjunction(Call(each.operator, (each.outer, Column(k))) for each, k in pairs)
    values = [Column(item) for item in answer.items]
    condition = _lateral_on_condition(kind, condition, left, answer.node, answer.names, values)
    node = join("left" if kind.outer else "inner", left, answer.node, condition)
    return _lateral_rows(node, answer.names, values)


def _lateral_join_beside_total(
    total: Total, node: Node, kind: LateralJoin, translator: Translator, query: exp.Expr
) -> LateralRows:
    """The one row of an aggregate; HAVING and ON may take it away."""
    rows = _lateral_rows(node, total.names, [item.expression for item in total.items])
    if not kind.outer:
        having = total.having
        return rows if having is None else replace(rows, node=Select(node, having.expression))
    conditions = [] if total.having is None else [total.having]
    conditions += [] if kind.on is None else [kind.on(rows.columns)]
    items = total.items
    for condition in conditions:
        items = tuple(translator.call("case", [condition, item], query) for item in items)
    return _lateral_rows(node, total.names, [item.expression for item in items])


def _lateral_rows(node: Node, names: Sequence[str], values: Sequence[Expression]) -> LateralRows:
    scalars = [Scalar(value, _typed_lateral_value(value, node)) for value in values]
    return LateralRows(node, tuple(zip(names, scalars, strict=True)))


def _typed_lateral_value(value: Expression, node: Node) -> TypedValue:
    return type_of(value, node.schema)
