"""FROM: tables, common tables, derived tables and their joins."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.errors import UnsupportedError, did_you_mean
from viewkeep.query.algebra import Node, Scan, Values
from viewkeep.query.expressions import TRUE, Column, Expression, conjunction, literal
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import Schema
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.context import Context, cycle_problem
from viewkeep.sql.blocks.generators import is_generator
from viewkeep.sql.blocks.joins import join
from viewkeep.sql.blocks.lateral_joins import generator_table, join_lateral, lateral_view
from viewkeep.sql.blocks.outputs import rename_outputs
from viewkeep.sql.blocks.pivot import PivotedRelation
from viewkeep.sql.blocks.relation import Relation, check_alias, with_types
from viewkeep.sql.blocks.scope import (
    Scalar,
    Scope,
    ScopeColumn,
    first_named,
    hide,
    with_repeats,
)
from viewkeep.sql.blocks.top import without_brackets
from viewkeep.sql.blocks.values import is_range, translate_range, translate_values
from viewkeep.sql.expressions.clock import is_joined
from viewkeep.sql.expressions.translator import Translator


def translate_from(select: exp.Select, context: Context) -> Relation:
    """All of FROM, from left to right; in Spark a comma is a cross join like any other."""
    clause = select.args.get("from_")
    if clause is None:
        if not select.expressions:
            raise context.source.error("a SELECT without columns", select)
        one = Values((f"{context.names.take('row')}.one",), ((literal(1),),))
        return Relation(one, ())
    relation = _from_joins(
        _from_table(clause.this, context), select.args.get("joins") or (), context
    )
    for view in select.args.get("laterals") or ():
        relation = lateral_view(relation, view, bool(view.args.get("outer")), context)
    return relation


def _from_table(node: exp.Expr, context: Context) -> Relation:
    if node.args.get("pivots"):
        relation = _from_pivot(node, context)
        return _from_joins(relation, node.args.get("joins") or (), context)
    match node:
        case exp.Subquery() if isinstance(node.this, exp.Table | exp.Subquery) and not node.alias:
            relation = _from_table(node.this, context)
        case exp.Subquery():
            relation = _from_subquery(context.nested(without_brackets(node)), node, (), context)
        case exp.Values():
            relation = _from_subquery(translate_values(node, context), node, (), context)
        case exp.Table() if is_range(node):
            relation = _from_subquery(translate_range(node, context), node, (), context)
        case exp.Table() if is_generator(node.this):
            relation = generator_table(node, context)
        case exp.Table() if isinstance(node.this, exp.Identifier):
            relation = _from_table_by_name(node, context)
        case _:
            keywords = (TokenType.LATERAL,)
            raise context.source.unsupported(_from_kind(node), node, keywords)
    return _from_joins(relation, node.args.get("joins") or (), context)


JOIN_KEYWORDS = {
    "left": TokenType.LEFT,
    "right": TokenType.RIGHT,
    "full": TokenType.FULL,
    "semi": TokenType.SEMI,
    "anti": TokenType.ANTI,
}
"""How joins that are not inner are written."""


def _from_joins(relation: Relation, joins: Sequence[exp.Join], context: Context) -> Relation:
    for item in joins:
        relation = _from_join(relation, item, context)
    return relation


def _from_pivot(node: exp.Expr, context: Context) -> Relation:
    """A table with PIVOT or UNPIVOT; joins come after it."""
    if isinstance(node.parent, exp.Join):  # Spark takes all that stands before it
        raise context.source.unsupported("PIVOT after a join", node.args["pivots"][0])
    if len(node.args["pivots"]) > 1:
        raise context.source.unsupported("more than one PIVOT", node.args["pivots"][1])
    [pivot] = node.args["pivots"]
    table = node.copy()
    table.set("pivots", None)
    table.set("joins", None)
    unpivot = bool(pivot.args.get("unpivot"))
    relation = _from_table(table, context if unpivot else context.aside())
    pivoted = PivotedRelation(table, pivot, relation.columns, context)
    rows = pivoted.unpivoted(relation.node) if unpivot else pivoted.pivoted()
    return _from_subquery(rows, pivot, (), context)


def _from_kind(node: exp.Expr) -> str:
    match node:
        case exp.Lateral():
            return "LATERAL"
        case exp.Table():
            return f"a table function ({node.this.name})"
    return f"{type(node).__name__.upper()} in FROM"


def _from_table_by_name(node: exp.Table, context: Context) -> Relation:
    """A table by name: a common table hides a base table."""
    name = ".".join(part.name for part in node.parts)
    common = context.common.get(name.lower())
    if common is not None:
        rows = common.context.nested(common.query)
        return _from_subquery(rows, node, common.columns, context)
    for table_name, table in context.tables.items():
        if table_name.lower() == name.lower():
            alias = context.names.take(node.alias or node.name)
            names = [field.name for field in table.visible]
            return _from_relation(Scan(table_name, table, alias), node, names, context)
    if name.lower() in context.undefined:
        raise context.source.error(cycle_problem(name.lower(), context), node)
    known_names = [*context.tables, *context.common]
    hint = did_you_mean(name, known_names)
    listed = f" ({', '.join(known_names)})" if known_names else ""
    raise context.source.error(f'unknown table "{name}"{listed}{hint}', node)


def _from_subquery(
    rows: Node, node: exp.Expr, columns: tuple[str, ...], context: Context
) -> Relation:
    """A query used as a table: its columns get the name of the table in front."""
    names = columns or context.written.get(rows)
    if len(names) != len(rows.names):
        problem = f"{node.name} has {len(rows.names)} columns, but {len(names)} names for them"
        raise context.source.error(problem, node)
    alias = context.names.take(node.alias or node.name or "subquery")
    own_names = [f"{alias}.{name}" for name in columns or rows.names]
    qualified = rename_outputs(rows, own_names, context.places)
    relation = _from_relation(qualified, node, names, context)
    if columns or node.alias_column_names:
        return relation
    repeats = context.written.repeated(rows)
    return replace(relation, columns=with_repeats(relation.columns, repeats))


def _from_relation(node: Node, table: exp.Expr, names: Sequence[str], context: Context) -> Relation:
    alias = table.args.get("alias")
    alias_names = [column.name for column in alias.columns] if alias else []
    if alias_names and len(alias_names) != len(names):
        problem = f"{table.alias} has {len(names)} columns, but {len(alias_names)} names for them"
        raise context.source.error(problem, table)
    qualifier = table.alias or table.name
    columns = [
        ScopeColumn(qualifier, name, _scalar_of_field(field))
        for name, field in zip(alias_names or names, _visible_columns(node), strict=True)
    ]
    return Relation(node, tuple(columns))


def _visible_columns(node: Node) -> Schema:
    """The columns that names can be given to; those that Viewkeep needs of a view are not."""
    if not isinstance(node, Scan):
        return node.schema
    visible_names = {f"{node.alias}.{field.name}" for field in node.table.visible}
    return tuple(field for field in node.schema if field.name in visible_names)


def _scalar_of_field(field: Field) -> Scalar:
    return Scalar(Column(field.name), TypedValue(field.type, field.nullable))


def _from_join(left: Relation, item: exp.Join, context: Context) -> Relation:
    kind = _join_kind(item, context)
    if isinstance(item.this, exp.Lateral):
        return join_lateral(kind, left, item, context)
    right = _from_table(item.this, context)
    names = _merged_names(left, right, item)
    if names is not None:
        return _join_using(kind, left, right, names, item, context)
    if item.args.get("on") is None:
        return _join_of_kind(kind, left, right, TRUE, item.this, context)
    if not is_joined(item.args["on"]):
        condition = _on_translator(left, right, item, context).condition(item.args["on"]).expression
        return _join_of_kind(kind, left, right, condition, item.this, context)
    try:
        return _joined_with_subqueries(kind, left, right, False, item, context)
    except UnsupportedError:
        return _joined_with_subqueries(kind, left, right, True, item, context)


def _on_translator(left: Relation, right: Relation, item: exp.Join, context: Context) -> Translator:
    scope = Scope(left.columns + right.columns, context.outer)
    translator = Translator(context.source, scope)
    translator.correlated_scalars = False  # as in Spark
    return translator


def _joined_with_subqueries(
    kind: str, left: Relation, right: Relation, to_left: bool, item: exp.Join, context: Context
) -> Relation:
    """A join whose condition has subqueries: they are joined to the one side that they read."""
    translator = _on_translator(left, right, item, context)
    side = left if to_left else right
    translator.attachments = context.attachments(side.node)
    condition = translator.condition(item.args["on"]).expression
    attached = replace(side, node=translator.attachments.attached(side.node))
    sides = (attached, right) if to_left else (left, attached)
    return _join_of_kind(kind, *sides, condition, item.this, context)


def _join_kind(item: exp.Join, context: Context) -> str:
    side, kind = (str(item.args.get(part) or "").lower() for part in ("side", "kind"))
    method = str(item.args.get("method") or "").lower()
    extra = item.args.get("match_condition") or item.args.get("global_")
    if (
        method not in ("", "natural")
        or extra
        or kind not in ("", "inner", "cross", "outer", "semi", "anti")
    ):
        raise context.source.unsupported(f"{(method or kind).upper()} JOIN", item)
    if kind in ("semi", "anti"):
        if side == "right":
            raise context.source.unsupported(f"RIGHT {kind.upper()} JOIN", item)
        return kind
    return side or "inner"


def _merged_names(left: Relation, right: Relation, item: exp.Join) -> list[exp.Expr] | None:
    """The columns that USING or NATURAL joins on; None for an ordinary join."""
    if item.args.get("using"):
        return list(item.args["using"])
    if str(item.args.get("method") or "").upper() != "NATURAL":
        return None
    others = {column.name.lower() for column in right.columns if not column.hidden}
    common_names = [c.name for c in left.columns if not c.hidden and c.name.lower() in others]
    return [exp.to_identifier(name) for name in dict.fromkeys(common_names)]


def _join_using(
    kind: str,
    left: Relation,
    right: Relation,
    names: Sequence[exp.Expr],
    item: exp.Join,
    context: Context,
) -> Relation:
    """A join on equal columns, each of which then counts as one column."""
    translator = Translator(context.source, Scope(left.columns + right.columns))
    pairs = [
        (_using_column(left, name, item, context), _using_column(right, name, item, context))
        for name in names
    ]
    equal = [translator.compare("=", [a.scalar, b.scalar], item) for a, b in pairs]
    condition = conjunction(scalar.expression for scalar in equal)
    joined = _join_of_kind(kind, left, right, condition, item.this, context)
    column_names = [name.name for name in names]
    if kind in ("semi", "anti"):
        return replace(joined, columns=first_named(joined.columns, column_names))
    merged_columns = []
    for first, second in pairs:
        choice = {
            "right": second.scalar,
            "full": translator.call("coalesce", [first.scalar, second.scalar], item),
        }
        merged_columns.append(ScopeColumn("", first.name, choice.get(kind, first.scalar)))
    rest = hide(
        first_named(joined.columns, column_names), [column.name for column in merged_columns]
    )
    return with_types(replace(joined, columns=(*merged_columns, *rest)))


def _using_column(
    relation: Relation, name: exp.Expr, item: exp.Join, context: Context
) -> ScopeColumn:
    scope = Scope(relation.columns)
    columns = scope.matches("", name.name)
    place = name if "start" in name.meta else item
    if not columns:
        raise context.source.error(scope.unknown("", name.name), place)
    if len(columns) > 1:
        raise context.source.error(f'column "{name.name}" is ambiguous on one side', place)
    return columns[0]


def _join_of_kind(
    kind: str,
    left: Relation,
    right: Relation,
    condition: Expression,
    table: exp.Expr,
    context: Context,
) -> Relation:
    for qualifier in dict.fromkeys(column.qualifier for column in right.columns):
        check_alias(left, qualifier, table, context)
    node = join(kind, left.node, right.node, condition)
    if kind in JOIN_KEYWORDS:
        context.placed(node, table, JOIN_KEYWORDS[kind])
    columns = left.columns if kind in ("semi", "anti") else left.columns + right.columns
    return with_types(Relation(node, columns))
