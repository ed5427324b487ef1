"""Functions of arrays, maps and structs in DuckDB's text.

What is computed of an argument more than once, or for every element, reads it as a part of `v`: so
the text of an argument stands once, and its columns cannot be taken for variables of lambdas.
"""

from collections.abc import Callable
from functools import partial

from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.key_text import spark_order_text, without_negative_zero
from viewkeep.execute.duckdb.dialect.nested_functions import nested_part_sql
from viewkeep.execute.duckdb.dialect.text import (
    Build,
    Text,
    error,
    nested_type_name,
    quote_name,
    strict_text,
    string,
    type_name,
)
from viewkeep.query.regular_expressions import literal_of_pattern
from viewkeep.query.types.data_types import BIGINT, Type

_HAS_NULL = "len(list_filter({}, lambda e: e IS NULL)) > 0"


def _with_variables(body: str) -> Callable[..., str]:
    """A text over `v.a`, `v.b` and `v.c`, which are the arguments."""

    def build(*arguments: str) -> str:
        parts = ", ".join(map("{} := {}".format, "abc", arguments))
        return f"list_transform([struct_pack({parts})], lambda v: {body})[1]"

    return build


def _strict_sql(form: str, arguments: list[Text], result: Type) -> Text:
    return strict_text(arguments, form.format, result)


def _as_element(argument: Text, array: Text) -> Text:
    """A value as elements of an array are stored."""
    element = array.type.parts[0].type
    value = cast(argument, element)
    sql = f"CAST({value.sql} AS {nested_type_name(element)})"
    return Text(sql, element, value.nullable, value.fails)


def _size_sql(arguments: list[Text], result: Type) -> Text:
    name = "len" if arguments[0].type.name == "array" else "cardinality"
    return strict_text(arguments, f"CAST({name}({{}}) AS INTEGER)".format, result)


def _element_at_sql(arguments: list[Text], result: Type) -> Text:
    missing = f"CASE WHEN {{0}} IS NOT NULL THEN {error('an array has no such element')} END"
    element = nested_part_sql("list_extract({0}, {1})", result)
    outside = "{1} = 0 OR abs(CAST({1} AS BIGINT)) > len({0})"
    form = f"CASE WHEN {outside} THEN {missing} ELSE {element} END"
    return strict_text(arguments, form.format, result, fails=True, nullable=True)


def _try_element_at_sql(arguments: list[Text], result: Type) -> Text:
    element = nested_part_sql("list_extract({0}, {1})", result)
    failure = error("the first element has the place 1")
    form = f"CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN {failure} ELSE {element} END"
    return strict_text(arguments, form.format, result, fails=True, nullable=True)


def _get_sql(arguments: list[Text], result: Type) -> Text:
    element = nested_part_sql("list_extract({0}, CAST({1} AS BIGINT) + 1)", result)
    form = f"CASE WHEN {{1}} >= 0 THEN {element} END"
    return strict_text(arguments, form.format, result, nullable=True)


def _with_element_sql(body: str, arguments: list[Text], result: Type) -> Text:
    """A function of an array and of a value that is compared with its elements: in the body, they
    are `{v}` and `{e}` in a form in which equal ones are not distinct."""
    array, value = arguments
    element = array.type.parts[0].type
    form = body.replace("{v}", without_negative_zero("v.b", element))
    form = form.replace("{a}", without_negative_zero("v.a", array.type))
    form = form.replace("{e}", without_negative_zero("e", element))
    sides = [array, _as_element(value, array)]
    return strict_text(sides, _with_variables(form), result, nullable=True)


def _array_append_sql(form: str, arguments: list[Text], result: Type) -> Text:
    array, element = arguments[0], _as_element(arguments[1], arguments[0])
    sql = f"CASE WHEN {array.sql} IS NOT NULL THEN {form.format(array.sql, element.sql)} END"
    return Text(sql, result, array.nullable, array.fails or element.fails)


def _array_repeat_sql(arguments: list[Text], result: Type) -> Text:
    element, count = arguments
    body = "CASE WHEN v.b IS NOT NULL THEN list_transform(range(v.b), lambda e: v.a) END"
    sql = f"CAST({_with_variables(body)(element.sql, count.sql)} AS {type_name(result)})"
    return Text(sql, result, count.nullable, element.fails or count.fails)


