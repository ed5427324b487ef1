"""The same comparison on Spark, over Parquet files: the part of a refresh that the executor does.

Every strategy keeps its caches and its view as Parquet files, ordered by what is looked up. A
refresh computes the changes and brings the changed rows to the driver; storing them is the same
for all and not timed. Recomputation computes the whole view and stores it nowhere. Every batch
starts from the same files, so that nothing has to be written between them, and every strategy's
changes are compared with recomputation.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from rich.console import Console
from rich.table import Table

from bench._devices import Changes, Devices
from bench.idivm import KINDS, RECOMPUTE, STRATEGIES
from viewkeep.diffs.script import Script
from viewkeep.execute.spark.driver.collect import Relation
from viewkeep.execute.spark.frames import FrameBuilder
from viewkeep.execute.spark.run import changed_rows, create_frames, run_script
from viewkeep.execute.spark.session import session
from viewkeep.execute.spark.versions import counted_jobs
from viewkeep.lake.views.caches import order_of
from viewkeep.query.algebra import Node
from viewkeep.query.expressions import back_quote

Frames = dict[Any, Any]
TABLES = ("parts", "devices", "devices_parts")


@dataclass(frozen=True)
class Cost:
    """One refresh."""

    seconds: float
    jobs: float


class Lake:
    """Parquet files in a folder: the tables before and after a batch, and what is kept."""

    def __init__(self, spark: SparkSession, data: Devices, folder: Path) -> None:
        self.spark, self.data, self._folder = spark, data, folder
        for name, text in _contents(data).items():
            self.store(name, spark.sql(text))

    def store(self, name: str, frame: DataFrame) -> None:
        """Write a relation, in files of some millions of rows."""
        frame.write.mode("overwrite").parquet(self._path(name))

    def read(self, name: str) -> DataFrame:
        """A relation that was written."""
        return self.spark.read.parquet(self._path(name))

    def _path(self, name: str) -> str:
        return str(self._folder / name.replace("'", "_grouped"))

    def tables(self, state: str, changed: str = "") -> Frames:
        """The tables; one of them as the batch changed it."""
        after = state == "post"
        names = {n: f"{n} changed" if after and n == changed else n for n in TABLES}
        return {(name, state): self.read(stored) for name, stored in names.items()}


def _contents(data: Devices) -> dict[str, str]:
    """The same tables as `Devices` makes in DuckDB, with Spark's hash."""
    stride = data.devices // data.fanout
    phone = f"pmod(xxhash64(id), 10000) < {round(data.phones * 10_000)}"
    return {
        "parts": "SELECT CAST(id AS INT) AS pid, CAST(pmod(xxhash64(id), 1000) AS INT) AS price "
        f"FROM range({data.parts})",
        "devices": f"SELECT CAST(id AS INT) AS did, IF({phone}, 'phone', 'other') AS category "
        f"FROM range({data.devices})",
        "devices_parts": f"SELECT CAST((p.id * 7919 + k * {stride}) % {data.devices} AS INT) AS "
        f"did, CAST(p.id AS INT) AS pid FROM range({data.parts}) AS p "
        f"LATERAL VIEW explode(sequence(0, {data.fanout - 1})) AS k",
    }


# --- changes --------------------------------------------------------------------------------------


def draw(lake: Lake, changes: Changes, size: int, seed: int) -> pa.Table:
    """A diff; the table that it changes is written as it is afterwards."""
    rng = Random(f"{changes.kind} {seed}")
    parts = sorted(rng.sample(range(lake.data.parts), size))
    drawn = {"update": _updates, "insert": _inserts, "delete": _deletes}[changes.kind]
    diff, table = drawn(lake, parts, rng)
    lake.store(f"{changes.table} changed", table)
    return diff


def _updates(lake: Lake, parts: list[int], rng: Random) -> tuple[pa.Table, DataFrame]:
    """Every price goes up by one."""
    prices, listed = lake.read("parts"), f"pid IN ({', '.join(map(str, parts))})"
    diff = prices.where(listed).selectExpr(
        "pid", "price AS `price#pre`", "price + 1 AS `price#post`"
    )
    return diff.toArrow(), prices.selectExpr("pid", f"IF({listed}, price + 1, price) AS price")


