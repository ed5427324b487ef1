"""LATERAL subqueries: rows beside those that a subquery has for each of them.

A subquery of plain rows is a join whose condition is what links it to the rows around it. Groups,
DISTINCT, windows and LIMIT are computed for all values of the links at once, and joined by them; an
aggregate of all rows is joined from the left, since it has a row also where there are none.
"""

from collections.abc import Sequence

from sqlglot import exp

from viewkeep.query.algebra import Join, Node, Output, Project, Select
from viewkeep.query.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    literal,
)
from viewkeep.query.types.functions import Typed
from viewkeep.query.types.inference import type_of
from viewkeep.sql.blocks.block import chooses_rows, translate_block
from viewkeep.sql.blocks.clauses import is_grouped, refuse_clauses
from viewkeep.sql.blocks.context import Context, LateralRows, with_common_tables
from viewkeep.sql.blocks.items import Item, item_names, select_items
from viewkeep.sql.blocks.joins import join
from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.blocks.top import unwrapped
from viewkeep.sql.expressions.correlation import Outer
from viewkeep.sql.expressions.subqueries import Answer, Subqueries, Total
from viewkeep.sql.expressions.translator import Translator, attached


def lateral_rows(query: exp.Expr, left: Node, context: Context, outer: bool) -> LateralRows:
    """Rows beside those of a subquery, which reads them as `context.outer`; with `outer`, a row for
    which there are none stays."""
    written = unwrapped(query)
    if isinstance(written, exp.Select) and _is_plain(written):
        refuse_clauses(written, context.source)
        inside = with_common_tables(written, context)
        if written.args.get("from_") is None and written.args.get("where") is None:
            return _computed(written, left, inside)
        return _joined(written, left, inside, outer)
    assert context.outer is not None, "the rows around have names"
    around = Translator(context.source, context.outer)
    subqueries = Subqueries(context, Outer(left, left.schema, {}))
    answer = subqueries.open(query, around)
    if isinstance(answer, Total):
        return _beside_total(answer, subqueries.attached(left), outer, around, query)
    return _beside(answer, left, outer)


def _is_plain(select: exp.Select) -> bool:
    """Whether each row of a query comes of one row of its FROM."""
    return not (is_grouped(select) or chooses_rows(select) or select.args.get("distinct"))


def _computed(select: exp.Select, left: Node, context: Context) -> LateralRows:
    """A subquery without FROM has one row, computed of the row beside it."""
    assert context.outer is not None, "the rows around have names"
    translator = Translator(context.source, context.outer)
    translator.attachments = context.attachments(left)
    items = select_items(select, translator)
    values = [item.scalar.expression for item in items]
    return _named(attached(left, translator), item_names(items, context.source), values)


def _joined(select: exp.Select, left: Node, context: Context, outer: bool) -> LateralRows:
    block = translate_block(select, context, correlated=True)
    translator = Translator(context.source, block.scope, correlated=True)
    translator.attachments = context.attachments(block.node)
    items = select_items(select, translator)
    names, right = item_names(items, context.source), attached(block.node, translator)
    condition = conjunction(block.correlated)
    if not outer:
        node: Node = Join(left, right, condition)
        return _named(node, names, [item.scalar.expression for item in items])
    there = f"{context.names.take('lateral')}.there"
    kept = [Output(name, Column(name)) for name in right.names]
    marked = Project(right, (*kept, Output(there, literal(True))))
    node = join("left", left, marked, condition)
    return _named(node, names, [_if_there(item, there, right) for item in items])


def _if_there(item: Item, there: str, right: Node) -> Expression:
    """An item of the subquery; NULL beside a row for which it has none."""
    expression = item.scalar.expression
    if isinstance(expression, Column) and columns_of(expression) <= set(right.names):
        return expression
    return Call("case", (Call("isnotnull", (Column(there),)), expression))


def _beside(answer: Answer, left: Node, outer: bool) -> LateralRows:
    """The rows of each value of the links, beside the rows that have it."""
    pairs = zip(answer.links, answer.keys, strict=True)
    condition = conjunction(Call(each.operator, (each.outer, Column(k))) for each, k in pairs)
    node = join("left" if outer else "inner", left, answer.node, condition)
    return _named(node, answer.names, [Column(item) for item in answer.items])


def _beside_total(
    total: Total, node: Node, outer: bool, translator: Translator, query: exp.Expr
) -> LateralRows:
    """The one row of an aggregate; HAVING may take it away."""
    items = total.items
    if total.having is not None and outer:
        having = total.having
        items = tuple(translator.call("case", [having, item], query) for item in items)
    elif total.having is not None:
        node = Select(node, total.having.expression)
    return _named(node, total.names, [item.expression for item in items])


def _named(node: Node, names: Sequence[str], values: Sequence[Expression]) -> LateralRows:
    scalars = [Scalar(value, _typed(value, node)) for value in values]
    return LateralRows(node, tuple(zip(names, scalars, strict=True)))


def _typed(value: Expression, node: Node) -> Typed:
    return type_of(value, node.schema)
