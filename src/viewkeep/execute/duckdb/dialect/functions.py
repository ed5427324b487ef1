"""The functions of Spark SQL in DuckDB's text, by the names that `Call.function` uses."""

from collections.abc import Callable
from functools import partial

from viewkeep.execute.duckdb.dialect.arithmetic import (
    absolute,
    arithmetic,
    negative,
    operand,
    whole_quotient,
)
from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.text import (
    Text,
    error,
    literal_text,
    strict,
    string,
    type_name,
)
from viewkeep.query.expressions import Literal
from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    VOID,
    Type,
)
from viewkeep.query.types.functions import COMPARABLE, ENTRY, FIELD, ITEM, SINGLE
from viewkeep.query.types.rules import common_type, decimal_type, digits, is_decimal

Build = Callable[[list[Text], Type], Text]
"""From the texts of the arguments and the type of the result to the text of a call."""


def _compared(arguments: list[Text]) -> list[Text]:
    left, right = arguments
    return alike([operand(left, right), operand(right, left)])


def alike(arguments: list[Text]) -> list[Text]:
    """The arguments in the type that all of them fit."""
    common = VOID
    for argument in arguments:
        found = common_type(common, argument.type)
        assert found is not None, "typed before"
        common = found
    return [cast(argument, common) for argument in arguments]


def _comparison(operator: str, arguments: list[Text], result: Type) -> Text:
    return strict(_compared(arguments), f"({{}} {operator} {{}})".format, result)


def _null_safe_equal(arguments: list[Text], result: Type) -> Text:
    left, right = _compared(arguments)
    sql = f"({left.sql} IS NOT DISTINCT FROM {right.sql})"
    return Text(sql, result, False, left.fails or right.fails)


def _connected(word: str, decided: str, arguments: list[Text], result: Type) -> Text:
    """AND or OR of any number of parts; none is computed after one that decides."""
    parts = [cast(argument, BOOLEAN) for argument in arguments]
    sql = f"({f' {word} '.join(part.sql for part in parts)})"
    if any(part.fails for part in parts[1:]):
        decisions = "".join(f" WHEN {part.sql} IS {decided} THEN {decided}" for part in parts)
        unknown = " OR ".join(f"{part.sql} IS NULL" for part in parts if part.nullable)
        branch = f" WHEN {unknown} THEN NULL" if unknown else ""
        sql = f"CASE{decisions}{branch} ELSE NOT {decided} END"
    nullable, fails = any(p.nullable for p in parts), any(p.fails for p in parts)
    return Text(sql, result, nullable, fails)


def _not(arguments: list[Text], result: Type) -> Text:
    return strict([cast(arguments[0], BOOLEAN)], "(NOT {})".format, result)


def _is_null(negation: str, arguments: list[Text], result: Type) -> Text:
    [argument] = arguments
    return Text(f"({argument.sql} IS {negation}NULL)", result, False, argument.fails)


def _in(arguments: list[Text], result: Type) -> Text:
    item, *choices = alike(arguments)
    fails = any(choice.fails for choice in choices)
    nullable = any(argument.nullable for argument in arguments)
    if not fails:
        choice_list = ", ".join(choice.sql for choice in choices)
        return Text(f"({item.sql} IN ({choice_list}))", result, nullable, item.fails)
    branches = "".join(f" WHEN {item.sql} = {choice.sql} THEN TRUE" for choice in choices)
    absent = " OR ".join(f"{choice.sql} IS NULL" for choice in choices if choice.nullable)
    unknown = f" WHEN {absent} THEN NULL" if absent else ""
    sql = f"CASE WHEN {item.sql} IS NULL THEN NULL{branches}{unknown} ELSE FALSE END"
    return Text(sql, result, nullable, True)


def _case(arguments: list[Text], result: Type) -> Text:
    """Conditions and results alternate; the odd one at the end is ELSE."""
    pairs = list(zip(arguments[:-1:2], arguments[1::2], strict=True))
    default = cast(arguments[-1], result) if len(arguments) % 2 else None
    values = [cast(value, result) for _, value in pairs]
    branches = "".join(
        f" WHEN {cast(condition, BOOLEAN).sql} THEN {value.sql}"
        for (condition, _), value in zip(pairs, values, strict=True)
    )
    otherwise = f" ELSE {default.sql}" if default else ""
    every = [*values, *([default] if default else [])]
    return Text(
        f"CASE{branches}{otherwise} END",
        result,
        default is None or any(value.nullable for value in every),
        any(part.fails for part in (*arguments, *every)),
    )


