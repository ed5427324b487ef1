"""CAST as Spark computes it in ANSI mode, in DuckDB's text."""

from viewkeep.execute.duckdb.dialect.text import Text, error, strict_text, type_name
from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    VOID,
    Type,
)
from viewkeep.query.types.rules import digits, is_decimal

_FLOATING = (DOUBLE, FLOAT)
_EXACT_DIGITS = 15
"""A decimal with so many digits is a quotient of two doubles that are exact."""

_PLAIN_LEAST, _PLAIN_BOUND = "1e-4", "1e15"
"""Between these, DuckDB prints a double without an exponent."""
_WORD_DIGITS = 18
_WITHOUT_ZERO = "regexp_replace(CAST({} AS VARCHAR), '^(-?)[.]', '\\10.')"
"""DuckDB leaves out the 0 before the point where the type has no digit there."""

_NUMBER_TEXT = (
    "CASE WHEN {0} = 0 OR (abs({0}) >= 1e-3 AND abs({0}) < 1e7) THEN CAST({0} AS VARCHAR) "
    "ELSE viewkeep_number(CAST({0} AS VARCHAR)) END"
)
"""Outside of these bounds Java prints numbers with an exponent."""

_BLANKS = r"[\x00-\x20\x7F]*"
_SPACES = r"[\x00-\x20]*"
_WHOLE = r"[+-]?[0-9]+"
_FRACTION = r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})"
_DATE = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TRUE = "('t', 'true', 'y', 'yes', '1')"
_FALSE = "('f', 'false', 'n', 'no', '0')"


def cast(text: Text, target: Type) -> Text:
    """An expression converted to a type.

    >>> from viewkeep.query.types.data_types import INT
    >>> print(cast(Text('"a"', INT), BIGINT).sql)
    CAST("a" AS BIGINT)
    """
    source = text.type
    if source == target:
        return text
    if source == VOID:
        return Text(f"CAST(NULL AS {type_name(target)})", target)
    if source == STRING:
        return _cast_from_string(text, target)
    if source in _FLOATING:
        return _cast_from_floating(text, target)
    if is_decimal(source):
        return _cast_from_decimal(text, target)
    if (source, target) == (BINARY, STRING):
        return strict_text([text], "decode({})".format, target, fails=True)
    if source == BOOLEAN and is_decimal(target):
        return cast(_plain_cast_sql(text, INTEGRAL[0], False), target)
    if target == BOOLEAN:
        return strict_text([text], "({} <> 0)".format, target)
    return _plain_cast_sql(text, target, not _is_widening_cast(source, target))


def _plain_cast_sql(text: Text, target: Type, fails: bool) -> Text:
    return strict_text([text], f"CAST({{}} AS {type_name(target)})".format, target, fails)


def _is_widening_cast(source: Type, target: Type) -> bool:
    if source in INTEGRAL and target in INTEGRAL:
        return INTEGRAL.index(source) <= INTEGRAL.index(target)
    return not is_decimal(target)


def _cast_from_decimal(text: Text, target: Type) -> Text:
    precision, scale = digits(text.type)
    if target in INTEGRAL and target != BIGINT and precision > _WORD_DIGITS:
        return cast(cast(text, DOUBLE), target)  # Spark does so, too
    if target in INTEGRAL:
        return strict_text([text], f"CAST(trunc({{}}) AS {type_name(target)})".format, target, True)
    if target == BOOLEAN:
        return strict_text([text], "({} <> 0)".format, target)
    if target == STRING and precision == scale:
        return strict_text([text], _WITHOUT_ZERO.format, target)
    inexact = precision > (_EXACT_DIGITS if target == DOUBLE else 7)
    if target in _FLOATING and inexact:
        form = f"CAST(CAST({{}} AS VARCHAR) AS {type_name(target)})"
        return strict_text([text], form.format, target)
    return _plain_cast_sql(text, target, is_decimal(target))


def _cast_from_floating(text: Text, target: Type) -> Text:
    if target in INTEGRAL:
        return strict_text([text], lambda sql: _cast_to_integer_sql(sql, target), target, True)
    if is_decimal(target):
        return strict_text(
            [cast(text, DOUBLE)],
            lambda sql: _cast_to_decimal_sql(sql, target),
            target,
            True,
            nullable=True,
        )
    if target == BOOLEAN:
        return strict_text([text], "({} <> 0)".format, target)
    if target == FLOAT:
        form = (
            "CASE WHEN abs({0}) < 3.4028235677973366e38 OR NOT isfinite({0}) "
            "THEN CAST({0} AS FLOAT) WHEN {0} > 0 THEN CAST('Infinity' AS FLOAT) "
            "WHEN {0} < 0 THEN CAST('-Infinity' AS FLOAT) END"
        )
        return strict_text([text], form.format, target)
    if target == STRING:
        return strict_text([text], _NUMBER_TEXT.format, target)
    return _plain_cast_sql(text, target, False)


