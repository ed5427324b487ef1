"""A lake that is refreshed every minute for weeks: seconds, files, bytes, log entries as it ages.

    python -m bench.many_refreshes --rounds 20000

An embedded lake of three tables (devices, parts, and which parts devices have) and three views: a
join with sums, the same join without, and that with the layout merge-on-read. Every round changes a
few rows of one table and refreshes; sizes stay the same. Every `--every` rounds the lake is
vacuumed as the docs recommend: what is older than the vacuum before goes. A vacuum a day keeps a
day, and here so many rounds stand for a day; 20,000 rounds in a row take minutes, not weeks.
Seconds are medians of the last 200 rounds; files, bytes and entries are counted after a vacuum,
over the whole folder of the lake. At the end all views are compared with their queries.
"""

import argparse
import os
import platform
import resource
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table

import viewkeep as vk

PHONES = """FROM parts p JOIN devices_parts dp ON p.pid = dp.pid
    JOIN devices d ON d.did = dp.did WHERE d.category = 'phone'"""
JOIN = f"SELECT dp.did, dp.pid, p.price {PHONES}"
VIEWS = {
    "cost": f"SELECT dp.did, sum(p.price) AS cost, count(*) AS n {PHONES} GROUP BY dp.did",
    "pairs": JOIN,
    "marked_pairs": JOIN,
}
LAYOUTS = {"marked_pairs": "merge-on-read"}
PARTS, DEVICES, FANOUT = 1000, 1000, 5
LAST = 200
"""Rounds of a median."""
POINTS = (1_000, 5_000, 20_000)
MOST = 1.5
"""Times that a figure may be at a later point what it was at the first."""
PAGE = Path(__file__).parent.parent / "docs" / "many_refreshes.md"
Pair = tuple[int, int]


@dataclass(frozen=True)
class Point:
    """The lake after so many rounds."""

    rounds: int
    apply: float
    refresh: float
    vacuum: float
    files: int
    size: int
    entries: int
    memory: int

    @property
    def figures(self) -> tuple[float, ...]:
        """What must stay the same."""
        return self.apply, self.refresh, self.vacuum, self.files, self.size, self.entries

    def cells(self, first: "Point") -> tuple[str, ...]:
        """A row of the table; the ratio is of the figure that has grown most."""
        ratios = [new / old for new, old in zip(self.figures, first.figures, strict=True)]
        return (
            f"{self.rounds:,}",
            f"{self.apply * 1000:.1f}",
            f"{self.refresh * 1000:.1f}",
            f"{self.vacuum:.2f}",
            f"{self.files:,}",
            f"{self.size / 1e6:.2f}",
            f"{self.entries:,}",
            f"{self.memory}",
            " ".join(f"{each:.2f}" for each in ratios),
        )


COLUMNS = (
    *("rounds", "apply (ms)", "refresh (ms)", "vacuum (s)", "files", "MB", "log files"),
    *("peak memory (MB)", "x of the first: apply, refresh, vacuum, files, MB, log files"),
)


@dataclass
class Lake:
    """A lake in use, and the pairs that its table of pairs has."""

    folder: Path
    rng: Random = field(default_factory=lambda: Random(1))

    def __post_init__(self) -> None:
        self.keeper = vk.Keeper(self.folder)
        used = {((i * 7 + k * 131) % DEVICES, i) for i in range(PARTS) for k in range(FANOUT)}
        self.pairs = deque(sorted(used))
        self.free = deque(((i * 7 + 65) % DEVICES, i) for i in range(PARTS))
        tables = {
            "parts": ({"pid": "int", "price": "int"}, ["pid"], [(i, i) for i in range(PARTS)]),
            "devices": ({"did": "int", "category": "string"}, ["did"], list(_devices())),
            "devices_parts": ({"did": "int", "pid": "int"}, ["did", "pid"], list(self.pairs)),
        }
        for name, (columns, key, rows) in tables.items():
            self.keeper.create_table(name, columns, key, rows=rows)
        for name, sql in VIEWS.items():
            layout = LAYOUTS.get(name, "auto")
            self.keeper.create_view(name, sql, policy="incremental", layout=layout)

    def change(self, number: int) -> None:
        """A few rows of one table: prices, or pairs that take the place of others."""
        if number % 3:
            chosen = self.rng.sample(range(PARTS), 5)
            prices = [{"pid": pid, "price": self.rng.randrange(1000)} for pid in chosen]
            self.keeper.apply("parts", updates=prices)
            return
        new = [self.free.popleft() for _ in range(3)]
        old = [self.pairs.popleft() for _ in range(3)]
        self.pairs.extend(new)
        self.free.extend(old)
        self.keeper.apply("devices_parts", inserts=new, deletes=old)

    def files(self) -> Iterator[Path]:
        """All files of the lake."""
        for folder, _, names in os.walk(self.folder):
            yield from (Path(folder, name) for name in names)


