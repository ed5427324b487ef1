"""One query block, clause by clause, in the order in which SQL evaluates them."""

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.query.algebra import Distinct, GroupBy, Node, walk
from viewkeep.sql.aggregation import aggregate
from viewkeep.sql.block import Block, apply_filters, translate_block, translate_filters
from viewkeep.sql.clauses import is_grouped, refuse_clauses
from viewkeep.sql.context import Context
from viewkeep.sql.distinct import distinct
from viewkeep.sql.grouping import GroupedTranslator, aliases_of, group_keys
from viewkeep.sql.items import project, select_items
from viewkeep.sql.scalar import Translator


def translate_select(select: exp.Select, context: Context) -> Node:
    """FROM and WHERE, then GROUP BY and HAVING, then the select list, then DISTINCT."""
    refuse_clauses(select, context.source)
    block = translate_block(select, context)
    if is_grouped(select):
        node = _grouped(select, block, context)
    else:
        items = select_items(select, Translator(context.source, block.scope))
        node = project(block.node, items, context.source)
    if not select.args.get("distinct"):
        return node
    return context.placed(
        distinct(node, select, context), select.expressions[0], TokenType.DISTINCT
    )


def _grouped(select: exp.Select, block: Block, context: Context) -> Node:
    keys = group_keys(select, Translator(context.source, block.scope))
    groups = GroupedTranslator(context.source, block.scope, keys)
    items = select_items(select, groups)
    having = select.args.get("having")
    groups.aliases = aliases_of(select)
    filters = translate_filters(having.this, groups, context) if having else []
    if not keys and not groups.aggregates:
        raise context.source.unsupported(
            "HAVING without GROUP BY or an aggregate", having or select
        )
    node = aggregate(block.node, keys, groups.aggregates)
    _place_groups(node, select, context)
    if having:
        node = apply_filters(node, filters, context)
        context.placed(node, having.this, TokenType.HAVING)
    return project(node, items, context.source)


def _place_groups(node: Node, select: exp.Select, context: Context) -> None:
    """Note where the groups are asked for: all operators that have no place yet come from there."""
    group = select.args.get("group")
    part = group.expressions[0] if group and group.expressions else select.expressions[0]
    for each in walk(node):
        if isinstance(each, GroupBy | Distinct):
            context.placed(each, part, TokenType.GROUP_BY)
