"""ORDER BY with LIMIT and OFFSET: the first rows in an order, as a window and a selection.

Without a limit the order of a view means nothing, since its rows have none.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.errors import QueryError
from viewkeep.query.algebra import Node, Output, Project, Select
from viewkeep.query.evaluate.compile import compile_expression
from viewkeep.query.expressions import Call, Column, Expression, literal
from viewkeep.query.types.data_types import INTEGRAL
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.scope import Scalar, Scope, ScopeColumn, with_repeats
from viewkeep.sql.blocks.windows import OrderKey, order_keys, ordered_rows
from viewkeep.sql.expressions.translator import Translator

_NUMBER = "row_number_of_top"


@dataclass(frozen=True, slots=True)
class Top:
    """How many rows are wanted, after how many others, in which order."""

    limit: int | None
    offset: int
    keys: tuple[OrderKey, ...]
    place: exp.Expr


def has_top(query: exp.Expr) -> bool:
    """Whether a query asks for some of its rows only."""
    return _limit_node(query) is not None or query.args.get("offset") is not None


def without_brackets(query: exp.Expr) -> exp.Expr:
    """The query without brackets that have no clauses of their own."""
    while isinstance(query, exp.Subquery) and not has_top(query):
        query = query.this
    return query


def read_top(query: exp.Expr, translator: Translator, aliases: dict[str, exp.Expr]) -> Top | None:
    """LIMIT, OFFSET and ORDER BY of a query; an alias of its select list hides a column."""
    if not has_top(query):
        return None
    limit, offset = _limit_node(query), query.args.get("offset")
    order = query.args.get("order")
    if order is not None:
        order = _resolved_order(order, query, aliases, translator)
    keys = order_keys(order, translator)
    most = None if limit is None else _limit_count(limit, translator)
    skipped = 0 if offset is None else _limit_count(offset.expression, translator)
    return Top(most, skipped, keys, query if limit is None else limit)


def apply_top(
    rows: Node, top: Top | None, context: Context, links: Sequence[Expression] = ()
) -> Node:
    """The rows that LIMIT and OFFSET keep, with one more column for their number; of each value of
    `links`, if there are any."""
    if top is None:
        return rows
    most = None if top.limit is None else top.offset + top.limit
    ordered = ordered_rows(rows, top.keys, _NUMBER, most, links)
    keywords = (TokenType.LIMIT, TokenType.FETCH, TokenType.OFFSET)
    context.placed(ordered, top.place, *keywords)
    if not top.offset:
        return ordered
    others = Select(ordered, Call(">", (Column(_NUMBER), literal(top.offset))))
    return context.placed(others, top.place, *keywords)


def top_of_outputs(
    query: exp.Expr,
    node: Node,
    context: Context,
    names: Sequence[str] = (),
    links: Sequence[str] = (),
    qualifiers: Sequence[str] = (),
) -> Node:
    """The first rows of a query whose order is one of its output columns, which may have other
    `names`, and `qualifiers` where they are columns of FROM; behind columns that are `links`, those
    of each of their values."""
    if not has_top(query):
        return node
    fields = node.schema[len(links) :]
    written = names or context.written.get(node)
    columns = [
        ScopeColumn(qualifier, name, Scalar(Column(f.name), TypedValue(f.type, f.nullable)))
        for qualifier, name, f in zip(
            qualifiers or [""] * len(fields), written, fields, strict=True
        )
    ]
    scope = Scope(with_repeats(columns, context.written.repeated(node)))
    translator = Translator(context.source, scope)
    top = read_top(_query_with_plain_order(query, scope), translator, {})
    outputs = tuple(Output(name, Column(name)) for name in node.names)
    first = Project(apply_top(node, top, context, [Column(name) for name in links]), outputs)
    return context.written.move(node, first)


def with_row_number(node: Node, name: str) -> Node:
    """The rows of a query with ORDER BY and LIMIT at its end; the last column has their numbers."""
    assert isinstance(node, Project)
    return Project(node.child, (*node.outputs, Output(name, Column(_NUMBER))))


def _limit_node(query: exp.Expr) -> exp.Expr | None:
    limit = query.args.get("limit")
    if isinstance(limit, exp.Fetch):
        count: exp.Expr | None = limit.args.get("count")
        return count if count is not None else exp.Literal.number(1)
    value: exp.Expr | None = None if limit is None else limit.expression
    return None if isinstance(value, exp.Var) and value.name.upper() == "ALL" else value


def _limit_count(node: exp.Expr, translator: Translator) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    count = _constant_of_limit(node, translator)
    if count is None:
        raise translator.source.unsupported("a LIMIT or OFFSET that is not a number", node)
    if count < 0:
        raise translator.source.error("a LIMIT or OFFSET must not be less than 0", node)
    return count


def _constant_of_limit(node: exp.Expr, translator: Translator) -> int | None:
    """The number that an expression without columns gives."""
    if node.find(exp.Column, exp.Query) is not None:
        return None
    scalar = translator.translate(node)
    if scalar.typed.type not in INTEGRAL:
        return None
    with suppress(QueryError, ArithmeticError, ValueError, TypeError):
        value = compile_expression(scalar.expression, ())(())
        return value if isinstance(value, int) else None
    return None


def _resolved_order(
    order: exp.Expr, query: exp.Expr, aliases: dict[str, exp.Expr], translator: Translator
) -> exp.Expr:
    """ORDER BY with the expressions that positions and aliases stand for."""
    copy = order.copy()
    outputs: Sequence[exp.Expr] = [
        exp.column(column.name, quoted=True) for column in translator.scope.visible()
    ]
    if isinstance(query, exp.Select) and not query.args.get("distinct"):
        outputs = [each.unalias() for each in query.expressions]
    ordered = []
    for each in copy.expressions:
        if isinstance(each.this, exp.Var) and each.this.name.upper() == "ALL":
            ordered += [exp.Ordered(this=o.copy(), nulls_first=True) for o in outputs]
            continue
        each.set("this", _order_expression(each.this, outputs, aliases, translator))
        ordered.append(each)
    copy.set("expressions", ordered)
    return copy


def _order_expression(
    node: exp.Expr, outputs: Sequence[exp.Expr], aliases: dict[str, exp.Expr], on: Translator
) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        position = int(node.name)
        if not 1 <= position <= len(outputs):
            problem = f"ORDER BY {position}: the select list has {len(outputs)} columns"
            raise on.source.error(problem, node)
        if isinstance(outputs[position - 1], exp.Star):
            raise on.source.unsupported("ORDER BY the position of *", node)
        return outputs[position - 1].copy()
    return replace_aliases(node, aliases, None)


def replace_aliases(node: exp.Expr, aliases: dict[str, exp.Expr], scope: Scope | None) -> exp.Expr:
    """The expression with those that aliases stand for; columns in a scope hide aliases."""

    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table:
            hidden = scope is not None and scope.matches("", part.name)
            alias = None if hidden else aliases.get(part.name.lower())
            return part if alias is None else alias.copy()
        return part

    return node.transform(replaced)


def _query_with_plain_order(query: exp.Expr, outputs: Scope) -> exp.Expr:
    """The query with an ORDER BY that names output columns, with tables only where they are
    theirs."""
    copy = query.copy()
    order = copy.args.get("order")
    for column in order.find_all(exp.Column) if order is not None else ():
        if not outputs.matches(column.table, column.name):
            column.set("table", None)
    return copy
