"""SQL views to algebra: the whole flow."""

from collections.abc import Mapping

from sqlglot import exp

from viewkeep.errors import ParseError, QueryError
from viewkeep.query.algebra import Node
from viewkeep.query.tables import Table
from viewkeep.sql.blocks.clauses import mark_aggregates
from viewkeep.sql.blocks.context import Context, Places, with_common_tables
from viewkeep.sql.blocks.select import translate_select
from viewkeep.sql.blocks.set_operation import translate_set_operation
from viewkeep.sql.blocks.top import has_top, top_of_outputs, with_row_number
from viewkeep.sql.expressions.lateral import lateral_rows
from viewkeep.sql.expressions.subqueries import attach_to
from viewkeep.sql.idioms import rewrite_idioms, select_of_values
from viewkeep.sql.source import Source, SparkTypes
from viewkeep.sql.syntax import refuse_syntax

ORDER = "#order"
"""The column of a query with ORDER BY that has the number of each row."""


def parse_view(
    sql: str,
    tables: Mapping[str, Table],
    types: SparkTypes | None = None,
    has_clock: bool = False,
) -> Node:
    """The algebra of a Spark SQL query over declared tables, and over a clock if there is one; with
    `types`, it may have expressions that only Spark computes.

    >>> tables = {"parts": Table({"pid": "int", "price": "int"}, key=["pid"])}
    >>> print(parse_view("SELECT pid, price * 2 AS twice FROM parts WHERE price > 3", tables))
    Project parts.pid as pid, parts.price * 2 as twice
      Select parts.price > 3
        Scan parts
    """
    return parse_with_places(sql, tables, types, has_clock)[0]


def parse_with_places(
    sql: str,
    tables: Mapping[str, Table],
    types: SparkTypes | None = None,
    has_clock: bool = False,
) -> tuple[Node, Places]:
    """The algebra of a query, and where in the text its operators were written."""
    if not isinstance(sql, str):
        raise QueryError(f"a view is written as SQL text, not as {type(sql).__name__}")
    source = Source(sql, types)
    try:
        return _translate_statement(single_query(source), source, tables, has_clock)
    except RecursionError:
        raise source.too_deep() from None


def parse_ordered(
    sql: str, tables: Mapping[str, Table], types: SparkTypes | None = None
) -> tuple[Node, str | None]:
    """The algebra of a query whose rows are shown, and the column that has their order, if ORDER BY
    asks for one: the last.

    >>> tables = {"parts": Table({"pid": "int", "price": "int"}, key=["pid"])}
    >>> node, order = parse_ordered("SELECT pid FROM parts ORDER BY price", tables)
    >>> node.names, order
    (('pid', '#order'), '#order')
    """
    source = Source(sql, types)
    try:
        query = single_query(source)
        is_ordered = query.args.get("order") is not None
        if is_ordered and not has_top(query):
            query.set("offset", exp.Offset(expression=exp.Literal.number(0)))  # numbers all rows
        node, _ = _translate_statement(query, source, tables, has_clock=True)
    except RecursionError:
        raise source.too_deep() from None
    return (with_row_number(node, ORDER), ORDER) if is_ordered else (node, None)


def _translate_statement(
    query: exp.Expr, source: Source, tables: Mapping[str, Table], has_clock: bool
) -> tuple[Node, Places]:
    query = rewrite_idioms(query)
    refuse_syntax(query, source)
    mark_aggregates(query, source.types.aggregates if source.types is not None else ())
    context = Context(
        *(source, tables, translate_query),
        attach=attach_to,
        lateral=lateral_rows,
        has_clock=has_clock,
    )
    return translate_query(query, context), context.places


def translate_query(query: exp.Expr, context: Context) -> Node:
    """A query with its WITH clause: a SELECT, a set operation, or either in brackets."""
    context = with_common_tables(query, context)
    match query:
        case exp.Select():
            return translate_select(query, context)
        case exp.SetOperation():
            return translate_set_operation(query, context)
        case exp.Subquery() if not _has_modifiers(query):
            return top_of_outputs(query, translate_query(query.this, context), context)
    raise context.source.unsupported(f"{type(query).__name__.upper()} as a query", query)


def _has_modifiers(query: exp.Subquery) -> bool:
    return any(value for part, value in query.args.items() if part not in _PARTS)


_PARTS = ("this", "with_", "order", "limit", "offset")


def _statement_as_query(statement: exp.Expr) -> exp.Expr:
    """The statement; VALUES on its own, or in IN, and `TABLE t`, as the query that reads it."""
    for membership in list(statement.find_all(exp.In)):
        match membership.expressions:
            case [exp.Values() as values]:
                query = exp.Subquery(this=select_of_values(values))
                membership.set("expressions", None)
                membership.set("query", query)
    match statement:
        case exp.Values():
            return select_of_values(statement)
        case exp.Alias(this=exp.Column() as word, args=args) if (
            word.name.upper() == "TABLE" and isinstance(args["alias"], exp.Identifier)
        ):
            table = exp.Table(this=args["alias"])
            return exp.Select(expressions=[exp.Star()]).from_(table, copy=False)
    return statement


def single_query(source: Source) -> exp.Expr:
    """The one query of a text; an error for no query, several, and other statements."""
    statements = source.statements()
    if not statements:
        raise ParseError("there is no query", source.text, 0)
    if len(statements) > 1:
        start = source.start_of(statements[1])
        raise ParseError("one query is enough; a second statement starts here", source.text, start)
    statement = _statement_as_query(statements[0])
    if not isinstance(statement, exp.Query):
        raise ParseError("a view is a SELECT query", source.text, source.start_of(statement))
    return statement
