"""The views after the templates of TPC-DS in a lake, equal to Spark's answers after every round.

Rounds of inserts, of updates of every set of columns that scripts tell apart, of deletes, and of
all of them; a view that DuckDB computes exactly is kept without Spark.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from math import isclose
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from bench.coverage import FOLDERS, read_queries, read_tables
from tests.diffs.in_duckdb import tables_of
from tests.diffs.random_tables import as_arrow
from tests.keeper.lakes import rows
from tests.tpcds.data import Data
from tests.transpile import to_duckdb
from viewkeep import Keeper, RefreshError
from viewkeep.changes import ChangeBatch, Row
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import identify
from viewkeep.diffs.schemas import update_sets
from viewkeep.execute.errors import NeedsSparkError
from viewkeep.execute.spark.driver.collect import collect
from viewkeep.execute.spark.report import SPARK_ERRORS
from viewkeep.sql.parse import parse_view
from viewkeep.tables.arrow_rows import to_rows

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
TABLES = read_tables(FOLDERS["TPC-DS"])
FACTS, LIMIT, AT_ONCE = 36, 100_000, 4
DRAWS = [(1, 0.85)] * 6 + [(4, 0.85), (4, 0.97)] * 10
"""So many times the rows, and how often values are compared ones, until the query finds rows."""
LOWER = {
    "HAVING count(*) > 10": "HAVING count(*) > 1",
    "HAVING count(*) >= 10": "HAVING count(*) >= 1",
    "HAVING count(*) > 4": "HAVING count(*) > 1",
    "cnt BETWEEN 15 AND 20": "cnt BETWEEN 1 AND 20",
}
"""Bounds that groups of so few rows pass."""

ROWLESS = {"q02", "q08", "q31", "q36", "q58", "q59", "q64", "q69"}
"""No rows are found by these in tables so small, or not by DuckDB, which is asked for them."""

Changes = Mapping[str, ChangeBatch]
Sets = Mapping[str, list[frozenset[str]]]
ROUNDS: dict[str, Callable[[Data, Sets], Changes]] = {
    "inserts": lambda data, _: data.insert(2),
    "updates": lambda data, sets: data.update(sets),
    "deletes": lambda data, _: data.delete(0.2),
    "all kinds": lambda data, _: data.change(8),
}
LONG_ROUNDS: dict[str, Callable[[Data, Sets], Changes]] = {
    **ROUNDS,
    "more updates": lambda data, sets: data.update(sets),
    "most go": lambda data, _: data.delete(0.9),
    "rows again": lambda data, _: data.insert(8),
}


def lowered(sql: str) -> str:
    """A query with bounds that groups of few rows pass."""
    for bound, lower in LOWER.items():
        sql = sql.replace(bound, lower)
    return sql


QUERIES = {name: lowered(sql) for name, sql in read_queries(FOLDERS["TPC-DS"]).items()}
CHOSEN = list(QUERIES) if LONG else ["q16", "q39"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_every_round_equals_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    sql = QUERIES[name]
    data, sets = data_with_rows(name), updated_sets(name)
    keeper = lake(spark, tmp_path, data, sql)
    answers, kept = {"the start": in_spark(spark, data, sql)}, {"the start": rows(keeper, "v")}
    for step, change in (LONG_ROUNDS if LONG else ROUNDS).items():
        for table, batch in change(data, sets).items():
            apply(keeper, table, batch)
        try:
            report = keeper.refresh("v")[-1]
        except RefreshError:  # it has no answer, until rows change again
            expect_no_answer(in_spark(spark, data, sql))
            continue
        assert report.strategy != "recompute", (step, report.reason)
        answers[step], kept[step] = in_spark(spark, data, sql), rows(keeper, "v")
    assert name in ROWLESS or any(any(row) for each in kept.values() for row in each)
    for step, table in collected(answers):
        expect_equal(f"{name} after {step}", kept[step].elements(), to_rows(table))


def expect_no_answer(answer: DataFrame) -> None:
    """Spark has none either: a scalar subquery finds several rows."""
    with pytest.raises(SPARK_ERRORS, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        answer.collect()


def collected(answers: Mapping[str, DataFrame]) -> Iterator[tuple[str, pa.Table]]:
    """Spark's rows, of few answers at a time: each broadcasts the tables that it joins."""
    for part in batched(answers.items(), AT_ONCE):
        yield from collect(dict(part), LIMIT).items()


