"""Calls of functions, by name or with keywords between their arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.errors import QueryError, UnsupportedError
from viewkeep.query.types.aggregates import AGGREGATES
from viewkeep.query.types.data_types import Type
from viewkeep.query.types.functions import FUNCTIONS, SYNONYMS, is_deterministic
from viewkeep.query.types.internal_functions import TRIED
from viewkeep.sql.blocks.clauses import is_aggregate
from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.expressions.composed import COMPOSED, compose_call
from viewkeep.sql.expressions.moments import moment_call
from viewkeep.sql.expressions.nested import struct
from viewkeep.sql.expressions.opaque import user_functions
from viewkeep.sql.expressions.stars import without_stars
from viewkeep.sql.spark_functions import SPARK_FUNCTIONS, unknown_function

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator

DATE_PARTS = ("year", "quarter", "month", "day", "dayofweek", "hour", "minute")
"""What date_part() and EXTRACT take; Spark's SECOND has fractions, which second() has not."""


def function_call(translator: "Translator", node: exp.Anonymous) -> Scalar:
    """A call by name: of the algebra, made up of others, or known to Spark alone."""
    name = node.name.lower()
    name = SYNONYMS.get(name, name)
    node.set("expressions", without_stars(translator, node.expressions))
    if not is_deterministic(name, len(node.expressions)):
        raise translator.source.unsupported(f"the non-deterministic function {name}()", node)
    if name in AGGREGATES or is_aggregate(node):
        raise translator.source.error(f"aggregate {name}() is not allowed here", node)
    if name in ("date_part", "datepart") and len(node.expressions) == 2:
        return _special_call(translator, node, _translate_date_part)
    if node.expressions and isinstance(node.expressions[0], exp.Var):
        return _special_call(translator, node, moment_call)
    if name == "struct" or name in TRIED:
        try:
            return struct(translator, node) if name == "struct" else _tried(translator, name, node)
        except UnsupportedError as refusal:
            return translator.opaque(node, refusal)
    if name in COMPOSED:
        arguments = translator.translate_all(node.expressions)
        composition = compose_call(name, _Composer(translator, node), arguments)
        return composition or translator.opaque(node, _unknown_function(translator, node))
    if name == "sequence" and _has_interval(node):
        problem = "sequence() with an interval outside explode()"
        return translator.opaque(node, translator.source.unsupported(problem, node))
    if name not in FUNCTIONS:
        return translator.opaque(node, _unknown_function(translator, node))
    return translator.call(name, translator.translate_all(node.expressions), node)


def _has_interval(node: exp.Anonymous) -> bool:
    return any(isinstance(each, exp.Interval) for each in node.expressions)


def _special_call(
    translator: "Translator",
    node: exp.Anonymous,
    special: Callable[["Translator", exp.Anonymous], Scalar],
) -> Scalar:
    """A call with arguments of a kind of its own; what it does not cover is left to Spark."""
    try:
        return special(translator, node)
    except UnsupportedError as refusal:
        return translator.opaque(node, refusal)


def _tried(translator: "Translator", name: str, node: exp.Anonymous) -> Scalar:
    arguments = translator.translate_all(node.expressions)
    composition = compose_call(name, _Composer(translator, node), arguments)
    return composition or translator.call(name, arguments, node)


def _translate_date_part(translator: "Translator", node: exp.Anonymous) -> Scalar:
    part, moment = node.expressions
    name = part.name.lower() if isinstance(part, exp.Literal) and part.is_string else ""
    if name not in DATE_PARTS:
        raise translator.source.unsupported("this part in date_part()", node)
    return translator.call(name, [translator.translate(moment)], node)


def _unknown_function(translator: "Translator", node: exp.Anonymous) -> QueryError:
    if node.name.lower() in (*SPARK_FUNCTIONS, *user_functions(translator.source)):
        return translator.source.unsupported(f"the function {node.name.lower()}()", node)
    names = {*FUNCTIONS, *SYNONYMS, *AGGREGATES, *SPARK_FUNCTIONS}
    problem = unknown_function(node.name, names, translator.source.types is not None)
    return translator.source.error(problem, node)


def keyword_function(
    translator: "Translator", node: exp.Extract | exp.Substring | exp.Trim | exp.StrPosition
) -> Scalar:
    """A function whose arguments stand between keywords."""
    match node:
        case exp.Extract():
            part = node.this.name.lower()
            if part not in DATE_PARTS:
                raise translator.source.unsupported(f"EXTRACT of {part.upper()}", node)
            return translator.call(part, [translator.translate(node.expression)], node)
        case exp.Substring():
            parts = [node.this, node.args.get("start"), node.args.get("length")]
            return translator.call(
                "substring", translator.translate_all([p for p in parts if p]), node
            )
        case exp.StrPosition():
            return translator.call(
                "locate", translator.translate_all([node.args["substr"], node.this]), node
            )
    if node.expression is not None:
        raise translator.source.unsupported("TRIM of given characters", node)
    side = str(node.args.get("position") or "").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
    return translator.call(name, [translator.translate(node.this)], node)


@dataclass(frozen=True)
class _Composer:
    """Makes expressions for one call."""

    translator: "Translator"
    node: exp.Expr

    def call(self, function: str, *arguments: Scalar) -> Scalar:
        return self.translator.call(function, arguments, self.node)

    def cast(self, argument: Scalar, target: Type) -> Scalar:
        return self.translator.cast(argument, target, self.node)
