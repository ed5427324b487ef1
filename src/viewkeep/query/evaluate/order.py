"""Values as Python compares them where Spark compares values: equality and order."""

from math import nan
from typing import Any


def normal(value: Any) -> Any:
    """The value, equal in Python to those that equal it in Spark: there is one NaN, and no -0.0.

    >>> normal((float("nan"), None)) == normal((float("nan"), None))
    True
    """
    if isinstance(value, float):
        return value + 0.0 if value == value else nan
    return tuple(map(normal, value)) if isinstance(value, tuple) else value


def sort_value(value: Any) -> tuple[Any, ...]:
    """What Python orders as Spark orders values that are not NULL; inside of others, NULL is least.

    >>> sort_value((1, None)) < sort_value((1, 0)), sort_value((float("nan"),)) > sort_value((9.0,))
    (True, True)
    """
    if isinstance(value, float):
        return (value != value, value + 0.0 if value == value else 0.0)
    if isinstance(value, tuple):
        return ([() if each is None else sort_value(each) for each in value],)
    return (value,)
