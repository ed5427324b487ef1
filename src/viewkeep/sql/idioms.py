"""Ways of writing that stand for other SQL: each is rewritten before the query is translated."""

from collections.abc import Callable

from sqlglot import exp

_COMPARISONS: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
"""Comparisons, and what they are with their sides exchanged."""
_EXACT_UNITS = ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
UNITS = (*_EXACT_UNITS, "MONTH", "QUARTER", "YEAR")
"""The units that stand first in a call such as `datediff(DAY, a, b)`."""
_MOVES, _DISTANCES = (
    ("dateadd", "date_add", "timestampadd"),
    (
        "datediff",
        "date_diff",
        "timestampdiff",
    ),
)
PLACEMENTS = ("distribute", "sort", "cluster")
"""The clauses that say which rows lie beside each other, and nothing about which there are."""


def rewrite_idioms(query: exp.Expr) -> exp.Expr:
    """The query without idioms; the tree is changed in place.

    >>> from sqlglot import parse_one
    >>> text = "SELECT a LIKE ANY ('x%', 'y') AS c FROM t SORT BY a"
    >>> print(rewrite_idioms(parse_one(text, read="spark")).sql())
    SELECT (a LIKE 'x%' OR a LIKE 'y') AS c FROM t
    """
    for node in reversed(list(query.walk())):
        for idiom in IDIOMS:
            meaning = idiom(node)
            if meaning is not None:
                query = meaning if node is query else query
                node.replace(meaning)
                break
    return query


def any_of_rows(node: exp.Expr) -> exp.Expr | None:
    """`any(condition)`, the aggregate."""
    compared = isinstance(node.parent, (*_COMPARISONS, exp.Like, exp.ILike))
    if not isinstance(node, exp.Any) or compared or not isinstance(node.this, exp.Paren):
        return None
    return exp.Anonymous(this="any", expressions=[node.this.this])


def like_of_patterns(node: exp.Expr) -> exp.Expr | None:
    """`a LIKE ANY (p, q)` is one or the other; `a LIKE ALL (p, q)` is both."""
    if not isinstance(node, exp.Like | exp.ILike) or not isinstance(
        node.expression, exp.Any | exp.All
    ):
        return None
    patterns = node.expression.this
    match patterns:
        case exp.Tuple(expressions=listed):
            pass
        case exp.Paren(this=exp.Query()):
            return None
        case exp.Paren(this=pattern):
            listed = [pattern]
        case _:
            return None
    likes: list[exp.Expr] = [type(node)(this=node.this.copy(), expression=p) for p in listed]
    if node.args.get("negate"):
        likes = [exp.Not(this=like) for like in likes]
    connective = exp.Or if isinstance(node.expression, exp.Any) else exp.And
    result = likes[0]
    for like in likes[1:]:
        result = connective(this=result, expression=like)
    return exp.Paren(this=result)


def like_with_escape(node: exp.Expr) -> exp.Expr | None:
    """`LIKE '!_%' ESCAPE '!'` is LIKE with the usual escape, a backslash."""
    match node:
        case exp.Escape(
            this=exp.Like() | exp.ILike() as like,
            expression=exp.Literal(is_string=True) as escape,
        ) if isinstance(like.expression, exp.Literal) and like.expression.is_string:
            pattern = _usual_pattern(like.expression.name, escape.name)
            if pattern is not None:
                like.set("expression", _at_place_of(exp.Literal.string(pattern), like.expression))
                return like
    return None


def _usual_pattern(pattern: str, escape: str) -> str | None:
    """A pattern with backslashes as its escapes; None where Spark refuses it."""
    parts, place = list[str](), 0
    while place < len(pattern):
        character = pattern[place]
        if character == escape:
            place += 1
            escaped = pattern[place : place + 1]
            if escaped not in ("_", "%", escape) or not escaped:
                return None
            parts.append(f"\\{escaped}" if escaped in ("_", "%", "\\") else escaped)
        else:
            parts.append("\\\\" if character == "\\" else character)
        place += 1
    return "".join(parts) if len(escape) == 1 else None


def distance_between(node: exp.Expr) -> exp.Expr | None:
    """`a - b > INTERVAL 1 HOUR` is `a > b + INTERVAL 1 HOUR`."""
    if type(node) not in _COMPARISONS:
        return None
    kind: type[exp.Binary] = type(node)  # type: ignore[assignment]
    left, right = node.this.unnest(), node.expression.unnest()
    if _is_exact_interval(left):
        kind, left, right = _COMPARISONS[type(node)], right, left
    if not _is_exact_interval(right) or not isinstance(left, exp.Sub):
        return None
    if isinstance(left.expression.unnest(), exp.Interval):
        return None
    moved = exp.Add(this=left.expression.copy(), expression=right.copy())
    return kind(this=left.this.copy(), expression=exp.Paren(this=moved))


def _is_exact_interval(node: exp.Expr) -> bool:
    """Whether a node is an interval of so many microseconds, whatever it is added to."""
    if not isinstance(node, exp.Interval) or not isinstance(node.args.get("unit"), exp.Var):
        return False
    return node.args["unit"].name.upper().removesuffix("S") in _EXACT_UNITS


def unit_first(node: exp.Expr) -> exp.Expr | None:
    """`dateadd(DAY, 1, a)` and `datediff(DAY, a, b)` are Spark's TIMESTAMPADD and TIMESTAMPDIFF."""
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 3:
        return None
    name, [unit, *rest] = node.name.lower(), node.expressions
    is_unit = isinstance(unit, exp.Column) and not unit.table and not unit.this.quoted
    if name not in (*_MOVES, *_DISTANCES) or not is_unit or unit.name.upper() not in UNITS:
        return None
    function = "timestampadd" if name in _MOVES else "timestampdiff"
    return _at_place_of(
        exp.Anonymous(this=function, expressions=[exp.Var(this=unit.name.upper()), *rest]), node
    )


def without_placement(node: exp.Expr) -> exp.Expr | None:
    """DISTRIBUTE BY, SORT BY and CLUSTER BY place rows beside each other, which views do not."""
    for part in PLACEMENTS if isinstance(node, exp.Query) else ():
        if node.args.get(part):
            node.set(part, None)
    return None


def values_in_brackets(node: exp.Expr) -> exp.Expr | None:
    """`LATERAL (VALUES (1), (2))` is a query of the rows."""
    in_brackets = isinstance(node.parent, exp.Subquery) and isinstance(node, exp.Values)
    return select_of_values(node) if in_brackets and isinstance(node, exp.Values) else None


def select_of_values(values: exp.Values) -> exp.Select:
    """VALUES as the query that reads it."""
    parts = {part: values.args.pop(part, None) for part in ("with_", "order", "limit", "offset")}
    select = exp.Select(expressions=[exp.Star()], **{k: v for k, v in parts.items() if v})
    return select.from_(values.copy(), copy=False)


def _at_place_of(node: exp.Expr, other: exp.Expr) -> exp.Expr:
    """A node where another one stands in the text."""
    node.meta.update(other.meta)
    return node


IDIOMS: tuple[Callable[[exp.Expr], exp.Expr | None], ...] = (
    any_of_rows,
    like_of_patterns,
    like_with_escape,
    distance_between,
    unit_first,
    without_placement,
    values_in_brackets,
)