def _cast_to_decimal_sql(sql: str, target: Type) -> str:
    """Spark rounds what the number prints as; NaN and infinity are NULL."""
    precision, scale = digits(target)
    name, text = type_name(target), f"CAST({sql} AS VARCHAR)"
    return (
        f"CASE WHEN {sql} = 0 THEN CAST(0 AS {name}) "
        f"WHEN abs({sql}) >= {_PLAIN_LEAST} AND abs({sql}) < {_PLAIN_BOUND} "
        f"THEN CAST({text} AS {name}) "
        f"WHEN isfinite({sql}) THEN CAST(viewkeep_decimal({text}, {precision}, {scale}) AS {name}) "
        "END"
    )


def _cast_to_integer_sql(sql: str, target: Type) -> str:
    """Spark takes 2^63, the double next to the largest bigint, for that one."""
    whole = f"CAST(trunc({sql}) AS {type_name(target)})"
    if target != BIGINT:
        return whole
    return f"CASE WHEN {sql} = 9223372036854775808 THEN 9223372036854775807 ELSE {whole} END"


def _cast_from_string(text: Text, target: Type) -> Text:
    if target == BINARY:
        return strict_text([text], "encode({})".format, target)
    name = type_name(target)
    if target in INTEGRAL:
        form = _guarded_cast_sql(
            _BLANKS + _WHOLE + _BLANKS,
            f"CAST(regexp_extract({{0}}, '{_WHOLE}') AS {name})",
            "an integer",
        )
    elif target in _FLOATING:
        exponent = "([eE][+-]?[0-9]{1,2})?" if target == DOUBLE else "([eE]-?[0-9])?"
        digits_ = _FRACTION if target == DOUBLE else _FRACTION.replace("40", "20")
        pattern = f"{_SPACES}{digits_}{exponent}{_SPACES}"
        native = f"CAST(regexp_extract({{0}}, '[^\\x00-\\x20]+') AS {name})"
        nan = f"regexp_full_match({{0}}, '{_SPACES}[nN][aA][nN]{_SPACES}')"
        special = f"CASE WHEN {nan} THEN CAST('NaN' AS {name}) "
        form = _matched_cast_sql(
            pattern, native, f"{special}ELSE viewkeep_{target.name}({{0}}) END"
        )
    elif is_decimal(target):
        pattern = f"{_SPACES}{_FRACTION.replace('{1,40}', '{1,38}', 1)}{_SPACES}"
        native = f"CAST(regexp_extract({{0}}, '[^\\x00-\\x20]+') AS {name})"
        precision, scale = digits(target)
        form = _matched_cast_sql(
            pattern, native, f"CAST(viewkeep_decimal({{0}}, {precision}, {scale}) AS {name})"
        )
    elif target == BOOLEAN:
        trimmed = r"lower(regexp_extract({0}, '[^\x00-\x20\x7F](.*[^\x00-\x20\x7F])?'))"
        form = (
            f"CASE WHEN {trimmed} IN {_TRUE} THEN TRUE WHEN {trimmed} IN {_FALSE} THEN FALSE "
            f"WHEN {{0}} IS NOT NULL THEN {error('not a boolean')} END"
        )
    elif target == DATE:
        native = f"CAST(regexp_extract({{0}}, '{_DATE}') AS DATE)"
        form = _matched_cast_sql(
            _BLANKS + _DATE + _BLANKS, native, "(DATE '1970-01-01' + viewkeep_days({0}))"
        )
    else:
        form = f"CAST({{0}} AS {name})"
    return strict_text(
        [text], lambda sql: form.replace("{0}", sql), target, True, nullable=text.nullable
    )


def _guarded_cast_sql(pattern: str, native: str, kind: str) -> str:
    return _matched_cast_sql(pattern, native, error(f"not {kind}"))


def _matched_cast_sql(pattern: str, native: str, other: str) -> str:
    return (
        f"CASE WHEN regexp_full_match({{0}}, '{pattern}') THEN {native} "
        f"WHEN {{0}} IS NOT NULL THEN {other} END"
    )
