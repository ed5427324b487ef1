"""Rows beside those that are computed of them: LATERAL VIEW, JOIN LATERAL, explode as a table."""

from dataclasses import replace
from functools import partial

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.query.algebra import Distinct, Output, Project, Select, Values
from viewkeep.query.expressions import Call, Column, conjunction, literal
from viewkeep.sql.blocks.context import Context, LateralJoin, NamedScalars
from viewkeep.sql.blocks.generators import Generator, is_generator, read_generator
from viewkeep.sql.blocks.joins import join
from viewkeep.sql.blocks.relation import Relation, check_alias, with_types
from viewkeep.sql.blocks.scope import Scalar, Scope, ScopeColumn
from viewkeep.sql.expressions.clock import is_joined
from viewkeep.sql.expressions.translator import Translator


def lateral_view(left: Relation, node: exp.Lateral, outer: bool, context: Context) -> Relation:
    """Join rows with those that a generator makes of them: LATERAL VIEW, or JOIN LATERAL."""
    if not is_generator(node.this):
        raise context.source.unsupported("LATERAL", node.this, (TokenType.LATERAL,))
    generator, columns = _lateral_generator(left, node, context)
    return Relation(generator.over(left.node, outer), (*left.columns, *columns))


def _lateral_on(left: Relation, node: exp.Lateral, on: exp.Expr, context: Context) -> Relation:
    """LEFT JOIN LATERAL of a generator with ON: distinct arrays are unnested, and joined to their
    rows."""
    generator, columns = _lateral_generator(left, node, context)
    if generator.values.typed.type.has_map:
        raise context.source.unsupported("LEFT JOIN LATERAL of a map with a condition", on)
    array, value = f"{generator.alias}.#key", generator.values.expression
    arrays = Distinct(Project(left.node, (Output(array, value),)))
    elements = replace(generator, values=Scalar(Column(array), generator.values.typed)).over(arrays)
    scope = Scope((*left.columns, *columns), context.outer)
    condition = Translator(context.source, scope).condition(on).expression
    same = Call("<=>", (value, Column(array)))
    joined = join("left", left.node, elements, conjunction([same, condition]))
    return with_types(Relation(joined, scope.columns))


def _lateral_generator(
    left: Relation, node: exp.Lateral, context: Context
) -> tuple[Generator, tuple[ScopeColumn, ...]]:
    """The generator that a node calls over rows, and the names of its columns."""
    translator = Translator(context.source, Scope(left.columns, context.outer))
    generator = read_generator(node.this, node.alias, translator, context.names)
    alias = node.args.get("alias")
    names = [column.name for column in alias.columns] if alias else []
    if names and len(names) != len(generator.names):
        problem = f"{node.this.name} has {len(generator.names)} columns, but {len(names)} names"
        raise context.source.error(f"{problem} for them", node)
    columns = [
        ScopeColumn(node.alias, name, scalar)
        for name, scalar in zip(names or generator.names, generator.columns, strict=True)
    ]
    return generator, tuple(columns)


def generator_table(node: exp.Table, context: Context) -> Relation:
    """A generator as a table of FROM, over a single row."""
    one = Relation(Values((f"{context.names.take('row')}.one",), ((literal(1),),)), ())
    return lateral_view(
        one, exp.Lateral(this=node.this, alias=node.args.get("alias")), False, context
    )


def join_lateral(kind: str, left: Relation, item: exp.Join, context: Context) -> Relation:
    """JOIN LATERAL with a generator or a subquery, and with ON."""
    on, outer = item.args.get("on"), kind == "left"
    if kind not in ("inner", "left", "cross") or item.args.get("using"):
        raise context.source.unsupported(f"{kind.upper()} JOIN LATERAL", item.this)
    if isinstance(on, exp.Boolean) and on.this:
        on = None
    if on is not None and is_joined(on):
        raise context.source.unsupported("JOIN LATERAL with a subquery in its condition", on)
    if is_generator(item.this.this):
        if on is not None and outer:
            return _lateral_on(left, item.this, on, context)
        relation = lateral_view(left, item.this, outer, context)
    else:
        relation = _lateral_query(left, item.this, outer, context, on if outer else None)
    if on is None or outer:
        return relation
    translator = Translator(context.source, Scope(relation.columns, context.outer))
    condition = translator.condition(on).expression
    return replace(relation, node=Select(relation.node, condition))


def _lateral_query(
    left: Relation, node: exp.Lateral, outer: bool, context: Context, on: exp.Expr | None = None
) -> Relation:
    """Join rows with a LATERAL subquery, which may read them."""
    if not isinstance(node.this, exp.Subquery):
        raise context.source.unsupported("LATERAL", node.this, (TokenType.LATERAL,))
    check_alias(left, node.alias, node, context)

    def condition(of: exp.Expr, columns: NamedScalars) -> Scalar:
        names = (*left.columns, *_lateral_columns(node, columns, context))
        return Translator(context.source, Scope(names, context.outer)).condition(of)

    kind = LateralJoin(outer, None if on is None else partial(condition, on))
    rows = context.lateral_rows(node.this, left.node, Scope(left.columns, context.outer), kind)
    columns = _lateral_columns(node, rows.columns, context)
    return with_types(Relation(rows.node, (*left.columns, *columns)))


def _lateral_columns(
    node: exp.Lateral, columns: NamedScalars, context: Context
) -> tuple[ScopeColumn, ...]:
    """The columns of a subquery under the names that its alias gives them."""
    alias = node.args.get("alias")
    names = [column.name for column in alias.columns] if alias else []
    if names and len(names) != len(columns):
        problem = f"{node.alias} has {len(columns)} columns, but {len(names)} names for them"
        raise context.source.error(problem, node.this)
    return tuple(
        ScopeColumn(node.alias, names[i] if names else name, scalar)
        for i, (name, scalar) in enumerate(columns)
    )
