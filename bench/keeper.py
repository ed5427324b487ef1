"""Refreshes of a lake beside recomputation by DuckDB and by Spark, as the share of changes grows.

    python -m bench.keeper --sizes 1 10 50

The devices and parts of the paper (id_based_ivm, section 7) in Delta tables, with
parts : devices : devices_parts = 1 : 1 : 10. A share of the parts gets a new price, and the views
V (a join, in both layouts) and V' (its sums) are refreshed: by an embedded keeper, and by one that
uses Spark only.
The rivals compute the same query over the same Parquet files and write the result: DuckDB in one
COPY, Spark as a view that every refresh computes anew. Seconds are medians of the rounds; `commit`
is what committing one row to a Delta table takes, which DuckDB's COPY does not do. All copies of a
view are compared at the end.
"""

import argparse
import os
import platform
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import viewkeep as vk
from bench._files import parquet_files

TABLES = ("parts", "devices", "devices_parts")
PHONES = """FROM parts p JOIN devices_parts dp ON p.pid = dp.pid
    JOIN devices d ON d.did = dp.did WHERE d.category = 'phone'"""
JOIN = f"SELECT dp.did, dp.pid, p.price {PHONES}"
VIEWS = {
    "V'": ("cost", f"SELECT dp.did, sum(p.price) AS cost {PHONES} GROUP BY dp.did"),
    "V": ("v", JOIN),
    "V, merge-on-read": ("v_marked", JOIN),
}
LAYOUTS = {"v_marked": "merge-on-read"}
MEASURES = ("apply", "embedded", "duckdb", "spark", "anew")
SHARES = (0.00001, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
FANOUT = 10
SPARK_ROUNDS_UP_TO = 10
"""Millions of rows up to which Spark is measured in every round: more take minutes each."""
SHORT_ROUNDS = 12
"""Rounds at a million rows."""
PAGE = Path(__file__).parent.parent / "docs" / "keeper_figures.md"


@dataclass(frozen=True)
class Measured:
    """Median seconds of one view after changes of one share of the parts."""

    rows: int
    share: float
    view: str
    apply: float
    embedded: float
    way: str
    duckdb: float
    spark: float | None
    spark_anew: float | None

    def cells(self, commit: float) -> tuple[str, ...]:
        """A row of the table."""
        return (
            f"{self.rows // 1_000_000}M",
            f"{self.share:.3%}",
            self.view,
            f"{self.apply:.3f}",
            f"{self.embedded:.3f}",
            self.way,
            f"{self.duckdb:.3f}",
            f"{self.embedded / (self.duckdb + commit):.2f}",
            *(("-", "-", "-") if self.spark is None else self._spark()),
        )

    def _spark(self) -> tuple[str, str, str]:
        assert self.spark is not None
        assert self.spark_anew is not None
        ratio = self.spark / self.spark_anew
        return f"{self.spark:.2f}", f"{self.spark_anew:.2f}", f"{ratio:.2f}"


COLUMNS = (
    *("rows", "changed", "view", "apply", "embedded", "by", "DuckDB anew"),
    *("x", "on Spark", "Spark anew", "x"),
)


KEYS = {"parts": ["pid"], "devices": ["did"], "devices_parts": ["did", "pid"]}


def fill_tables(keeper: vk.Keeper, uses: int) -> None:
    """Part i is in devices i * 7919 + k * stride; phones are one device in five."""
    n, stride = uses // FANOUT, uses // FANOUT // FANOUT
    texts = {
        "parts": f"SELECT i::INT AS pid, (hash(i) % 1000)::INT AS price FROM range({n}) t(i)",
        "devices": "SELECT i::INT AS did, if(hash(i) % 10 < 2, 'phone', 'other') AS category "
        f"FROM range({n}) t(i)",
        "devices_parts": f"SELECT ((i // {FANOUT} * 7919 + i % {FANOUT} * {stride}) % {n})"
        f"::INT AS did, (i // {FANOUT})::INT AS pid FROM range({uses}) t(i)",
    }
    with closing(duckdb.connect()) as connection:
        for name, text in texts.items():
            rows = connection.sql(text).to_arrow_table()
            keeper.create_table(name, rows, key=KEYS[name])


class Lake:
    """The tables of one size."""

    def __init__(self, folder: Path, uses: int, spark: Any) -> None:
        self.folder, self.uses, self._spark = folder, uses, spark
        self.keeper = vk.Keeper(folder)
        self.on_spark = None if spark is None else vk.Keeper(folder, spark, backend="spark")
        self._random = np.random.default_rng(1)

    @property
    def parts(self) -> int:
        """The rows of parts, and of devices."""
        return self.uses // FANOUT

    @property
    def is_small_for_spark(self) -> bool:
        """Whether Spark is measured in every round."""
        return self.uses <= SPARK_ROUNDS_UP_TO * 1_000_000

    def fill(self) -> None:
        """Make the tables."""
        fill_tables(self.keeper, self.uses)

    def create_views(self) -> None:
        """Every view for the embedded keeper, and twice for Spark: kept, and computed anew."""
        for name, sql in VIEWS.values():
            layout = LAYOUTS.get(name, "auto")
            self.keeper.create_view(name, sql, layout=layout)
            if self.on_spark is not None:
                self.on_spark.create_view(f"{name}_spark", sql, layout=layout)
                self.on_spark.create_view(f"{name}_anew", sql, strategy="recompute")

    def change(self, share: float) -> float:
        """New prices for a share of the parts; the seconds of `apply`."""
        count = max(1, round(self.parts * share))
        chosen = self._random.choice(self.parts, count, replace=False)
        prices = self._random.integers(1000, 2000, count)
        rows = pa.table({"pid": chosen.astype("int32"), "price": prices.astype("int32")})
        return timed(lambda: self.keeper.apply("parts", updates=rows))[0]

    def duckdb_anew(self, name: str, sql: str) -> tuple[float, Any]:
        """DuckDB computes the view over the same files and writes it; the seconds of that."""
        with closing(duckdb.connect()) as connection:
            for table in TABLES:
                files = parquet_files(self.folder / table)
                connection.execute(f"CREATE VIEW {table} AS FROM read_parquet({files})")
            target = self.folder.parent / f"{name}.parquet"
            return timed(lambda: connection.execute(f"COPY ({sql}) TO '{target}'"))

    def check(self) -> None:
        """Every copy of a view is as its query gives."""
        for name, _ in VIEWS.values():
            for copy in [each for each in self.keeper.views if each.startswith(name)]:
                found = self.keeper.verify(copy)
                assert (found.missing_rows, found.extra_rows) == (0, 0), found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of some work, and what it returns."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def timed_refresh(keeper: vk.Keeper, view: str) -> tuple[float, Any]:
    """The seconds of a refresh, and its reports."""
    return timed(lambda: keeper.refresh(view))


def measure(lake: Lake, share: float, rounds: int) -> Iterator[Measured]:
    """Medians at one share, by view."""
    seconds: dict[str, list[dict[str, float]]] = {title: [] for title in VIEWS}
    ways: dict[str, str] = {}
    for number in range(rounds):
        applied = lake.change(share)
        for title, (name, sql) in VIEWS.items():
            work: dict[str, Callable[[], tuple[float, Any]]] = {
                "embedded": partial(timed_refresh, lake.keeper, name),
                "duckdb": partial(lake.duckdb_anew, name, sql),
            }
            if lake.on_spark is not None and (number == 0 or lake.is_small_for_spark):
                work["spark"] = partial(timed_refresh, lake.on_spark, f"{name}_spark")
                work["anew"] = partial(timed_refresh, lake.on_spark, f"{name}_anew")
            # Whoever reads changed files first finds them cold: they take turns.
            done = {key: work[key]() for key in sorted(work, reverse=number % 2 == 0)}
            ways[title] = done["embedded"][1][-1].strategy
            seconds[title].append({"apply": applied} | {key: done[key][0] for key in done})
    for title, each in seconds.items():
        applied, embedded, other, spark, anew = (_median_seconds(each, key) for key in MEASURES)
        assert applied is not None
        assert embedded is not None
        assert other is not None
        about = (lake.uses, share, title, applied, embedded, ways[title], other)
        yield Measured(*about, spark, anew)


def _median_seconds(rounds: list[dict[str, float]], key: str) -> float | None:
    """Of the rounds in which it was measured, if there are any."""
    measured = [each[key] for each in rounds if key in each]
    return median(measured) if measured else None


def commit_seconds(folder: Path) -> float:
    """What one commit of one row takes."""
    keeper = vk.Keeper(folder)
    keeper.create_table("one", {"id": "int", "n": "int"}, key=["id"], rows=[(1, 0)])
    return median(
        timed(lambda n=n: keeper.apply("one", updates=[{"id": 1, "n": n}]))[0] for n in range(1, 8)
    )


def small_lakes(folder: Path) -> Iterator[str]:
    """Fixed costs: a tiny lake, and one hundred views."""
    lake = Lake(folder / "tiny", 1000, None)
    lake.fill()
    sql = VIEWS["V'"][1]
    lake.keeper.create_view("cost", sql)
    applied, refreshed = [], []
    for _ in range(9):
        applied.append(lake.change(0.1))
        refreshed.append(timed(lake.keeper.refresh)[0])
    yield (
        f"A tiny lake (1,000 rows, V', 10 price updates): apply {median(applied[2:]):.3f} s, "
        f"refresh {median(refreshed[2:]):.3f} s."
    )
    made = [timed(lambda n=n: lake.keeper.create_view(f"c{n}", sql))[0] for n in range(99)]
    seconds = []
    for _ in range(3):
        lake.change(0.1)
        seconds.append(timed(lake.keeper.refresh)[0])
    yield (
        f"100 such views: {median(made):.3f} s to create one, {median(seconds):.2f} s to refresh "
        "all after one table changed."
    )


def large_changes(folder: Path) -> Iterator[str]:
    """`apply` of updates of a tenth of the rows, each in a process that tells its memory."""
    for rows in (1_000_000, 10_000_000):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            seconds, memory = pool.submit(_large_change, folder / f"apply{rows}", rows).result()
        yield (
            f"apply of {rows // 10:,} updates to {rows:,} rows: {seconds:.2f} s "
            f"(the process held up to {memory:,.0f} MB)."
        )


def _large_change(folder: Path, rows: int) -> tuple[float, float]:
    """Seconds, and the most megabytes of memory that this process has held."""
    lake = Lake(folder, rows * FANOUT, None)
    text = f"SELECT i::INT AS pid, (hash(i) % 1000)::INT AS price FROM range({rows}) t(i)"
    with closing(duckdb.connect()) as connection:
        table = connection.sql(text).to_arrow_table()
    lake.keeper.create_table("parts", table, key=["pid"])
    del table
    seconds = median(lake.change(0.1) for _ in range(3))
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def shown(rows: list[tuple[str, ...]]) -> Table:
    """The table on the screen."""
    table = Table(title="Seconds; x: times recomputation (DuckDB's with one commit)")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("view", "by") else "right")
    for row in rows:
        table.add_row(*row)
    return table


