"""Functions of texts in DuckDB's text."""

from functools import partial

from viewkeep.execute.duckdb.dialect.array_functions import concat_arrays_sql
from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.text import (
    Build,
    Text,
    error,
    literal_text,
    strict_text,
    string,
)
from viewkeep.query.expressions import Literal
from viewkeep.query.regular_expressions import Pattern, common_pattern, common_replacement
from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    STRING,
    VOID,
    Type,
)


def _text_function_sql(form: str, arguments: list[Text], result: Type) -> Text:
    """A function of texts and whole numbers, in a form where {0} is the first of them."""
    kinds = [cast(a, STRING if a.type in (STRING, VOID) else a.type) for a in arguments]
    return strict_text(kinds, form.format, result)


_INVALID = r"^([^\\]|\\[%_\\])*(\\[^%_\\]|\\$)"


def _like_sql(arguments: list[Text], result: Type) -> Text:
    """Spark refuses a pattern with an escape before anything else but %, _ and itself."""
    text, pattern = (cast(argument, STRING) for argument in arguments)
    form = "({0} LIKE {1} ESCAPE '\\')"
    if not isinstance(pattern.value, str) or "\\" in pattern.value:
        invalid = f"regexp_matches({{1}}, '{_INVALID}', 's')".replace("{", "{{").replace("}", "}}")
        invalid = invalid.replace("{{1}}", "{1}")
        fault = error("an escape in a pattern must precede %, _ or itself")
        form = f"CASE WHEN {{0}} IS NOT NULL AND {invalid} THEN {fault} ELSE {form} END"
        return strict_text([text, pattern], form.format, result, True)
    return strict_text([text, pattern], form.format, result)


def _upper_lower_sql(name: str, arguments: list[Text], result: Type) -> Text:
    """DuckDB maps characters one by one; outside of ASCII, one may become several, and some that
    belong together stay together in `reverse`."""
    ascii_ = "strlen({0}) = length({0})"
    form = f"CASE WHEN {ascii_} THEN {name}({{0}}) ELSE viewkeep_{name}({{0}}) END"
    return strict_text([cast(arguments[0], STRING)], form.format, result)


def _length_sql(arguments: list[Text], result: Type) -> Text:
    [argument] = arguments
    name = "octet_length" if argument.type == BINARY else "length"
    argument = cast(argument, BINARY if argument.type == BINARY else STRING)
    return strict_text([argument], f"CAST({name}({{}}) AS INTEGER)".format, result)


_MAX_INT = 2**31 - 1
_START = "CASE WHEN {1} > 0 THEN {1} WHEN {1} < 0 THEN {1} + length({0}) + 1 ELSE 1 END"
_SUBSTRING = (
    "CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL THEN substring({0}, "
    f"greatest({_START}, 1), greatest({_START} + {{2}} - greatest({_START}, 1), 0)) END"
)


def _substring_sql(arguments: list[Text], result: Type) -> Text:
    """Spark counts a start of 0 as 1, and a length from a start before the text."""
    text, *numbers = arguments
    parts = [cast(text, STRING), *(cast(number, BIGINT) for number in numbers)]
    if len(parts) == 2:
        parts.append(literal_text(Literal(_MAX_INT, BIGINT)))
    first, *rest = (part.value for part in parts[1:])
    if isinstance(first, int) and first > 0 and isinstance(rest[0], int) and rest[0] >= 0:
        return strict_text(parts, "substring({0}, {1}, {2})".format, result)
    return strict_text(parts, _SUBSTRING.format, result)


def _concat_sql(arguments: list[Text], result: Type) -> Text:
    if result.name == "array":
        return concat_arrays_sql(arguments, result)
    parts = [cast(argument, STRING) for argument in arguments]
    sql = f"({' || '.join(part.sql for part in parts)})"
    return Text(sql, result, any(p.nullable for p in parts), any(p.fails for p in parts))