def _coalesce(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, result) for argument in arguments]
    fails = any(part.fails for part in parts)
    nullable = all(part.nullable for part in parts)
    if any(part.fails for part in parts[1:]):
        branches = "".join(f" WHEN {part.sql} IS NOT NULL THEN {part.sql}" for part in parts[:-1])
        return Text(f"CASE{branches} ELSE {parts[-1].sql} END", result, nullable, fails)
    return Text(f"coalesce({', '.join(part.sql for part in parts)})", result, nullable, fails)


def _null_if(arguments: list[Text], result: Type) -> Text:
    first, second = arguments
    left, right = alike([first, operand(second, first)])  # the first one is no literal to Spark
    same = strict([left, right], "({} = {})".format, BOOLEAN)
    value = cast(first, result)
    sql = f"CASE WHEN {same.sql} THEN NULL ELSE {value.sql} END"
    return Text(sql, result, True, same.fails or value.fails)


def _extreme(name: str, arguments: list[Text], result: Type) -> Text:
    """The first of the largest or least; of floats, DuckDB would lose the sign of -0.0."""
    type_ = DOUBLE if result == FLOAT else result
    parts = [cast(argument, type_) for argument in arguments]
    sql = f"{name}({', '.join(part.sql for part in parts)})"
    sql = f"CAST({sql} AS FLOAT)" if result == FLOAT else sql
    nullable = all(part.nullable for part in parts)
    return Text(sql, result, nullable, any(part.fails for part in parts))


def _comparable(arguments: list[Text], result: Type) -> Text:
    """The value with its text, in which 0.0 and -0.0 are not the same."""
    [argument] = arguments
    pair = "CASE WHEN {0} IS NOT NULL THEN row({0}, CAST({0} AS VARCHAR)) END"
    return strict([argument], pair.format, result)


def _single(arguments: list[Text], result: Type) -> Text:
    value, rows = arguments
    failure = error("a scalar subquery has more than one row")
    sql = f"CASE WHEN {rows.sql} > 1 THEN {failure} ELSE {value.sql} END"
    return Text(sql, result, value.nullable, True)


# Text.


def _text(form: str, arguments: list[Text], result: Type) -> Text:
    """A function of texts and whole numbers, in a form where {0} is the first of them."""
    kinds = [cast(a, STRING if a.type in (STRING, VOID) else a.type) for a in arguments]
    return strict(kinds, form.format, result)


_INVALID = r"^([^\\]|\\[%_\\])*(\\[^%_\\]|\\$)"


def _like(arguments: list[Text], result: Type) -> Text:
    """Spark refuses a pattern with an escape before anything else but %, _ and itself."""
    text, pattern = (cast(argument, STRING) for argument in arguments)
    form = "({0} LIKE {1} ESCAPE '\\')"
    if not isinstance(pattern.value, str) or "\\" in pattern.value:
        invalid = f"regexp_matches({{1}}, '{_INVALID}', 's')".replace("{", "{{").replace("}", "}}")
        invalid = invalid.replace("{{1}}", "{1}")
        fault = error("an escape in a pattern must precede %, _ or itself")
        form = f"CASE WHEN {{0}} IS NOT NULL AND {invalid} THEN {fault} ELSE {form} END"
        return strict([text, pattern], form.format, result, True)
    return strict([text, pattern], form.format, result)


def _other_case(name: str, arguments: list[Text], result: Type) -> Text:
    """DuckDB maps characters one by one; outside of ASCII, one may become several."""
    ascii_ = "strlen({0}) = length({0})"
    form = f"CASE WHEN {ascii_} THEN {name}({{0}}) ELSE viewkeep_{name}({{0}}) END"
    return strict([cast(arguments[0], STRING)], form.format, result)


def _length(arguments: list[Text], result: Type) -> Text:
    [argument] = arguments
    name = "octet_length" if argument.type == BINARY else "length"
    argument = cast(argument, BINARY if argument.type == BINARY else STRING)
    return strict([argument], f"CAST({name}({{}}) AS INTEGER)".format, result)


_MAX_INT = 2**31 - 1
_START = "CASE WHEN {1} > 0 THEN {1} WHEN {1} < 0 THEN {1} + length({0}) + 1 ELSE 1 END"
_SUBSTRING = (
    "CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL THEN substring({0}, "
    f"greatest({_START}, 1), greatest({_START} + {{2}} - greatest({_START}, 1), 0)) END"
)


def _substring(arguments: list[Text], result: Type) -> Text:
    """Spark counts a start of 0 as 1, and a length from a start before the text."""
    text, *numbers = arguments
    parts = [cast(text, STRING), *(cast(number, BIGINT) for number in numbers)]
    if len(parts) == 2:
        parts.append(literal_text(Literal(_MAX_INT, BIGINT)))
    first, *rest = (part.value for part in parts[1:])
    if isinstance(first, int) and first > 0 and isinstance(rest[0], int) and rest[0] >= 0:
        return strict(parts, "substring({0}, {1}, {2})".format, result)
    return strict(parts, _SUBSTRING.format, result)


