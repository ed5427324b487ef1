"""The functions of texts and of their bytes, with Spark SQL's type rules."""

from collections.abc import Sequence

from viewkeep.query.regular_expressions import Pattern, common_pattern, common_replacement
from viewkeep.query.types.array_functions import text_or_arrays_rule
from viewkeep.query.types.data_types import BINARY, BOOLEAN, INT, INTEGRAL, STRING, Type
from viewkeep.query.types.signatures import (
    FunctionSignature,
    TypedValue,
    of_types,
    only_by_spark,
)

_TEXT, _BYTES = (STRING,), (STRING, BINARY)


def text_function_types() -> list[FunctionSignature]:
    """The functions, each with its rule."""
    whole_numbers = INTEGRAL[:3]
    return [
        FunctionSignature("like", of_types("like", BOOLEAN, _TEXT), 2, 2),
        *(
            FunctionSignature(name, of_types(name, STRING, _TEXT), 1, 1)
            for name in ("upper", "lower")
        ),
        *(
            FunctionSignature(n, of_types(n, STRING, _TEXT), 1, 1)
            for n in ("trim", "ltrim", "rtrim")
        ),
        FunctionSignature("length", of_types("length", INT, (STRING, BINARY)), 1, 1),
        FunctionSignature("substring", of_types("substring", STRING, _TEXT, whole_numbers), 2, 3),
        FunctionSignature(
            "concat",
            text_or_arrays_rule("concat", of_types("concat", STRING, _TEXT)),
            *(1, None),
            takes=(_TEXT,),
        ),
        FunctionSignature("replace", of_types("replace", STRING, _TEXT), 2, 3),
        *(
            FunctionSignature(n, of_types(n, STRING, _TEXT, whole_numbers), 2, 2)
            for n in ("left", "right")
        ),
        FunctionSignature("locate", of_types("locate", INT, _TEXT), 2, 2),
        *(
            FunctionSignature(n, of_types(n, BOOLEAN, _TEXT), 2, 2)
            for n in ("startswith", "endswith")
        ),
        *(
            FunctionSignature(n, of_types(n, STRING, _TEXT, whole_numbers, _TEXT), 2, 3)
            for n in ("lpad", "rpad")
        ),
        FunctionSignature("repeat", of_types("repeat", STRING, _TEXT, whole_numbers), 2, 2),
        FunctionSignature(
            "reverse",
            text_or_arrays_rule("reverse", of_types("reverse", STRING, _TEXT)),
            *(1, 1),
            takes=(_TEXT,),
        ),
        FunctionSignature("translate", of_types("translate", STRING, _TEXT), 3, 3),
        FunctionSignature(
            "split_part", of_types("split_part", STRING, _TEXT, _TEXT, whole_numbers), 3, 3
        ),
        FunctionSignature(
            "substring_index", _substring_index_type, 3, 3, takes=(_TEXT, _TEXT, whole_numbers)
        ),
        FunctionSignature("concat_ws", of_types("concat_ws", STRING, _TEXT), 2, None),
        FunctionSignature("ascii", of_types("ascii", INT, _TEXT), 1, 1),
        FunctionSignature("sha2", _sha2_type, 2, 2, takes=(_BYTES, whole_numbers)),
        FunctionSignature("rlike", _rlike_type, 2, 2, takes=(_TEXT,)),
        FunctionSignature(
            "regexp_extract", _regexp_extract_type, 2, 3, takes=(_TEXT, _TEXT, whole_numbers)
        ),
        FunctionSignature("regexp_replace", _regexp_replace_type, 3, 3, takes=(_TEXT,)),
        *(
            FunctionSignature(n, of_types(n, STRING, _BYTES), 1, 1)
            for n in ("md5", "sha1", "hex", "base64")
        ),
        *(
            FunctionSignature(n, of_types(n, INT, _BYTES), 1, 1)
            for n in ("octet_length", "bit_length")
        ),
    ]


def _substring_index_type(arguments: Sequence[TypedValue]) -> Type:
    """Delimiters of several characters may overlap, and are then counted in other ways."""
    of_types("substring_index", STRING, _TEXT, _TEXT, INTEGRAL[:3])(arguments)
    delimiter, count = arguments[1].value, arguments[2].value
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not isinstance(count, int):
        raise only_by_spark("substring_index", "a delimiter that is no literal character")
    return STRING


def _sha2_type(arguments: Sequence[TypedValue]) -> Type:
    of_types("sha2", STRING, _BYTES, INTEGRAL[:3])(arguments)
    if arguments[1].value not in (0, 256):
        raise only_by_spark("sha2", "a number of bits that is not 256")
    return STRING


def _rlike_type(arguments: Sequence[TypedValue]) -> Type:
    of_types("rlike", BOOLEAN, _TEXT)(arguments)
    _literal_pattern("rlike", arguments)
    return BOOLEAN


def _regexp_extract_type(arguments: Sequence[TypedValue]) -> Type:
    of_types("regexp_extract", STRING, _TEXT, _TEXT, INTEGRAL[:3])(arguments)
    pattern = _literal_pattern("regexp_extract", arguments)
    group = arguments[2].value if len(arguments) > 2 else 1
    if not isinstance(group, int) or not 0 <= group <= pattern.groups:
        raise only_by_spark("regexp_extract", "this group")
    if pattern.at_end or pattern.repeats_groups:
        raise only_by_spark("regexp_extract", "a pattern that ends with $ or repeats a group")
    return STRING


def _regexp_replace_type(arguments: Sequence[TypedValue]) -> Type:
    of_types("regexp_replace", STRING, _TEXT)(arguments)
    pattern, new = _literal_pattern("regexp_replace", arguments), arguments[2].value
    if not isinstance(new, str) or common_replacement(new, pattern.groups) is None:
        raise only_by_spark("regexp_replace", "this new text")
    if pattern.at_end or pattern.repeats_groups or pattern.matches_nothing:
        raise only_by_spark("regexp_replace", "a pattern that matches nothing or ends with $")
    return STRING


def _literal_pattern(name: str, arguments: Sequence[TypedValue]) -> Pattern:
    java = arguments[1].value
    pattern = common_pattern(java) if isinstance(java, str) else None
    if pattern is None:
        raise only_by_spark(name, "a pattern that engines read differently")
    return pattern
