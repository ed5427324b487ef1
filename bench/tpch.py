"""Refreshes of the TPC-H queries beside recomputation, per query and kind of change.

    python -m bench.tpch --scale 0.1

The queries stand as the specification writes them (examples/tpch). Every one is a view that the
keeper brings up to date as it sees fit, and once more a view that every refresh computes anew, by
the engine that the keeper chooses or that `--backend` names (`embedded`: a lake without Spark);
DuckDB computes it over the same Parquet files. RF1 inserts new orders, RF2 deletes old ones, and
mixed updates change columns that queries join, group and filter by. `way` tells what a refresh
did. All rows are compared after the last round. The last line tells the worst ratio of refresh to
recomputation.

`--data` reads the tables from Parquet files, as `tpchgen-cli --format=parquet` makes them, in
place of those that the bench makes itself.
"""

import argparse
import os
import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import duckdb
import sqlglot
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import viewkeep as vk
from bench._files import parquet_files
from bench._tpch_data import TABLES, Change, Tpch
from viewkeep.errors import ViewkeepError
from viewkeep.execute.spark.session import session
from viewkeep.lake import RefreshReport

FOLDER = Path(__file__).parents[1] / "examples" / "tpch"
QUERIES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}
KINDS = ("RF1", "RF2", "updates")
TARGET = 1.5
"""No refresh should take longer than so many times recomputation."""
PAGE = Path(__file__).parents[1] / "docs" / "tpch_figures.md"
Show = Callable[[str], None]
"""Tells what is being measured."""
ANEW = "_anew"
EMBEDDED = "embedded"


@dataclass(frozen=True)
class Measured:
    """Seconds of one refresh and of its rivals, and what the refresh did."""

    kind: str
    query: str
    refresh: float
    anew: float
    duckdb: float
    jobs: int
    way: str
    engine: str
    reason: str

    @property
    def ratio(self) -> float:
        """Refresh to recomputation."""
        return self.refresh / self.anew


