"""Spark SQL text to DuckDB text with the same meaning (Spark in ANSI mode).

sqlglot reads Spark SQL and writes DuckDB's; here stands only what it does not know of their
differences. Text has no types: where the meaning depends on one, this looks at the CAST written
around an argument. Views are computed by the text of `execute/duckdb`, made from the algebra; this
is a second opinion on it.
"""

from typing import Any, ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from viewkeep.query.types.functions import SYNONYMS
from viewkeep.sql.source import ViewDialect

_TYPES = {
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMPLTZ": "TIMESTAMP",
    "TEXT": "VARCHAR",
    "VARCHAR": "VARCHAR",
    "CHAR": "VARCHAR",
}
"""Spark's text has no length here, and its timestamps are kept as their wall-clock time."""

_FUNCTIONS = {
    "add_months": "CAST(CAST({0} AS DATE) + to_months(CAST({1} AS INT)) AS DATE)",
    "date_add": "(CAST({0} AS DATE) + CAST({1} AS INT))",
    "date_sub": "(CAST({0} AS DATE) - CAST({1} AS INT))",
    "datediff": "date_diff('day', CAST({1} AS DATE), CAST({0} AS DATE))",
    "dayofweek": "(dayofweek({0}) + 1)",
    "endswith": "ends_with({0}, {1})",
    "left": "CASE WHEN {1} <= 0 THEN substring({0}, 1, 0) ELSE left({0}, {1}) END",
    "ln": "CASE WHEN {0} > 0 THEN ln({0}) END",
    "locate": "strpos({1}, {0})",
    "right": "CASE WHEN {1} <= 0 THEN substring({0}, 1, 0) ELSE right({0}, {1}) END",
    "sign": "CASE WHEN isnan(CAST({0} AS DOUBLE)) THEN CAST({0} AS DOUBLE) "
    "ELSE CAST(sign({0}) AS DOUBLE) END",
    "collect_list": "list_sort(coalesce(list({0}) FILTER ({0} IS NOT NULL), []))",
    "collect_set": "list_sort(coalesce(list(DISTINCT {0}) FILTER ({0} IS NOT NULL), []))",
    "corr": "CASE WHEN regr_sxx({0}, {1}) <> 0 AND regr_syy({0}, {1}) <> 0 THEN corr({0}, {1}) END",
    "count_if": "count(CASE WHEN {0} THEN 1 END)",
    "every": "bool_and({0})",
    "max_by": "list(struct_pack(v := {0}) ORDER BY {1} DESC NULLS LAST, {0} DESC NULLS LAST) "
    "FILTER ({1} IS NOT NULL)[1].v",
    "min_by": "list(struct_pack(v := {0}) ORDER BY {1} ASC NULLS LAST, {0} ASC NULLS FIRST) "
    "FILTER ({1} IS NOT NULL)[1].v",
    "mode": "mode({0} ORDER BY {0})",
    "percentile": "quantile_cont({0}, {1})",
    "sequence": "generate_series(CAST({0} AS BIGINT), CAST({1} AS BIGINT))",
    "power": "CASE WHEN abs({0}) = 1 AND NOT isfinite(CAST({1} AS DOUBLE)) "
    "THEN CAST('NaN' AS DOUBLE) ELSE power({0}, {1}) END",
    "startswith": "starts_with({0}, {1})",
}
"""DuckDB's text of functions that have another name or another meaning there."""

_LONG_TEXT = """CASE
WHEN {0} = 0 OR (abs({0}) >= 1e-3 AND abs({0}) < 1e7) THEN CAST({0} AS VARCHAR)
WHEN isnan({0}) THEN 'NaN'
WHEN isinf({0}) THEN CASE WHEN {0} > 0 THEN 'Infinity' ELSE '-Infinity' END
WHEN {0} IS NOT NULL THEN error('cannot print the double ' || CAST({0} AS VARCHAR)) END"""
"""Spark prints very small and very large numbers with an exponent, DuckDB in another form."""

_WHOLE_TEXT = """CASE WHEN regexp_full_match({0}, '\\s*[+-]?[0-9]+\\s*') THEN CAST({0} AS {1})
WHEN {0} IS NOT NULL THEN error('not an integer: ' || {0}) END"""
"""DuckDB would also read fractions, exponents, hexadecimals and underscores."""

_QUOTIENT = """CASE WHEN {1} = 0 THEN error('division by zero') ELSE
CAST(CAST(sign({0}) * sign({1}) * ((2 * abs({2}) + abs({3})) // (2 * abs({3}))) AS DECIMAL(38, 0))
* CAST('1e-{5}' AS DECIMAL(38, {5})) AS DECIMAL({4}, {5})) END"""
"""The quotient {0} / {1}, from their integers {2} and {3}, rounded half up to {5} digits."""

_SUBSTRING = """CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL
THEN substring({0}, greatest({3}, 1), greatest({3} + {2} - greatest({3}, 1), 0)) END"""
_START = (
    "CASE WHEN {1} > 0 THEN CAST({1} AS BIGINT) WHEN {1} < 0 THEN {1} + length({0}) + 1 ELSE 1 END"
)
"""Spark counts a start of 0 as 1, and a length from a start before the text."""

