"""How far a view may fall behind its tables."""

import re
from dataclasses import replace

from viewkeep.errors import ArgumentError
from viewkeep.lake.lake import Lake

DOWNSTREAM = "downstream"
"""The lag of a view that is refreshed only when a view above it is."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_LAG = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


def seconds_of(lag: float | str) -> float:
    """A time span in seconds.

    >>> seconds_of("500ms"), seconds_of("1m"), seconds_of(3)
    (0.5, 60.0, 3.0)
    """
    if not isinstance(lag, str):
        if lag < 0:
            raise ArgumentError(f"lag={lag}: expected a number of seconds from 0")
        return float(lag)
    match = _LAG.fullmatch(lag.lower())
    if match is None or (match[2] or "s") not in _UNITS:
        raise ArgumentError(f'lag="{lag}": expected a time such as 500ms, 10s, 1m, 2h or 1d')
    return float(match[1]) * _UNITS[match[2] or "s"]


def check_lag(lag: str) -> None:
    """Refuse what is no lag of a view."""
    if lag and lag != DOWNSTREAM:
        seconds_of(lag)


def set_lag(lake: Lake, name: str, lag: str) -> None:
    """Give a view another lag; nothing else of its definition changes."""
    check_lag(lag)
    lake.catalog.change(f"lag {name}", lambda now: now.including(replace(now.view(name), lag=lag)))
