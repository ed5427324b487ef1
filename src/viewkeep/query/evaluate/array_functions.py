"""What functions of arrays, maps and structs compute, as Spark SQL does in ANSI mode.

Arrays and structs are tuples, maps are tuples of pairs; NULL in them is None.
"""

import operator
from collections.abc import Callable
from typing import Any

from viewkeep.query.evaluate.order import normal, sort_value
from viewkeep.query.regular_expressions import literal_of_pattern

Array = tuple[Any, ...]


def _element_at_value(array: Array, place: int) -> Any:
    if not 1 <= abs(operator.index(place)) <= len(array):
        raise ValueError(f"no element {place} in an array of {len(array)}")
    return array[place - 1 if place > 0 else place]


def _try_element_at_value(array: Array, place: int) -> Any:
    if operator.index(place) == 0:
        raise ValueError("the first element has the place 1")
    return _element_at_value(array, place) if abs(place) <= len(array) else None


def _get_value(array: Array, place: int) -> Any:
    return array[place] if 0 <= operator.index(place) < len(array) else None


def _array_contains_value(array: Array, element: Any) -> bool | None:
    if normal(element) in map(normal, array):
        return True
    return None if None in array else False


def _array_position_value(array: Array, element: Any) -> int:
    values = [normal(each) for each in array]
    return values.index(normal(element)) + 1 if normal(element) in values else 0


def _array_remove_value(array: Array, element: Any) -> Array:
    values = (normal(element),)  # of which `in` also finds NaN
    return tuple(each for each in array if normal(each) not in values)


def _array_join_value(array: Array, separator: str, instead: str | None = None) -> str:
    texts = (instead if each is None else each for each in array)
    return separator.join(text for text in texts if text is not None)


def _extreme_element(choose: Callable[..., Any], array: Array) -> Any:
    return choose((each for each in array if each is not None), key=sort_value, default=None)


def _sort_array_value(array: Array, ascending: bool = True) -> Array:
    return tuple(sorted(array, key=_key_with_null_first, reverse=not ascending))


def _key_with_null_first(value: Any) -> Array:
    return () if value is None else sort_value(value)


def _array_sort_value(array: Array) -> Array:
    return tuple(sorted(array, key=lambda each: (each is None, _key_with_null_first(each))))


def _slice_value(array: Array, start: int, length: int) -> Array:
    if start == 0 or length < 0:
        raise ValueError(f"no part of {length} elements from the place {start}")
    first = start - 1 if start > 0 else len(array) + start
    return array[first : first + length] if first >= 0 else ()


def concat_arrays(*arrays: Array) -> Array:
    """All elements of some arrays, one array after another."""
    return sum(arrays, ())


def _flatten_value(array: tuple[Array | None, ...]) -> Array | None:
    return None if None in array else concat_arrays(*(each for each in array if each is not None))


def _split_value(text: str, pattern: str, limit: int = -1) -> Array:
    separator = literal_of_pattern(pattern)
    if separator is None or limit > 0:
        raise ValueError(f"only Spark splits by {pattern!r}")
    return tuple(text.split(separator))


def _distinct_value(array: Array) -> Array:
    """Every element once, at its first place; there is no -0.0."""
    return tuple(dict.fromkeys(map(normal, array)))


def _except_value(first: Array, second: Array) -> Array:
    others = set(map(normal, second))
    return tuple(each for each in _distinct_value(first) if each not in others)


def _intersect_value(first: Array, second: Array) -> Array:
    others = set(map(normal, second))
    return tuple(each for each in _distinct_value(first) if each in others)


def _overlap_value(first: Array, second: Array) -> bool | None:
    if any(each is not None for each in _intersect_value(first, second)):
        return True
    return None if first and second and None in (*first, *second) else False


def _keys_of_map(map_: tuple[tuple[Any, Any], ...]) -> Array:
    return tuple(key for key, _ in map_)


def map_value(map_: tuple[tuple[Any, Any], ...], key: Any) -> Any:
    """The value of a map for a key, or None."""
    return next((value for own, value in map_ if own == key), None)


ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "size": len,
    "element_at": _element_at_value,
    "try_element_at": _try_element_at_value,
    "get": _get_value,
    "array_contains": _array_contains_value,
    "array_position": _array_position_value,
    "array_remove": _array_remove_value,
    "array_compact": lambda array: tuple(each for each in array if each is not None),
    "array_join": _array_join_value,
    "array_max": lambda array: _extreme_element(max, array),
    "array_min": lambda array: _extreme_element(min, array),
    "sort_array": _sort_array_value,
    "array_sort": _array_sort_value,
    "slice": _slice_value,
    "flatten": _flatten_value,
    "split": _split_value,
    "array_distinct": _distinct_value,
    "array_union": lambda first, second: _distinct_value(first + second),
    "array_except": _except_value,
    "array_intersect": _intersect_value,
    "arrays_overlap": _overlap_value,
    "map_keys": _keys_of_map,
    "map_values": lambda map_: tuple(value for _, value in map_),
    "map_entries": lambda map_: tuple(map_),
    "map_contains_key": lambda map_, key: key in _keys_of_map(map_),
}
"""The functions that are NULL when an argument is, on values that are not."""