def _inserts(lake: Lake, parts: list[int], rng: Random) -> tuple[pa.Table, DataFrame]:
    """Every part comes into a device that does not have it yet."""
    pairs, listed = lake.read("devices_parts"), f"pid IN ({', '.join(map(str, parts))})"
    taken = {tuple(row) for row in pairs.where(listed).collect()}
    drawn = [(rng.randrange(lake.data.devices), part) for part in parts]
    new = [pair for pair in drawn if pair not in taken]
    diff = lake.spark.createDataFrame(new, "did int, pid int")
    return diff.toArrow(), pairs.union(diff)


def _deletes(lake: Lake, parts: list[int], rng: Random) -> tuple[pa.Table, DataFrame]:
    """Every part leaves the first of its devices."""
    pairs, listed = lake.read("devices_parts"), f"pid IN ({', '.join(map(str, parts))})"
    diff = pairs.where(listed).groupBy("pid").agg(F.min("did").alias("did"))
    gone = F.broadcast(diff.selectExpr("did AS gone_did", "pid AS gone_pid"))
    rest = pairs.join(gone, F.expr("did = gone_did AND pid = gone_pid"), "left_anti")
    return diff.select("did", "pid").toArrow(), rest


# --- strategies -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """One view by one strategy, under names of its own."""

    strategy: str
    title: str
    view: Node

    def script(self, changes: Changes) -> Script:
        """The script of this strategy."""
        return STRATEGIES[self.strategy](self.view, changes)

    def create(self, lake: Lake) -> float:
        """Fill the view and all caches; the seconds."""
        start = perf_counter()
        script = self.script(KINDS[0])
        caches = [each.name for each in script.caches]
        for name, frame in create_frames(lake.spark, script, lake.tables("post")).items():
            order = order_of(script, name) if name in caches else script.view.ids[:1]
            columns = [back_quote(column) for column in order]
            ordered = frame.repartitionByRange(*columns).sortWithinPartitions(*columns)
            lake.store(self._stored(name), ordered)
        return perf_counter() - start

    def _stored(self, name: str) -> str:
        return f"{self.strategy} {self.title} {name}"

    def rows(self, lake: Lake) -> dict[str, int]:
        """How many rows are kept, relation by relation."""
        kept = self.script(KINDS[0]).materialized
        return {each.name: lake.read(self._stored(each.name)).count() for each in kept}

    def refresh(self, lake: Lake, changes: Changes, diff: pa.Table) -> tuple[Cost, "Sums"]:
        """The changed rows of all that is kept; and how they change the sums of the view."""
        script = self.script(changes)
        frames: Frames = lake.tables("pre") | lake.tables("post", changes.table)
        frames |= {m.name: lake.read(self._stored(m.name)) for m in script.materialized}
        frames[changes.diff] = diff
        start = perf_counter()
        with counted_jobs(lake.spark) as jobs:
            done = run_script(lake.spark, script, frames, find_changed=True)
            found = changed_rows(done)
            cost = Cost(perf_counter() - start, done.report.jobs + jobs.count)
        sums = checksum(self.view, frames[script.view.name])
        if script.view.name in found:
            rows = found[script.view.name]
            assert rows is not None, "200 changes are few"
            gone, came = (
                lake.spark.createDataFrame(each) for each in (rows.old_rows, rows.new_rows)
            )
            sums = sums - checksum(self.view, gone) + checksum(self.view, came)
        return cost, sums


@dataclass(frozen=True)
class Sums:
    """A bag of rows, as far as two numbers tell."""

    rows: int
    hashes: int

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.rows + other.rows, self.hashes + other.hashes)

    def __sub__(self, other: "Sums") -> "Sums":
        return Sums(self.rows - other.rows, self.hashes - other.hashes)


def checksum(view: Node, frame: DataFrame) -> Sums:
    """The number of rows of a view, and the sum of their hashes."""
    columns = ", ".join(map(back_quote, view.names))
    hashes = f"coalesce(sum(CAST(xxhash64({columns}) AS DECIMAL(38, 0))), 0)"
    [row] = frame.selectExpr("count(*)", hashes).collect()
    return Sums(int(row[0]), int(row[1]))


