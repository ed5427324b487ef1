"""The functions of Spark SQL in DuckDB's text, by the names that `Call.function` uses."""

from functools import partial

from viewkeep.execute.duckdb.dialect.arithmetic import (
    absolute,
    arithmetic,
    negative_text,
    operand,
    whole_quotient,
)
from viewkeep.execute.duckdb.dialect.array_functions import ARRAY_FUNCTIONS
from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.date_functions import DATE_FUNCTIONS
from viewkeep.execute.duckdb.dialect.key_text import spark_order_text
from viewkeep.execute.duckdb.dialect.nested_functions import NESTED_FUNCTIONS
from viewkeep.execute.duckdb.dialect.text import Build, Text, error, strict_text, type_name
from viewkeep.execute.duckdb.dialect.text_functions import TEXT_FUNCTIONS
from viewkeep.execute.duckdb.dialect.tried import tried
from viewkeep.query.types.data_types import BOOLEAN, DECIMAL, DOUBLE, FLOAT, INTEGRAL, VOID, Type
from viewkeep.query.types.internal_functions import COMPARABLE, SINGLE, TRIED, TRY_CAST
from viewkeep.query.types.rules import common_type, decimal_type, digits, is_decimal


def _comparison_operands(arguments: list[Text]) -> list[Text]:
    left, right = arguments
    return alike([operand(left, right), operand(right, left)])


def alike(arguments: list[Text]) -> list[Text]:
    """The arguments in the type that all of them fit."""
    common = VOID
    for argument in arguments:
        wider = common_type(common, argument.type)
        assert wider is not None, "typed before"
        common = wider
    return [cast(argument, common) for argument in arguments]


def _comparison_sql(operator: str, arguments: list[Text], result: Type) -> Text:
    return strict_text(_comparison_operands(arguments), f"({{}} {operator} {{}})".format, result)


def _order_comparison_sql(operator: str, arguments: list[Text], result: Type) -> Text:
    """A comparison by order, in which NULL parts of arrays and structs are least."""
    operands = _comparison_operands(arguments)

    def build(*sides: str) -> str:
        keys = map(spark_order_text, sides, (each.type for each in operands))
        return f"({f' {operator} '.join(keys)})"

    return strict_text(operands, build, result)


def _null_safe_equal_sql(arguments: list[Text], result: Type) -> Text:
    left, right = _comparison_operands(arguments)
    sql = f"({left.sql} IS NOT DISTINCT FROM {right.sql})"
    return Text(sql, result, False, left.fails or right.fails)


def _and_or_sql(word: str, decided: str, arguments: list[Text], result: Type) -> Text:
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


def _not_sql(arguments: list[Text], result: Type) -> Text:
    return strict_text([cast(arguments[0], BOOLEAN)], "(NOT {})".format, result)


def _is_null_sql(negation: str, arguments: list[Text], result: Type) -> Text:
    [argument] = arguments
    return Text(f"({argument.sql} IS {negation}NULL)", result, False, argument.fails)


def _in_sql(arguments: list[Text], result: Type) -> Text:
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


def _case_sql(arguments: list[Text], result: Type) -> Text:
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


def _coalesce_sql(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, result) for argument in arguments]
    fails = any(part.fails for part in parts)
    nullable = all(part.nullable for part in parts)
    if any(part.fails for part in parts[1:]):
        branches = "".join(f" WHEN {part.sql} IS NOT NULL THEN {part.sql}" for part in parts[:-1])
        return Text(f"CASE{branches} ELSE {parts[-1].sql} END", result, nullable, fails)
    return Text(f"coalesce({', '.join(part.sql for part in parts)})", result, nullable, fails)


def _null_if_sql(arguments: list[Text], result: Type) -> Text:
    first, second = arguments
    left, right = alike([first, operand(second, first)])  # the first one is no literal to Spark
    same = strict_text([left, right], "({} = {})".format, BOOLEAN)
    value = cast(first, result)
    sql = f"CASE WHEN {same.sql} THEN NULL ELSE {value.sql} END"
    return Text(sql, result, True, same.fails or value.fails)


def _extreme_sql(name: str, arguments: list[Text], result: Type) -> Text:
    """The first of the largest or least; of floats, DuckDB would lose the sign of -0.0."""
    type_ = DOUBLE if result == FLOAT else result
    parts = [cast(argument, type_) for argument in arguments]
    if result.is_nested:
        return _nested_extreme_sql(name, parts, result)
    sql = f"{name}({', '.join(part.sql for part in parts)})"
    sql = f"CAST({sql} AS FLOAT)" if result == FLOAT else sql
    nullable = all(part.nullable for part in parts)
    return Text(sql, result, nullable, any(part.fails for part in parts))


def _nested_extreme_sql(name: str, parts: list[Text], result: Type) -> Text:
    """The first or last of the arrays or structs that are not NULL, sorted as Spark orders them."""
    pairs = (f"struct_pack(k := {spark_order_text(p.sql, result)}, v := {p.sql})" for p in parts)
    values = f"list_filter([{', '.join(pairs)}], lambda e0: e0.v IS NOT NULL)"
    sql = f"list_sort({values})[{-1 if name == 'greatest' else 1}].v"
    nullable = all(part.nullable for part in parts)
    return Text(sql, result, nullable, any(part.fails for part in parts))


