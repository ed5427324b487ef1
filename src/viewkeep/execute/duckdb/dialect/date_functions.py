"""Functions of dates and timestamps in DuckDB's text."""

from functools import partial

from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.text import (
    Build,
    Text,
    strict_text,
)
from viewkeep.query.types.data_types import (
    BIGINT,
    DATE,
    INT,
    TIMESTAMP,
    VOID,
    Type,
)
from viewkeep.query.types.functions import UNITS_OF_A_DAY

_DATE_PARTS = ("year", "quarter", "month", "day", "dayofweek", "dayofyear", "weekofyear")


def _date_part_sql(name: str, arguments: list[Text], result: Type) -> Text:
    extra = " + 1" if name == "dayofweek" else ""
    form = f"CAST({name}({{}}){extra} AS INTEGER)"
    return strict_text([_timestamp_sql(arguments[0])], form.format, result)


def _timestamp_sql(text: Text) -> Text:
    return cast(text, DATE) if text.type == VOID else text


def _date_add_sql(operator: str, arguments: list[Text], result: Type) -> Text:
    parts = [cast(arguments[0], DATE), cast(arguments[1], INT)]
    return strict_text(parts, f"({{}} {operator} {{}})".format, result, True)


def _datediff_sql(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, DATE) for argument in arguments]
    return strict_text(parts, "CAST({} - {} AS INTEGER)".format, result)


def _add_months_sql(arguments: list[Text], result: Type) -> Text:
    parts = [cast(arguments[0], DATE), cast(arguments[1], INT)]
    return strict_text(parts, "CAST({} + to_months({}) AS DATE)".format, result, True)


def _last_day_sql(arguments: list[Text], result: Type) -> Text:
    return strict_text([cast(arguments[0], DATE)], "last_day({})".format, result)


def _timestampadd_sql(arguments: list[Text], result: Type) -> Text:
    unit, amount, moment = arguments
    assert isinstance(unit.value, str), "written by the front end"
    parts = [cast(amount, BIGINT), cast(moment, TIMESTAMP)]
    function = _UNITS[unit.value.upper()]
    return strict_text(parts, f"({{1}} + {function})".format, result, True)


def _date_trunc_sql(arguments: list[Text], result: Type) -> Text:
    unit, moment = arguments
    assert unit.value in UNITS_OF_A_DAY, "the type rule asks for one of them"
    return strict_text(
        [cast(moment, TIMESTAMP)], f"date_trunc('{unit.value}', {{}})".format, result
    )


def _name_sql(name: str, arguments: list[Text], result: Type) -> Text:
    """The name of a day or month, of which Spark prints three letters."""
    return strict_text([_timestamp_sql(arguments[0])], f"left({name}({{}}), 3)".format, result)


def _make_date_sql(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, BIGINT) for argument in arguments]
    return strict_text(parts, "make_date({}, {}, {})".format, result, True)


def _unix_sql(size: int, arguments: list[Text], result: Type) -> Text:
    """Units since 1970, rounded down."""
    micros = "epoch_us({0})"
    rest = f"(({micros} % {size}) + {size}) % {size}"
    form = micros if size == 1 else f"(({micros} - {rest}) // {size})"
    return strict_text([cast(arguments[0], TIMESTAMP)], form.format, result)


def _of_unix_sql(size: int, arguments: list[Text], result: Type) -> Text:
    form = f"make_timestamp({{0}} * CAST({size} AS BIGINT))"
    return strict_text([cast(arguments[0], BIGINT)], form.format, result, True)


_UNIX = {"seconds": 1_000_000, "millis": 1000, "micros": 1}
"""Units of time since 1970, in microseconds."""

_UNITS = {
    "YEAR": "to_years(CAST({0} AS INTEGER))",
    "QUARTER": "to_months(CAST(3 * {0} AS INTEGER))",
    "MONTH": "to_months(CAST({0} AS INTEGER))",
    "WEEK": "to_days(CAST(7 * {0} AS INTEGER))",
    "DAY": "to_days(CAST({0} AS INTEGER))",
    "DAYOFYEAR": "to_days(CAST({0} AS INTEGER))",
    "HOUR": "to_hours({0})",
    "MINUTE": "to_minutes({0})",
    "SECOND": "to_seconds({0})",
    "MILLISECOND": "to_milliseconds({0})",
    "MICROSECOND": "to_microseconds({0})",
}


DATE_FUNCTIONS: dict[str, Build] = {
    **{name: partial(_date_part_sql, name) for name in (*_DATE_PARTS, "hour", "minute", "second")},
    "date_add": partial(_date_add_sql, "+"),
    "date_sub": partial(_date_add_sql, "-"),
    "datediff": _datediff_sql,
    "add_months": _add_months_sql,
    "last_day": _last_day_sql,
    "timestampadd": _timestampadd_sql,
    "date_trunc": _date_trunc_sql,
    "dayname": partial(_name_sql, "dayname"),
    "monthname": partial(_name_sql, "monthname"),
    "make_date": _make_date_sql,
    **{f"unix_{unit}": partial(_unix_sql, size) for unit, size in _UNIX.items()},
    **{f"timestamp_{unit}": partial(_of_unix_sql, size) for unit, size in _UNIX.items()},
}
