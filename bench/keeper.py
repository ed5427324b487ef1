"""Refreshes of a lake on Spark beside full recomputation, as tables grow.

The devices and parts of the paper (id_based_ivm, section 7) in Delta tables, with
parts : devices : devices_parts = 1 : 1 : 10. Each view exists three times: kept by ID-based
scripts, by tuple-based ones, and computed anew by every refresh. 200 price updates, 200 inserts
and 200 deletes of devices_parts are applied, and each of the three is refreshed; all three are
compared after the last round. Seconds are medians over the rounds, from `refresh` to visible.
"""

import argparse
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import viewkeep as vk
from viewkeep.execute.spark.session import session

PHONES = """FROM parts p JOIN devices_parts dp ON p.pid = dp.pid
    JOIN devices d ON d.did = dp.did WHERE d.category = 'phone'"""
VIEWS = {
    "V": f"SELECT dp.did, dp.pid, p.price {PHONES}",
    "V'": f"SELECT dp.did, sum(p.price) AS cost {PHONES} GROUP BY dp.did",
    "unused": """SELECT p.pid, p.price FROM parts p WHERE p.price > 990
        AND NOT EXISTS (SELECT 1 FROM devices_parts dp WHERE dp.pid = p.pid)""",
    "dear": "SELECT did, cost FROM {cost} WHERE cost > 5500",
}
NAMES = {"V": "v", "V'": "cost", "unused": "unused", "dear": "dear"}
STRATEGIES = ("id", "tuple", "recompute")
FANOUT = 10
PAGE = Path(__file__).parent.parent / "docs" / "keeper_figures.md"
KINDS = ("price updates", "inserts", "deletes")
Seconds = dict[tuple[str, str, str], float]