def _reverse_sql(arguments: list[Text], result: Type) -> Text:
    if result.name == "array":
        return strict_text(arguments, "list_reverse({})".format, result)
    return _upper_lower_sql("reverse", arguments, result)


def _replace_sql(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, STRING) for argument in arguments]
    new = "{2}" if len(parts) > 2 else "''"
    return strict_text(parts, f"replace({{0}}, {{1}}, {new})".format, result)


def _left_right_sql(name: str, arguments: list[Text], result: Type) -> Text:
    """`left` and `right`; of no characters there are none."""
    parts = [cast(arguments[0], STRING), cast(arguments[1], BIGINT)]
    form = f"{name}({{0}}, CASE WHEN {{1}} < 0 THEN 0 ELSE {{1}} END)"
    return strict_text(parts, form.format, result)


def _padded_sql(name: str, arguments: list[Text], result: Type) -> Text:
    """`lpad` and `rpad`; nothing is put before or after where there is nothing to put."""
    parts = [cast(arguments[0], STRING), cast(arguments[1], BIGINT)]
    pad = cast(arguments[2], STRING) if len(arguments) > 2 else literal_text(Literal(" ", STRING))
    form = (
        "CASE WHEN {1} <= 0 THEN CASE WHEN {0} IS NOT NULL AND {2} IS NOT NULL THEN '' END "
        "WHEN {2} = '' THEN left({0}, {1}) "
        f"ELSE {name}({{0}}, CAST({{1}} AS INTEGER), {{2}}) END"
    )
    return strict_text([*parts, pad], form.format, result)


def _repeat_sql(arguments: list[Text], result: Type) -> Text:
    parts = [cast(arguments[0], STRING), cast(arguments[1], BIGINT)]
    return strict_text(parts, "repeat({0}, greatest({1}, 0 * {1}))".format, result)


def _split_part_sql(arguments: list[Text], result: Type) -> Text:
    """Spark does not split by an empty text, and counts parts from 1."""
    parts = [cast(arguments[0], STRING), cast(arguments[1], STRING), cast(arguments[2], BIGINT)]
    form = (
        "CASE WHEN {2} = 0 AND {0} IS NOT NULL AND {1} IS NOT NULL THEN "
        f"{error('parts of a text are counted from 1')} "
        "WHEN {1} = '' THEN CASE WHEN abs({2}) = 1 THEN {0} WHEN {0} IS NOT NULL THEN '' END "
        "ELSE split_part({0}, {1}, {2}) END"
    )
    return strict_text(parts, form.format, result, True)


def _substring_index_sql(arguments: list[Text], result: Type) -> Text:
    text, delimiter, count = arguments
    assert isinstance(count.value, int), "the type rule asks for a literal"
    places = f"[1:{count.value}]" if count.value >= 0 else f"[{count.value}:]"
    form = f"array_to_string(string_split({{0}}, {{1}}){places}, {{1}})"
    return strict_text([cast(text, STRING), delimiter], form.format, result)


def _concat_ws_sql(arguments: list[Text], result: Type) -> Text:
    """Texts that are NULL are left out; without a separator there is none."""
    parts = [cast(argument, STRING) for argument in arguments]
    sql = f"concat_ws({', '.join(part.sql for part in parts)})"
    if any(part.fails for part in parts[1:]):
        sql = f"CASE WHEN {parts[0].sql} IS NOT NULL THEN {sql} END"
    return Text(sql, result, parts[0].nullable, any(part.fails for part in parts))


_LAST_BREAK = r"(\r\n|[\n\r\x{85}\x{2028}\x{2029}])\z"


def _rlike_sql(arguments: list[Text], result: Type) -> Text:
    """Java's end of a text is also before its last line break."""
    pattern = _pattern_of_literal(arguments[1])
    if not pattern.at_end:
        sql = f"regexp_matches({{0}}, {string(pattern.re2)})"
    else:
        ended = string(f"(?:{pattern.re2})\\z")
        shorter = f"regexp_replace({{0}}, {string(_LAST_BREAK)}, '')"
        sql = f"(regexp_matches({{0}}, {ended}) OR regexp_matches({shorter}, {ended}))"
    return _of_text_sql(arguments[0], sql, result)


