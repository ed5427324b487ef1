"""What is heavy now: for each split its thresholds, and the values with the most tuples."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from viewkeep.plan.program import Program, Split
from viewkeep.report.live.maintenance import Json, Row, row_json, row_text
from viewkeep.report.query.adaptive import LEVELS, relations_of
from viewkeep.report.style import HEADING, section

MOST_VALUES = 3
"""So many of the heaviest values are shown to people."""

MOST_VALUES_JSON = 10
"""So many of the heaviest values are heaviest to programs."""


class HeavyPartition(Protocol):
    """What is read of a partition of the engine (engine/interpreter/partitions.py)."""

    @property
    def split(self) -> Split: ...

    @property
    def thresholds(self) -> tuple[float, ...]: ...

    @property
    def degrees(self) -> dict[Row, int]: ...

    def values(self, level: int) -> list[Row]:
        """The values of a level above the lowest, by falling degree."""
        ...


def heavy_section(program: Program, partitions: Sequence[HeavyPartition]) -> RenderableType:
    """A line for each split and level: from where on, how many values, the heaviest of them."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=HEADING)
    table.add_column("split", overflow="fold")
    table.add_column("threshold", justify="right", no_wrap=True)
    table.add_column("values", justify="right", no_wrap=True)
    table.add_column("most rows", overflow="fold")
    for partition in partitions:
        for level, threshold in _heavy_levels(partition):
            values = partition.values(level)
            value_texts = [
                f"{row_text(value)}: {partition.degrees[value]:,}" for value in values[:MOST_VALUES]
            ]
            heaviest = ", ".join(value_texts) + (", ..." if values[MOST_VALUES:] else "")
            table.add_row(
                Text(_level_name(program, partition.split, level)),
                f"{threshold:,.1f}",
                f"{len(values):,}",
                Text(heaviest or "-"),
            )
    return section("Heavy values", table)


def _heavy_levels(partition: HeavyPartition) -> Iterator[tuple[int, float]]:
    """The levels above the lowest, each with the degree it starts at; the heaviest first."""
    return reversed(list(enumerate(partition.thresholds, start=1)))


def _level_name(program: Program, split: Split, level: int) -> str:
    """For example `heavy b in R, S`."""
    where = ", ".join(relations_of(program, split))
    return f"{LEVELS[split.letter(level)]} {', '.join(split.variables)} in {where}"


def heavy_json(program: Program, partitions: Sequence[HeavyPartition]) -> Json:
    """The line before the summary, for programs with heavy and light parts."""
    return {
        "kind": "partitions",
        "splits": [
            {
                "variables": list(each.split.variables),
                "relations": relations_of(program, each.split),
                "levels": [_level_json(each, *level) for level in _heavy_levels(each)],
            }
            for each in partitions
        ],
    }


def _level_json(partition: HeavyPartition, level: int, threshold: float) -> Json:
    values = partition.values(level)
    return {
        "level": LEVELS[partition.split.letter(level)],
        "exponent": partition.split.thresholds[level - 1],
        "threshold": threshold,
        "values": len(values),
        "heaviest": [
            {"value": row_json(value), "degree": partition.degrees[value]}
            for value in values[:MOST_VALUES_JSON]
        ],
    }
