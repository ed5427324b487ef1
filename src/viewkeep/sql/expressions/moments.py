"""TIMESTAMPADD and TIMESTAMPDIFF, made up of functions that every engine computes."""

from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.query.expressions import literal
from viewkeep.query.types.data_types import DATE, INTEGRAL, MOMENTS, TIMESTAMP, TIMESTAMP_NTZ
from viewkeep.sql.blocks.scope import Scalar, constant

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}


def moment_call(translator: "Translator", node: exp.Anonymous) -> Scalar:
    """A call whose first argument is a unit."""
    unit, *rest = node.expressions
    first, second = translator.translate_all(rest)
    make = _Composer(translator, node)
    if node.name.lower() == "timestampadd":
        return make.moved(unit.name.upper(), first, second)
    return make.distance(unit.name.upper(), first, second)


class _Composer:
    """Makes the expression of one call."""

    def __init__(self, translator: "Translator", node: exp.Anonymous) -> None:
        self._translator, self._node = translator, node

    def moved(self, unit: str, amount: Scalar, moment: Scalar) -> Scalar:
        """A moment so many units later; a date counts as its midnight, as in Spark."""
        if amount.typed.type not in INTEGRAL[:3]:
            raise self._translator.source.unsupported("this amount of TIMESTAMPADD", self._node)
        start = self._timestamp(moment)
        moved = self._call("timestampadd", constant(literal(unit)), amount, start)
        if moment.typed.type != TIMESTAMP_NTZ:
            return moved
        return self._translator.cast(moved, TIMESTAMP_NTZ, self._node)

    def distance(self, unit: str, first: Scalar, second: Scalar) -> Scalar:
        """How many whole units lie between two moments, rounded towards none."""
        start, end = self._timestamp(first), self._timestamp(second)
        if unit in _MICROSECONDS:
            micros = self._call("-", self._micros(end), self._micros(start))
            return self._call("div", micros, _number(_MICROSECONDS[unit]))
        days = (self._date(first), self._date(second))
        if first.typed.type != DATE or second.typed.type != DATE:
            days = (days[0], self._last_whole_day(days, (start, end)))
        packed = self._call("-", self._packed(days[1]), self._packed(days[0]))
        return self._call("div", self._call("div", packed, _number(32)), _number(_MONTHS[unit]))

    def _last_whole_day(self, days: tuple[Scalar, Scalar], times: tuple[Scalar, Scalar]) -> Scalar:
        """The last of two days, or the one before it where its time of day is not reached."""
        (first, last), (start, end) = days, map(self._time_of_day, times)
        one_less = self._both(("<", first, last), ("<", end, start))
        one_more = self._both(("<", last, first), ("<", start, end))
        shift = self._call("case", one_less, _number(-1), one_more, _number(1), _number(0))
        return self._call("date_add", last, shift)

    def _packed(self, day: Scalar) -> Scalar:
        """The number of a day in a calendar whose months have 32 days, as Java counts months."""
        years = self._call("*", self._call("year", day), _number(12))
        months = self._call("+", years, self._call("month", day))
        return self._call("+", self._call("*", months, _number(32)), self._call("day", day))

    def _time_of_day(self, moment: Scalar) -> Scalar:
        midnight = self._timestamp(self._date(moment))
        return self._call("-", self._micros(moment), self._micros(midnight))

    def _date(self, moment: Scalar) -> Scalar:
        is_date = moment.typed.type == DATE
        return moment if is_date else self._translator.cast(moment, DATE, self._node)

    def _both(self, *comparisons: tuple[str, Scalar, Scalar]) -> Scalar:
        return self._call("and", *(self._call(*each) for each in comparisons))

    def _micros(self, moment: Scalar) -> Scalar:
        return self._call("unix_micros", moment)

    def _timestamp(self, moment: Scalar) -> Scalar:
        if moment.typed.type not in MOMENTS:
            construct = f"{self._node.name.upper()} of {moment.typed.type}"
            raise self._translator.source.unsupported(construct, self._node)
        return self._translator.cast(moment, TIMESTAMP, self._node)

    def _call(self, function: str, *arguments: Scalar) -> Scalar:
        return self._translator.call(function, arguments, self._node)


def _number(value: int) -> Scalar:
    return constant(literal(value))