def _regexp_extract_sql(arguments: list[Text], result: Type) -> Text:
    pattern = _pattern_of_literal(arguments[1])
    group = arguments[2].value if len(arguments) > 2 else 1
    assert isinstance(group, int), "the type rule asks for a literal"
    sql = f"regexp_extract({{0}}, {string(pattern.re2)}, {group})"
    return _of_text_sql(arguments[0], sql, result)


def _regexp_replace_sql(arguments: list[Text], result: Type) -> Text:
    pattern, new = _pattern_of_literal(arguments[1]), arguments[2].value
    replacement = common_replacement(new, pattern.groups) if isinstance(new, str) else None
    assert replacement is not None, "the type rule asks for one"
    sql = f"regexp_replace({{0}}, {string(pattern.re2)}, {string(replacement)}, 'g')"
    return _of_text_sql(arguments[0], sql, result)


def _pattern_of_literal(text: Text) -> Pattern:
    pattern = common_pattern(text.value) if isinstance(text.value, str) else None
    assert pattern is not None, "the type rule asks for one"
    return pattern


def _of_text_sql(text: Text, sql: str, result: Type) -> Text:
    """A function of one text, whose place in its SQL is {0}: patterns have braces of their own."""
    return strict_text([cast(text, STRING)], lambda value: sql.replace("{0}", value), result)


def _bytes_function_sql(form: str, arguments: list[Text], result: Type) -> Text:
    """A function of the bytes of its first argument, of which a text has those of UTF-8."""
    return strict_text([cast(arguments[0], BINARY)], form.format, result)


TEXT_FUNCTIONS: dict[str, Build] = {
    "like": _like_sql,
    "upper": partial(_upper_lower_sql, "upper"),
    "lower": partial(_upper_lower_sql, "lower"),
    "trim": partial(_text_function_sql, "trim({0}, ' ')"),
    "ltrim": partial(_text_function_sql, "ltrim({0}, ' ')"),
    "rtrim": partial(_text_function_sql, "rtrim({0}, ' ')"),
    "length": _length_sql,
    "substring": _substring_sql,
    "concat": _concat_sql,
    "replace": _replace_sql,
    "left": partial(_left_right_sql, "left"),
    "right": partial(_left_right_sql, "right"),
    "locate": partial(_text_function_sql, "CAST(strpos({1}, {0}) AS INTEGER)"),
    "startswith": partial(_text_function_sql, "starts_with({0}, {1})"),
    "endswith": partial(_text_function_sql, "ends_with({0}, {1})"),
    "lpad": partial(_padded_sql, "lpad"),
    "rpad": partial(_padded_sql, "rpad"),
    "repeat": _repeat_sql,
    "reverse": _reverse_sql,
    "translate": partial(_text_function_sql, "translate({0}, {1}, {2})"),
    "split_part": _split_part_sql,
    "substring_index": _substring_index_sql,
    "concat_ws": _concat_ws_sql,
    "rlike": _rlike_sql,
    "regexp_extract": _regexp_extract_sql,
    "regexp_replace": _regexp_replace_sql,
    "ascii": partial(
        _text_function_sql, "CAST(CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END AS INTEGER)"
    ),
    "md5": partial(_bytes_function_sql, "md5({0})"),
    "sha1": partial(_bytes_function_sql, "sha1({0})"),
    "sha2": partial(_bytes_function_sql, "sha256({0})"),
    "hex": partial(_bytes_function_sql, "hex({0})"),
    "base64": partial(_bytes_function_sql, "base64({0})"),
    "octet_length": partial(_bytes_function_sql, "CAST(octet_length({0}) AS INTEGER)"),
    "bit_length": partial(_bytes_function_sql, "CAST(8 * octet_length({0}) AS INTEGER)"),
}