@dataclass
class Lake:
    """The tables of one size, with changes that never name the same row twice."""

    keeper: vk.Keeper
    spark: SparkSession
    uses: int
    _random: Random = field(default_factory=lambda: Random(1))
    _inserted: int = 0

    @property
    def parts(self) -> int:
        """The rows of parts, and of devices."""
        return self.uses // FANOUT

    def fill(self) -> None:
        """Create the tables: part i is in devices i * 7919 + k * stride, phones are one in five."""
        n, stride = self.parts, self.parts // FANOUT
        ids = self.spark.range(n)
        parts = ids.selectExpr("CAST(id AS INT) AS pid", "CAST(hash(id) % 1000 AS INT) AS price")
        parts = parts.selectExpr("pid", "abs(price) AS price")
        devices = ids.selectExpr(
            "CAST(id AS INT) AS did", "IF(pmod(hash(id), 10) < 2, 'phone', 'other') AS category"
        )
        uses = self.spark.range(self.uses).selectExpr(
            f"CAST((id DIV {FANOUT} * 7919 + id % {FANOUT} * {stride}) % {n} AS INT) AS did",
            f"CAST(id DIV {FANOUT} AS INT) AS pid",
        )
        self.keeper.create_table("parts", parts, key=["pid"])
        self.keeper.create_table("devices", devices, key=["did"])
        self.keeper.create_table("devices_parts", uses, key=["did", "pid"])

    def change(self, kind: str, count: int, number: int) -> None:
        """Apply one batch."""
        chosen = self._random.sample(range(self.parts), count)
        if kind == "price updates":
            rows = [{"pid": pid, "price": 1000 + number} for pid in chosen]
            self.keeper.apply("parts", updates=rows)
        elif kind == "inserts":
            self._inserted += 1
            rows = [{"did": (p * 7919 + self._inserted) % self.parts, "pid": p} for p in chosen]
            self.keeper.apply("devices_parts", inserts=rows)
        else:
            place = number % FANOUT * (self.parts // FANOUT)
            rows = [{"did": (p * 7919 + place) % self.parts, "pid": p} for p in chosen]
            self.keeper.apply("devices_parts", deletes=rows)


def create_views(lake: Lake, views: list[str], console: Console) -> None:
    """Every view by every strategy; a view on a view reads the copy of its own strategy."""
    for title in views:
        for strategy in STRATEGIES:
            sql = VIEWS[title].format(cost=f"cost_{strategy}")
            start = perf_counter()
            lake.keeper.create_view(name_of(title, strategy), sql, strategy=strategy)
            console.print(f"  {title} by {strategy}: filled in {perf_counter() - start:.1f} s")


def name_of(title: str, strategy: str) -> str:
    """The name of a copy of a view."""
    return f"{NAMES[title]}_{strategy}"


def measure(
    lake: Lake, views: list[str], count: int, rounds: int
) -> Iterator[tuple[str, str, str, float, int]]:
    """Kind, view, strategy, seconds and Spark jobs of each refresh."""
    for kind in KINDS:
        for number in range(rounds):
            lake.change(kind, count, number)
            for title in views:
                for strategy in STRATEGIES:
                    start = perf_counter()
                    reports = lake.keeper.refresh(name_of(title, strategy))
                    seconds = perf_counter() - start
                    yield kind, title, strategy, seconds, reports[-1].jobs


def check(lake: Lake, views: list[str]) -> None:
    """The copies of a view are equal."""
    for title in views:
        rows = {s: lake.keeper.read(name_of(title, s)) for s in STRATEGIES}
        for strategy in STRATEGIES[:-1]:
            more = rows[strategy].exceptAll(rows["recompute"]).count()
            less = rows["recompute"].exceptAll(rows[strategy]).count()
            assert (more, less) == (0, 0), f"{title} by {strategy}: {more} too many, {less} missing"


def of_size(
    spark: SparkSession, folder: Path, uses: int, given: argparse.Namespace, console: Console
) -> tuple[Seconds, dict[tuple[str, str, str], int]]:
    """Median seconds and jobs at one size."""
    path = folder / f"lake{uses}"
    lake = Lake(vk.Keeper(path, spark), spark, uses)
    start = perf_counter()
    lake.fill()
    console.print(f"{uses:,} rows of devices_parts: written in {perf_counter() - start:.1f} s")
    create_views(lake, given.views, console)
    found: dict[tuple[str, str, str], list[tuple[float, int]]] = {}
    for kind, title, strategy, seconds, jobs in measure(
        lake, given.views, given.changes, given.rounds
    ):
        found.setdefault((kind, title, strategy), []).append((seconds, jobs))
        console.print(f"  {kind}, {title} by {strategy}: {seconds:.2f} s, {jobs} jobs")
    check(lake, given.views)
    shutil.rmtree(path)
    seconds_ = {key: median(s for s, _ in each) for key, each in found.items()}
    return seconds_, {key: each[-1][1] for key, each in found.items()}


COLUMNS = ("changes", "view", "rows", "id", "jobs", "tuple", "x", "recompute", "x", "growth")
TITLE = "Seconds of a refresh; x: times that of id; growth: id, size to size"


def lines(
    sizes: list[int], times: dict[int, Seconds], jobs: dict[tuple[str, str, str], int]
) -> Iterator[tuple[str, ...]]:
    """Seconds at every size; recompute and tuple as multiples of id; growth of id."""
    for kind, title in dict.fromkeys((kind, title) for kind, title, _ in jobs):
        before = None
        for size in sizes:
            mine, other, anew = (times[size][kind, title, s] for s in STRATEGIES)
            growth = f"{mine / before:.1f}" if before else ""
            yield (
                *(kind, title, f"{size // 1_000_000}M", f"{mine:.2f}"),
                *(str(jobs[kind, title, "id"]), f"{other:.2f}", f"{other / mine:.1f}"),
                *(f"{anew:.2f}", f"{anew / mine:.1f}", growth),
            )
            before = mine


def shown(rows: list[tuple[str, ...]]) -> Table:
    """The table on the screen."""
    table = Table(title=TITLE)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("changes", "view") else "right")
    for number, row in enumerate(rows):
        if number and row[:2] != rows[number - 1][:2]:
            table.add_section()
        table.add_row(*row)
    return table