def _array_join_sql(arguments: list[Text], result: Type) -> Text:
    array, separator, *instead = arguments
    texts = "list_filter({0}, lambda e: e IS NOT NULL)"
    if instead:
        body = "CASE WHEN v.b IS NOT NULL THEN list_transform(v.a, lambda e: coalesce(e, v.b)) END"
        texts = _with_variables(body)("{0}", "{1}")
    mark = string(str(separator.value))
    parts = [array, *instead]
    return strict_text(parts, lambda *p: f"array_to_string({texts.format(*p)}, {mark})", result)


def _extreme_element_sql(name: str, arguments: list[Text], result: Type) -> Text:
    """The least or largest element that is not NULL; of equal ones, the first."""
    element = arguments[0].type.parts[0].type
    if not element.has_float and not element.is_nested:
        form = nested_part_sql(f"list_{name}({{0}})", result)
        return strict_text(arguments, form.format, result, nullable=True)
    place, last = ("-i", -1) if name == "max" else ("i", 1)
    elements = "list_filter({0}, lambda e: e IS NOT NULL)"
    form = f"list_sort({_sort_keys(elements, element, 'TRUE', place)})[{last}].v"
    return strict_text(arguments, form.format, result, nullable=True)


def _sort_keys(elements: str, element: Type, null_rank: str, place: str) -> str:
    """What sorts as the elements do: their rank, key and place, with themselves."""
    key = without_negative_zero("e", element)
    key = spark_order_text("e", element) if element.is_nested else key
    pack = f"struct_pack(n := {null_rank}, k := {key}, i := {place}, v := e)"
    return f"list_transform({elements}, lambda e, i: {pack})"


def _sort_array_sql(nulls_last: bool, arguments: list[Text], result: Type) -> Text:
    """Elements in their order, NULLs first in an ascending one, and last in a descending one."""
    array, *order = arguments
    element, ascending = result.parts[0].type, not order or bool(order[0].value)
    if not element.has_float and not element.is_nested:
        nulls = "LAST" if nulls_last or not ascending else "FIRST"
        form = f"list_sort({{}}, '{'ASC' if ascending else 'DESC'}', 'NULLS {nulls}')"
        return strict_text([array], form.format, result)
    rank = "e IS NULL" if nulls_last else "e IS NOT NULL"
    keys = f"list_sort({_sort_keys('{0}', element, rank, 'i' if ascending else '-i')})"
    in_order = keys if ascending else f"list_reverse({keys})"
    return strict_text([array], f"list_transform({in_order}, lambda e: e.v)".format, result)


def _slice_sql(arguments: list[Text], result: Type) -> Text:
    array, start, length = arguments[0], cast(arguments[1], BIGINT), cast(arguments[2], BIGINT)
    empty = f"CAST([] AS {type_name(result)})"
    part = _with_variables(
        f"CASE WHEN v.c = 0 OR -v.b > len(v.a) THEN {empty} "
        "WHEN v.b > 0 THEN list_slice(v.a, v.b, v.b + v.c - 1) "
        "WHEN v.b < 0 THEN list_slice(v.a, len(v.a) + v.b + 1, len(v.a) + v.b + v.c) END"
    )
    there = "{0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL"
    failure = error("a part of an array from the place 0, or of a negative length")
    wrong = f"CASE WHEN {there} THEN {failure} END"

    def build(*texts: str) -> str:
        form = f"CASE WHEN {{1}} = 0 OR {{2}} < 0 THEN {wrong} WHEN {there} THEN "
        return f"{form.format(*texts)}{part(*texts)} END"

    return strict_text([array, start, length], build, result, fails=True)


def concat_arrays_sql(arguments: list[Text], result: Type) -> Text:
    """All elements of some arrays; NULL if one of them is."""

    def build(*texts: str) -> str:
        there = " AND ".join(f"{text} IS NOT NULL" for text in texts)
        return f"CASE WHEN {there} THEN flatten([{', '.join(texts)}]) END"

    return strict_text(arguments, build, result)


def _flatten_sql(arguments: list[Text], result: Type) -> Text:
    body = f"CASE WHEN {_HAS_NULL.format('v.a')} THEN NULL ELSE flatten(v.a) END"
    return strict_text(arguments, _with_variables(body), result, nullable=True)


def _split_sql(arguments: list[Text], result: Type) -> Text:
    separator = literal_of_pattern(str(arguments[1].value))
    assert separator is not None, "typed before"
    mark = string(separator)
    return strict_text(arguments[:1], lambda text: f"string_split({text}, {mark})", result)