def recompute(lake: Lake, view: Node, changes: Changes) -> tuple[Cost, Sums]:
    """The view from scratch."""
    tables = lake.tables("post", changes.table)
    builder = FrameBuilder(lake.spark, lambda leaf: Relation(tables[leaf.name, "post"]))
    frame = builder.frame(view)
    start = perf_counter()
    with counted_jobs(lake.spark) as jobs:
        frame.write.format("noop").mode("overwrite").save()
        cost = Cost(perf_counter() - start, jobs.count)
    return cost, checksum(view, frame)


def measure(
    lake: Lake, keeps: list[Kept], size: int, rounds: int
) -> Iterator[tuple[Changes, str, dict[str, Cost]]]:
    """For each kind of change and each view, what every strategy takes; a first batch warms up."""
    views = {kept.title: kept.view for kept in keeps}
    for changes in KINDS:
        found: dict[str, dict[str, list[Cost]]] = {title: {} for title in views}
        for number in range(rounds + 1):
            diff = draw(lake, changes, size, number)
            expected = {}
            for title, view in views.items():
                cost, expected[title] = recompute(lake, view, changes)
                found[title].setdefault(RECOMPUTE, []).append(cost)
            for kept in keeps:
                cost, sums = kept.refresh(lake, changes, diff)
                found[kept.title].setdefault(kept.strategy, []).append(cost)
                if sums != expected[kept.title]:
                    raise SystemExit(f"{kept.title} by {kept.strategy} is wrong: {sums}")
        for title, costs in found.items():
            yield changes, title, {name: _typical(each[1:]) for name, each in costs.items()}


def _typical(costs: list[Cost]) -> Cost:
    return Cost(median(each.seconds for each in costs), median(each.jobs for each in costs))


# --- what is shown --------------------------------------------------------------------------------


def main(given: argparse.Namespace) -> None:
    """The tables."""
    console = Console(width=100)
    fanout = 10 if given.paper else given.fanout
    data = Devices(given.parts, given.devices, fanout, given.phones)
    spark = session(name="viewkeep bench", spark__driver__memory=given.memory)
    with TemporaryDirectory(dir=given.folder) as folder:
        lake = Lake(spark, data, Path(folder))
        console.print(
            f"Spark, Parquet files: parts {data.parts:,}, devices {data.devices:,}, devices_parts "
            f"{data.uses:,} rows; {data.phones:.0%} phones; {given.changes} changes"
        )
        views = {"V": data.view(False), "V'": data.view(True)}
        keeps = [Kept(name, title, view) for title, view in views.items() for name in STRATEGIES]
        console.print(_sizes(lake, keeps))
        shown = _table("Refreshes; x: times that of the ID-based script", *_COLUMNS)
        for changes, title, costs in measure(lake, keeps, given.changes, given.rounds):
            _add(shown, changes, title, costs)
        console.print(shown)
    spark.stop()


_COLUMNS = ("changes", "strategy", "seconds", "x", "jobs")


def _table(title: str, *columns: str) -> Table:
    """Two columns of text, then numbers."""
    shown = Table(title=title)
    for number, column in enumerate(columns):
        shown.add_column(column, justify="left" if number < 2 else "right")
    return shown


def _sizes(lake: Lake, keeps: list[Kept]) -> Table:
    shown = _table("What is kept", "view", "strategy", "rows of caches", "of the view", "seconds")
    for kept in keeps:
        seconds = kept.create(lake)
        rows = kept.rows(lake)
        view = rows.pop("view")
        caches = f"{sum(rows.values()):,}"
        shown.add_row(kept.title, kept.strategy, caches, f"{view:,}", f"{seconds:.1f}")
    return shown


def _add(shown: Table, changes: Changes, title: str, costs: dict[str, Cost]) -> None:
    """The strategies for one kind of change of one view, with ratios to the ID-based one."""
    first, base = f"{changes.title}, {title}", costs["id"]
    for name in (*STRATEGIES, RECOMPUTE):
        cost = costs[name]
        ratio = f"{cost.seconds / base.seconds:.1f}"
        shown.add_row(first, name, f"{cost.seconds:.2f}", ratio, f"{cost.jobs:g}")
        first = ""
    shown.add_section()
