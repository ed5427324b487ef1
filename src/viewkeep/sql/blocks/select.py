"""One query block, clause by clause, in the order in which SQL evaluates them."""

from collections import Counter

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.query.algebra import Node, Select
from viewkeep.sql.blocks.block import Block, translate_block
from viewkeep.sql.blocks.clauses import is_grouped, refuse_clauses
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.distinct import distinct_of_query
from viewkeep.sql.blocks.generators import BlockGenerator
from viewkeep.sql.blocks.items import (
    output_names,
    project_items,
    repeated_outputs,
    select_items,
)
from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.blocks.top import apply_top, read_top, replace_aliases, top_of_outputs
from viewkeep.sql.blocks.windows import BlockWindows
from viewkeep.sql.expressions.translator import Translator, attached
from viewkeep.sql.groups.grouping import GroupedTranslator, aliases_of
from viewkeep.sql.groups.groups import apply_groups, group_translator


def translate_select(select: exp.Select, context: Context) -> Node:
    """FROM and WHERE, GROUP BY and HAVING, windows and QUALIFY, LIMIT, the select list; with
    DISTINCT the limit comes last."""
    refuse_clauses(select, context.source)
    block = translate_block(select, context)
    translator = _select_translator(select, block, context)
    windows = BlockWindows(named_windows(select))
    translator.windows = windows
    generator = BlockGenerator(context.names)
    translator.generator = generator
    items = select_items(select, translator)
    qualify = read_qualify(select, translator)
    unique = bool(select.args.get("distinct"))
    top = None if unique else read_top(select, translator, ordered_names(select))
    translator.windows = None
    if isinstance(translator, GroupedTranslator):
        node = apply_groups(select, block, translator, context)
    else:
        node = attached(block.node, translator)
    node = windows.apply(node, context)
    if qualify is not None:
        node = Select(node, qualify.expression)
        context.placed(node, select.args["qualify"].this, TokenType.QUALIFY)
    if generator.call is not None and top is not None:
        raise context.source.unsupported("LIMIT beside explode() in the select list", top.place)
    node = project_items(apply_top(generator.apply(node), top, context), items, context.source)
    context.written.put(node, output_names(items, node), repeated_outputs(items))
    if not unique:
        return node
    node = context.written.move(node, distinct_of_query(node, select, context))
    context.placed(node, select.expressions[0], TokenType.DISTINCT)
    qualifiers = [item.column.qualifier if item.column else "" for item in items]
    return top_of_outputs(select, node, context, qualifiers=qualifiers)


def ordered_names(select: exp.Select) -> dict[str, exp.Expr]:
    """The expressions that ORDER BY names: an output column hides a column of FROM."""
    plain = [e for e in select.expressions if isinstance(e, exp.Column)]
    texts = {(e.name.lower(), e.sql().lower()) for e in plain}
    counts = Counter(name for name, _ in texts)  # of two columns alike, it names neither
    named = {e.name.lower(): e for e in plain if counts[e.name.lower()] == 1}
    return {**named, **aliases_of(select)}


def _select_translator(select: exp.Select, block: Block, context: Context) -> Translator:
    if is_grouped(select):
        return group_translator(select, block, context)
    translator = Translator(context.source, block.scope)
    translator.attachments = context.attachments(block.node)
    return translator


def named_windows(select: exp.Select) -> dict[str, exp.Window]:
    """The windows of the WINDOW clause."""
    return {each.name.lower(): each for each in select.args.get("windows") or ()}


def read_qualify(select: exp.Select, translator: Translator) -> Scalar | None:
    """The condition on window functions, which may use names of the select list."""
    clause = select.args.get("qualify")
    if clause is None:
        return None
    return translator.condition(replace_aliases(clause.this, aliases_of(select), translator.scope))
