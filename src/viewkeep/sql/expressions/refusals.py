"""The names of expressions that views cannot have, for the errors that refuse them."""

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.errors import QueryError
from viewkeep.query.types.functions import is_deterministic
from viewkeep.sql.source import Source

_REFUSED: dict[type[exp.Expr], str] = {
    exp.Window: "a window function outside the select list and QUALIFY",
    exp.Subquery: "a scalar subquery",
    exp.Select: "a scalar subquery",
    exp.Exists: "EXISTS outside a conjunction of WHERE or HAVING",
    exp.Any: "ANY of a subquery, which is no Spark SQL (write EXISTS or IN),",
    exp.All: "ALL of a subquery, which is no Spark SQL (write NOT EXISTS),",
    exp.Interval: "an interval outside date arithmetic",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter",
    exp.Tuple: "a row of several values",
    exp.Lambda: "a lambda function",
    exp.Dot: "a field of a struct",
    exp.Distinct: "DISTINCT outside an aggregate",
    exp.Filter: "FILTER outside an aggregate",
    exp.RegexpLike: "RLIKE",
    exp.ILike: "ILIKE",
    exp.Escape: "LIKE with ESCAPE",
    exp.Star: "* outside a select list or count(*)",
    exp.Like: "LIKE ANY or ALL",
    exp.Collate: "COLLATE",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.Transform: "the function transform()",
}
_KEYWORDS: dict[type[exp.Expr], tuple[TokenType, ...]] = {
    exp.Subquery: (TokenType.SELECT,),
    exp.Exists: (TokenType.EXISTS,),
    exp.All: (TokenType.ALL,),
    exp.Any: (TokenType.ANY,),
    exp.Parameter: (TokenType.PARAMETER,),
    exp.Placeholder: (TokenType.COLON, TokenType.L_BRACE, TokenType.PLACEHOLDER),
}


def construct_refusal(node: exp.Expr, source: Source) -> QueryError:
    """The error that names the construct, with its place."""
    word = node.sql("spark").lower().removesuffix("()")
    if not is_deterministic(word, 0):
        return source.unsupported(f"the non-deterministic function {word}()", node)
    default = node.sql("spark", normalize_functions="lower").split("(")[0][:40].strip()
    construct = _REFUSED.get(type(node), f'"{default}"')
    return source.unsupported(construct, node, _KEYWORDS.get(type(node), ()))