def page(rows: list[tuple[str, ...]], notes: list[str], given: argparse.Namespace) -> str:
    """The table as a page of docs."""
    table = [COLUMNS, tuple("---:" for _ in COLUMNS), *rows]
    queries = [f"- `{title}`: `{' '.join(sql.split())}`" for title, (_, sql) in VIEWS.items()]
    return "\n".join(
        [
            "# Refreshes of a lake: figures",
            "",
            f"Written by `python -m bench.keeper --docs` (`make bench-keeper` prints it); do not "
            f"edit. {platform.machine()}, {os.cpu_count()} cores; medians of {given.rounds} "
            f"rounds (at a million rows {SHORT_ROUNDS}), in which all take turns to be first, in "
            "seconds, from `refresh` to visible. "
            f"At more than {SPARK_ROUNDS_UP_TO} million rows Spark is measured in the first round. "
            "The table `devices_parts` has the rows that are told; `parts` and `devices` have a "
            "tenth of them each; a share of the parts gets a new price. `DuckDB anew` computes the "
            "view over the same files and writes a Parquet file; x is the embedded refresh over "
            "that and one commit, or the refresh on "
            "Spark over a recomputation on Spark.",
            "",
            *(f"| {' | '.join(row)} |" for row in table),
            "",
            *notes,
            "",
            "The views:",
            "",
            *queries,
            "",
        ]
    )