def _comparable_sql(arguments: list[Text], result: Type) -> Text:
    """The value with its text, in which 0.0 and -0.0 are not the same."""
    [argument] = arguments
    pair = "CASE WHEN {0} IS NOT NULL THEN row({0}, CAST({0} AS VARCHAR)) END"
    return strict_text([argument], pair.format, result)


def _single_sql(arguments: list[Text], result: Type) -> Text:
    value, rows = arguments
    failure = error("a scalar subquery has more than one row")
    sql = f"CASE WHEN {rows.sql} > 1 THEN {failure} ELSE {value.sql} END"
    return Text(sql, result, value.nullable, True)


# Numbers.


def _round_sql(arguments: list[Text], result: Type) -> Text:
    number = arguments[0]
    places = arguments[1].value if len(arguments) > 1 else 0
    assert isinstance(places, int), "typed before"
    if is_decimal(result):
        return _round_decimal_sql(number, places, result)
    if result in INTEGRAL:
        if places >= 0:
            return number
        whole = _round_decimal_sql(cast(number, decimal_type(result)), places, DECIMAL(38, 0))
        return strict_text([whole], f"CAST({{}} AS {type_name(result)})".format, result, True)
    rounded = f"CAST(viewkeep_round({{0}}, {places}) AS {type_name(result)})"
    form = f"CASE WHEN isfinite({{0}}) THEN {rounded} ELSE {{0}} END"
    return strict_text([number], form.format, result)


def _round_decimal_sql(number: Text, places: int, result: Type) -> Text:
    _, scale = digits(number.type)
    if places >= scale:
        return cast(number, result)
    # DuckDB makes 0 of NULL where no digit is left.
    form = (
        f"CASE WHEN {{0}} IS NOT NULL THEN CAST(round({{0}}, {places}) AS {type_name(result)}) END"
    )
    return strict_text([number], form.format, result, True)


def _floor_ceil_sql(name: str, arguments: list[Text], result: Type) -> Text:
    """`floor` and `ceil`."""
    [number] = arguments
    if number.type in INTEGRAL:
        return cast(number, result)
    if is_decimal(number.type):
        return strict_text(
            [number], f"CAST({name}({{}}) AS {type_name(result)})".format, result, True
        )
    form = f"CASE WHEN isnan({{0}}) THEN 0 ELSE CAST({name}({{0}}) AS BIGINT) END"
    return strict_text([cast(number, DOUBLE)], form.format, result, True)


def _bits_sql(form: str, arguments: list[Text], result: Type) -> Text:
    return strict_text([cast(argument, result) for argument in arguments], form.format, result)


def _double_function_sql(form: str, arguments: list[Text], result: Type) -> Text:
    return strict_text([cast(argument, DOUBLE) for argument in arguments], form.format, result)


FUNCTIONS: dict[str, Build] = {
    COMPARABLE: _comparable_sql,
    SINGLE: _single_sql,
    **{name: partial(tried, name) for name in (*TRIED, TRY_CAST)},
    **{name: partial(arithmetic, name) for name in ("+", "-", "*", "/", "%")},
    "div": lambda arguments, result: whole_quotient(arguments),
    "negate": lambda arguments, result: negative_text(arguments[0]),
    "&": partial(_bits_sql, "({} & {})"),
    "|": partial(_bits_sql, "({} | {})"),
    "^": partial(_bits_sql, "xor({}, {})"),
    "~": partial(_bits_sql, "(~{})"),
    "abs": lambda arguments, result: absolute(arguments[0]),
    **{name: partial(_comparison_sql, name) for name in ("=", "<>")},
    **{name: partial(_order_comparison_sql, name) for name in ("<", "<=", ">", ">=")},
    "<=>": _null_safe_equal_sql,
    "and": partial(_and_or_sql, "AND", "FALSE"),
    "or": partial(_and_or_sql, "OR", "TRUE"),
    "not": _not_sql,
    "isnull": partial(_is_null_sql, ""),
    "isnotnull": partial(_is_null_sql, "NOT "),
    "in": _in_sql,
    "case": _case_sql,
    "coalesce": _coalesce_sql,
    "nullif": _null_if_sql,
    "greatest": partial(_extreme_sql, "greatest"),
    "least": partial(_extreme_sql, "least"),
    "round": _round_sql,
    "floor": partial(_floor_ceil_sql, "floor"),
    "ceil": partial(_floor_ceil_sql, "ceil"),
    "sqrt": partial(
        _double_function_sql, "CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({0}) END"
    ),
    "ln": partial(_double_function_sql, "CASE WHEN {0} > 0 THEN ln({0}) END"),
    "exp": partial(_double_function_sql, "exp({0})"),
    "power": partial(
        _double_function_sql,
        "CASE WHEN abs({0}) = 1 AND NOT isfinite({1}) THEN CAST('NaN' AS DOUBLE) "
        "ELSE power({0}, {1}) END",
    ),
    "sign": partial(
        _double_function_sql,
        "CASE WHEN {0} > 0 AND NOT isnan({0}) THEN CAST(1 AS DOUBLE) "
        "WHEN {0} < 0 THEN CAST(-1 AS DOUBLE) ELSE {0} END",
    ),
    **TEXT_FUNCTIONS,
    **DATE_FUNCTIONS,
    **NESTED_FUNCTIONS,
    **ARRAY_FUNCTIONS,
}
"""How the text of every function is made."""