def _set_sql(elements: str, arguments: list[Text], result: Type) -> Text:
    """Elements of one or two arrays without -0.0, each once, where it stands first."""
    kind = arguments[0].type
    there = " AND ".join(f"v.{name} IS NOT NULL" for name, _ in zip("ab", arguments, strict=False))
    first = _with_variables("list_filter(v.a, lambda e, i: list_position(v.a, e) = i)")
    body = _with_variables(f"CASE WHEN {there} THEN {elements} END")

    def build(*texts: str) -> str:
        return first(body(*(without_negative_zero(text, kind) for text in texts)))

    return strict_text(arguments, build, result)


def _overlap_sql(arguments: list[Text], result: Type) -> Text:
    kind = arguments[0].type
    a, b = (without_negative_zero(f"v.{name}", kind) for name in "ab")
    common = f"list_filter({a}, lambda e: e IS NOT NULL AND list_position({b}, e) IS NOT NULL)"
    unknown = f"{_HAS_NULL.format('v.a')} OR {_HAS_NULL.format('v.b')}"
    body = (
        f"CASE WHEN v.a IS NULL OR v.b IS NULL THEN NULL WHEN len({common}) > 0 THEN TRUE "
        f"WHEN len(v.a) > 0 AND len(v.b) > 0 AND ({unknown}) THEN NULL ELSE FALSE END"
    )
    return strict_text(arguments, _with_variables(body), result, nullable=True)


def _map_contains_key_sql(arguments: list[Text], result: Type) -> Text:
    key = arguments[0].type.parts[0].type
    value = cast(arguments[1], key)
    sql = f"CAST({value.sql} AS {nested_type_name(key)})"
    sides = [arguments[0], Text(sql, key, value.nullable, value.fails)]
    body = (
        "CASE WHEN v.a IS NOT NULL AND v.b IS NOT NULL "
        "THEN list_position(map_keys(v.a), v.b) IS NOT NULL END"
    )
    return strict_text(sides, _with_variables(body), result)


def _named_struct_sql(arguments: list[Text], result: Type) -> Text:
    names = [quote_name(part.name) for part in result.parts]
    parts = ", ".join(f"{n} := {a.sql}" for n, a in zip(names, arguments[1::2], strict=True))
    sql = f"CAST(struct_pack({parts}) AS {type_name(result)})"
    return Text(sql, result, False, any(argument.fails for argument in arguments))


ARRAY_FUNCTIONS: dict[str, Build] = {
    "size": _size_sql,
    "element_at": _element_at_sql,
    "try_element_at": _try_element_at_sql,
    "get": _get_sql,
    "array_contains": partial(
        _with_element_sql,
        "CASE WHEN v.b IS NULL THEN NULL WHEN list_position({a}, {v}) IS NOT NULL THEN TRUE "
        "WHEN len(list_filter(v.a, lambda e: e IS NULL)) = 0 THEN FALSE END",
    ),
    "array_position": partial(
        _with_element_sql,
        "CASE WHEN v.a IS NOT NULL AND v.b IS NOT NULL "
        "THEN coalesce(CAST(list_position({a}, {v}) AS BIGINT), 0) END",
    ),
    "array_remove": partial(
        _with_element_sql,
        "CASE WHEN v.b IS NOT NULL "
        "THEN list_filter(v.a, lambda e: e IS NULL OR {e} IS DISTINCT FROM {v}) END",
    ),
    "array_append": partial(_array_append_sql, "list_append({}, {})"),
    "array_prepend": partial(_array_append_sql, "list_prepend({1}, {0})"),
    "array_compact": partial(_strict_sql, "list_filter({}, lambda e: e IS NOT NULL)"),
    "array_repeat": _array_repeat_sql,
    "array_join": _array_join_sql,
    "array_max": partial(_extreme_element_sql, "max"),
    "array_min": partial(_extreme_element_sql, "min"),
    "sort_array": partial(_sort_array_sql, False),
    "array_sort": partial(_sort_array_sql, True),
    "slice": _slice_sql,
    "flatten": _flatten_sql,
    "split": _split_sql,
    "array_distinct": partial(_set_sql, "v.a"),
    "array_union": partial(_set_sql, "list_concat(v.a, v.b)"),
    "array_except": partial(_set_sql, "list_filter(v.a, lambda e: list_position(v.b, e) IS NULL)"),
    "array_intersect": partial(
        _set_sql, "list_filter(v.a, lambda e: list_position(v.b, e) IS NOT NULL)"
    ),
    "arrays_overlap": _overlap_sql,
    "map_keys": partial(_strict_sql, "map_keys({})"),
    "map_values": partial(_strict_sql, "map_values({})"),
    "map_entries": partial(_strict_sql, "map_entries({})"),
    "map_contains_key": _map_contains_key_sql,
    "named_struct": _named_struct_sql,
}