def arguments() -> argparse.Namespace:
    """Sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    sizes = "millions of rows of devices_parts"
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 10, 50], help=sizes)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="of the parts")
    parser.add_argument("--rounds", type=int, default=4, help="batches; the median counts")
    largest = "the largest size, in millions, at which Spark is measured as well; 0: none"
    parser.add_argument("--spark-up-to", type=int, default=50, help=largest)
    parser.add_argument("--docs", action="store_true", help="write docs/keeper_figures.md")
    parser.add_argument("--memory", default="8g", help="of Spark's driver")
    parser.add_argument("--folder", type=Path, help="where lakes are made")
    return parser.parse_args()


def rounds_of_size(given: argparse.Namespace, size: int) -> int:
    """More where a refresh takes hundredths of a second, which the next process disturbs."""
    return max(int(given.rounds), SHORT_ROUNDS // size)


def start_spark(given: argparse.Namespace) -> Any:
    """A session, unless Spark is left out."""
    if not given.spark_up_to:
        return None
    from viewkeep.execute.spark.session import session

    return session(name="viewkeep bench", spark__driver__memory=given.memory)


def main() -> None:
    """The table and the notes."""
    given, console = arguments(), Console(width=150)
    folder = Path(tempfile.mkdtemp(prefix="viewkeep-bench-", dir=given.folder))
    try:
        commit = commit_seconds(folder / "commit")
        notes = [f"One commit of one row takes {commit:.3f} s.", *small_lakes(folder)]
        notes += large_changes(folder)
        spark = start_spark(given)
        rows: list[tuple[str, ...]] = []
        for size in given.sizes:
            measured = spark if size <= given.spark_up_to else None
            lake = Lake(folder / f"lake{size}", size * 1_000_000, measured)
            console.print(f"{size}M rows: written in {timed(lake.fill)[0]:.1f} s")
            console.print(f"  views: filled in {timed(lake.create_views)[0]:.1f} s")
            for share in given.shares:
                for each in measure(lake, share, rounds_of_size(given, size)):
                    rows.append(each.cells(commit))
                    console.print("  " + "  ".join(rows[-1]), highlight=False)
            lake.keeper.refresh()
            lake.check()
            shutil.rmtree(lake.folder)
        console.print(shown(rows), *notes, sep="\n")
        if given.docs:
            PAGE.write_text(page(rows, notes, given), encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
