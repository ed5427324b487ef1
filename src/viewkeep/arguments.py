"""Arguments of public functions, checked against their annotations before anything is done."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from math import isfinite
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

from viewkeep.errors import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which refuses arguments that its annotations exclude.

    Understood are str, bool, int, float, paths, mappings, iterables of names, and unions of them;
    any other annotation admits everything. Iterables are passed on as tuples.

    >>> @checked
    ... def read(name: str, version: int | None = None) -> None: ...
    >>> read("parts", "x")
    Traceback (most recent call last):
    viewkeep.errors.ArgumentError: version='x': expected a whole number
    """
    parameters = signature(function).parameters
    bind = signature(function).bind

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = bind(*args, **kwargs)
        except TypeError as error:  # an argument that is missing, or one too many
            raise ArgumentError(f"{function.__name__}(): {error}") from None
        for name, value in bound.arguments.items():
            bound.arguments[name] = _admitted(parameters[name], value)
        return function(*bound.args, **bound.kwargs)

    return call


def _admitted(parameter: Parameter, value: Any) -> Any:
    kind = parameter.annotation
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return tuple(_admitted_value(parameter.name, kind, each) for each in value)
    if parameter.kind is Parameter.VAR_KEYWORD:
        return value
    return _admitted_value(parameter.name, kind, value)


def _admitted_value(name: str, kind: Any, value: Any) -> Any:
    """The value, as a tuple if it is an iterable of names; an error if it does not fit."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    expected = [_EXPECTED.get(each, _EXPECTED.get(get_origin(each))) for each in kinds]
    if None in expected:
        return value  # a kind that admits anything
    fits = [each for each in kinds if _fits_annotation(each, value)]
    if not fits or (isinstance(value, str) and "\0" in value):
        raise _argument_refusal(name, kinds, value)
    if get_origin(fits[0]) in (Iterable, Sequence):
        return _admitted_items(name, get_args(fits[0]), value)
    return value


_EXPECTED: dict[Any, str] = {
    str: "text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    NoneType: "None",
    os.PathLike: "a path",
    Mapping: "a mapping of text",
    Iterable: "a list",
    Sequence: "a list",
}


def _fits_annotation(kind: Any, value: Any) -> bool:
    match get_origin(kind) or kind:
        case base if base in (Union, UnionType):
            return any(_fits_annotation(each, value) for each in get_args(kind))
        case base if base in (str, NoneType):
            return isinstance(value, base)
        case base if base is bool:
            return type(value).__name__ in ("bool", "bool_")  # NumPy has its own
        case base if base is int:
            return hasattr(value, "__index__") and not isinstance(value, bool | type)
        case base if base is float:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and (isinstance(value, int) or isfinite(value))
        case base if base in (Iterable, Sequence):
            return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        case base if base is Mapping:
            return isinstance(value, base) and all(
                _fits_annotation(part, each)
                for pair in value.items()
                for part, each in zip(get_args(kind), pair, strict=True)
            )
        case base:
            return base is Any or isinstance(value, base)


def _admitted_items(name: str, kinds: tuple[Any, ...], values: Iterable[Any]) -> tuple[Any, ...]:
    try:
        items = tuple(values)
    except Exception:  # a DataFrame and its like say they can be iterated
        raise ArgumentError(f"{name}={_argument_text(values)}: expected a list") from None
    return tuple(_admitted_value(name, kinds[0], item) for item in items)


def _argument_refusal(name: str, kinds: Sequence[Any], value: Any) -> ArgumentError:
    names = [_EXPECTED.get(get_origin(kind) or kind, "") for kind in kinds]
    if isinstance(value, str) and "a list" in names:
        return ArgumentError(f'{name}="{value}": give a list, as in {name}=["{value}"]')
    expected = " or ".join(each for each in dict.fromkeys(names) if each != "None")
    hint = " (it is not a name)" if name in ("name", "names") else ""
    return ArgumentError(f"{name}={_argument_text(value)}: expected {expected}{hint}")


def _argument_text(value: Any) -> str:
    """The value, or only its type where it has no short text."""
    if isinstance(value, str | bytes | int | float | list | tuple | dict | set | None):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return f"<{type(value).__name__}>"
