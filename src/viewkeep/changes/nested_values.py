"""Values of types that views only carry, in a form that can be compared and hashed.

    array      a tuple of its elements
    struct     a tuple of its parts, in the order of the type
    map        a tuple of pairs, in the order in which they were given

What is inside fits as the values of columns do.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from viewkeep.query.types.data_types import Type

Convert = Callable[[Any], Any]
Refuse = Callable[[Any, str], Exception]
"""Makes the error for a value that is none of what is wanted."""


def nested_converter(type_: Type, converter: Callable[[Type], Convert], refuse: Refuse) -> Convert:
    """The function that brings a value (not NULL) into the form of a nested type."""
    parts = [_convert_or_null(converter(part.type)) for part in type_.parts]
    if type_.name == "array":
        return lambda value: tuple(map(parts[0], _elements_of_array(value, refuse)))
    if type_.name == "map":
        key, item = converter(type_.parts[0].type), parts[1]
        return lambda value: tuple((key(k), item(v)) for k, v in _pairs_of_map(value, refuse))
    names = [part.name for part in type_.parts]

    def struct(value: Any) -> Any:
        values = _members_of_struct(value, names, refuse)
        return tuple(fit(each) for fit, each in zip(parts, values, strict=True))

    return struct


def _convert_or_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _elements_of_array(value: Any, refuse: Refuse) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return value
    if getattr(value, "ndim", 0):  # an array of numpy
        return list(value)
    raise refuse(value, "a list")


def _pairs_of_map(value: Any, refuse: Refuse) -> Iterable[tuple[Any, Any]]:
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list | tuple) or not all(map(_is_map_pair, pairs)):
        raise refuse(value, "a dict")
    keys = [key for key, _ in pairs]
    if None in keys or len(set(map(repr, keys))) < len(keys):
        raise refuse(value, "every key once, and none that is None")
    return pairs


def _is_map_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _members_of_struct(value: Any, names: list[str], refuse: Refuse) -> Iterable[Any]:
    if isinstance(value, Mapping) and set(value) == set(names):
        return [value[name] for name in names]
    if not isinstance(value, list | tuple) or len(value) != len(names):
        raise refuse(value, f"a dict with {', '.join(names)}")
    return value
