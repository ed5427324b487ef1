"""Literals and signs, and sums, in which an interval moves a date or a timestamp."""

from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.query.expressions import Literal, literal
from viewkeep.query.types.data_types import BINARY, INTEGRAL, TIMESTAMP, TIMESTAMP_NTZ
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.expressions.literals import Span, number, read_interval, typed_literal

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator


def constant_value(translator: "Translator", node: exp.Expr) -> Scalar:
    """A literal; a minus before one belongs to it."""
    match node:
        case exp.Literal() if node.is_string:
            return constant(literal(node.name))
        case exp.Literal():
            return constant(number(node, translator.source))
        case exp.Boolean():
            return constant(literal(bool(node.this)))
        case exp.HexString():
            return constant(Literal(_binary_literal(translator, node), BINARY))
        case exp.Neg():
            return _translate_minus(translator, node)
    return constant(literal(None))


def _binary_literal(translator: "Translator", node: exp.Expr) -> bytes:
    try:
        return bytes.fromhex(node.name)
    except ValueError:
        raise translator.source.error(f'"{node.name}" is not hexadecimal', node) from None


def _translate_minus(translator: "Translator", node: exp.Neg) -> Scalar:
    """A minus before digits is part of the number: -2147483648 is an int."""
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return constant(number(node.this, translator.source, negative=True))
    argument = translator.translate(node.this)
    match argument.expression:
        case Literal(float() | Decimal() as value, type_):
            return constant(Literal(-value, type_))
        case Literal(int(value), type_) if type_ in INTEGRAL:
            negated = typed_literal(literal(-value), type_)
            if negated is not None:
                return constant(negated)
    return translator.call("negate", [argument], node)


def sum_or_move(translator: "Translator", node: exp.Add | exp.Sub) -> Scalar:
    """`+` and `-`; with an interval they move a date or a timestamp."""
    left, right = (
        _interval_spans(translator, node.this),
        _interval_spans(translator, node.expression),
    )
    operator = "+" if isinstance(node, exp.Add) else "-"
    if not left and not right:
        return translator.call(operator, translator.translate_both(node), node)
    if left and (right or operator == "-"):
        raise translator.source.unsupported("an interval outside date arithmetic", node)
    moved = translator.translate(node.expression if left else node.this)
    for span in left or right:
        moved = _move_by_span(translator, moved, span if operator == "+" else span.negated(), node)
    return moved


def _interval_spans(translator: "Translator", node: exp.Expr) -> list[Span]:
    match node:
        case exp.Interval():
            return [read_interval(node, translator.source)]
        case exp.Paren():
            return _interval_spans(translator, node.this)
        case exp.Add() if _interval_spans(translator, node.this) and _interval_spans(
            translator, node.expression
        ):
            return _interval_spans(translator, node.this) + _interval_spans(
                translator, node.expression
            )
    return []


def _move_by_span(translator: "Translator", moment: Scalar, span: Span, node: exp.Expr) -> Scalar:
    amount = constant(literal(span.amount))
    if moment.typed.type in (TIMESTAMP, TIMESTAMP_NTZ):
        unit = constant(literal(span.unit))
        moved = translator.call("timestampadd", [unit, amount, moment], node)
        is_zoned = moment.typed.type == TIMESTAMP
        return moved if is_zoned else translator.cast(moved, TIMESTAMP_NTZ, node)
    if span.unit not in ("DAY", "MONTH"):
        raise translator.source.unsupported(f"adding an interval of {span.unit} to a date", node)
    return translator.call(
        "date_add" if span.unit == "DAY" else "add_months", [moment, amount], node
    )
