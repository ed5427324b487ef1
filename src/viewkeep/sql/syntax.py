"""Syntax that is read but not translated: refused by name, so that nothing is silently ignored."""

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.errors import UnsupportedError
from viewkeep.sql.source import Source

_STATEMENTS: dict[type[exp.Expr], TokenType] = {
    exp.Delete: TokenType.DELETE,
    exp.Insert: TokenType.INSERT,
    exp.Update: TokenType.UPDATE,
    exp.Merge: TokenType.MERGE,
    exp.Create: TokenType.CREATE,
    exp.Drop: TokenType.DROP,
    exp.Command: TokenType.COMMAND,
}
_PARTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Subquery: ("this", "alias", "joins", "pivots", "with_", "order", "limit", "offset"),
    exp.Table: ("this", "db", "catalog", "alias", "joins", "pivots"),
    exp.TableAlias: ("this", "columns"),
    exp.With: ("expressions", "recursive"),
    exp.CTE: ("this", "alias"),
    exp.Join: ("this", "on", "using", "side", "kind", "method", "global_", "match_condition"),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions", "query"),
    exp.Like: ("this", "expression", "negate"),
    exp.ILike: ("this", "expression", "negate"),
    exp.Is: ("this", "expression"),
    exp.Cast: ("this", "to", "safe", "format"),
    exp.TryCast: ("this", "to", "safe", "format", "requires_string"),
    exp.Interval: ("this", "unit"),
    exp.Extract: ("this", "expression"),
    exp.Substring: ("this", "start", "length"),
    exp.StrPosition: ("this", "substr"),
    exp.Trim: ("this", "expression", "position"),
    exp.Distinct: ("expressions", "on"),
    exp.Filter: ("this", "expression"),
}
"""For each node the parts that the translation reads, or refuses itself."""

_NAMES: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Table, "sample"): "TABLESAMPLE",
    (exp.Table, "when"): "time travel",
    (exp.Table, "version"): "time travel",
    (exp.Subquery, "sample"): "TABLESAMPLE",
    (exp.Join, "pivots"): "PIVOT after a join",
    (exp.CTE, "materialized"): "MATERIALIZED",
    (exp.Between, "symmetric"): "BETWEEN SYMMETRIC",
    (exp.In, "unnest"): "IN UNNEST",
    (exp.StrPosition, "position"): "POSITION from a given place",
    (exp.Trim, "collation"): "COLLATE",
}
_KEYWORDS = {"limit": TokenType.LIMIT, "order": TokenType.ORDER_BY, "offset": TokenType.OFFSET}


def refuse_syntax(statement: exp.Expr, source: Source) -> None:
    """Refuse statements inside the query, the pipe syntax, and parts of nodes that nobody reads."""
    pipe = source.first(TokenType.PIPE_GT)
    if pipe is not None:
        raise UnsupportedError("the pipe |> is not supported in a view", source.text, pipe)
    for node in statement.walk():
        keyword = _STATEMENTS.get(type(node))
        if keyword is not None:
            raise source.unsupported(type(node).__name__.upper(), node, (keyword,))
        if isinstance(node, exp.TableAlias) and isinstance(node.this, exp.Parameter):
            raise source.unsupported("time travel", node, (TokenType.PARAMETER,))
        _refuse_syntax_parts(node, source)


def _refuse_syntax_parts(node: exp.Expr, source: Source) -> None:
    supported_parts = _PARTS.get(type(node))
    for part, value in node.args.items() if supported_parts else ():
        if value and supported_parts and part not in supported_parts:
            raise _syntax_refusal(part, value, node, source)


def _syntax_refusal(part: str, value: object, node: exp.Expr, source: Source) -> UnsupportedError:
    first = value[0] if isinstance(value, list) else value
    name = _NAMES.get((type(node), part), part.upper().rstrip("_").replace("_", " "))
    keyword = _KEYWORDS.get(part)
    if keyword is None or not isinstance(first, exp.Expr):
        return source.unsupported(name, node)
    return source.unsupported(_CLAUSES.get(part, name), first, (keyword,))


_CLAUSES = {"order": "ORDER BY"}