def batched(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of so many items (`itertools.batched`, before Python 3.12)."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def data_with_rows(name: str) -> Data:
    """Tables in which the query finds rows, if some are found soon."""
    tables = tables_of(parse_view(QUERIES[name], TABLES), TABLES)
    sql, seed = QUERIES[name], list(QUERIES).index(name)
    for number, (times, compared) in enumerate(DRAWS):
        data = Data(sql, tables, seed + 100 * number, FACTS * times, compared)
        if finds_rows(data, sql):
            return data
    return Data(sql, tables, seed, FACTS)


def finds_rows(data: Data, sql: str) -> bool:
    """Whether DuckDB's answer has a value."""
    with duckdb.connect() as connection:
        for name, table in data.tables.items():
            connection.register(name, as_arrow(table, data.database[name].values()))
        try:
            answer = connection.execute(to_duckdb(sql)).fetchall()
        except duckdb.Error:  # no text of its own for this query, or no answer for these rows
            return False
    return any(row_value for row in answer for row_value in row)


def updated_sets(name: str) -> Sets:
    """By table: the sets of columns that updates are told apart by."""
    plan = identify(optimize(parse_view(QUERIES[name], TABLES)))
    return {table: update_sets(plan, table) for table in tables_of(plan.root, TABLES)}


def lake(spark: SparkSession, folder: Path, data: Data, sql: str) -> Keeper:
    """A lake with the tables and the view `v`, without Spark where it takes the view."""
    for number, session in enumerate((None, spark)):
        keeper = Keeper(folder / f"lake {number}", session, durable=False)
        for name, table in data.tables.items():
            keeper.create_table(name, table, rows=list(data.database[name].values()))
        try:
            keeper.create_view("v", sql, policy="incremental")
        except NeedsSparkError:
            continue
        return keeper
    raise AssertionError("Spark takes every view")


def apply(keeper: Keeper, name: str, batch: ChangeBatch) -> None:
    """Change a table of a lake."""
    table = batch.table
    places = [table.names.index(column) for column in table.key]
    updates = [dict(zip(table.names, update.new, strict=True)) for update in batch.updates]
    deletes = [tuple(row[place] for place in places) for row in batch.deletes]
    keeper.apply(name, list(batch.inserts), updates, deletes)


def in_spark(spark: SparkSession, data: Data, sql: str) -> DataFrame:
    """Spark's answer over the tables as they are now."""
    for name, table in data.tables.items():
        frame = spark.createDataFrame(as_arrow(table, data.database[name].values()))
        frame.createOrReplaceTempView(name)
    return spark.sql(sql)


def expect_equal(name: str, found: Iterable[Row], expected: Iterable[Row]) -> None:
    """Two bags of rows are equal, floats nearly, all other values exactly."""
    pair = sorted(found, key=_order), sorted(expected, key=_order)
    assert len(pair[0]) == len(pair[1]), (name, *pair)
    for left, right in zip(*pair, strict=True):
        assert all(map(_is_equal, left, right)), (name, left, right)


def _order(row: Row) -> tuple[list[str], list[str]]:
    exact = [str(value) for value in row if not isinstance(value, float)]
    return exact, [f"{value:.6e}" for value in row if isinstance(value, float)]


def _is_equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return isclose(left, right, rel_tol=1e-9) or (left != left and right != right)
    return type(left) is type(right) and bool(left == right)
