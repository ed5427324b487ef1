"""Functions of arrays, maps and structs, with Spark SQL's type rules."""

from collections.abc import Callable, Sequence

from viewkeep.errors import QueryError
from viewkeep.query.regular_expressions import literal_of_pattern
from viewkeep.query.types.data_types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    INT,
    INTEGRAL,
    STRING,
    STRUCT,
    VOID,
    Field,
    Type,
)
from viewkeep.query.types.rules import common_type
from viewkeep.query.types.signatures import (
    FunctionSignature,
    Rule,
    TypedValue,
    clash,
    only_by_spark,
)

_PLACES = INTEGRAL[:3]


def _array_rule(
    name: str, result: Callable[[Type], Type], others: Sequence[Callable[[Type, Type], bool]] = ()
) -> Rule:
    """The rule of a function of an array, whose type is made of that of the elements; `others` say
    whether the further arguments fit the elements."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        element = _element_type(name, arguments)
        for argument, fits in zip(arguments[1:], others, strict=False):
            if not fits(element, argument.type):
                raise clash(name, arguments, "the arguments must fit the array")
        return result(element)

    return rule


def _element_type(name: str, arguments: Sequence[TypedValue]) -> Type:
    array = arguments[0].type
    if array.name != "array" or array.parts[0].type == VOID:
        raise clash(name, arguments, "the first argument must be an array")
    return array.parts[0].type


def _is_element(element: Type, argument: Type) -> bool:
    return common_type(element, argument) == element


def _is_compared(element: Type, argument: Type) -> bool:
    return _is_element(element, argument) and not element.has_map


def _is_array(element: Type, argument: Type) -> bool:
    return argument == ARRAY(element)


def _is_place(element: Type, argument: Type) -> bool:
    return argument in _PLACES


def _ordered_rule(name: str, result: Callable[[Type], Type]) -> Rule:
    """The rule of a function that compares elements by their order."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        element = _element_type(name, arguments)
        if element.has_map:
            raise only_by_spark(name, f"elements of type {element}")
        if len(arguments) > 1 and not isinstance(arguments[1].value, bool):
            raise only_by_spark(name, "an order that is not TRUE or FALSE")
        return result(element)

    return rule


def _set_rule(name: str) -> Rule:
    """The rule of a function of arrays as sets; floats inside of elements are left to Spark."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        element = _element_type(name, arguments)
        if element.has_map or (element.is_nested and element.has_float):
            raise only_by_spark(name, f"elements of type {element}")
        if any(argument.type != arguments[0].type for argument in arguments):
            raise clash(name, arguments, "the arrays must have one type")
        return BOOLEAN if name == "arrays_overlap" else ARRAY(element)

    return rule


def _size_type(arguments: Sequence[TypedValue]) -> Type:
    if arguments[0].type.name not in ("array", "map"):
        raise clash("size", arguments, "the argument must be an array or a map")
    return INT


def _map_rule(name: str, result: Callable[[Type, Type], Type]) -> Rule:
    """The rule of a function of a map, and of a key of it."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        map_ = arguments[0].type
        if map_.name != "map":
            raise clash(name, arguments, "the first argument must be a map")
        key, value = (part.type for part in map_.parts)
        if any(common_type(key, argument.type) != key for argument in arguments[1:]):
            raise clash(name, arguments, "the key must fit the map")
        return result(key, value)

    return rule


def _array_join_type(arguments: Sequence[TypedValue]) -> Type:
    """The separator is a literal: DuckDB takes no other."""
    if arguments[0].type != ARRAY(STRING) or any(a.type != STRING for a in arguments[1:]):
        raise clash("array_join", arguments, "the arguments must be texts")
    if not isinstance(arguments[1].value, str):
        raise only_by_spark("array_join", "a separator that is no literal")
    return STRING


def _array_repeat_type(arguments: Sequence[TypedValue]) -> Type:
    element, count = (argument.type for argument in arguments)
    if element == VOID or count not in _PLACES:
        raise clash("array_repeat", arguments, "the second argument must be a whole number")
    return ARRAY(element)


def _flatten_type(arguments: Sequence[TypedValue]) -> Type:
    inner = _element_type("flatten", arguments)
    if inner.name != "array":
        raise clash("flatten", arguments, "the argument must be an array of arrays")
    return inner


