"""SQL expressions to typed expressions of the algebra."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.errors import ParseError, QueryError, UnsupportedError, did_you_mean
from viewkeep.query.algebra import Node
from viewkeep.query.expressions import Call, Cast, Literal, literal
from viewkeep.query.types.aggregates import AGGREGATES
from viewkeep.query.types.data_types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    VOID,
    Type,
)
from viewkeep.query.types.functions import (
    BARE_FUNCTIONS,
    ENTRY,
    FIELD,
    FUNCTIONS,
    ITEM,
    ONLY_CARRIED,
    PARTS,
    SYNONYMS,
    Typed,
    is_deterministic,
)
from viewkeep.query.types.inference import cast_result
from viewkeep.sql.blocks.clauses import is_aggregate
from viewkeep.sql.blocks.scope import Scalar, Scope, ScopeColumn
from viewkeep.sql.expressions.composed import COMPOSED, composed
from viewkeep.sql.expressions.literals import (
    Span,
    number,
    read_interval,
    read_text,
    read_type,
    typed_literal,
)
from viewkeep.sql.expressions.opaque import opaque_call, opaque_expression, user_functions
from viewkeep.sql.source import Source
from viewkeep.sql.spark_functions import SPARK_FUNCTIONS, unknown_function

DATE_PARTS = ("year", "quarter", "month", "day", "dayofweek", "hour", "minute")
"""What date_part() and EXTRACT take; Spark's SECOND has fractions, which second() has not."""

