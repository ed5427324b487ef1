"""Arrays, maps and structs in DuckDB's text."""

from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.text import Build, Text, error, strict_text, string, type_name
from viewkeep.query.types.data_types import DATE, TIMESTAMP, Type
from viewkeep.query.types.internal_functions import ENTRY, FIELD, ITEM


def _array_sql(arguments: list[Text], result: Type) -> Text:
    parts = [cast(argument, result.parts[0].type) for argument in arguments]
    sql = f"CAST([{', '.join(part.sql for part in parts)}] AS {type_name(result)})"
    return Text(sql, result, False, any(part.fails for part in parts))


def _sequence_sql(arguments: list[Text], result: Type) -> Text:
    """All values between two, upwards or downwards."""
    kind = result.parts[0].type
    up, down = ("INTERVAL 1 DAY", "INTERVAL (-1) DAY") if kind == DATE else ("1", "-1")
    step = f"CASE WHEN {{0}} <= {{1}} THEN {up} ELSE {down} END"
    text = f"CAST(generate_series({{0}}, {{1}}, {step}) AS {type_name(result)})"
    return strict_text([cast(argument, kind) for argument in arguments], text.format, result)


def _field_sql(arguments: list[Text], result: Type) -> Text:
    """A part of a struct; a moment becomes one that can be computed with."""
    struct, name, _ = arguments
    value = f"struct_extract({struct.sql}, {string(str(name.value))})"
    return Text(nested_part_sql(value, result), result, True, struct.fails)


def _item_sql(arguments: list[Text], result: Type) -> Text:
    missing = error("an array has no such element")
    element = nested_part_sql("list_extract({0}, {1} + 1)", result)
    there = f"CASE WHEN {{1}} >= 0 AND {{1}} < len({{0}}) THEN {element} ELSE {missing} END"
    return strict_text(arguments, there.format, result, fails=True, nullable=True)


def _entry_sql(arguments: list[Text], result: Type) -> Text:
    values, key = arguments
    key_value = cast(key, values.type.parts[0].type)
    element = nested_part_sql("map_extract({0}, {1})[1]", result)
    return strict_text([values, key_value], element.format, result, nullable=True)


def nested_part_sql(value: str, type_: Type) -> str:
    """A part of a nested value; a moment becomes one that can be computed with."""
    return f"CAST({value} AS TIMESTAMP)" if type_ == TIMESTAMP else value


NESTED_FUNCTIONS: dict[str, Build] = {
    "array": _array_sql,
    "sequence": _sequence_sql,
    FIELD: _field_sql,
    ITEM: _item_sql,
    ENTRY: _entry_sql,
}
