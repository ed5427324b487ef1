"""SQL expressions to typed expressions of the algebra."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from sqlglot import exp

from viewkeep.errors import ParseError, QueryError, UnsupportedError
from viewkeep.query.algebra import Node
from viewkeep.query.expressions import Call, Cast, Literal, literal
from viewkeep.query.types.data_types import (
    BOOLEAN,
    DATE,
    MOMENTS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Type,
)
from viewkeep.query.types.functions import FUNCTIONS, TIME_FUNCTIONS
from viewkeep.query.types.implicit_casts import implicit_casts
from viewkeep.query.types.inference import cast_result
from viewkeep.query.types.signatures import type_refusal
from viewkeep.sql.blocks.scope import Scalar, Scope, ScopeColumn, constant
from viewkeep.sql.expressions.arithmetic import constant_value, sum_or_move
from viewkeep.sql.expressions.forms import form
from viewkeep.sql.expressions.functions import function_call
from viewkeep.sql.expressions.literals import read_text, typed_literal
from viewkeep.sql.expressions.names import column_or_alias
from viewkeep.sql.expressions.opaque import opaque_call, opaque_expression
from viewkeep.sql.expressions.tuples import compare_tuples
from viewkeep.sql.source import Source

_BINARY: dict[type[exp.Expr], str] = {
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
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

    def as_subquery(self, query: exp.Expr) -> exp.Expr:
        """A subquery in this clause, as it reads the columns of `subquery_scope`."""
        return query

    def translate(self, node: exp.Expr) -> Scalar:
        """The expression, or an error that points into it."""
        if id(node) in self._refusals:
            raise self._refusals[id(node)][1]
        attached = self.attachments.translate(node, self) if self.attachments else None
        if attached is not None:
            return attached
        comparison = _COMPARISONS.get(type(node))
        if comparison is not None:
            sides = (node.this, node.expression)
            of_tuples = compare_tuples(self, comparison, sides, node)
            return of_tuples or self.compare(comparison, self.translate_all(sides), node)
        operator = _BINARY.get(type(node))
        if operator is not None:
            return self.call(operator, self.translate_both(node), node)
        match node:
            case exp.Paren():
                return self.translate(node.this)
            case exp.Column() if not isinstance(node.this, exp.Star):
                return column_or_alias(self, node)
            case exp.Literal() | exp.Boolean() | exp.Null() | exp.HexString() | exp.Neg():
                return constant_value(self, node)
            case exp.RawString():
                return constant(literal(node.name))
            case exp.Add() | exp.Sub():
                try:
                    return sum_or_move(self, node)
                except UnsupportedError as error:
                    return self.opaque(node, error)
            case exp.Anonymous():
                return function_call(self, node)
        return self._translate_special(node)

    def condition(self, node: exp.Expr) -> Scalar:
        """A boolean expression."""
        scalar = self.translate(node)
        if scalar.typed.type not in (BOOLEAN, VOID):
            problem = f"a condition must be boolean, but this is {scalar.typed.type}"
            raise self.source.type_error(problem, node)
        return scalar

    def call(self, function: str, arguments: Sequence[Scalar], node: exp.Expr) -> Scalar:
        """A function applied to translated arguments."""
        if function in TIME_FUNCTIONS:
            arguments = [self._scalar_in_utc(each, node) for each in arguments]
        try:
            return self._typed_call(function, arguments, node)
        except QueryError as error:
            with suppress(QueryError):  # it is the call as it was written that is refused
                return self._call_with_casts(function, arguments, node)
            call = Call(function, tuple(a.expression for a in arguments))
            opaque = opaque_call(call, arguments, self.source)
            if opaque is not None:
                return opaque
            raise self.source.type_error(_type_problem(error), node) from None

    def _typed_call(self, function: str, arguments: Sequence[Scalar], node: exp.Expr) -> Scalar:
        for argument in arguments:
            self.refuse_carried(argument, node, function)
        typed = FUNCTIONS[function].result([argument.typed for argument in arguments])
        return Scalar(Call(function, tuple(a.expression for a in arguments)), typed)

    def _call_with_casts(
        self, function: str, arguments: Sequence[Scalar], node: exp.Expr
    ) -> Scalar:
        if function == "nullif" and len(arguments) == 2:  # the casts are those of its comparison
            equal = self.call("=", arguments, node)
            return self.call("case", [equal, constant(literal(None)), arguments[0]], node)
        if function == "+" and arguments[1].typed.type == DATE != arguments[0].typed.type:
            arguments = arguments[::-1]  # days and a date
        return self._typed_call(function, self.cast_implicitly(function, arguments, node), node)

    def cast_implicitly(
        self, function: str, arguments: Sequence[Scalar], node: exp.Expr
    ) -> Sequence[Scalar]:
        """The arguments with the casts that Spark adds, if there are any."""
        casts = implicit_casts(function, [each.typed for each in arguments])
        if casts is None:
            return arguments
        return [
            argument if target in (None, argument.typed.type) else self.cast(argument, target, node)
            for argument, target in zip(arguments, casts, strict=True)
        ]

    def refuse_carried(self, scalar: Scalar, node: exp.Expr, function: str = "=") -> None:
        """An error where a function does not take a value of a type that views carry."""
        reason = type_refusal(scalar.typed.type, function)
        if reason is not None:
            problem = f"{scalar.expression} is {scalar.typed.type}: {reason}"
            raise self.source.type_error(problem, node)

    def compare(self, function: str, arguments: Sequence[Scalar], node: exp.Expr) -> Scalar:
        """A comparison, in which a string literal beside a date is read as a date."""
        types = {argument.typed.type for argument in arguments}
        target = next((each for each in reversed(MOMENTS) if each in types), None)
        if target is None:
            return self.call(function, arguments, node)
        return self.call(function, [self._scalar_as_date(a, target, node) for a in arguments], node)

    def column(self, column: ScopeColumn, node: exp.Expr) -> Scalar:
        """What a resolved column means in this clause."""
        return column.scalar

    def translate_both(self, node: exp.Expr) -> list[Scalar]:
        """The two operands of an operator."""
        return [self.translate(node.this), self.translate(node.expression)]

    def translate_all(self, nodes: Sequence[exp.Expr]) -> list[Scalar]:
        """Several expressions, in order."""
        return [self.translate(node) for node in nodes]

    def _scalar_as_date(self, scalar: Scalar, target: Type, node: exp.Expr) -> Scalar:
        match scalar.expression:
            case Literal(str(text)):
                moment = read_text(text, target)
                if moment is None:
                    raise self.source.error(f"'{text}' is not a {target}", node)
                return constant(moment)
        return scalar

    def _scalar_in_utc(self, scalar: Scalar, node: exp.Expr) -> Scalar:
        is_local = scalar.typed.type == TIMESTAMP_NTZ
        return self.cast(scalar, TIMESTAMP, node) if is_local else scalar

    def _translate_special(self, node: exp.Expr) -> Scalar:
        """The forms with a syntax of their own."""
        if not isinstance(node, _PARTLY_KNOWN):
            return form(self, node)
        try:
            return form(self, node)
        except UnsupportedError as error:
            return self.opaque(node, error)

    def opaque(self, node: exp.Expr, error: QueryError) -> Scalar:
        """What only Spark computes, where that is known to be an expression; else the refusal."""
        expression = opaque_expression(node, self.translate, self.source)
        if expression is None:
            self._refusals[id(node)] = node, error
            raise error
        return expression

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
            self.refuse_carried(argument, node, "cast")
            typed = cast_result(argument.typed, target)
        except QueryError as error:
            opaque = opaque_call(cast, [argument], self.source)
            if opaque is not None:
                return opaque
            raise self.source.type_error(_type_problem(error), node) from None
        return Scalar(cast, typed)


def _type_problem(error: QueryError) -> str:
    return error.problem if isinstance(error, ParseError) else str(error)


def attached(node: Node, translator: Translator) -> Node:
    """The rows of a clause with the values of the subqueries in its expressions."""
    return translator.attachments.attached(node) if translator.attachments else node
