"""Live views: rows that a view takes in from its tables, look-ups, and how soon it is resumed.

    python bench/live.py [--rows 10000000] [--batch 1000000] [--batches 3]

A sum over the join of lines with items is kept by `Keeper.live`. Every batch of Arrow rows is
committed to the table (`apply`), then taken in by the view (`catch_up`): new rows, rows that
change, rows that go. Seconds of the wall and of the processor are told, since other work on the
machine changes the first.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from viewkeep import Keeper

ITEMS, KINDS = 100_000, 1_000
VIEW = """SELECT i.kind, count(*) AS n, sum(l.quantity * i.price) AS amount
          FROM lines l JOIN items i ON l.item = i.item GROUP BY i.kind"""
LOOKUPS = 2_000


@dataclass
class Seconds:
    """The time that a block took."""

    wall: float = 0.0
    processor: float = 0.0


@contextmanager
def measured() -> Iterator[Seconds]:
    """A block whose time is told when it ends."""
    found, wall, processor = Seconds(), time.perf_counter(), time.process_time()
    yield found
    found.wall = time.perf_counter() - wall
    found.processor = time.process_time() - processor


def lines(start: int, count: int, random: np.random.Generator) -> pa.Table:
    """Rows of `lines` with keys from `start` on."""
    return pa.table(
        {
            "id": np.arange(start, start + count, dtype=np.int64),
            "item": random.integers(0, ITEMS, count, dtype=np.int32),
            "quantity": random.integers(1, 10, count, dtype=np.int32),
        }
    )


def create(keeper: Keeper, rows: int, random: np.random.Generator) -> None:
    """The tables with their first rows, and the view."""
    items = pa.table(
        {
            "item": np.arange(ITEMS, dtype=np.int32),
            "kind": random.integers(0, KINDS, ITEMS, dtype=np.int32),
            "price": random.integers(1, 1000, ITEMS, dtype=np.int32),
        }
    )
    keeper.create_table("items", items, key=["item"])
    keeper.create_table("lines", lines(0, rows, random), key=["id"])
    keeper.create_view("amounts", VIEW)


def rates(keeper: Keeper, live: Any, rows: int, batch: int, batches: int) -> dict[str, Any]:
    """Rows a second that a view takes in, by kind of change."""
    random, found = np.random.default_rng(1), dict[str, Any]()
    kinds: dict[str, Callable[[int], dict[str, Any]]] = {
        "inserts": lambda n: {"inserts": lines(rows + n * batch, batch, random)},
        "updates": lambda n: {"updates": lines(rows + n * batch, batch, random)},
        "deletes": lambda n: {"deletes": lines(rows + n * batch, batch, random).select(["id"])},
    }
    for kind, change in kinds.items():
        wall, processor = [], []
        for number in range(batches):
            changes = change(number)
            keeper.apply("lines", **changes)
            with measured() as seconds:
                changed = live.catch_up()
            assert changed >= 0.99 * batch, "some updates change nothing"
            wall.append(seconds.wall)
            processor.append(seconds.processor)
        found[kind] = {
            "rows_per_second": round(batch / median(wall)),
            "rows_per_processor_second": round(batch / median(processor)),
        }
    return found


def lookups(live: Any) -> dict[str, Any]:
    """Microseconds of a look-up."""
    seconds = []
    for number in range(LOOKUPS):
        begun = time.perf_counter()
        live.lookup((number % KINDS,))
        seconds.append(time.perf_counter() - begun)
    last = sorted(seconds)[int(0.99 * LOOKUPS)]
    return {"median_us": round(1e6 * median(seconds), 1), "p99_us": round(1e6 * last, 1)}


def resumes(keeper: Keeper, live: Any) -> dict[str, Any]:
    """Seconds until a view is back, from its state and from its tables."""
    with measured() as saving:
        live.save()
    with measured() as resuming:
        again = keeper.live("amounts")
    assert again.versions == live.versions
    assert again.lookup((1,)) == live.lookup((1,))
    return {
        "save": round(saving.wall, 3),
        "resume": round(resuming.wall, 3),
        "resume_processor": round(resuming.processor, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        keeper = Keeper(Path(place) / "lake", durable=False)
        create(keeper, given.rows, np.random.default_rng(0))
        with measured() as building:
            live = keeper.live("amounts", resume=False)
        found = {
            "rows": given.rows,
            "build": round(building.wall, 2),
            "lookups": lookups(live),
            "resume": resumes(keeper, live),
            **rates(keeper, live, given.rows, given.batch, given.batches),
        }
        live.catch_up()
        expected = keeper.live("amounts", resume=False).to_arrow().sort_by("kind")
        assert live.to_arrow().sort_by("kind").equals(expected), "the view is not what it should be"
    json.dump(found, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
