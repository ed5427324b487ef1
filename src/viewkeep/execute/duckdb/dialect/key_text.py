"""Keys of groups and orders in DuckDB's text, as Spark compares them: also arrays and structs."""

from viewkeep.execute.duckdb.dialect.text import quote_name, string, type_name
from viewkeep.query.types.data_types import Type


def without_negative_zero(value: str, type_: Type, depth: int = 1) -> str:
    """The value with 0.0 in the place of -0.0, also inside.

    >>> from viewkeep.query.types.data_types import parse_type
    >>> print(without_negative_zero("x", parse_type("array<double>")))
    list_transform(x, lambda e1: (e1 + CAST(0 AS DOUBLE)))
    """
    if not type_.has_float or type_.has_map:  # maps are carried only
        return value
    if type_.name == "array":
        each = without_negative_zero(f"e{depth}", type_.parts[0].type, depth + 1)
        return f"list_transform({value}, lambda e{depth}: {each})"
    if type_.name != "struct":
        return f"({value} + CAST(0 AS {type_name(type_)}))"
    parts = []
    for part in type_.parts:
        sql = without_negative_zero(_key_part_sql(value, part.name), part.type, depth)
        parts.append(f"{quote_name(part.name)} := {sql}")
    return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"


def ordered_key_text(value: str, type_: Type, depth: int = 1) -> str:
    """What DuckDB orders as Spark orders the values: NULL parts come first.

    >>> from viewkeep.query.types.data_types import parse_type
    >>> print(ordered_key_text("x", parse_type("array<int>")))
    list_transform(x, lambda e1: row(e1 IS NOT NULL, e1))
    """
    if type_.name == "array":
        each = ordered_key_text(f"e{depth}", type_.parts[0].type, depth + 1)
        return f"list_transform({value}, lambda e{depth}: row(e{depth} IS NOT NULL, {each}))"
    if type_.name != "struct":
        return value
    parts = [
        f"{_key_part_sql(value, part.name)} IS NOT NULL, "
        f"{ordered_key_text(_key_part_sql(value, part.name), part.type, depth)}"
        for part in type_.parts
    ]
    return f"CASE WHEN {value} IS NOT NULL THEN row({', '.join(parts)}) END"


def spark_order_text(value: str, type_: Type) -> str:
    """What DuckDB compares as Spark orders the values: the value itself unless it has parts."""
    if not type_.is_nested:
        return value
    return ordered_key_text(without_negative_zero(value, type_), type_)


def _key_part_sql(value: str, name: str) -> str:
    return f"struct_extract({value}, {string(name)})"
