"""Views of TPC-H kept by a cluster: seconds of refreshes, and the memory of the driver.

    python -m bench.cluster --scale 0.1 --queries q01 q03 q05 q13

Spark's standalone master and workers are started as processes of this machine, with executors of
`--memory` each; nothing is shared but a folder. The data are made by DuckDB into Parquet files,
`--chunks` of each large table, which executors read: no row of a table passes the driver. Every
query is a view that the keeper brings up to date as it sees fit (with `--backend auto`, what reads
at most `--driver-bytes` is done on the driver). Each round inserts new orders (RF1), deletes old
ones (RF2) and updates columns. After the last round every view is compared with Spark's own answer,
by jobs of the cluster. The memory told is the most that the driver's processes have held: Python,
with what it reads and computes itself, and Java.
"""

import argparse
import os
import platform
import resource
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

import viewkeep as vk
from bench._spark_cluster import driver_memory, running_cluster, tasks_by_executor
from bench._tpch_data import TABLES, Tpch
from bench.tpch import QUERIES

LARGE = ("orders", "lineitem")
COLUMNS = ("view", "create", "refresh", "jobs", "way", "rows")


@dataclass(frozen=True)
class Kept:
    """A view: seconds of its creation, the reports of its refreshes, its rows."""

    name: str
    created: float
    seconds: tuple[float, ...]
    jobs: int
    ways: tuple[str, ...]
    rows: int

    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        return (
            *(self.name, f"{self.created:.2f}", f"{median(self.seconds):.2f}", str(self.jobs)),
            *(", ".join(dict.fromkeys(self.ways)), f"{self.rows:,}"),
        )


def chunk_files(data: Tpch, name: str, folder: Path, chunks: int) -> list[str]:
    """The rows of a table in Parquet files; those of orders and their lines, a range of orders
    each, so that no process holds them all."""
    last = data.sizes.get({"lineitem": "orders", "partsupp": "part"}.get(name, name), 0)
    count = chunks if name in LARGE else 1
    bounds = [last * number // count for number in range(count + 1)]
    ranges = pairwise(bounds)
    return [str(data.write_range(name, first + 1, until, folder)) for first, until in ranges]


def create_tables(keeper: vk.Keeper, spark: Any, data: Tpch, folder: Path, chunks: int) -> int:
    """The tables, from frames that executors read; the bytes of their files."""
    for name, table in TABLES.items():
        paths = chunk_files(data, name, folder, chunks)
        typed = (f"CAST({f.name} AS {f.type}) AS {f.name}" for f in table.columns)
        keeper.create_table(name, table, rows=spark.read.parquet(*paths).selectExpr(*typed))
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def changed(data: Tpch, changes: int, rounds: int) -> Iterator[list[Any]]:
    """The changes of each round."""
    for number in range(rounds):
        yield data.rf1(changes)
        yield data.rf2(changes)
        yield data.updates(max(1, changes // 4), number)


def measure(given: argparse.Namespace, spark: Any, folder: Path, console: Console) -> list[Kept]:
    """Create and refresh all views, and compare them with their queries."""
    settings = {"backend": given.backend, "driver_bytes": given.driver_bytes}
    keeper, data = vk.Keeper(folder / "lake", spark, **settings), Tpch(given.scale)
    start = perf_counter()
    size = create_tables(keeper, spark, data, folder / "data", given.chunks)
    console.print(
        f"tables: {size / 1e6:,.0f} MB of Parquet, created in {perf_counter() - start:.1f} s; "
        f"{driver_memory(spark)}"
    )
    created = {}
    for name in given.queries:
        start = perf_counter()
        keeper.create_view(name, QUERIES[name])
        created[name] = perf_counter() - start
        console.print(f"{name} created in {created[name]:.1f} s; {driver_memory(spark)}")
    reports: dict[str, list[Any]] = {name: [] for name in given.queries}
    for batch in changed(data, given.changes, given.rounds):
        start = perf_counter()
        for change in batch:
            keeper.apply(change.table, **change.parts)
        applied = perf_counter() - start
        for report in keeper.refresh():
            reports[report.view].append(report)
        seconds = perf_counter() - start - applied
        console.print(f"applied in {applied:.1f} s, refreshed in {seconds:.1f} s")
    peak = driver_memory(spark)
    wrong = [name for name in given.queries if not keeper.verify(name, backend="spark").ok]
    assert not wrong, f"not what Spark answers: {', '.join(wrong)}"
    console.print(f"all views are what Spark answers; {peak}; tasks: {tasks_by_executor(spark)}")
    return [_kept(keeper, name, created[name], reports[name]) for name in given.queries]


def _kept(keeper: vk.Keeper, name: str, created: float, reports: list[Any]) -> Kept:
    return Kept(
        name, created, tuple(each.seconds for each in reports), max(each.jobs for each in reports),
        tuple(each.strategy for each in reports), keeper.read(name).count(),
    )  # fmt: skip


def arguments() -> argparse.Namespace:
    """Sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor")
    queries = ["q01", "q03", "q05", "q13"]
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=queries)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each worker")
    parser.add_argument("--memory", default="1g", help="of each executor")
    parser.add_argument("--driver-memory", default="1g", help="of the driver's Java")
    parser.add_argument("--backend", default="spark", help="spark, or auto")
    parser.add_argument("--driver-bytes", type=int, default=1 << 30, help="with auto")
    parser.add_argument("--changes", type=int, help="orders of RF1 and RF2; 1500 times the scale")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--chunks", type=int, default=4, help="files of a large table")
    parser.add_argument("--folder", type=Path, help="where data and lake go; a temporary one")
    given = parser.parse_args()
    given.changes = given.changes or max(4, round(1500 * given.scale))
    return given


def main() -> None:
    """The table."""
    given, console = arguments(), Console(width=120, highlight=False)
    folder = Path(tempfile.mkdtemp(prefix="viewkeep-bench-", dir=given.folder))
    about = {"workers": given.workers, "cores": given.cores, "memory": given.memory}
    try:
        with running_cluster(folder / "cluster", **about) as cluster:
            spark = cluster.session("viewkeep bench", given.driver_memory)
            try:
                found = measure(given, spark, folder, console)
            finally:
                spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    table = Table(
        title=f"Scale factor {given.scale}, {given.workers} workers of {given.cores} cores and "
        f"{given.memory}, {os.cpu_count()} cores here, {platform.machine()}"
    )
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "view" else "right")
    for each in found:
        table.add_row(*each.cells())
    console.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    console.print(f"Python of the driver, with the data that it made: {peak:,.0f} MB at most")


if __name__ == "__main__":
    main()
