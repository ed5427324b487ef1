"""FROM and WHERE of one query block, with IN and EXISTS as semijoins and antijoins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.errors import UnsupportedError
from viewkeep.query.algebra import AntiJoin, Node, Select, SemiJoin
from viewkeep.query.expressions import TRUE, Column, Expression, columns_of, conjunction, literal
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.clauses import is_grouped, refuse_clauses
from viewkeep.sql.blocks.context import Context, with_common_tables
from viewkeep.sql.blocks.from_clause import translate_from
from viewkeep.sql.blocks.items import select_items
from viewkeep.sql.blocks.outputs import rename_outputs
from viewkeep.sql.blocks.scope import Scalar, Scope, constant
from viewkeep.sql.blocks.top import without_brackets
from viewkeep.sql.expressions.clock import is_joined
from viewkeep.sql.expressions.translator import Translator


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on single rows."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Membership:
    """IN or EXISTS: a row stays if some row on the right makes the condition TRUE (or none)."""

    right: Node
    condition: Expression
    negated: bool
    place: exp.Expr
    query: exp.Expr


Filter = Predicate | Membership


@dataclass(frozen=True, slots=True)
class Block:
    """The rows after WHERE; `correlated` are the conditions that also read the outer query."""

    node: Node
    scope: Scope
    correlated: tuple[Expression, ...]


def translate_block(select: exp.Select, context: Context, correlated: bool = False) -> Block:
    """FROM and WHERE; a block of a subquery may be correlated."""
    relation = translate_from(select, context)
    scope = Scope(relation.columns, context.outer)
    where = select.args.get("where")
    if where is None:
        return Block(relation.node, scope, ())
    translator = Translator(context.source, scope, correlated)
    translator.later = {e.alias.lower() for e in select.expressions if isinstance(e, exp.Alias)}
    parts = _where_conjuncts(where.this)
    plain = [_where_filter(part, translator, context) for part in parts if not is_joined(part)]
    node, outer = _rows_that_pass(relation.node, plain, context)
    translator.attachments = context.attachments(node)
    nested = [_where_filter(part, translator, context) for part in parts if is_joined(part)]
    node, more = _rows_that_pass(translator.attachments.attached(node), nested, context)
    return Block(node, scope, outer + more)


def _rows_that_pass(
    node: Node, filters: Sequence[Filter], context: Context
) -> tuple[Node, tuple[Expression, ...]]:
    """The rows that pass, and the conditions that also read the outer query."""
    own = set(node.names)
    outer = [f for f in filters if isinstance(f, Predicate) and columns_of(f.condition) - own]
    local = [f for f in filters if f not in outer]
    _check_correlation_depth(local, own, context)
    return apply_filters(node, local, context), tuple(each.condition for each in outer)


def translate_filters(node: exp.Expr, translator: Translator, context: Context) -> list[Filter]:
    """The conjuncts of WHERE or HAVING."""
    return [_where_filter(part, translator, context) for part in _where_conjuncts(node)]


def apply_filters(node: Node, filters: Sequence[Filter], context: Context) -> Node:
    """The rows that pass: plain conditions first, then each semijoin or antijoin."""
    condition = conjunction(f.condition for f in filters if isinstance(f, Predicate))
    if condition != TRUE:
        node = Select(node, condition)
    for membership in filters:
        if isinstance(membership, Membership):
            operator = AntiJoin if membership.negated else SemiJoin
            node = operator(node, membership.right, membership.condition)
            keywords = (TokenType.NOT,) if membership.negated else (TokenType.IN, TokenType.EXISTS)
            context.placed(node, membership.query, *keywords)
    return node


def _where_conjuncts(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.And():
            return _where_conjuncts(node.this) + _where_conjuncts(node.expression)
        case exp.Paren():
            return _where_conjuncts(node.this)
    return [node]


def _where_filter(node: exp.Expr, translator: Translator, context: Context) -> Filter:
    inner, negated = node, False
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    try:
        return _filter_as_join(inner, negated, translator, context) or _filter_as_condition(
            node, translator
        )
    except UnsupportedError as refusal:
        if not node.find(exp.Query):
            raise
        try:
            return _filter_as_condition(node, translator)
        except UnsupportedError:
            raise refusal from None


def _filter_as_condition(node: exp.Expr, translator: Translator) -> Predicate:
    return Predicate(translator.condition(node).expression)


def _filter_as_join(
    inner: exp.Expr, negated: bool, translator: Translator, context: Context
) -> Membership | None:
    match inner:
        case exp.Exists():
            return _in_as_join(inner.this, [], negated, inner, translator, context)
        case exp.Anonymous(expressions=[exp.Subquery() as query]) if inner.name.lower() == "exists":
            return _in_as_join(query, [], negated, inner, translator, context)
        case exp.In() if inner.args.get("query") is not None:
            values = inner.this.expressions if isinstance(inner.this, exp.Tuple) else [inner.this]
            left = [translator.translate(value) for value in values]
            return _in_as_join(inner.args["query"], left, negated, inner, translator, context)
    return None


def _in_as_join(
    query: exp.Expr,
    left: Sequence[Scalar],
    negated: bool,
    place: exp.Expr,
    translator: Translator,
    context: Context,
) -> Membership:
    query, inside = translator.as_subquery(query), replace(context, outer=translator.subquery_scope)
    rows, items, correlated = _subquery_rows(query, inside, bool(left))
    if left and len(items) != len(left):
        problem = f"IN compares {len(left)} values with a subquery of {len(items)} columns"
        raise context.source.error(problem, place)
    equal = [translator.compare("=", pair, place) for pair in zip(left, items, strict=False)]
    if negated and any(scalar.typed.nullable for scalar in equal):
        equal = [_not_in_comparison(equal, translator, place)]
    condition = conjunction([*(scalar.expression for scalar in equal), *correlated])
    return Membership(rows, condition, negated, place, query)


def _not_in_comparison(equal: Sequence[Scalar], translator: Translator, place: exp.Expr) -> Scalar:
    """NOT IN keeps a row only if every comparison is FALSE: one that is NULL must match too."""
    both = equal[0]
    for scalar in equal[1:]:
        both = translator.call("and", [both, scalar], place)
    return translator.call("coalesce", [both, constant(literal(True))], place)


def _subquery_rows(
    query: exp.Expr, context: Context, needs_items: bool
) -> tuple[Node, list[Scalar], tuple[Expression, ...]]:
    """The rows of a subquery, its output columns and the conditions on the outer query."""
    query = without_brackets(query)
    if isinstance(query, exp.Select) and not is_grouped(query) and not chooses_rows(query):
        refuse_clauses(query, context.source)
        context = with_common_tables(query, context)
        block = translate_block(query, context, correlated=True)
        # EXISTS only asks whether there are rows, but its select list must make sense as well.
        translator = Translator(context.source, block.scope, correlated=True)
        items = [item.scalar for item in select_items(query, translator)]
        return block.node, items if needs_items else [], block.correlated
    rows = context.nested(query)
    alias = context.names.take("subquery")
    rows = rename_outputs(rows, [f"{alias}.{name}" for name in rows.names], context.places)
    columns = [Scalar(Column(f.name), TypedValue(f.type, f.nullable)) for f in rows.schema]
    return rows, columns, ()


def chooses_rows(query: exp.Select) -> bool:
    """Whether a query has windows, LIMIT or QUALIFY, so that a row depends on the others."""
    clauses = ("limit", "offset", "qualify")
    return any(query.args.get(each) is not None for each in clauses) or any(
        each.find(exp.Window) is not None for each in query.expressions
    )


def _check_correlation_depth(filters: Sequence[Filter], own: set[str], context: Context) -> None:
    """A subquery inside a subquery may not compare with the outermost query."""
    for part in filters:
        if isinstance(part, Membership) and (
            columns_of(part.condition) - own - set(part.right.names)
        ):
            construct = "IN on a column of the outer query inside a subquery"
            raise context.source.unsupported(construct, part.place)
