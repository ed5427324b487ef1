"""One query block, clause by clause, in the order in which SQL evaluates them."""

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.query.algebra import Distinct, GroupBy, Node, Select, walk
from viewkeep.sql.aggregation import aggregate
from viewkeep.sql.block import Block, apply_filters, translate_block, translate_filters
from viewkeep.sql.clauses import is_grouped, refuse_clauses
from viewkeep.sql.context import Context
from viewkeep.sql.distinct import distinct
from viewkeep.sql.grouping import GroupedTranslator, aliases_of, group_keys
from viewkeep.sql.items import project, select_items
from viewkeep.sql.scalar import Translator
from viewkeep.sql.scope import Scalar
from viewkeep.sql.top import apply_top, read_top, replace_aliases, top_of_outputs
from viewkeep.sql.windows import BlockWindows


def translate_select(select: exp.Select, context: Context) -> Node:
    """FROM and WHERE, GROUP BY and HAVING, windows and QUALIFY, LIMIT, the select list; with
    DISTINCT the limit comes last."""
    refuse_clauses(select, context.source)
    block = translate_block(select, context)
    translator = _translator(select, block, context)
    windows = BlockWindows(_named_windows(select))
    translator.windows = windows
    items = select_items(select, translator)
    qualify = _qualify(select, translator)
    unique = bool(select.args.get("distinct"))
    top = None if unique else read_top(select, translator, _outputs(select))
    translator.windows = None
    node = block.node
    if isinstance(translator, GroupedTranslator):
        node = _grouped(select, block, translator, context)
    node = windows.apply(node, context)
    if qualify is not None:
        node = Select(node, qualify.expression)
        context.placed(node, select.args["qualify"].this, TokenType.QUALIFY)
    node = project(apply_top(node, top, context), items, context.source)
    if not unique:
        return node
    node = distinct(node, select, context)
    context.placed(node, select.expressions[0], TokenType.DISTINCT)
    return top_of_outputs(select, node, context)


def _outputs(select: exp.Select) -> dict[str, exp.Expr]:
    """The expressions that ORDER BY names: an output column hides a column of FROM."""
    plain = {e.name.lower(): e for e in select.expressions if isinstance(e, exp.Column)}
    return {**plain, **aliases_of(select)}


def _translator(select: exp.Select, block: Block, context: Context) -> Translator:
    if not is_grouped(select):
        return Translator(context.source, block.scope)
    keys = group_keys(select, Translator(context.source, block.scope))
    return GroupedTranslator(context.source, block.scope, keys)


def _named_windows(select: exp.Select) -> dict[str, exp.Window]:
    return {each.name.lower(): each for each in select.args.get("windows") or ()}


def _qualify(select: exp.Select, translator: Translator) -> Scalar | None:
    """The condition on window functions, which may use names of the select list."""
    clause = select.args.get("qualify")
    if clause is None:
        return None
    return translator.condition(replace_aliases(clause.this, aliases_of(select), translator.scope))


def _grouped(select: exp.Select, block: Block, groups: GroupedTranslator, context: Context) -> Node:
    having = select.args.get("having")
    groups.aliases = aliases_of(select)
    filters = translate_filters(having.this, groups, context) if having else []
    if not groups.keys and not groups.aggregates:
        raise context.source.unsupported(
            "HAVING without GROUP BY or an aggregate", having or select
        )
    node = aggregate(block.node, groups.keys, groups.aggregates)
    _place_groups(node, select, context)
    if having:
        node = apply_filters(node, filters, context)
        context.placed(node, having.this, TokenType.HAVING)
    return node


def _place_groups(node: Node, select: exp.Select, context: Context) -> None:
    """Note where the groups are asked for: all operators that have no place yet come from there."""
    group = select.args.get("group")
    part = group.expressions[0] if group and group.expressions else select.expressions[0]
    for each in walk(node):
        if isinstance(each, GroupBy | Distinct):
            context.placed(each, part, TokenType.GROUP_BY)
