"""What a view in heavy and light parts tells apart: thresholds, heavy values, rebalancings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeep.diffs.programs.levels import BALANCE, BASE, MOVES, REBUILDS, SIZE, Levels
from viewkeep.lake.views.cache_versions import open_caches
from viewkeep.lake.views.caches import Cache
from viewkeep.lake.views.state import ViewState
from viewkeep.lake.views.view import View

MOST_VALUES = 5
"""The most heavy values that are named."""


@dataclass(frozen=True)
class HeavyValues:
    """The values of some columns that are above a threshold; `largest` are those with the highest
    degrees, each with its degree."""

    columns: str
    thresholds: tuple[float, ...]
    count: int
    largest: tuple[tuple[tuple[Any, ...], int], ...]

    def __str__(self) -> str:
        limits = ", ".join(f"{each:.1f}" for each in self.thresholds)
        values = ", ".join(f"{', '.join(map(str, v))} ({degree})" for v, degree in self.largest)
        more = ", ..." if self.count > len(self.largest) else ""
        listed = f": {values}{more}" if values else ""
        return f"{self.columns}: {self.count} with degrees from {limits} on{listed}"


@dataclass(frozen=True)
class Balance:
    """The tuples of all tables of a view, the base of its thresholds, how many values have moved
    since the parts were built, how often all were told apart anew, and the heavy values."""

    size: int
    base: int
    moves: int
    rebuilds: int
    heavy: tuple[HeavyValues, ...]

    def __str__(self) -> str:
        return (
            f"{self.size:,} tuples, thresholds from M = {self.base:,}; "
            f"values moved: {self.moves}, thresholds changed: {self.rebuilds}"
        )


def balance_of_view(view: View, state: ViewState) -> Balance | None:
    """The balance of a view at a state; None if it has no heavy and light parts there."""
    program, caches = view.heavy_light, open_caches(view, state) if view.heavy_light else {}
    if program is None or not caches:
        return None
    [row] = caches[BALANCE].rows().to_pylist()
    heavy = tuple(
        _heavy_values(program.describe_values(each), each, caches[each.name], row[BASE])
        for each in program.levels
    )
    return Balance(row[SIZE], row[BASE], row[MOVES], row[REBUILDS], heavy)


def _heavy_values(columns: str, levels: Levels, cache: Cache, base: int) -> HeavyValues:
    rows = [row for row in cache.rows().to_pylist() if row[levels.level]]
    values = sorted(_value_degrees(levels, rows), key=lambda each: -each[1])
    thresholds = tuple(base**exponent for exponent in levels.split.thresholds)
    return HeavyValues(columns, thresholds, len(rows), tuple(values[:MOST_VALUES]))


def _value_degrees(
    levels: Levels, rows: list[Mapping[str, Any]]
) -> Iterator[tuple[tuple[Any, ...], int]]:
    for row in rows:
        value = tuple(row[name] for name in levels.ids)
        yield value, max(row[name] for name in levels.degrees)
