"""The queries of TPC-H as the specification writes them, kept by the keeper on Spark.

Comma joins and nested subqueries as they stand, without the last ORDER BY. One lake has them all;
after the refresh functions and after updates of columns that queries join, group and filter by,
every view is exactly what Spark answers, and what DuckDB answers.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from tests.diffs.harness import Bag, expect, plain
from tests.diffs.random_tables import as_arrow
from tests.keeper.lakes import rows
from tests.tpch.data import TABLES, Change, Tpch
from tests.transpile import to_duckdb
from viewkeep import Keeper
from viewkeep.execute.errors import NeedsSparkError
from viewkeep.execute.spark.driver.collect import collect
from viewkeep.tables.arrow_rows import to_rows

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
FOLDER = Path(__file__).parents[2] / "examples" / "tpch"
QUERIES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}
LIMIT = 100_000
TOGETHER = 6
SEED, ORDERS = 12, 60
"""Data in which every query finds rows."""


def test_every_query_finds_rows() -> None:
    """Else keeping it would prove nothing."""
    answers = in_duckdb(Tpch(SEED, ORDERS), QUERIES)
    nothing = [name for name, bag in answers.items() if not _has_values(bag)]
    assert nothing == []


def _has_values(bag: Bag) -> bool:
    return any(value is not None for row in bag for value in row)


def in_duckdb(data: Tpch, queries: dict[str, str]) -> dict[str, Bag]:
    """DuckDB's answers."""
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, as_arrow(table, data.rows[name].values()))
        return {
            name: plain(Counter(connection.execute(to_duckdb(sql)).fetchall()))
            for name, sql in queries.items()
        }


def in_spark(spark: SparkSession, data: Tpch, queries: dict[str, str]) -> dict[str, Bag]:
    """Spark's answers, exactly, some in one job: all would need more memory than it has."""
    for name, table in TABLES.items():
        frame = spark.createDataFrame(as_arrow(table, data.rows[name].values()))
        frame.createOrReplaceTempView(name)
    answers: dict[str, Bag] = {}
    for names in batched(queries, TOGETHER):
        found = collect({name: spark.sql(queries[name]) for name in names}, LIMIT)
        answers |= {name: Counter(to_rows(found[name])) for name in names}
    return answers


def batched(names: Iterable[str], size: int) -> Iterator[list[str]]:
    """The names, so many at a time."""
    rest = list(names)
    for start in range(0, len(rest), size):
        yield rest[start : start + size]


STEPS: dict[str, Callable[[Tpch], list[Change]]] = {
    "RF1 and updates": lambda data: [*data.rf1(3), *data.updates(1)],
    "RF2 and updates": lambda data: [*data.rf2(3), *data.updates(1)],
}
LONG_STEPS: dict[str, Callable[[Tpch], list[Change]]] = {
    "RF1": lambda data: data.rf1(4),
    "RF2": lambda data: data.rf2(4),
    "updates": lambda data: data.updates(3),
    **STEPS,
    "all orders": lambda data: data.rf2(len(data.rows["orders"])),
    "orders again": lambda data: data.rf1(20),
    "more updates": lambda data: data.updates(4),
}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["auto", "spark"])
def test_every_refresh_equals_spark_and_duckdb(
    spark: SparkSession, tmp_path: Path, backend: str
) -> None:
    data = Tpch(SEED, ORDERS)
    keeper = Keeper(tmp_path / "lake", spark, backend=backend)
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(data.rows[name].values()))
    queries = dict(QUERIES) if LONG or backend == "auto" else dict(list(QUERIES.items())[1::3])
    for name, sql in queries.items():
        keeper.create_view(name, sql, policy="incremental")
    steps = LONG_STEPS if LONG else STEPS
    for step, make in steps.items():
        for change in make(data):
            keeper.apply(change.table, change.inserts, change.updates, change.deletes)
        keeper.refresh()
        for name, answer in in_duckdb(data, queries).items():
            expect(f"{name} after {step}, to DuckDB", plain(rows(keeper, name)), answer)
        if LONG or step == list(steps)[-1]:  # Spark takes longer to answer than to refresh
            for name, answer in in_spark(spark, data, queries).items():
                expect(f"{name} after {step}, to Spark", rows(keeper, name), answer)


@pytest.mark.slow
def test_refreshes_without_spark_are_incremental_and_right(tmp_path: Path) -> None:
    """DuckDB on the driver brings the queries up to date, and not by computing them anew."""
    data = Tpch(SEED, ORDERS)
    queries = (
        QUERIES if LONG else {name: QUERIES[name] for name in ("q03", "q16", "q17", "q18", "q22")}
    )
    keeper = Keeper(tmp_path / "lake")
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(data.rows[name].values()))
    refused = set()
    for name, sql in queries.items():
        try:
            keeper.create_view(name, sql, policy="incremental")
        except NeedsSparkError:
            refused.add(name)
    queries = {name: sql for name, sql in queries.items() if name not in refused}
    assert len(queries) > len(refused), refused
    for step, make in STEPS.items():
        for change in make(data):
            keeper.apply(change.table, change.inserts, change.updates, change.deletes)
        for name, answer in in_duckdb(data, queries).items():
            report = keeper.refresh(name)[-1]
            assert report.strategy in ("id", "none"), (name, step, report.reason)
            expect(f"{name} after {step}", plain(rows(keeper, name)), answer)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["viewtree", "recursive"])
def test_view_trees_and_recursive_maps_are_right(tmp_path: Path, strategy: str) -> None:
    """The queries that sum up equi-joins, by sums of parts of these joins."""
    names = ("q03", "q05", "q08", "q09", "q10", "q14") if LONG else ("q03", "q10", "q14")
    data, queries = Tpch(SEED, ORDERS), {name: QUERIES[name] for name in names}
    keeper = Keeper(tmp_path / "lake", durable=False)
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(data.rows[name].values()))
    for name, sql in queries.items():
        keeper.create_view(name, sql, strategy, policy="incremental")
    for step, make in STEPS.items():
        for change in make(data):
            keeper.apply(change.table, change.inserts, change.updates, change.deletes)
        assert {report.strategy for report in keeper.refresh()} <= {strategy, "none"}
        for name, answer in in_duckdb(data, queries).items():
            expect(f"{name} after {step}", plain(rows(keeper, name)), answer)