_MAX_LENGTH = 2**31 - 1


def to_duckdb(sql: str) -> str:
    """The DuckDB text of a Spark query.

    >>> print(to_duckdb("SELECT `x#pre` <=> 1 AS c FROM `d+(r)`"))
    SELECT "x#pre" IS NOT DISTINCT FROM 1 AS c FROM "d+(r)"
    """
    tree = parse_one(sql, read=ViewDialect)
    for select in tree.find_all(exp.Select):
        _drop_empty_total(select)
    return _Generator(dialect=DuckDB()).generate(tree)


def _drop_empty_total(select: exp.Select) -> None:
    """In Spark, sets of groups of no rows are none, not even the set of all."""
    group = select.args.get("group")
    if group and group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        select.having("count(*) > 0", copy=False)


class _Generator(DuckDBGenerator):
    """DuckDB's generator with Spark's meaning of functions, casts and divisions."""

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
        kind: transform
        for kind, transform in DuckDBGenerator.TRANSFORMS.items()
        if kind not in (exp.IntDiv, exp.Like, exp.Div, exp.Cast, exp.TryCast, exp.DataType)
    }

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        """A function by Spark's name."""
        name = expression.name.lower()
        name = SYNONYMS.get(name, name)
        arguments = [self.sql(argument) for argument in expression.expressions]
        template = _FUNCTIONS.get(name)
        if template is not None:
            return template.format(*arguments)
        match name, arguments:
            case "array", _:
                return f"[{', '.join(arguments)}]"
            case "concat", _:
                return f"({' || '.join(arguments)})"
            case "replace", [text, old]:
                return f"replace({text}, {old}, '')"
            case "substring", [text, start, *length]:
                return _substring(text, start, length[0] if length else str(_MAX_LENGTH))
            case "length", [value] if _cast_type(expression.expressions[0]) in _BYTES:
                return f"octet_length({value})"
            case "timestampadd", [unit, amount, moment]:
                return f"({moment} + ({amount}) * INTERVAL 1 {unit})"
            case "%", [_, _]:
                return self._divided(expression.expressions[0], "%", expression.expressions[1])
        return f"{name}({', '.join(arguments)})"

    def lateral_sql(self, expression: exp.Lateral) -> str:
        """LATERAL VIEW as a join with a query that reads the row beside it."""
        call, alias = expression.this, expression.args["alias"]
        if isinstance(call, exp.Anonymous) and call.name.lower() == "stack":
            return self._stack_sql(call, alias)
        if not isinstance(call, exp.Anonymous) or "explode" not in call.name.lower():
            return super().lateral_sql(expression)
        values = self.sql(call.expressions[0])
        names = [column.name for column in alias.columns]
        parts = [f"unnest({values}) AS {names[-1]}"]
        if len(names) > 1:
            parts.insert(0, f"unnest(range(len({values}))) AS {names[0]}")
        rows = f"LATERAL (SELECT {', '.join(parts)}) AS {alias.name}"
        word = f" LEFT JOIN {rows} ON TRUE" if expression.args.get("outer") else None
        return word or f" CROSS JOIN {rows}"

    def _stack_sql(self, call: exp.Anonymous, alias: exp.Expr) -> str:
        """The rows of a stack as a query for each, beside the row that they are made of."""
        count, *cells = [self.sql(each) for each in call.expressions]
        names = [column.name for column in alias.columns]
        rows = zip(*[iter(cells)] * (len(cells) // int(count)), strict=True)
        selects = [
            f"SELECT {', '.join(f'{v} AS {n}' for v, n in zip(row, names, strict=True))}"
            for row in rows
        ]
        return f" CROSS JOIN LATERAL ({' UNION ALL '.join(selects)}) AS {alias.name}"

    def substring_sql(self, expression: exp.Substring) -> str:
        """SUBSTRING has a syntax of its own, and so a node of its own."""
        parts = (expression.this, expression.args["start"], expression.args.get("length"))
        return _substring(*(self.sql(p) if p else str(_MAX_LENGTH) for p in parts))

    def div_sql(self, expression: exp.Div) -> str:
        """A quotient with its fraction, also of integers."""
        return self._divided(expression.this, "/", expression.expression)

    def mod_sql(self, expression: exp.Mod) -> str:
        """The rest has the sign of the dividend in both."""
        return self._divided(expression.this, "%", expression.expression)

    def _divided(self, left: exp.Expr, operator: str, right: exp.Expr) -> str:
        """A division by zero is an error in Spark; DuckDB may answer infinity or NaN."""
        divided = f"{self.sql(left)} {operator} {self.sql(right)}"
        if isinstance(right, exp.Literal) and not right.is_string and float(right.name):
            return f"({divided})"
        return f"CASE WHEN {self.sql(right)} = 0 THEN error('division by zero') ELSE {divided} END"

    def intdiv_sql(self, expression: exp.IntDiv) -> str:
        """The quotient without its fraction; DuckDB's own is exact for integers only."""
        left, right = expression.this, expression.expression
        if {_cast_type(left), _cast_type(right)} & _FRACTIONS:
            return f"CAST(trunc({self._divided(left, '/', right)}) AS BIGINT)"
        return f"CAST({self._divided(left, '//', right)} AS BIGINT)"

    def _exact_quotient(self, division: exp.Div, result: exp.DataType) -> str | None:
        """A quotient of two decimals; DuckDB's own is a double, which has only 15 digits."""
        left, right = _digits(division.left), _digits(division.right)
        (precision, scale), sides = _type_digits(result), (division.left, division.right)
        if left is None or right is None:
            return None
        shift = scale + right[1] - left[1]
        texts = [self.sql(side) for side in sides]
        whole = [_scaled(texts[0], left[1], max(shift, 0)), _scaled(texts[1], right[1], -shift)]
        return _QUOTIENT.format(*texts, *whole, precision, scale)

    def like_sql(self, expression: exp.Like) -> str:
        """Spark's patterns have an escape character."""
        negation = "NOT " if expression.args.get("negate") else ""
        if isinstance(expression.expression, exp.Any | exp.All):
            word = " OR " if isinstance(expression.expression, exp.Any) else " AND "
            text = self.sql(expression, "this")
            patterns = map(self.sql, expression.expression.this.expressions)
            likes = [f"{text} {negation}LIKE {pattern} ESCAPE '\\'" for pattern in patterns]
            return f"({word.join(likes)})"
        text, pattern = self.sql(expression, "this"), self.sql(expression, "expression")
        return f"{text} {negation}LIKE {pattern} ESCAPE '\\'"

    def trycast_sql(self, expression: exp.TryCast) -> str:
        """In ANSI mode a cast that fails is an error."""
        return self.cast_sql(expression)

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        """Casts whose meaning depends on the type that they come from, then all others."""
        target = expression.to
        source = _cast_type(expression.this)
        value, name = self.sql(expression, "this"), self.sql(target)
        match source:
            case None if target.this == exp.DType.DECIMAL and isinstance(expression.this, exp.Div):
                return self._exact_quotient(expression.this, target) or f"CAST({value} AS {name})"
            case _ if source in _FRACTIONS and target.this in exp.DataType.INTEGER_TYPES:
                return f"CAST(trunc({value}) AS {name})"
            case _ if source in _TEXTS and target.this in exp.DataType.INTEGER_TYPES:
                return _WHOLE_TEXT.format(value, name)
            case _ if source in _TEXTS and target.this in _BYTES:
                return f"encode({value})"
            case _ if source in _TEXTS and target.this == exp.DType.BOOLEAN:
                return f"CAST(trim({value}) AS BOOLEAN)"
            case _ if source in _BYTES and target.this in _TEXTS:
                return f"decode({value})"
            case exp.DType.DOUBLE | exp.DType.FLOAT if target.this == exp.DType.DECIMAL:
                return f"CASE WHEN isfinite({value}) THEN CAST({value} AS {name}) END"
            case exp.DType.DOUBLE if target.this in _TEXTS:
                return _LONG_TEXT.format(value)
        return f"CAST({value} AS {name})"

    def datatype_sql(self, expression: exp.DataType) -> str:
        """The type that holds the values of a Spark type."""
        name = _TYPES.get(expression.this.value)
        return name or super().datatype_sql(expression)


_FRACTIONS = {exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL}
_TEXTS = {exp.DType.TEXT, exp.DType.VARCHAR}
_BYTES = {exp.DType.BINARY, exp.DType.VARBINARY}


def _substring(text: str, start: str, length: str) -> str:
    if start.isdigit() and start != "0" and length.isdigit():
        return f"substring({text}, {start}, {length})"
    return _SUBSTRING.format(text, start, length, _START.format(text, start))


def _scaled(value: str, scale: int, shift: int) -> str:
    """A decimal as an integer, times a power of ten."""
    whole = f"CAST({value} * CAST('1e{scale}' AS DECIMAL(38, 0)) AS HUGEINT)"
    return f"({whole} * CAST('1e{shift}' AS HUGEINT))" if shift > 0 else whole


def _digits(node: exp.Expr) -> tuple[int, int] | None:
    """Precision and scale of what is written as a decimal."""
    while isinstance(node, exp.Paren):
        node = node.this
    decimal = isinstance(node, exp.Cast) and node.to.this == exp.DType.DECIMAL
    return _type_digits(node.to) if isinstance(node, exp.Cast) and decimal else None


def _type_digits(type_: exp.DataType) -> tuple[int, int]:
    precision, *scale = [int(parameter.name) for parameter in type_.expressions] or [10]
    return precision, scale[0] if scale else 0


def _cast_type(node: exp.Expr) -> exp.DType | None:
    """The type that is written around an argument."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node.to.this if isinstance(node, exp.Cast) else None
