"""Names and expressions of delta scripts for people: what Viewkeep added to them, made readable."""

import re
from dataclasses import dataclass

from viewkeep.diffs.passes.identify import BRANCH, ROWS
from viewkeep.diffs.rules.build import FALSE, KEY
from viewkeep.query.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OpaqueCall,
    columns_of,
    conjuncts,
    literal,
)

_DIFF = re.compile(r"d([+u-])(?:#(?=\d+\.\d+$)|(?=\d*\())")
_HELPER = re.compile(r"t#(?=\d+\.\d+$)")
_MENTIONED = re.compile(r"(?<!\w)(?:d[+u-](?:#\d+\.\d+|\d*\([^)\s]*)|t#\d+\.\d+)")
_SUFFIXES = {KEY: "{}", "#pre": "{}_pre", "#post": "{}_post", "#by": "Δ{}"}
_KEPT = {"#count": "count({})", "#sum": "sum({})"}


def relation_text(name: str) -> str:
    """A diff or a helper as the papers write it; other names as they are.

    >>> relation_text("du#7.2"), relation_text("d+(parts)"), relation_text("t#7.1")
    ('Δu7.2', 'Δ+(parts)', 't7.1')
    """
    return _HELPER.sub("t", _DIFF.sub(r"Δ\1", name, count=1), count=1)


def column_text(name: str) -> str:
    """A column, with a name that can be read where Viewkeep added it.

    >>> column_text("price#pre"), column_text("cost#count#by"), column_text("#rows#post")
    ('price_pre', 'Δcount(cost)', 'count(*)_post')
    """
    if name == ROWS:
        return "count(*)"
    for ending, pattern in (_SUFFIXES | _KEPT).items():
        if name.endswith(ending) and name != ending:
            return pattern.format(column_text(name.removesuffix(ending)))
    return name.removeprefix("#") if name == BRANCH or name.startswith("#id") else name


def note_text(note: str) -> str:
    """A remark of a pass, with the names of diffs as scripts show them.

    >>> note_text("t#6.5: du(parts) tells its rows")
    't6.5: Δu(parts) tells its rows'
    """
    return _MENTIONED.sub(lambda match: relation_text(match[0]), note)


def readable_expression(expression: Expression) -> str:
    """An expression over readable names.

    >>> readable_expression(Call("not", (Call("<=>", (Column("x#pre"), Column("x#post"))),)))
    'x_pre is not x_post'
    """
    return str(_readable_expression(expression))


def condition_text(condition: Expression) -> str:
    """A condition; an equality of two columns with the same name is that name."""
    match conjuncts(condition):
        case (Call("or"),):
            return readable_expression(condition)
        case several:
            parts = list(map(_conjunct_text, several))
    columns = map(column_text, columns_of(condition))
    return (", " if set(parts) <= set(columns) else " and ").join(parts)


def _conjunct_text(condition: Expression) -> str:
    match condition:
        case Call("=" | "<=>", (Column(left), Column(right))):
            first, second = column_text(left), column_text(right)
            return first if first == second else f"{first} = {second}"
        case Call("or"):
            return f"({readable_expression(condition)})"
    return readable_expression(condition)


def _readable_expression(expression: Expression) -> Expression:
    """The expression without what only machines need."""
    match _plain_expression(expression):
        case Column(name):
            return _Bare(column_text(name))
        case Call(function, arguments):
            return _call_text(function, tuple(map(_readable_expression, arguments)))
        case Cast(argument, kind):
            return Cast(_readable_expression(argument), kind)
        case OpaqueCall(text, arguments, kind):
            return OpaqueCall(text, tuple(map(_readable_expression, arguments)), kind)
        case other:
            return other


def _plain_expression(expression: Expression) -> Expression:
    """The expression without casts to wider numbers and without 0 for NULL."""
    match expression:
        case Cast(argument=Literal()):
            return expression.argument
        case Cast(argument=Call("case", (Call("isnull", _), _, _))):
            return expression.argument
        case Cast(argument=argument) if _only_kept(argument):
            return _plain_expression(argument)
        case Call("coalesce", (value, zero)) if _is_zero_literal(zero) and _only_kept(value):
            return _plain_expression(value)
        case Call("coalesce", (Cast(argument=Literal() as value), zero)) if _is_zero_literal(zero):
            return value
    return expression


def _only_kept(expression: Expression) -> bool:
    names = columns_of(expression)
    return bool(names) and all("#" in name for name in names)


def _is_zero_literal(expression: Expression) -> bool:
    return isinstance(expression, Cast) and expression.argument == literal(0)


def _call_text(function: str, arguments: tuple[Expression, ...]) -> Expression:
    """Functions by the names that people have for them; only printed, never computed."""
    match function, arguments:
        case "case", (Call("isnull", (value,)), other, same) if value == same:
            return Call("coalesce", (value, other))
        case "case", (_, _, _):
            return Call("if", arguments)
        case "not", (_Infix("is", both),):
            return _Infix("is not", both)
        case "<=>", _:
            return _Infix("is", arguments)
        case "coalesce", (value, other) if other == FALSE:
            return _Infix("is", (value, TRUE))
    return Call(function, arguments)


@dataclass(frozen=True, slots=True)
class _Infix(Call):
    """`x is y`, where NULL is NULL."""

    def __str__(self) -> str:
        texts = [f"({a})" if isinstance(a, Call) else str(a) for a in self.arguments]
        return f" {self.function} ".join(texts)


@dataclass(frozen=True, slots=True)
class _Bare(Column):
    """A column without quotes."""

    def __str__(self) -> str:
        return self.name