def _split_type(arguments: Sequence[TypedValue]) -> Type:
    """Patterns that are only a text, and no limit on the parts."""
    pattern = arguments[1].value
    if any(argument.type not in (STRING, VOID) for argument in arguments[:2]):
        raise clash("split", arguments, "the first two arguments must be texts")
    if not isinstance(pattern, str) or literal_of_pattern(pattern) is None:
        raise only_by_spark("split", "a pattern that is more than a text")
    limit = arguments[2].value if len(arguments) > 2 else -1
    if not isinstance(limit, int) or limit > 0:
        raise only_by_spark("split", "a limit")
    return ARRAY(STRING)


def _named_struct_type(arguments: Sequence[TypedValue]) -> Type:
    names = [argument.value for argument in arguments[::2]]
    types = [argument.type for argument in arguments[1::2]]
    if len(names) != len(types) or not all(isinstance(name, str) and name for name in names):
        raise QueryError("named_struct: names, which are literals, and values must alternate")
    lower = {str(name).lower() for name in names}
    if len(lower) < len(names):
        raise QueryError("named_struct: two parts of one name")
    return STRUCT(*(Field(str(name), kind) for name, kind in zip(names, types, strict=True)))


def text_or_arrays_rule(name: str, of_text: Rule) -> Rule:
    """The rule of a function of texts that also takes arrays, all of one type."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        if not any(argument.type.name == "array" for argument in arguments):
            return of_text(arguments)
        element = _element_type(name, arguments)
        if any(argument.type != arguments[0].type for argument in arguments):
            raise clash(name, arguments, "the arrays must have one type")
        return ARRAY(element)

    return rule


def _pair_type(key: Type, value: Type) -> Type:
    return ARRAY(STRUCT(Field("key", key), Field("value", value)))


def array_function_types() -> list[FunctionSignature]:
    """The functions, each with its rule."""
    sets = ("array_union", "array_except", "array_intersect")
    return [
        FunctionSignature("size", _size_type, 1, 1),
        *(
            FunctionSignature(n, _array_rule(n, lambda e: e, [_is_place]), 2, 2, "always")
            for n in ("element_at", "try_element_at", "get")
        ),
        FunctionSignature(
            "array_contains",
            _array_rule("array_contains", lambda _: BOOLEAN, [_is_compared]),
            *(2, 2, "always"),
        ),
        FunctionSignature(
            "array_position", _array_rule("array_position", lambda _: BIGINT, [_is_compared]), 2, 2
        ),
        FunctionSignature("array_remove", _array_rule("array_remove", ARRAY, [_is_compared]), 2, 2),
        *(
            FunctionSignature(n, _array_rule(n, ARRAY, [_is_element]), 2, 2, "always")
            for n in ("array_append", "array_prepend")
        ),
        FunctionSignature("array_compact", _array_rule("array_compact", ARRAY), 1, 1),
        FunctionSignature("array_repeat", _array_repeat_type, 2, 2, "always"),
        FunctionSignature("array_join", _array_join_type, 2, 3),
        *(
            FunctionSignature(n, _ordered_rule(n, lambda element: element), 1, 1, "always")
            for n in ("array_max", "array_min")
        ),
        FunctionSignature("sort_array", _ordered_rule("sort_array", ARRAY), 1, 2),
        FunctionSignature("array_sort", _ordered_rule("array_sort", ARRAY), 1, 1),
        FunctionSignature("slice", _array_rule("slice", ARRAY, [_is_place, _is_place]), 3, 3),
        FunctionSignature("flatten", _flatten_type, 1, 1, "always"),
        FunctionSignature("split", _split_type, 2, 3),
        FunctionSignature("array_distinct", _set_rule("array_distinct"), 1, 1),
        *(FunctionSignature(n, _set_rule(n), 2, 2) for n in sets),
        FunctionSignature("arrays_overlap", _set_rule("arrays_overlap"), 2, 2, "always"),
        FunctionSignature("map_keys", _map_rule("map_keys", lambda k, v: ARRAY(k)), 1, 1),
        FunctionSignature("map_values", _map_rule("map_values", lambda k, v: ARRAY(v)), 1, 1),
        FunctionSignature("map_entries", _map_rule("map_entries", _pair_type), 1, 1),
        FunctionSignature(
            "map_contains_key", _map_rule("map_contains_key", lambda k, v: BOOLEAN), 2, 2
        ),
        FunctionSignature("named_struct", _named_struct_type, 2, None, "never"),
    ]