class Lake:
    """The tables of one scale factor, and two views of every query that can be kept."""

    def __init__(self, spark: SparkSession | None, folder: Path, given: argparse.Namespace) -> None:
        backend = "auto" if given.backend == EMBEDDED else given.backend
        self.keeper = vk.Keeper(folder / "lake", spark, backend=backend)
        self.data, self.changes, self.folder = Tpch(given.scale), given.changes, folder
        files = {name: given.data / f"{name}.parquet" for name in TABLES} if given.data else None
        for name, path in (files or self.data.tables(folder / "data")).items():
            fields = TABLES[name].columns
            typed = [f"CAST({f.name} AS {f.type}) AS {f.name}" for f in fields]
            rows = duckdb.sql(f"SELECT {', '.join(typed)} FROM '{path}'").to_arrow_table()
            self.keeper.create_table(name, TABLES[name], rows=rows)
        self.refused: dict[str, str] = {}

    def create_views(self, queries: list[str], show: Show) -> list[str]:
        """The queries that can be kept; the others are told."""
        for query in queries:
            show(f"  creating {query}")
            try:
                self.keeper.create_view(query, QUERIES[query])
            except ViewkeepError as problem:
                self.refused[query] = str(problem).splitlines()[0]
            else:
                self.keeper.create_view(f"{query}{ANEW}", QUERIES[query], strategy="recompute")
        return [query for query in queries if query not in self.refused]

    def change(self, kind: str, number: int) -> None:
        """Apply one batch."""
        made: list[Change]
        match kind:
            case "RF1":
                made = self.data.rf1(self.changes)
            case "RF2":
                made = self.data.rf2(self.changes)
            case _:
                made = self.data.updates(max(1, self.changes // 4), number)
        for change in made:
            self.keeper.apply(change.table, **change.parts)

    def measure(self, kind: str, query: str) -> Measured:
        """One refresh, beside recomputation by Spark and by DuckDB."""
        anew, _ = _timed_refresh(self.keeper, f"{query}{ANEW}")
        seconds, report = _timed_refresh(self.keeper, query)
        way = "incremental" if report.strategy not in ("recompute", "none") else report.strategy
        other = self._duckdb(query)
        about = (report.jobs, way, report.backend, report.reason)
        return Measured(kind, query, seconds, anew, other, *about)

    def _duckdb(self, query: str) -> float:
        """Seconds of DuckDB, from the files of the tables to a Parquet file of the result."""
        with closing(duckdb.connect()) as connection:
            for name in TABLES:
                files = parquet_files(self.folder / "lake" / name)
                connection.execute(f"CREATE VIEW {name} AS FROM read_parquet({files})")
            start = perf_counter()
            target = self.folder / f"{query}.parquet"
            [text] = sqlglot.transpile(QUERIES[query], read="spark", write="duckdb")
            connection.execute(f"COPY ({text}) TO '{target}'")
            return perf_counter() - start

    def check(self, query: str) -> None:
        """Both views of a query have the same rows."""
        kept, anew = self._rows(query), self._rows(f"{query}{ANEW}")
        assert kept == anew, f"{query}: {kept - anew} too many, {anew - kept} missing"

    def _rows(self, view: str) -> Counter[object]:
        found = DeltaTable(self.folder / "lake" / view).to_pyarrow_table()
        names = [name for name in found.column_names if not name.startswith("#")]
        return Counter(zip(*(found[name].to_pylist() for name in names), strict=True))


def _timed_refresh(keeper: vk.Keeper, view: str) -> tuple[float, RefreshReport]:
    start = perf_counter()
    report = keeper.refresh(view)[-1]
    return perf_counter() - start, report


def measured(lake: Lake, queries: list[str], rounds: int, show: Show) -> Iterator[Measured]:
    """Medians per kind of change and query, after a round that warms Spark up."""
    for kind in KINDS:
        found: dict[str, list[Measured]] = {query: [] for query in queries}
        for number in range(rounds + 1):
            lake.change(kind, number)
            for query in queries:
                found[query].append(lake.measure(kind, query))
                show(f"  {_line(found[query][-1])}")
        for each in found.values():
            yield _medians(each[1:])


def _line(each: Measured) -> str:
    return (
        f"{each.kind} {each.query}: {each.refresh:.2f} s, {each.jobs} jobs, {each.way}; "
        f"by {each.engine}; anew {each.anew:.2f} s, DuckDB {each.duckdb:.2f} s"
    )


def _medians(rounds: list[Measured]) -> Measured:
    last = rounds[-1]
    refresh, anew, other = (
        median(getattr(each, name) for each in rounds) for name in ("refresh", "anew", "duckdb")
    )
    return replace(last, refresh=refresh, anew=anew, duckdb=other)


COLUMNS = ("changes", "query", "refresh", "anew", "ratio", "DuckDB", "jobs", "way", "why")


def row(each: Measured) -> tuple[str, ...]:
    """A row of the table."""
    return (
        *(each.kind, each.query.upper(), f"{each.refresh:.2f}", f"{each.anew:.2f}"),
        *(f"{each.ratio:.2f}", f"{each.duckdb:.2f}", str(each.jobs)),
        *(f"{each.way} ({each.engine})" if each.engine else each.way, each.reason),
    )


def shown(rows: list[tuple[str, ...]]) -> Table:
    """The table on the screen."""
    table = Table(title="Seconds of a refresh and of recomputation")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("changes", "query") else "right")
    for each in rows:
        table.add_row(*each)
    return table


def worst(found: list[Measured]) -> str:
    """The line about the worst ratio."""
    worked = [each for each in found if each.way != "none"]  # the others had nothing to do
    most = max(worked, key=lambda each: each.ratio)
    late = [each for each in worked if each.ratio > TARGET]
    return (
        f"worst: {most.query.upper()} after {most.kind}, {most.ratio:.2f} times recomputation; "
        f"{len(late)} of {len(worked)} refreshes above {TARGET}"
    )


def page(found: list[Measured], lake: Lake, given: argparse.Namespace) -> str:
    """The table as a page of docs."""
    table = [COLUMNS, ("---", "---", *["---:"] * 5, "---", "---"), *map(row, found)]
    refused = [f"- {query.upper()}: {problem}" for query, problem in lake.refused.items()]
    return "\n".join(
        [
            "# TPC-H on the keeper: figures",
            "",
            f"Written by `python -m bench.tpch --scale {given.scale} --rounds {given.rounds} "
            f"--backend {given.backend} --docs` (`make bench-tpch` prints it); do not edit. "
            f"Scale factor {given.scale}, {platform.machine()}, {os.cpu_count()} cores; "
            f"{given.changes} orders are inserted or deleted with their lines, or a quarter of "
            f"that many rows of every table updated. Medians of {given.rounds} rounds, after one "
            "that warms up. `anew` computes the view and commits it, by the same engine; DuckDB "
            "computes it from the same Parquet files into a file.",
            "",
            *(f"| {' | '.join(each)} |" for each in table),
            "",
            f"{worst(found).capitalize()}.",
            *(["", "Not kept:", "", *refused] if refused else []),
            "",
        ]
    )


def arguments() -> argparse.Namespace:
    """Sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor")
    parser.add_argument("--data", type=Path, help="folder with a Parquet file for every table")
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--changes", type=int, help="orders of RF1 and RF2; 1500 times the scale")
    parser.add_argument("--rounds", type=int, default=2, help="batches; the median counts")
    parser.add_argument("--backend", default="auto", help="auto, duckdb, spark or embedded")
    parser.add_argument("--docs", action="store_true", help="write docs/tpch_figures.md")
    parser.add_argument("--memory", default="8g", help="of Spark's driver")
    given = parser.parse_args()
    given.changes = given.changes or max(4, round(1500 * given.scale))
    return given


def main() -> None:
    """The table and the worst ratio."""
    given, console = arguments(), Console(width=140)
    spark = None
    if given.backend != EMBEDDED:
        spark = session(name="viewkeep bench", spark__driver__memory=given.memory)
    folder = Path(tempfile.mkdtemp(prefix="viewkeep-bench-"))
    try:
        lake = Lake(spark, folder, given)
        show = partial(console.print, highlight=False)
        queries = lake.create_views(given.queries, show)
        found = list(measured(lake, queries, given.rounds, show))
        for query in queries:
            lake.check(query)
        console.print(shown([row(each) for each in found]))
        for query, problem in lake.refused.items():
            console.print(f"{query.upper()} is not kept: {problem}", highlight=False)
        if given.docs:
            PAGE.write_text(page(found, lake, given))
        console.print(worst(found), highlight=False)
    finally:
        if spark is not None:
            spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
