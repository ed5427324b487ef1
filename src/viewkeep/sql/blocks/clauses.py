"""Which clauses a query block may have, and the names of those that are refused."""

from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.errors import ParseError
from viewkeep.query.types.aggregates import AGGREGATES
from viewkeep.sql.source import Source

_BLOCK = "expressions from_ joins where group having windows qualify distinct with_ hint laterals"
_TOP = ("order", "limit", "offset")
_SELECT = {*_BLOCK.split(), *_TOP}
_SET_OPERATION = {"this", "expression", "distinct", "with_", *_TOP}
_NAMES: dict[str, tuple[str, tuple[TokenType, ...]]] = {
    "sort": ("SORT BY", (TokenType.SORT_BY,)),
    "cluster": ("CLUSTER BY", (TokenType.CLUSTER_BY,)),
    "distribute": ("DISTRIBUTE BY", (TokenType.DISTRIBUTE_BY,)),
    "pivots": ("PIVOT", ()),
    "sample": ("TABLESAMPLE", (TokenType.TABLE_SAMPLE,)),
    "by_name": ("UNION BY NAME", (TokenType.UNION,)),
    "into": ("SELECT INTO", ()),
    "locks": ("FOR UPDATE", ()),
}
ANY_VALUE = "any_value"
"""The value that all rows of a group have."""

AGGREGATE_NAMES = {
    **{name: name for name in AGGREGATES},
    "mean": "avg",
    "array_agg": "collect_list",
    "string_agg": "listagg",
    "percentile": "percentile_cont",
    **dict.fromkeys(("any_value", "first", "first_value", "last", "last_value"), ANY_VALUE),
    "count_if": "count_if",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "every": "min",
    "bool_and": "min",
    "any": "max",
    "some": "max",
    "bool_or": "max",
}
"""What an aggregate may be called in SQL, and which it is."""

OF_CONDITIONS = ("every", "bool_and", "any", "some", "bool_or", "count_if")
"""The names of aggregates that take conditions only: FALSE is less than TRUE."""


def refuse_clauses(query: exp.Expr, source: Source) -> None:
    """Refuse, by name, every clause that has no place in the algebra."""
    accepted_clauses = _SELECT if isinstance(query, exp.Select) else _SET_OPERATION
    for part, value in query.args.items():
        if value and part not in accepted_clauses:
            _refuse_clause(part, value, query, source)
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        problem = "DISTINCT ON is no Spark SQL: QUALIFY row_number() OVER (PARTITION BY ...) = 1"
        place = source.keyword(distinct, (TokenType.DISTINCT,))
        raise ParseError(f"{problem} keeps one row of each value", source.text, place)
    group = query.args.get("group")
    if group is not None:
        _refuse_group_by(group, source)


def _refuse_clause(part: str, value: object, query: exp.Expr, source: Source) -> None:
    name, keywords = _NAMES.get(part, (part.upper().replace("_", " "), ()))
    first = value[0] if isinstance(value, list) else value
    place = query.expression if isinstance(query, exp.SetOperation) else query
    raise source.unsupported(name, first if isinstance(first, exp.Expr) else place, keywords)


def _refuse_group_by(group: exp.Expr, source: Source) -> None:
    for part, value in group.args.items():
        if value and part not in ("expressions", "all", "rollup", "cube", "grouping_sets"):
            _refuse_clause(part, value, group, source)


def is_grouped(select: exp.Select) -> bool:
    """Whether a block aggregates: GROUP BY, HAVING or an aggregate in its select list."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(contains_aggregate(node) for node in select.expressions)


def contains_aggregate(node: exp.Expr) -> bool:
    """Whether an expression aggregates, not counting its subqueries; the function of a window does
    not, but what it is computed from may."""
    return any(map(is_aggregate, _parts_of_clause(node)))


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node calls an aggregate."""
    if not isinstance(node, exp.Anonymous):
        return False
    return node.name.lower() in AGGREGATE_NAMES or bool(node.meta.get(_OF_THE_USER))


def mark_aggregates(query: exp.Expr, names: Collection[str]) -> None:
    """Let the calls of some functions be known as aggregates."""
    for call in query.find_all(exp.Anonymous) if names else ():
        if call.name.lower() in names:
            call.meta[_OF_THE_USER] = True


_OF_THE_USER = "aggregate"
"""What a call of an aggregate of the user remembers."""


def _parts_of_clause(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Window):
        function = node.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            yield from (
                _parts_of_clause(function.expression) if function.args.get("expression") else ()
            )
            function = function.this
        order = node.args.get("order")
        parts = (*function.iter_expressions(), *(node.args.get("partition_by") or ()))
        for part in (*parts, order) if order is not None else parts:
            yield from _parts_of_clause(part)
    elif not isinstance(node, exp.Query):
        yield node
        for child in node.iter_expressions():
            yield from _parts_of_clause(child)
