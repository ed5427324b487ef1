"""Single updates per second on a q-hierarchical join with a million tuples loaded.

Beside it, for orientation: the same view tree written out by hand in Python dicts, for this query
only, without checks, step counts or a way to enumerate with constant delay.
"""

import gc
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from rich.console import Console
from rich.table import Table

import viewkeep as vk

QUERY = "Q(y, x, z) = R(y, x) * S(y, z)"
LOADED = 1_000_000
UPDATES = 400_000
PART = 20_000
PARTNERS = 10
TARGET = 100_000

Row = tuple[int, int]
Apply = Callable[[str, Row, int], None]


class Stream:
    """Rows to load, then inserts of new rows and deletes of old ones in turn."""

    def __init__(self, loaded: int = LOADED, updates: int = UPDATES) -> None:
        self._random = random.Random(0)
        self._keys, half = loaded // 2 // PARTNERS, loaded // 2
        self.rows = {"R": self._new_rows(half, 0), "S": self._new_rows(half, 0)}
        self.updates = list(self._updates(updates))

    def _new_rows(self, count: int, start: int) -> list[Row]:
        """Distinct rows: every y has about as many partners, in no order."""
        choose = self._random.randrange
        return [(choose(self._keys), value) for value in range(start, start + count)]

    def _updates(self, count: int) -> Iterator[tuple[str, Row, int]]:
        fresh = {name: self._new_rows(count, LOADED) for name in self.rows}
        stale = {name: self._random.sample(rows, len(rows)) for name, rows in self.rows.items()}
        for i in range(count):
            name = "RS"[i % 2]
            yield (name, fresh[name][i], 1) if i % 4 < 2 else (name, stale[name][i // 4], -1)


class Dicts:
    """The view tree of the query in straight-line Python."""

    def __init__(self) -> None:
        self.base: dict[str, dict[int, dict[int, int]]] = {"R": {}, "S": {}}
        self.live: dict[int, None] = {}

    def update(self, relation: str, row: Row, multiplicity: int) -> None:
        """Add to one side; y is live while both sides have it."""
        y, value = row
        base = self.base[relation]
        group = base.setdefault(y, {})
        count = group.get(value, 0) + multiplicity
        if count:
            group[value] = count
        else:
            del group[value]
            if not group:
                del base[y]
        if y in self.base["R"] and y in self.base["S"]:
            self.live[y] = None
        else:
            self.live.pop(y, None)


def timed(work: Callable[[], None]) -> float:
    """Seconds of processor time of one run: what others do on the machine matters less."""
    start = time.process_time()
    work()
    return time.process_time() - start


def rate(apply: Apply, updates: list[tuple[str, Row, int]]) -> float:
    """Updates per second: the median over parts of the stream."""

    def work(part: list[tuple[str, Row, int]]) -> None:
        for relation, row, multiplicity in part:
            apply(relation, row, multiplicity)

    parts = [updates[i : i + PART] for i in range(0, len(updates), PART)]
    return median(len(part) / timed(partial(work, part)) for part in parts)


def memory() -> float:
    """The most memory this process has had so far, in megabytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024 if sys.platform == "darwin" else 1024)


def measure_viewkeep(stream: Stream) -> Iterator[tuple[str, str]]:
    """Loading, memory, and single updates."""
    live, before = vk.maintain(QUERY, engine="reference"), memory()
    yield "load", f"{timed(lambda: live.load(stream.rows)):.1f} s"
    yield "memory for it, at most", f"{memory() - before:,.0f} MB"
    steps = live.steps
    yield "updates per second", f"{rate(live.update, stream.updates):,.0f}"
    yield "steps per update", f"{(live.steps - steps) / len(stream.updates):.2f}"


def measure_dicts(stream: Stream) -> Iterator[tuple[str, str]]:
    """The same for the hand-written dicts, which are loaded by updates."""
    dicts = Dicts()
    loading = [(name, row, 1) for name, rows in stream.rows.items() for row in rows]
    yield "load", f"{len(loading) / rate(dicts.update, loading):.1f} s"
    yield "updates per second", f"{rate(dicts.update, stream.updates):,.0f}"


def main() -> None:
    """The table."""
    stream = Stream()
    shown = Table(title=f"{QUERY}, {LOADED:,} tuples", caption=f"target: {TARGET:,} per second")
    for column in ("", "measure", "value"):
        shown.add_column(column, justify="right" if column == "value" else "left")
    for name, measure in (("reference engine", measure_viewkeep), ("plain dicts", measure_dicts)):
        for title, value in measure(stream):
            shown.add_row(name, title, value)
            name = ""
        shown.add_section()
        gc.collect()
    Console().print(shown)


if __name__ == "__main__":
    main()