NOTES = (
    "How to read it:",
    "",
    "- Parts that change are spread over all files of `V`, and a file of a view is written anew as "
    "a whole. At 50 million rows `V` has 10 million, and writing them takes most of the time of id "
    "and of tuple alike; this part grows with the view, and only larger changes share it.",
    "- `V'` by id keeps the join in a cache, which is ordered by part: a changed price is looked "
    "up in a few pages, and goes into a small file that lies over it. Tuple has no cache: it "
    "looks for the devices of a part in `devices_parts`.",
    "- Inserts and deletes of `devices_parts` change that cache, too. Tuple need not do so, and is "
    "faster then: what id gains with updates, it pays here.",
    "- Rows are looked up by the driver where the files that may have them are small enough (256 "
    "MB), and by a Spark job otherwise.",
)


def page(rows: list[tuple[str, ...]], tiny: str, changes: int, rounds: int) -> str:
    """The table as a page of docs."""
    bars = ["---", "---", *["---:"] * (len(COLUMNS) - 2)]
    table = [COLUMNS, tuple(bars), *rows]
    queries = [f"- `{title}`: `{' '.join(sql.split())}`" for title, sql in VIEWS.items()]
    return "\n".join(
        [
            "# Refreshes of a lake: figures",
            "",
            f"Written by `python -m bench.keeper --docs` (`make bench-keeper` prints it); do not "
            f"edit. {platform.machine()}, {os.cpu_count()} cores. {changes} changes of each kind; "
            f"medians of {rounds} rounds, from `refresh` to visible. The table `devices_parts` has "
            "the rows that are told; `parts` and `devices` have a tenth of them each.",
            "",
            f"{TITLE}. Jobs are those of Spark for id.",
            "",
            *(f"| {' | '.join(row)} |" for row in table),
            "",
            tiny,
            "",
            *NOTES,
            "",
            "The views:",
            "",
            *queries,
            "",
        ]
    )


def latency(spark: SparkSession, folder: Path) -> str:
    """From `refresh` to visible on a tiny lake, once Spark is warm."""
    lake = Lake(vk.Keeper(folder / "tiny", spark), spark, 1000)
    lake.fill()
    lake.keeper.create_view("cost", VIEWS["V'"])
    seconds = []
    for number in range(8):
        lake.change("price updates", 10, number)
        start = perf_counter()
        (report,) = lake.keeper.refresh()
        seconds.append(perf_counter() - start)
    return (
        f"A tiny lake ({lake.uses} rows, V', 10 price updates): {median(seconds[3:]):.2f} s "
        f"from refresh to visible, {report.jobs} Spark jobs (the first, cold: {seconds[0]:.2f} s)."
    )


def arguments() -> argparse.Namespace:
    """Sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    sizes = "millions of rows of devices_parts"
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 10, 50], help=sizes)
    parser.add_argument("--views", nargs="+", choices=list(VIEWS), default=list(VIEWS))
    parser.add_argument("--changes", type=int, default=200, help="changes of each kind")
    parser.add_argument("--rounds", type=int, default=3, help="batches; the median counts")
    parser.add_argument("--docs", action="store_true", help="write docs/keeper_figures.md")
    parser.add_argument("--memory", default="8g", help="of Spark's driver")
    return parser.parse_args()


def main() -> None:
    """The tables."""
    given, console = arguments(), Console(width=100)
    spark = session(name="viewkeep bench", spark__driver__memory=given.memory)
    folder = Path(tempfile.mkdtemp(prefix="viewkeep-bench-"))
    try:
        tiny = latency(spark, folder)
        console.print(tiny)
        times: dict[int, Seconds] = {}
        jobs: dict[tuple[str, str, str], int] = {}
        sizes = [size * 1_000_000 for size in given.sizes]
        for size in sizes:
            times[size], jobs = of_size(spark, folder, size, given, console)
        rows = list(lines(sizes, times, jobs))
        console.print(shown(rows))
        if given.docs:
            PAGE.write_text(page(rows, tiny, given.changes, given.rounds))
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
