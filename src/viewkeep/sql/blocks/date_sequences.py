"""`explode(sequence(a, b, INTERVAL ...))`: whole numbers are exploded, and each moves the start."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from viewkeep.query.expressions import literal
from viewkeep.query.types.data_types import (
    BIGINT,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.expressions.literals import Span, read_interval
from viewkeep.sql.expressions.translator import Translator

_MICROSECONDS = {
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}


@dataclass(frozen=True)
class MomentSteps:
    """The numbers of the steps from a start on, and the moment that each one is."""

    numbers: Scalar
    moment: Callable[[Scalar], Scalar]


def moment_steps(node: exp.Expr, translator: Translator) -> MomentSteps | None:
    """The steps of a call of sequence() with an interval; None for other expressions."""
    match node:
        case exp.Anonymous(expressions=[first, last, exp.Interval() as step]) if (
            node.name.lower() == "sequence"
        ):
            start, end = translator.translate(first), translator.translate(last)
            span = read_interval(step, translator.source)
            return _Steps(translator, node).between(start, end, span)
    return None


class _Steps:
    """Makes the expressions of one call."""

    def __init__(self, translator: Translator, node: exp.Expr) -> None:
        self._translator, self._node = translator, node

    def between(self, start: Scalar, end: Scalar, span: Span) -> MomentSteps:
        kind = start.typed.type
        if span.amount <= 0 or end.typed.type != kind:
            raise self._refusal()
        if kind == DATE and span.unit in ("DAY", "MONTH"):
            count = self._days if span.unit == "DAY" else self._months
            move = "date_add" if span.unit == "DAY" else "add_months"
            last, size = count(start, end), constant(literal(span.amount))
        elif kind in (TIMESTAMP, TIMESTAMP_NTZ) and span.unit in _MICROSECONDS:
            move, micros = "", span.amount * _MICROSECONDS[span.unit]
            last = self._call("-", self._micros(end), self._micros(start))
            size = self._translator.cast(constant(literal(micros)), BIGINT, self._node)
        else:
            raise self._refusal()

        def moment(number: Scalar) -> Scalar:
            amount = self._call("*", number, size)
            if move:
                return self._call(move, start, amount)
            unit = constant(literal("MICROSECOND"))
            moved = self._call("timestampadd", unit, amount, start)
            is_zoned = kind == TIMESTAMP
            return moved if is_zoned else self._translator.cast(moved, kind, self._node)

        kind_of_numbers = INT if move else BIGINT
        steps = self._translator.cast(self._call("div", last, size), kind_of_numbers, self._node)
        backwards = self._call("<", end, start)
        checked = self._call("case", backwards, self._failure(end, kind_of_numbers), steps)
        zero = self._translator.cast(constant(literal(0)), kind_of_numbers, self._node)
        return MomentSteps(self._call("sequence", zero, checked), moment)

    def _failure(self, end: Scalar, kind: object) -> Scalar:
        """As in Spark, an end before the start is an error: this is no number."""
        text = self._translator.cast(end, STRING, self._node)
        told = self._call("concat", constant(literal("a sequence ends before its start: ")), text)
        return self._translator.cast(told, INT if kind == INT else BIGINT, self._node)

    def _days(self, start: Scalar, end: Scalar) -> Scalar:
        return self._call("datediff", end, start)

    def _months(self, start: Scalar, end: Scalar) -> Scalar:
        """The months that may be added to the start without passing the end."""
        months = self._call("-", self._month_number(end), self._month_number(start))
        passes = self._call("<", end, self._call("add_months", start, months))
        one_less = self._call("-", months, constant(literal(1)))
        return self._call("case", passes, one_less, months)

    def _month_number(self, day: Scalar) -> Scalar:
        years = self._call("*", self._call("year", day), constant(literal(12)))
        return self._call("+", years, self._call("month", day))

    def _micros(self, moment: Scalar) -> Scalar:
        return self._call("unix_micros", moment)

    def _call(self, function: str, *arguments: Scalar) -> Scalar:
        return self._translator.call(function, arguments, self._node)

    def _refusal(self) -> Exception:
        return self._translator.source.unsupported("this sequence of moments", self._node)
