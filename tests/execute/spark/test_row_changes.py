"""The rows that a refresh changes, on the driver: few jobs, and the same rows as in Spark."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.execute.spark.test_executor import (
    COST,
    DELETES,
    INSERTS,
    PRICES,
    START,
    UPDATES,
    V,
    ints,
    kept_on_disk,
    rows_of,
    script,
    tables,
)
from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema
from viewkeep.diffs.script import Apply, Materialized, Script
from viewkeep.execute.spark.driver.changed_rows import RowChanges
from viewkeep.execute.spark.driver.key_filter import MAX_KEYS
from viewkeep.execute.spark.run import Run, changed_rows, run_script
from viewkeep.execute.spark.versions import counted_jobs
from viewkeep.query.algebra import Output, Project, Scan
from viewkeep.query.expressions import Column
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_rows

Rows = Sequence[tuple[Any, ...]]


def int_table(columns: Sequence[str], rows: Rows) -> pa.Table:
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(column, pa.int32()) for column in values]
    return pa.Table.from_arrays(arrays, list(columns))


def applied(spark: SparkSession, diffs: Sequence[tuple[DiffSchema, Rows]], **options: Any) -> Run:
    """Diffs as Arrow tables."""
    frames: dict[Any, Any] = {"view": ints(spark, ("a", "b", "x"), START)}
    frames |= {f"d{i}": int_table(s.columns, rows) for i, (s, rows) in enumerate(diffs)}
    steps = [Apply(f"d{i}", "view", schema) for i, (schema, _) in enumerate(diffs)]
    return run_script(spark, script(*steps), frames, **options)


def as_sets(rows: RowChanges | None) -> tuple[set[Any], set[Any]]:
    assert rows is not None
    return set(to_rows(rows.old_rows)), set(to_rows(rows.new_rows))


@pytest.mark.parametrize("find_changed", [False, True])
def test_a_row_that_changes_is_gone_and_came(spark: SparkSession, find_changed: bool) -> None:
    """Deletes, updates and inserts of the same rows; what stays as it is is left out."""
    by_b = DiffSchema(UPDATE, ("b",), after=("x",), changed=("x",))
    diffs: list[tuple[DiffSchema, Rows]] = [
        (DELETES, [(2,)]),
        (by_b, [(2, 20), (1, 5)]),
        (INSERTS, [(2, 1, 3), (9, 9, 9), (None, 1, 40)]),
    ]
    done = applied(spark, diffs, find_changed=find_changed)
    with counted_jobs(spark) as jobs:
        found = changed_rows(done)
    assert jobs.count == (0 if find_changed else 1)
    gone, came = {(1, 1, 10), (2, 1, 30)}, {(1, 1, 5), (2, 1, 3), (9, 9, 9)}
    assert as_sets(found["view"]) == (gone, came)
    assert Counter(START) - Counter(gone) + Counter(came) == rows_of(done.frames["view"])
    counts = [each.rows for each in done.report.statements]
    assert counts == ([1, 3, 3] if find_changed else [None, None, None])


@pytest.mark.parametrize("local_rows", [100, 0])
@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        (DiffSchema(DELETE, (), before=("x",)), [(7,)]),
        (UPDATES, [(1, 10, 8, 77), (None, 40, 8, None)]),
        (INSERTS, [(1, 1, 11), (None, None, 0)]),
    ],
)
def test_rows_that_cannot_be_looked_up_come_from_spark(
    spark: SparkSession, schema: DiffSchema, rows: Rows, local_rows: int
) -> None:
    """All rows are meant, or the diff is too large to be collected."""
    with applied(spark, [(schema, rows)], local_rows=local_rows) as done:
        gone, came = as_sets(changed_rows(done)["view"])
        assert Counter(START) - Counter(gone) + Counter(came) == rows_of(done.frames["view"])


def test_ids_that_are_no_literals(spark: SparkSession) -> None:
    """A double has values that are equal and not the same; it is met in Spark."""
    table = Table({"k": "double", "x": "int"})
    outputs = tuple(Output(name, Column(f"t.{name}")) for name in ("k", "x"))
    kept = Materialized("view", Project(Scan("base", table, "t"), outputs), ("k",))
    whole = Script(
        kept, (), (), (Apply("d", "view", DiffSchema(INSERT, ("k",), after=("x",))),), ()
    )
    old = spark.createDataFrame([(0.0, 1), (float("nan"), 2), (1.5, 3)], "k double, x int")
    new = pa.table({"k": [-0.0, float("nan")], "x#post": pa.array([7, 8], pa.int32())})
    gone, came = as_sets(changed_rows(run_script(spark, whole, {"view": old, "d": new}))["view"])
    assert {x for _, x in gone} == {1, 2}
    assert {x for _, x in came} == {7, 8}


def test_too_many_rows_are_left_to_spark(spark: SparkSession) -> None:
    done = applied(spark, [(DELETES, [(1,)])])
    assert changed_rows(done, limit=1) == {"view": None}
    assert as_sets(changed_rows(done, limit=2)["view"]) == (set(START[:2]), set())


def test_many_keys_are_looked_up_by_a_join(spark: SparkSession) -> None:
    count = MAX_KEYS + 10
    old = spark.range(3 * count).selectExpr(
        "CAST(id AS INT) AS a", "CAST(id % 2 AS INT) AS b", "0 AS x"
    )
    deletes = int_table(("a",), [(2 * i,) for i in range(count)])
    frames: dict[Any, Any] = {"view": old, "d0": deletes}
    done = run_script(spark, script(Apply("d0", "view", DELETES)), frames, find_changed=True)
    gone, came = as_sets(changed_rows(done)["view"])
    assert (gone, came) == ({(2 * i, 0, 0) for i in range(count)}, set())
    assert [each.rows for each in done.report.statements] == [count]


# The paper's views.


def price_changes(count: int) -> pa.Table:
    columns = ("pid", "price#pre", "price#post")
    return int_table(columns, [(i, i, i + 100) for i in range(count)])


def test_rows_of_a_price_update_are_found_while_it_is_computed(
    spark: SparkSession, tmp_path: Path
) -> None:
    update, kept = kept_on_disk(spark, COST, tmp_path, PRICES)
    done = run_script(spark, update, {**kept, "du(parts)": price_changes(3)})
    with counted_jobs(spark) as jobs:
        found = changed_rows(done)
    assert (done.report.jobs, jobs.count) == (2, 0)
    for name, changed in done.changed.items():
        gone, came = as_sets(found[name])
        assert gone == set(rows_of(changed.old_rows))
        assert came == set(rows_of(changed.new_rows))
    read = {each.name: (each.reads, each.rows) for each in done.report.statements}
    assert read["t#7.1"] == (3 + 6, 3)  # 3 changes meet 6 rows of the cache: 3 devices change


def test_a_price_update_of_v_takes_one_job_with_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    update, kept = kept_on_disk(spark, V, tmp_path, PRICES)
    done = run_script(spark, update, {**kept, "du(parts)": price_changes(3)}, find_changed=True)
    assert done.report.jobs == 1
    assert [each.rows for each in done.report.statements] == [3, 6]


def test_inserts_look_everything_up_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """Parts, devices, the cost of each and the rows of the cache: their keys are in the diff."""
    changes = {"devices_parts": [("insert", frozenset())]}
    script, kept = kept_on_disk(spark, COST, tmp_path, changes)
    frames: dict[Any, DataFrame | pa.Table] = {**tables(spark, tmp_path / "again"), **kept}
    frames["d+(devices_parts)"] = int_table(("did", "pid"), [(2, 50), (3, 51), (4, 2000)])
    done = run_script(spark, script, frames, find_changed=True)
    assert done.report.jobs == 1
    found = changed_rows(done)
    gone, came = as_sets(found["view"])
    before = kept["view"].columns.index("cost")
    assert [row[before] for row in gone] == [2 + 3 + 4 + 5]
    assert [row[before] for row in came] == [2 + 3 + 4 + 5 + 50]  # 3 is no phone, 2000 no part
