"""SQL outside the front end, as its engine will read it: the tables that it names, found by the
scopes of WITH; what has no stable answer is refused by name."""

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from viewkeep.errors import ParseError, UnreadableError, UnsupportedError, did_you_mean
from viewkeep.query.tables import Table
from viewkeep.query.types.functions import BARE_FUNCTIONS, is_deterministic
from viewkeep.query.verbatim import Verbatim
from viewkeep.sql.parse import single_query
from viewkeep.sql.source import Source
from viewkeep.sql.spark_functions import SPARK_FUNCTIONS, unknown_function
from viewkeep.sql.unread import check_unread, tables_of_unread

_REFUSED: dict[type[exp.Expr], str] = {
    exp.TableSample: "TABLESAMPLE",
    exp.Version: "time travel",
    exp.HistoricalData: "time travel",
    exp.QueryTransform: "TRANSFORM",
    exp.Parameter: "a parameter",
    exp.Placeholder: "a parameter",
}
_CALLS = {"identifier": "IDENTIFIER()"}


def read_verbatim(
    sql: str, tables: Mapping[str, Table], problem: ParseError, functions: Collection[str] = ()
) -> Verbatim:
    """The query as its text, without its columns, which only its engine knows; `functions` of the
    user are deterministic.

    >>> tables = {"parts": Table({"pid": "int"}, key=["pid"])}
    >>> sql = "WITH p AS (SELECT * FROM Parts) SELECT max_by(pid, pid) FROM p"
    >>> [name for name, _ in read_verbatim(sql, tables, ParseError("unknown", sql, 0)).tables]
    ['parts']
    """
    source = Source(sql)
    known = {*SPARK_FUNCTIONS, *map(str.lower, functions)}
    try:
        query = single_query(source)
        _refuse_unstable(query, source, tables)
        _refuse_unknown(query, source, known)
        names = dict.fromkeys(
            _resolved_table_name(node, tables, source) for node in tables_in_from(query, ())
        )
    except UnreadableError:
        check_unread(sql, source.tokens, known)
        names = dict.fromkeys(tables_of_unread(sql, source.tokens, tables))
    except RecursionError:
        raise source.too_deep() from None
    if not names:
        raise UnsupportedError("a query without tables is not supported in a view", sql, 0)
    text = sql.rstrip().rstrip(";")
    return Verbatim(text, tuple((name, tables[name]) for name in names), _verbatim_reason(problem))


def _verbatim_reason(problem: ParseError) -> str:
    place = f"line {problem.line}, column {problem.column}"
    if isinstance(problem, UnsupportedError):
        construct = problem.problem.removesuffix(" is not supported in a view")
        return f"{construct} ({place}) is not kept incrementally"
    what = "text" if isinstance(problem, UnreadableError) else "expression"
    return f"only Spark reads this {what} ({place}): {problem.problem}"


def tables_in_from(node: exp.Expr, common: tuple[str, ...]) -> Iterator[exp.Table]:
    """The tables in FROM that are no common tables where they stand."""
    clause = node.args.get("with_") or exp.With()
    for cte in clause.expressions:
        own = (cte.alias.lower(),)
        yield from tables_in_from(
            cte.this, common + own if clause.args.get("recursive") else common
        )
        common += own
    match node:
        case exp.Table(this=exp.Identifier()) if (
            len(node.parts) > 1 or node.name.lower() not in common
        ):
            yield node
    for child in node.iter_expressions():
        if child is not clause:
            yield from tables_in_from(child, common)


def _resolved_table_name(node: exp.Table, tables: Mapping[str, Table], source: Source) -> str:
    name = ".".join(part.name for part in node.parts)
    for table in tables:
        if table.lower() == name.lower():
            return table
    table_names = f" ({', '.join(tables)})" if tables else ""
    raise source.error(f'unknown table "{name}"{table_names}{did_you_mean(name, tables)}', node)


def _refuse_unstable(query: exp.Expr, source: Source, tables: Mapping[str, Table]) -> None:
    columns = {field.name.lower() for table in tables.values() for field in table.columns}
    for node in query.walk():
        refused = _REFUSED.get(type(node)) or _CALLS.get(_called_function(node))
        if isinstance(node, exp.TableAlias) and isinstance(node.this, exp.Parameter):
            refused = "time travel"
        if refused is not None:
            raise source.unsupported(refused, node)
        name = _called_function(node)
        if name in BARE_FUNCTIONS and isinstance(node, exp.Column) and name in columns:
            continue
        if name and not is_deterministic(name, len(node.expressions or ())):
            raise source.unsupported(f"the non-deterministic function {name}()", node)


def _refuse_unknown(query: exp.Expr, source: Source, functions: Collection[str]) -> None:
    """Refuse functions of a catalog of the user: nobody said that they are deterministic."""
    for node in query.find_all(exp.Anonymous):
        name = node.name.lower()
        if name not in functions and not isinstance(node.parent, exp.Dot):
            raise source.error(unknown_function(node.name, functions, True), node)


def _called_function(node: exp.Expr) -> str:
    """The function that a node calls, in lower case; none for other nodes."""
    match node:
        case exp.Anonymous():
            return node.name.lower()
        case exp.Column() if not node.table and not getattr(node.this, "quoted", False):
            return node.name.lower() if node.name.lower() in BARE_FUNCTIONS else ""
        case exp.Func() if not isinstance(node, exp.AggFunc | exp.Connector | exp.Cast | exp.Case):
            return node.sql_names()[0].lower() if not node.args.get("this") else ""
    return ""