def _concat(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, STRING) for argument in arguments]
    sql = f"({' || '.join(part.sql for part in parts)})"
    return Text(sql, result, any(p.nullable for p in parts), any(p.fails for p in parts))


def _replace(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, STRING) for argument in arguments]
    new = "{2}" if len(parts) > 2 else "''"
    return strict(parts, f"replace({{0}}, {{1}}, {new})".format, result)


def _end(name: str, arguments: list[Text], result: Type) -> Text:
    """`left` and `right`; of no characters there are none."""
    parts = [cast(arguments[0], STRING), cast(arguments[1], BIGINT)]
    form = f"{name}({{0}}, CASE WHEN {{1}} < 0 THEN 0 ELSE {{1}} END)"
    return strict(parts, form.format, result)


# Numbers.


def _rounded(arguments: list[Text], result: Type) -> Text:
    number = arguments[0]
    places = arguments[1].value if len(arguments) > 1 else 0
    assert isinstance(places, int), "typed before"
    if is_decimal(result):
        return _rounded_decimal(number, places, result)
    if result in INTEGRAL:
        if places >= 0:
            return number
        whole = _rounded_decimal(cast(number, decimal_type(result)), places, DECIMAL(38, 0))
        return strict([whole], f"CAST({{}} AS {type_name(result)})".format, result, True)
    rounded = f"CAST(viewkeep_round({{0}}, {places}) AS {type_name(result)})"
    form = f"CASE WHEN isfinite({{0}}) THEN {rounded} ELSE {{0}} END"
    return strict([number], form.format, result)


def _rounded_decimal(number: Text, places: int, result: Type) -> Text:
    _, scale = digits(number.type)
    if places >= scale:
        return cast(number, result)
    # DuckDB makes 0 of NULL where no digit is left.
    form = (
        f"CASE WHEN {{0}} IS NOT NULL THEN CAST(round({{0}}, {places}) AS {type_name(result)}) END"
    )
    return strict([number], form.format, result, True)


def _whole(name: str, arguments: list[Text], result: Type) -> Text:
    """`floor` and `ceil`."""
    [number] = arguments
    if number.type in INTEGRAL:
        return cast(number, result)
    if is_decimal(number.type):
        return strict([number], f"CAST({name}({{}}) AS {type_name(result)})".format, result, True)
    form = f"CASE WHEN isnan({{0}}) THEN 0 ELSE CAST({name}({{0}}) AS BIGINT) END"
    return strict([cast(number, DOUBLE)], form.format, result, True)


def _double(form: str, arguments: list[Text], result: Type) -> Text:
    return strict([cast(argument, DOUBLE) for argument in arguments], form.format, result)


# Dates.


def _date_part(name: str, arguments: list[Text], result: Type) -> Text:
    extra = " + 1" if name == "dayofweek" else ""
    form = f"CAST({name}({{}}){extra} AS INTEGER)"
    return strict([_moment(arguments[0])], form.format, result)


def _moment(text: Text) -> Text:
    return cast(text, DATE) if text.type == VOID else text


def _moved_days(operator: str, arguments: list[Text], result: Type) -> Text:
    parts = [cast(arguments[0], DATE), cast(arguments[1], INT)]
    return strict(parts, f"({{}} {operator} {{}})".format, result, True)


def _days_between(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, DATE) for argument in arguments]
    return strict(parts, "CAST({} - {} AS INTEGER)".format, result)


def _moved_months(arguments: list[Text], result: Type) -> Text:
    parts = [cast(arguments[0], DATE), cast(arguments[1], INT)]
    return strict(parts, "CAST({} + to_months({}) AS DATE)".format, result, True)


def _last_day(arguments: list[Text], result: Type) -> Text:
    return strict([cast(arguments[0], DATE)], "last_day({})".format, result)


def _moved_time(arguments: list[Text], result: Type) -> Text:
    unit, amount, moment = arguments
    assert isinstance(unit.value, str), "written by the front end"
    parts = [cast(amount, BIGINT), cast(moment, TIMESTAMP)]
    function = _UNITS[unit.value.upper()]
    return strict(parts, f"({{1}} + {function})".format, result, True)


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


def _array(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, result.parts[0].type) for argument in arguments]
    sql = f"CAST([{', '.join(part.sql for part in parts)}] AS {type_name(result)})"
    return Text(sql, result, False, any(part.fails for part in parts))


