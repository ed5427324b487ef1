"""Eager or lazy, list or factorized: the four corners of the survey's figure 4, by steps.

The Retailer query of its example 4.10, q-hierarchical under zip -> locn, takes batches of inserts;
after every few batches the whole output is read.
"""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

import viewkeep as vk

QUERY = (
    "Q(locn, dateid, ksn, zip) = Inventory(locn, dateid, ksn) * Weather(locn, dateid) * "
    "Location(locn, zip) * Census(zip) * Demographics(zip)"
)
DEPENDENCY = "zip -> locn"


@dataclass(frozen=True)
class Corner:
    """A way to maintain the query."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def maintain(self) -> vk.Maintainer:
        """The query, still empty."""
        return vk.maintain(QUERY, fds=[DEPENDENCY], engine="reference", **self.options)


CORNERS = (
    Corner("eager-list", {"strategy": "viewtree", "output": "list"}),
    Corner("eager-fact", {"strategy": "viewtree"}),
    Corner("lazy-list", {"strategy": "viewtree", "output": "list", "mode": "lazy"}),
    Corner("lazy-fact", {"strategy": "viewtree", "mode": "lazy"}),
)
OTHERS = (
    Corner("recursive, eager", {"strategy": "recursive"}),
    Corner("delta, lazy", {"strategy": "delta", "mode": "lazy"}),
)


@dataclass(frozen=True)
class Shop:
    """How much data: places with several zips each, days, and products sold per place and day."""

    places: int = 10
    zips: int = 10
    days: int = 30
    products: int = 30
    batch: int = 500

    def rows(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """All inserts, relation by relation."""
        for place in range(self.places):
            for zip_code in range(place * self.zips, (place + 1) * self.zips):
                yield "Location", (place, zip_code)
                yield "Census", (zip_code,)
                yield "Demographics", (zip_code,)
            for day in range(self.days):
                yield "Weather", (place, day)
                yield from (("Inventory", (place, day, ksn)) for ksn in range(self.products))

    def batches(self) -> list[list[tuple[str, tuple[int, ...]]]]:
        """The inserts in random order, cut into batches."""
        rows = list(self.rows())
        random.Random(0).shuffle(rows)
        return [rows[i : i + self.batch] for i in range(0, len(rows), self.batch)]


@dataclass(frozen=True)
class Cost:
    """What a stream took."""

    steps: int
    seconds: float


def run(corner: Corner, shop: Shop, interval: int | None) -> Cost:
    """Insert all batches, reading the whole output after every `interval` of them, if ever."""
    live, start = corner.maintain(), time.perf_counter()
    for number, batch in enumerate(shop.batches(), start=1):
        for relation, row in batch:
            live.update(relation, row)
        if interval and number % interval == 0:
            consume(live.enumerate())
    return Cost(live.steps, time.perf_counter() - start)


def consume(rows: Iterable[object]) -> None:
    """Go through all rows."""
    for _ in rows:
        pass


def intervals(shop: Shop) -> dict[str, int | None]:
    """How many batches lie between two readings, from none at all to one after each batch."""
    count = len(shop.batches())
    return {"none": None, "few": count, "some": max(count // 4, 1), "many": 1}


def costs(corners: Sequence[Corner], shop: Shop) -> dict[str, dict[str, Cost]]:
    """By corner and by how often the output is read."""
    return {
        corner.name: {name: run(corner, shop, each) for name, each in intervals(shop).items()}
        for corner in corners
    }


def table(found: Mapping[str, Mapping[str, Cost]], shop: Shop) -> Table:
    """Million steps and seconds; the fewest steps of each column are marked, also where equal."""
    batches = len(shop.batches())
    shown = Table(
        title="Steps (millions) and seconds, by how often the output is read",
        caption=f"{batches} batches of up to {shop.batch} inserts; * fewest steps",
    )
    shown.add_column("corner")
    readings = {name: batches // each if each else 0 for name, each in intervals(shop).items()}
    fewest = {n: min(row[n].steps for row in found.values()) for n in readings}
    for name, count in readings.items():
        shown.add_column(f"{name} ({count})", justify="right")
    for corner, row in found.items():
        shown.add_row(corner, *(_cell(cost, fewest[name]) for name, cost in row.items()))
    return shown


def _cell(cost: Cost, fewest: int) -> str:
    mark = "*" if cost.steps == fewest else " "
    return f"{cost.steps / 1e6:.3f}{mark}{cost.seconds:5.1f}"


def main() -> None:
    """The table, with DBToaster's recipe and first-order deltas below the corners."""
    shop = Shop()
    output = shop.places * shop.zips * shop.days * shop.products
    console = Console()
    console.print(f"{QUERY}\n{DEPENDENCY}; {output:,} output tuples at the end", highlight=False)
    console.print(table(costs((*CORNERS, *OTHERS), shop), shop))


if __name__ == "__main__":
    main()
