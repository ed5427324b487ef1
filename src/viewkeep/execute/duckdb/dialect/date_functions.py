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
}