_BINARY: dict[type[exp.Expr], str] = {
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.And: "and",
    exp.Or: "or",
}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_REFUSED: dict[type[exp.Expr], str] = {
    exp.Window: "a window function outside the select list and QUALIFY",
    exp.Subquery: "a scalar subquery",
    exp.Select: "a scalar subquery",
    exp.Exists: "EXISTS outside a conjunction of WHERE or HAVING",
    exp.Any: "ANY",
    exp.All: "ALL",
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
    exp.TryCast: "TRY_CAST",
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


_PARTLY_KNOWN = (exp.Cast, exp.Extract, exp.Substring, exp.Trim, exp.StrPosition, exp.Is)
"""Forms of which the algebra has some, and Spark the others."""


class Windows(Protocol):
    """Takes the window functions that a clause may have."""

    def translate(self, node: exp.Window, translator: "Translator") -> Scalar:
        """The column that a window function becomes."""


class RowGenerator(Protocol):
    """Takes the function of a select list that makes rows."""

    def columns(self, node: exp.Expr, translator: "Translator") -> list[tuple[str, Scalar]]:
        """The names and values of the columns that a call becomes."""


class Attachments(Protocol):
    """The subqueries in the expressions of one clause, which are joined to its rows."""

    def translate(self, node: exp.Expr, translator: "Translator") -> Scalar | None:
        """The column or expression that a subquery becomes; None for what is none."""

    def attached(self, node: Node) -> Node:
        """The rows of the clause, each with the values of the subqueries for it."""


class Translator:
    """Translates the expressions of one clause; a correlated one may read the outer query."""

    def __init__(self, source: Source, scope: Scope, correlated: bool = False) -> None:
        self.source = source
        self.scope = scope
        self.correlated = correlated
        self.earlier: Mapping[str, Scalar | None] = {}
        """The aliases before an item of the select list; None where Spark decides what is meant."""
        self.later: Collection[str] = ()
        self.windows: Windows | None = None
        self.generator: RowGenerator | None = None
        self.attachments: Attachments | None = None
        self.correlated_scalars = True
        self._refusals: dict[int, tuple[exp.Expr, QueryError]] = {}
        """What was refused, with its reason: expressions around it are tried in two ways."""

    @property
    def subquery_scope(self) -> Scope:
        """What a subquery in this clause may read."""
        return self.scope

    def translate(self, node: exp.Expr) -> Scalar:
        """The expression, or an error that points into it."""
        if id(node) in self._refusals:
            raise self._refusals[id(node)][1]
        attached = self.attachments.translate(node, self) if self.attachments else None
        if attached is not None:
            return attached
        comparison = _COMPARISONS.get(type(node))
        if comparison is not None:
            return self.compare(comparison, self._both(node), node)
        operator = _BINARY.get(type(node))
        if operator is not None:
            return self.call(operator, self._both(node), node)
        match node:
            case exp.Paren():
                return self.translate(node.this)
            case exp.Column() if not isinstance(node.this, exp.Star):
                return self._named(node)
            case exp.Literal() | exp.Boolean() | exp.Null() | exp.HexString() | exp.Neg():
                return self._constant(node)
            case exp.RawString():
                return constant(literal(node.name))
            case exp.Add() | exp.Sub():
                try:
                    return self._sum(node)
                except UnsupportedError as refusal:
                    return self._opaque(node, refusal)
            case exp.Anonymous():
                return self._function(node)
        return self._special(node)

    def condition(self, node: exp.Expr) -> Scalar:
        """A boolean expression."""
        scalar = self.translate(node)
        if scalar.typed.type not in (BOOLEAN, VOID):
            problem = f"a condition must be boolean, but this is {scalar.typed.type}"
            raise self.source.type_error(problem, node)
        return scalar

    def call(self, function: str, arguments: Sequence[Scalar], node: exp.Expr) -> Scalar:
        """A function applied to translated arguments."""
        call = Call(function, tuple(a.expression for a in arguments))
        try:
            for argument in arguments:
                if function not in ("isnull", "isnotnull", *PARTS):
                    self.refuse_opaque(argument, node)
            typed = FUNCTIONS[function].result([argument.typed for argument in arguments])
        except QueryError as error:
            opaque = opaque_call(call, arguments, self.source)
            if opaque is not None:
                return opaque
            raise self.source.type_error(_problem(error), node) from None
        return Scalar(call, typed)

    def refuse_opaque(self, scalar: Scalar, node: exp.Expr) -> None:
        """An error where something is computed with a value that views only carry."""
        if scalar.typed.type.is_opaque:
            problem = f"{scalar.expression} is {scalar.typed.type}: {ONLY_CARRIED}"
            raise self.source.type_error(problem, node)

    def compare(self, function: str, arguments: Sequence[Scalar], node: exp.Expr) -> Scalar:
        """A comparison, in which a string literal beside a date is read as a date."""
        types = {argument.typed.type for argument in arguments} & {DATE, TIMESTAMP}
        if not types:
            return self.call(function, arguments, node)
        target = TIMESTAMP if TIMESTAMP in types else DATE
        return self.call(function, [self._dated(a, target, node) for a in arguments], node)

    def column(self, column: ScopeColumn, node: exp.Expr) -> Scalar:
        """What a resolved column means in this clause."""
        return column.scalar

    def resolve(self, node: exp.Column) -> ScopeColumn:
        """The one column that a name means."""
        if node.args.get("db"):
            raise self.source.unsupported("a column with more than one qualifier", node)
        columns = self.scope.matches(node.table, node.name)
        if len(columns) > 1:
            candidates = ", ".join(sorted(str(column) for column in columns))
            problem = f'column "{node.name}" is ambiguous ({candidates}); name its table'
            raise self.source.error(problem, node)
        if not columns and not node.table:
            self._refuse_word(node)
        return columns[0] if columns else self._outer(node)

    def _named(self, node: exp.Column) -> Scalar:
        """A column, a part of a struct, or an alias before."""
        alias = self._lateral_alias(node)
        if alias is not None:
            return alias
        column, parts = self.struct_path(node)
        value = self.column(self.resolve(node) if column is None else column, node)
        for part in parts:
            value = self.field(value, part, node)
        return value

    def struct_path(self, node: exp.Column) -> tuple[ScopeColumn | None, list[str]]:
        """The column of a struct and the names of its parts, where a name with dots is that."""
        names = [part.name for part in node.parts]
        qualified = self.scope.matches(*names[:2]) if len(names) > 1 else []
        columns, parts = qualified, names[2:]
        if not qualified:
            columns, parts = self.scope.matches("", names[0]), names[1:]
        is_struct = len(columns) == 1 and columns[0].scalar.typed.type.name == "struct"
        return (columns[0], parts) if parts and is_struct else (None, [])

    def field(self, struct: Scalar, name: str, node: exp.Expr) -> Scalar:
        """A part of a struct, by its name in any case."""
        parts = struct.typed.type.parts if struct.typed.type.name == "struct" else ()
        places = [i for i, part in enumerate(parts) if part.name.lower() == name.lower()]
        if len(places) != 1:
            known = [part.name for part in parts]
            listed = f"{struct.typed.type}{did_you_mean(name, known)}"
            raise self.source.error(f'no part "{name}" in {struct.expression}, {listed}', node)
        [place] = places
        arguments = [struct, constant(literal(parts[place].name)), constant(literal(place))]
        return self.call(FIELD, arguments, node)

    def _element(self, node: exp.Bracket) -> Scalar:
        """An element of an array by its place, or of a map by its key."""
        values = self.translate(node.this)
        if len(node.expressions) != 1 or values.typed.type.name not in ("array", "map"):
            return self._opaque(node, self.source.unsupported("this form of []", node))
        function = ITEM if values.typed.type.name == "array" else ENTRY
        return self.call(function, [values, self.translate(node.expressions[0])], node)

    def _lateral_alias(self, node: exp.Column) -> Scalar | None:
        """The item before this one that a name means, where no column of FROM has the name."""
        if node.table or self.scope.matches("", node.name):
            return None
        return self.earlier.get(node.name.lower())

    def _refuse_word(self, node: exp.Column) -> None:
        """Names that are no columns: functions without brackets, aliases of the same list."""
        name = node.name.lower()
        if name in self.earlier:
            construct = f'"{node.name}", an alias of the same select list (a lateral column alias),'
            raise self.source.unsupported(construct, node)
        if name in BARE_FUNCTIONS and not node.this.quoted:
            raise self.source.unsupported(f"the non-deterministic function {name}()", node)

    def _outer(self, node: exp.Column) -> ScopeColumn:
        outer = self.scope.outer
        level = 1
        while outer is not None and not outer.matches(node.table, node.name):
            outer, level = outer.outer, level + 1
        if outer is None:
            if any(c.scalar.typed.type.parts for c in self.scope.matches("", node.table)):
                raise self.source.unsupported(
                    f'"{node.table}.{node.name}", a field of a struct,', node
                )
            raise self.source.error(self._unknown(node), node)
        if level > 1:
            raise self.source.unsupported("a column from more than one query further out", node)
        if not self.correlated:
            construct = "a column of the outer query outside the WHERE of a plain subquery"
            raise self.source.unsupported(construct, node)
        columns = outer.matches(node.table, node.name)
        if len(columns) > 1:
            raise self.source.error(f'column "{node.name}" of the outer query is ambiguous', node)
        return columns[0]

    def _unknown(self, node: exp.Column) -> str:
        if not node.table and node.name.lower() in self.later:
            problem = f'"{node.name}" is an alias of the select list, which WHERE comes before'
            return f"{problem}; repeat the expression"
        return self.scope.unknown(node.table, node.name)

    def _both(self, node: exp.Expr) -> list[Scalar]:
        return [self.translate(node.this), self.translate(node.expression)]

    def _all(self, nodes: Sequence[exp.Expr]) -> list[Scalar]:
        return [self.translate(node) for node in nodes]

    def _dated(self, scalar: Scalar, target: Type, node: exp.Expr) -> Scalar:
        match scalar.expression:
            case Literal(str(text)):
                moment = read_text(text, target)
                if moment is None:
                    raise self.source.error(f"'{text}' is not a {target}", node)
                return constant(moment)
        return scalar

    def _constant(self, node: exp.Expr) -> Scalar:
        match node:
            case exp.Literal() if node.is_string:
                return constant(literal(node.name))
            case exp.Literal():
                return constant(number(node, self.source))
            case exp.Boolean():
                return constant(literal(bool(node.this)))
            case exp.HexString():
                return constant(Literal(self._bytes(node), BINARY))
            case exp.Neg():
                return self._negation(node)
        return constant(literal(None))

    def _bytes(self, node: exp.Expr) -> bytes:
        try:
            return bytes.fromhex(node.name)
        except ValueError:
            raise self.source.error(f'"{node.name}" is not hexadecimal', node) from None

    def _negation(self, node: exp.Neg) -> Scalar:
        """A minus before digits is part of the number: -2147483648 is an int."""
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return constant(number(node.this, self.source, negative=True))
        argument = self.translate(node.this)
        match argument.expression:
            case Literal(float() | Decimal() as value, type_):
                return constant(Literal(-value, type_))
            case Literal(int(value), type_) if type_ in INTEGRAL:
                negated = typed_literal(literal(-value), type_)
                if negated is not None:
                    return constant(negated)
        return self.call("negate", [argument], node)

    def _sum(self, node: exp.Add | exp.Sub) -> Scalar:
        """`+` and `-`; with an interval they move a date or a timestamp."""
        left, right = self._spans(node.this), self._spans(node.expression)
        operator = "+" if isinstance(node, exp.Add) else "-"
        if not left and not right:
            return self.call(operator, self._both(node), node)
        if left and (right or operator == "-"):
            raise self.source.unsupported("an interval outside date arithmetic", node)
        moved = self.translate(node.expression if left else node.this)
        for span in left or right:
            moved = self._move(moved, span if operator == "+" else span.negated(), node)
        return moved

    def _spans(self, node: exp.Expr) -> list[Span]:
        match node:
            case exp.Interval():
                return [read_interval(node, self.source)]
            case exp.Paren():
                return self._spans(node.this)
            case exp.Add() if self._spans(node.this) and self._spans(node.expression):
                return self._spans(node.this) + self._spans(node.expression)
        return []

    def _move(self, moment: Scalar, span: Span, node: exp.Expr) -> Scalar:
        amount = constant(literal(span.amount))
        if moment.typed.type == TIMESTAMP:
            unit = constant(literal(span.unit))
            return self.call("timestampadd", [unit, amount, moment], node)
        if span.unit not in ("DAY", "MONTH"):
            raise self.source.unsupported(f"adding an interval of {span.unit} to a date", node)
        return self.call("date_add" if span.unit == "DAY" else "add_months", [moment, amount], node)

    def _function(self, node: exp.Anonymous) -> Scalar:
        name = node.name.lower()
        name = SYNONYMS.get(name, name)
        if not is_deterministic(name, len(node.expressions)):
            raise self.source.unsupported(f"the non-deterministic function {name}()", node)
        if name in AGGREGATES or is_aggregate(node):
            raise self.source.error(f"aggregate {name}() is not allowed here", node)
        if name in ("date_part", "datepart") and len(node.expressions) == 2:
            try:
                return self._date_part(node)
            except UnsupportedError as refusal:
                return self._opaque(node, refusal)
        if name in COMPOSED:
            arguments = self._all(node.expressions)
            found = composed(name, _Composer(self, node), arguments)
            return found or self._opaque(node, self._unknown_function(node))
        if name not in FUNCTIONS:
            return self._opaque(node, self._unknown_function(node))
        return self.call(name, self._all(node.expressions), node)

    def _date_part(self, node: exp.Anonymous) -> Scalar:
        part, moment = node.expressions
        name = part.name.lower() if isinstance(part, exp.Literal) and part.is_string else ""
        if name not in DATE_PARTS:
            raise self.source.unsupported("this part in date_part()", node)
        return self.call(name, [self.translate(moment)], node)

    def _unknown_function(self, node: exp.Anonymous) -> QueryError:
        if node.name.lower() in (*SPARK_FUNCTIONS, *user_functions(self.source)):
            return self.source.unsupported(f"the function {node.name.lower()}()", node)
        known = {*FUNCTIONS, *SYNONYMS, *AGGREGATES, *SPARK_FUNCTIONS}
        problem = unknown_function(node.name, known, self.source.types is not None)
        return self.source.error(problem, node)

    def _special(self, node: exp.Expr) -> Scalar:
        """The forms with a syntax of their own."""
        if not isinstance(node, _PARTLY_KNOWN):
            return self._form(node)
        try:
            return self._form(node)
        except UnsupportedError as refusal:
            return self._opaque(node, refusal)

    def _form(self, node: exp.Expr) -> Scalar:
        match node:
            case exp.Not():
                return self.call("not", [self.condition(node.this)], node)
            case exp.NullSafeNEQ():
                same = self.compare("<=>", self._both(node), node)
                return self.call("not", [same], node)
            case exp.Is():
                return self._is(node)
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Like() if not isinstance(node.expression, exp.Any | exp.All):
                like = self.call("like", self._both(node), node)
                return self.call("not", [like], node) if node.args.get("negate") else like
            case exp.Case() | exp.If():
                return self._case(node)
            case exp.Cast() if not node.args.get("safe"):
                return self.cast(self.translate(node.this), self._target(node), node)
            case exp.DPipe():
                return self.call("concat", self._both(node), node)
            case exp.Concat():
                return self.call("concat", self._all(node.expressions), node)
            case exp.Dot(expression=exp.Identifier() as part):
                return self.field(self.translate(node.this), part.name, node)
            case exp.Bracket():
                return self._element(node)
            case exp.Window() if self.windows is not None:
                return self.windows.translate(node, self)
            case exp.Extract() | exp.Substring() | exp.Trim() | exp.StrPosition():
                return self._keyword_function(node)
        return self._opaque(node, self._refusal(node))

    def _opaque(self, node: exp.Expr, refusal: QueryError) -> Scalar:
        """What only Spark computes, where that is known to be an expression; else the refusal."""
        found = opaque_expression(node, self.translate, self.source)
        if found is None:
            self._refusals[id(node)] = node, refusal
            raise refusal
        return found

    def _refusal(self, node: exp.Expr) -> QueryError:
        word = node.sql("spark").lower().removesuffix("()")
        if not is_deterministic(word, 0):
            return self.source.unsupported(f"the non-deterministic function {word}()", node)
        default = node.sql("spark", normalize_functions="lower").split("(")[0][:40].strip()
        construct = _REFUSED.get(type(node), f'"{default}"')
        return self.source.unsupported(construct, node, _KEYWORDS.get(type(node), ()))

    def _is(self, node: exp.Is) -> Scalar:
        argument = self.translate(node.this)
        match node.expression:
            case exp.Null():
                return self.call("isnull", [argument], node)
            case exp.Boolean():
                truth = constant(literal(bool(node.expression.this)))
                return self.call("<=>", [argument, truth], node)
        raise self.source.unsupported("this form of IS", node)

    def _between(self, node: exp.Between) -> Scalar:
        value = self.translate(node.this)
        low = self.compare(">=", [value, self.translate(node.args["low"])], node)
        high = self.compare("<=", [value, self.translate(node.args["high"])], node)
        return self.call("and", [low, high], node)

    def _in(self, node: exp.In) -> Scalar:
        if node.args.get("query") or not node.expressions:
            construct = "IN with a subquery outside a conjunction of WHERE or HAVING"
            raise self.source.unsupported(construct, node)
        return self.compare("in", [self.translate(node.this), *self._all(node.expressions)], node)

    def _case(self, node: exp.Case | exp.If) -> Scalar:
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        default = node.args.get("default" if isinstance(node, exp.Case) else "false")
        value = node.this if isinstance(node, exp.Case) else None
        parts: list[Scalar] = []
        for branch in branches:
            if value is None:
                parts.append(self.condition(branch.this))
            else:
                parts.append(self.compare("=", self._all([value, branch.this]), branch))
            parts.append(self.translate(branch.args["true"]))
        if default is not None:
            parts.append(self.translate(default))
        return self.call("case", parts, node)

    def _target(self, node: exp.Cast) -> Type:
        target = node.args["to"]
        if not isinstance(target, exp.DataType) or node.args.get("format"):
            raise self.source.unsupported("this form of CAST", node)
        if target.this in exp.DataType.NESTED_TYPES:
            raise self.source.unsupported(f"the type {target.sql('spark').lower()}", target)
        return read_type(target, self.source)

    def cast(self, argument: Scalar, target: Type, node: exp.Expr) -> Scalar:
        """A value converted to another type."""
        if isinstance(argument.expression, Literal):
            folded = typed_literal(argument.expression, target)
            if folded is not None:
                return constant(folded)
            if target == DATE and argument.typed.type == STRING:
                raise self.source.error(f"{argument.expression} is not a date", node)
        cast = Cast(argument.expression, target)
        try:
            self.refuse_opaque(argument, node)
            typed = cast_result(argument.typed, target)
        except QueryError as error:
            opaque = opaque_call(cast, [argument], self.source)
            if opaque is not None:
                return opaque
            raise self.source.type_error(_problem(error), node) from None
        return Scalar(cast, typed)

    def _keyword_function(
        self, node: exp.Extract | exp.Substring | exp.Trim | exp.StrPosition
    ) -> Scalar:
        match node:
            case exp.Extract():
                part = node.this.name.lower()
                if part not in DATE_PARTS:
                    raise self.source.unsupported(f"EXTRACT of {part.upper()}", node)
                return self.call(part, [self.translate(node.expression)], node)
            case exp.Substring():
                parts = [node.this, node.args.get("start"), node.args.get("length")]
                return self.call("substring", self._all([p for p in parts if p]), node)
            case exp.StrPosition():
                return self.call("locate", self._all([node.args["substr"], node.this]), node)
        if node.expression is not None:
            raise self.source.unsupported("TRIM of given characters", node)
        side = str(node.args.get("position") or "").upper()
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
        return self.call(name, [self.translate(node.this)], node)


@dataclass(frozen=True)
class _Composer:
    """Makes expressions for one call."""

    translator: Translator
    node: exp.Expr

    def call(self, function: str, *arguments: Scalar) -> Scalar:
        return self.translator.call(function, arguments, self.node)

    def cast(self, argument: Scalar, target: Type) -> Scalar:
        return self.translator.cast(argument, target, self.node)


def _problem(error: QueryError) -> str:
    return error.problem if isinstance(error, ParseError) else str(error)


def constant(value: Literal) -> Scalar:
    """A literal as a typed expression."""
    return Scalar(value, Typed(value.type, value.value is None, value.value))


def attached(node: Node, translator: Translator) -> Node:
    """The rows of a clause with the values of the subqueries in its expressions."""
    return translator.attachments.attached(node) if translator.attachments else node