def _sequence(arguments: list[Text], result: Type) -> Text:
    """All values between two, upwards or downwards."""
    kind = result.parts[0].type
    up, down = ("INTERVAL 1 DAY", "INTERVAL (-1) DAY") if kind == DATE else ("1", "-1")
    step = f"CASE WHEN {{0}} <= {{1}} THEN {up} ELSE {down} END"
    text = f"CAST(generate_series({{0}}, {{1}}, {step}) AS {type_name(result)})"
    return strict([cast(argument, kind) for argument in arguments], text.format, result)


def _field(arguments: list[Text], result: Type) -> Text:
    """A part of a struct; a moment becomes one that can be computed with."""
    struct, name, _ = arguments
    value = f"struct_extract({struct.sql}, {string(str(name.value))})"
    return Text(_part(value, result), result, True, struct.fails)


def _item(arguments: list[Text], result: Type) -> Text:
    missing = error("an array has no such element")
    found = _part("list_extract({0}, {1} + 1)", result)
    there = f"CASE WHEN {{1}} >= 0 AND {{1}} < len({{0}}) THEN {found} ELSE {missing} END"
    return strict(arguments, there.format, result, fails=True, nullable=True)


def _entry(arguments: list[Text], result: Type) -> Text:
    values, key = arguments
    wanted = cast(key, values.type.parts[0].type)
    found = _part("map_extract({0}, {1})[1]", result)
    return strict([values, wanted], found.format, result, nullable=True)


def _part(value: str, type_: Type) -> str:
    return f"CAST({value} AS TIMESTAMP)" if type_ == TIMESTAMP else value


_DATE_PARTS = ("year", "quarter", "month", "day", "dayofweek", "dayofyear", "weekofyear")

FUNCTIONS: dict[str, Build] = {
    COMPARABLE: _comparable,
    SINGLE: _single,
    **{name: partial(arithmetic, name) for name in ("+", "-", "*", "/", "%")},
    "div": lambda arguments, result: whole_quotient(arguments),
    "negate": lambda arguments, result: negative(arguments[0]),
    "abs": lambda arguments, result: absolute(arguments[0]),
    **{name: partial(_comparison, name) for name in ("=", "<>", "<", "<=", ">", ">=")},
    "<=>": _null_safe_equal,
    "and": partial(_connected, "AND", "FALSE"),
    "or": partial(_connected, "OR", "TRUE"),
    "not": _not,
    "isnull": partial(_is_null, ""),
    "isnotnull": partial(_is_null, "NOT "),
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _null_if,
    "greatest": partial(_extreme, "greatest"),
    "least": partial(_extreme, "least"),
    "like": _like,
    "upper": partial(_other_case, "upper"),
    "lower": partial(_other_case, "lower"),
    "trim": partial(_text, "trim({0}, ' ')"),
    "ltrim": partial(_text, "ltrim({0}, ' ')"),
    "rtrim": partial(_text, "rtrim({0}, ' ')"),
    "length": _length,
    "substring": _substring,
    "concat": _concat,
    "replace": _replace,
    "left": partial(_end, "left"),
    "right": partial(_end, "right"),
    "locate": partial(_text, "CAST(strpos({1}, {0}) AS INTEGER)"),
    "startswith": partial(_text, "starts_with({0}, {1})"),
    "endswith": partial(_text, "ends_with({0}, {1})"),
    "round": _rounded,
    "floor": partial(_whole, "floor"),
    "ceil": partial(_whole, "ceil"),
    "sqrt": partial(_double, "CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({0}) END"),
    "ln": partial(_double, "CASE WHEN {0} > 0 THEN ln({0}) END"),
    "exp": partial(_double, "exp({0})"),
    "power": partial(
        _double,
        "CASE WHEN abs({0}) = 1 AND NOT isfinite({1}) THEN CAST('NaN' AS DOUBLE) "
        "ELSE power({0}, {1}) END",
    ),
    "sign": partial(
        _double,
        "CASE WHEN {0} > 0 AND NOT isnan({0}) THEN CAST(1 AS DOUBLE) "
        "WHEN {0} < 0 THEN CAST(-1 AS DOUBLE) ELSE {0} END",
    ),
    **{name: partial(_date_part, name) for name in (*_DATE_PARTS, "hour", "minute", "second")},
    "date_add": partial(_moved_days, "+"),
    "date_sub": partial(_moved_days, "-"),
    "datediff": _days_between,
    "add_months": _moved_months,
    "last_day": _last_day,
    "timestampadd": _moved_time,
    "array": _array,
    "sequence": _sequence,
    FIELD: _field,
    ITEM: _item,
    ENTRY: _entry,
}
"""How the text of every function is made."""