def _devices() -> Iterator[tuple[int, str]]:
    for did in range(DEVICES):
        yield did, "phone" if did % 5 == 0 else "other"


def timed_rounds(lake: Lake, rounds: int, every: int) -> Iterator[Point]:
    """The lake after every vacuum at which it is told."""
    applied, refreshed = deque[float](maxlen=LAST), deque[float](maxlen=LAST)
    vacuums, before = deque[float](maxlen=3), perf_counter()
    for number in range(1, rounds + 1):
        start = perf_counter()
        lake.change(number)
        middle = perf_counter()
        lake.keeper.refresh()
        end = perf_counter()
        applied.append(middle - start)
        refreshed.append(end - middle)
        if number % every == 0:
            hours, before = (end - before) / 3600, end
            lake.keeper.vacuum(hours, force=True)
            vacuums.append(perf_counter() - end)
            seconds = median(applied), median(refreshed), median(vacuums)
            yield Point(number, *seconds, *_sizes(lake), _peak_megabytes())


def _sizes(lake: Lake) -> tuple[int, int, int]:
    files = list(lake.files())
    entries = [each for each in files if each.parent.name == "_delta_log"]
    return len(files), sum(each.stat().st_size for each in files), len(entries)


def _peak_megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def shown(points: list[Point]) -> Table:
    """The table for a terminal."""
    table = Table(*COLUMNS)
    for each in points:
        table.add_row(*each.cells(points[0]))
    return table


def page(points: list[Point], every: int) -> str:
    """The page of the docs."""
    lines = [
        "# Many refreshes",
        "",
        "Written by `python -m bench.many_refreshes --docs` (`make bench-many`); do not edit. "
        f"{platform.machine()}, {os.cpu_count()} cores that are shared with other work: the ratios "
        "tell, the seconds less.",
        "",
        "An embedded lake of three tables and three views (sums over a join, the join, the join "
        "with the layout merge-on-read). Every round changes a few rows of one table and "
        f"refreshes all views; every {every} rounds a vacuum removes what is older than the one "
        "before it, as [Operations](operations.md#a-lake-that-stays-small) recommends once a day. "
        f"Seconds are medians of the last {LAST} rounds (of three vacuums); the rest is counted "
        "after a vacuum, over the whole folder. The ratios are to the first line; at most "
        f"{MOST} is asked for.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---:|' * len(COLUMNS)}",
        *(f"| {' | '.join(each.cells(points[0]))} |" for each in points),
        "",
        "After the last round every view was compared with its query. Every figure stays within "
        f"{MOST} times the first: {'yes' if is_flat(points) else 'no'}.",
        "",
    ]
    return "\n".join(lines)


def is_flat(points: list[Point]) -> bool:
    """Whether no figure has grown by more than it may."""
    return all(
        new <= MOST * old
        for each in points
        for new, old in zip(each.figures, points[0].figures, strict=True)
    )


def arguments() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description="Refresh a lake many times.")
    parser.add_argument("--rounds", type=int, default=POINTS[-1])
    parser.add_argument("--every", type=int, default=250, help="rounds between vacuums")
    parser.add_argument("--docs", action="store_true", help="write docs/many_refreshes.md")
    parser.add_argument("--folder", type=Path, help="where the lake is made")
    return parser.parse_args()


def main() -> None:
    """The table, and whether the views are right."""
    given, console = arguments(), Console(width=150)
    folder = Path(tempfile.mkdtemp(prefix="viewkeep-bench-", dir=given.folder))
    points: list[Point] = []
    try:
        lake = Lake(folder / "lake")
        last = given.rounds - given.rounds % given.every
        for point in timed_rounds(lake, given.rounds, given.every):
            if point.rounds % 1000 == 0:
                console.print("  ".join(point.cells(point)[:-1]), highlight=False)
            if point.rounds in (*POINTS, last):
                points.append(point)
        for name in VIEWS:
            check = lake.keeper.verify(name)
            assert check.ok, check
        console.print(shown(points), f"flat: {is_flat(points)}")
        if given.docs:
            PAGE.write_text(page(points, given.every), encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
