"""Values of every kind, and which of them a parameter may take."""

from collections.abc import Callable, Mapping
from datetime import date
from math import inf, nan
from typing import Any

import pyarrow as pa
import pytest

from viewkeep import ViewkeepError

VALUES: dict[str, Any] = {
    "none": None,
    "true": True,
    "number": 5,
    "negative": -1,
    "huge": 10**30,
    "fraction": 1.5,
    "nan": nan,
    "infinity": inf,
    "text": "x",
    "empty text": "",
    "zero byte": "\0",
    "bytes": b"x",
    "list": ["x"],
    "list of numbers": [1],
    "tuple": ("x",),
    "set": {"x"},
    "mapping": {"x": 1},
    "date": date(2026, 1, 1),
    "object": object(),
    "function": lambda: 1,
    "class": int,
    "table": pa.table({"x": [1]}),
}


def wrong(*allowed: str) -> list[Any]:
    """The values that are none of these."""
    unknown = set(allowed) - VALUES.keys()
    assert not unknown, unknown
    return [value for name, value in VALUES.items() if name not in allowed]


def refused(call: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """The call gives an error of Viewkeep, which is told from any other."""
    try:
        call(**arguments)
    except ViewkeepError:
        return
    pytest.fail(f"{arguments} was accepted")
