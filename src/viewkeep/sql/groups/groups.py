"""GROUP BY and HAVING of one query block: from rows to the groups that pass."""

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.query.algebra import Distinct, GroupBy, Node
from viewkeep.query.expressions import Expression
from viewkeep.query.traversal import walk
from viewkeep.sql.blocks.block import Block, apply_filters, translate_filters
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.expressions.translator import Translator, attached
from viewkeep.sql.groups.aggregation import aggregate
from viewkeep.sql.groups.grouping import (
    GroupedTranslator,
    GroupKey,
    aliases_of,
    group_keys,
    keys_of_sets,
)
from viewkeep.sql.groups.grouping_sets import declared_keys, expand, has_sets, sets_of


def group_translator(
    select: exp.Select, block: Block, context: Context, constants: Sequence[str] = ()
) -> GroupedTranslator:
    """What translates the select list of a block with groups, and collects its aggregates; some
    columns of the query around it may be the same in all rows of a group."""
    rows = Translator(context.source, block.scope, correlated=bool(constants))
    rows.attachments = context.attachments(block.node)
    group = select.args.get("group")
    sets: tuple[frozenset[str], ...] = ()
    if group is not None and has_sets(group):
        keys, sets = keys_of_sets(sets_of(group), declared_keys(group), select, rows)
        if not keys:  # without any key the one set means all rows, also where there are none
            if len(sets) > 1:
                raise context.source.unsupported("GROUPING SETS without keys", group)
            sets = ()
    else:
        keys = group_keys(select, rows)
    groups = GroupedTranslator(context.source, block.scope, keys, constants)
    groups.rows, groups.sets, groups.base = rows, sets, block.node
    if sets:  # a key is NULL also where the set has it not
        groups.attachments = context.attachments(
            expand(block.node, keys, sets, ())[0], {k.name: k.column for k in keys}
        )
    else:
        groups.attachments = context.attachments(block.node, {k.name: k.scalar for k in keys})
    return groups


def apply_groups(
    select: exp.Select,
    block: Block,
    groups: GroupedTranslator,
    context: Context,
    links: Mapping[Expression, GroupKey] | None = None,
) -> Node:
    """The groups that pass HAVING; rows with different values of `links` are never in one."""
    having = select.args.get("having")
    groups.aliases = aliases_of(select)
    filters = translate_filters(having.this, groups, context) if having else []
    keys = {**(links or {}), **{key.scalar.expression: key for key in groups.keys}}
    if not keys and not groups.aggregates:
        raise context.source.unsupported(
            "HAVING without GROUP BY or an aggregate", having or select
        )
    base, columns = attached(block.node, groups.rows), tuple(keys.values())
    if groups.sets:
        if len(keys) > len(groups.keys):
            raise context.source.unsupported("GROUPING SETS in a correlated subquery", select)
        base, columns = expand(base, groups.keys, groups.sets, groups.aggregates)
    node = aggregate(base, columns, groups.aggregates)
    place_groups(node, select, context)
    node = attached(node, groups)
    if having:
        node = apply_filters(node, filters, context)
        context.placed(node, having.this, TokenType.HAVING)
    return node


def place_groups(node: Node, select: exp.Select, context: Context) -> None:
    """Note the position of GROUP BY for all group-bys below that have none."""
    group = select.args.get("group")
    part = group.expressions[0] if group and group.expressions else select.expressions[0]
    for each in walk(node):
        if isinstance(each, GroupBy | Distinct):
            context.placed(each, part, TokenType.GROUP_BY)
