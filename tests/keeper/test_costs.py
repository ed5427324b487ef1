"""A refresh that costs more than recomputation becomes one; small lakes need no job."""

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.keeper.lakes import check
from viewkeep import Keeper
from viewkeep.execute.budget import OverBudgetError, interruptible, within_budget
from viewkeep.execute.duckdb.connection import open_connection
from viewkeep.execute.errors import RunError
from viewkeep.execute.spark import schedule as rounds
from viewkeep.keeper import RefreshError
from viewkeep.lake import Costs, Experience
from viewkeep.lake.views import experience
from viewkeep.refresh import plan as refresh
from viewkeep.refresh import write_changes

SMALL = {
    "outer_counts": """
        SELECT a.g, count(DISTINCT b.x) AS xs, count(DISTINCT c.x) AS ys
        FROM t a LEFT JOIN t b ON a.g = b.x LEFT JOIN u c ON c.g = a.g GROUP BY a.g""",
    "full_sides": "SELECT t.id AS a, u.id AS b FROM t FULL JOIN u ON t.g = u.g",
    "right_sides": "SELECT t.x, u.id FROM t RIGHT JOIN u ON t.id = u.g",
    "smallest": "SELECT id FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.x < t.x)",
    "twice": """
        WITH sums AS (SELECT g, sum(x) AS s FROM t GROUP BY g)
        SELECT a.g, b.g AS other FROM sums a JOIN sums b ON a.s = b.s""",
    "both": """
        SELECT g, sum(x) AS s, max(x) AS m
        FROM (SELECT g, x FROM t UNION ALL SELECT g, x FROM u) GROUP BY g""",
    "shares": "SELECT t.id, t.x - g.top AS d FROM t CROSS JOIN (SELECT max(x) AS top FROM u) g",
}


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", spark, backend="spark")
    for name in "tu":
        columns = {"id": "int", "g": "int", "x": "int"}
        rows = [(i, i % 7, i % 5) for i in range(60)]
        keeper.create_table(name, columns, key=["id"], rows=rows)
    return keeper


def test_small_relations_take_no_job(keeper: Keeper) -> None:
    for name, sql in SMALL.items():
        keeper.create_view(name, sql, policy="incremental")
    keeper.apply("t", inserts=[(60, 1, 9), (61, None, None)], deletes=[(3,), (4,)])
    keeper.apply("u", updates=[{"id": 5, "g": 6}], inserts=[(70, 9, 9)])
    keeper.apply("u", updates=[{"id": 0, "x": -1}])
    assert {each.view: each.jobs for each in keeper.refresh()} == dict.fromkeys(SMALL, 0)
    check(keeper)


def test_a_refresh_past_the_cost_of_recomputation_becomes_one(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "FALLS_BACK", True)
    keeper.create_view("sums", "SELECT g, sum(x) AS s FROM t GROUP BY g")
    monkeypatch.setattr(experience, "LEAST", 0.05)
    monkeypatch.setattr(experience, "LEAST_SMALL", 0.05)
    monkeypatch.setattr(experience, "SHARE", 0.0)
    compute = rounds.JobSchedule.compute

    def slow(self: Any) -> None:
        time.sleep(0.1)
        compute(self)

    with monkeypatch.context() as slower:
        slower.setattr(rounds.JobSchedule, "compute", slow)
        reasons = [_changed(keeper, number) for number in range(4)]
    tried = ["bringing the changes in went past the cost" in each for each in reasons]
    assert tried == [True, False, True, False], reasons
    assert "before" in reasons[1]
    monkeypatch.setattr(experience, "LEAST", 1e9)
    reasons = [_changed(keeper, number) for number in range(4, 8)]
    assert ["before" in each for each in reasons] == [True, False, False, False], reasons
    check(keeper)


def _changed(keeper: Keeper, number: int) -> str:
    keeper.apply("t", inserts=[(100 + number, 1, 1)])
    [report] = keeper.refresh()
    return report.reason


def test_a_script_that_fails_gives_way(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper.create_view("sums", "SELECT g, sum(x) AS s FROM t GROUP BY g")
    keeper.create_view("strictly", "SELECT g, sum(x) AS s FROM t GROUP BY g", policy="incremental")

    def failing(self: Any) -> None:
        raise RunError("two rows of the diff set the same row differently")

    monkeypatch.setattr(refresh, "FALLS_BACK", True)
    monkeypatch.setattr(rounds.JobSchedule, "compute", failing)
    keeper.apply("t", inserts=[(100, 1, 1)])
    with pytest.raises(RefreshError) as raised:
        keeper.refresh()
    told = {each.view: each.error or each.reason for each in raised.value.reports}
    assert told["sums"].startswith("bringing the changes in failed: two rows"), told
    assert told["strictly"].startswith("two rows"), told
    check(keeper, ["sums"])


def test_a_running_job_is_ended(spark: SparkSession) -> None:
    pairs = spark.range(10**7).crossJoin(spark.range(10**7).toDF("other"))
    start, context = time.perf_counter(), spark.sparkContext
    context.addJobTag("endless")
    try:
        with (
            pytest.raises(OverBudgetError),
            within_budget(1.0),
            interruptible(lambda: context.cancelJobsWithTag("endless")),
        ):
            pairs.selectExpr("sum(hash(id, other))").collect()  # would take days
    finally:
        context.removeJobTag("endless")
    assert time.perf_counter() - start < 120
    assert spark.range(3).count() == 3


def test_a_running_query_is_ended() -> None:
    start = time.perf_counter()
    with pytest.raises(OverBudgetError), within_budget(0.3):
        run_endless_query()
    with open_connection() as connection:
        assert connection.execute("SELECT 3").fetchall() == [(3,)]
    assert time.perf_counter() - start < 60


def run_endless_query(*_: Any, **__: Any) -> None:
    pairs = "range(10000000) AS a(i), range(10000000) AS b(i)"
    with open_connection() as connection:
        connection.execute(f"SELECT sum(hash(a.i, b.i)) FROM {pairs}")


@pytest.mark.parametrize("changes", [1, 500], ids=["row by row", "in vectors"])
def test_writing_is_part_of_what_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    """A view that is long to write is computed anew, and nothing of the try is shown."""
    keeper = Keeper(tmp_path / "lake")
    rows = [(i, i % 1000, 1) for i in range(6000)]
    keeper.create_table("t", {"id": "int", "g": "int", "x": "int"}, key=["id"], rows=rows)
    keeper.create_view("rows", "SELECT id, g, x FROM t WHERE x > 0")
    monkeypatch.setattr(refresh, "FALLS_BACK", True)
    monkeypatch.setattr(experience, "LEAST", 0.5)
    monkeypatch.setattr(experience, "LEAST_SMALL", 0.5)
    monkeypatch.setattr(write_changes, "rewrite_files", run_endless_query)
    start = time.perf_counter()
    keeper.apply("t", updates=[{"id": i, "x": 7} for i in range(changes)])
    [report] = keeper.refresh()
    assert "went past the cost of recomputation" in report.reason
    assert time.perf_counter() - start < 60
    check(keeper)


def test_costs_are_kept_by_engine() -> None:
    costs = Costs().after_build("duckdb", 1.0).after_build("spark", 20.0)
    budgets = [costs.of(name).budget(10**9) for name in ("duckdb", "spark")]
    assert budgets == [experience.LEAST, 3.0]
    assert costs.of("duckdb").budget(100) == experience.LEAST_SMALL
    assert Costs.from_notes(costs.notes()) == costs
    old = Costs.from_notes({"seconds": 4.0, "pauses": {}})
    assert (old.of("spark").seconds, old.of("duckdb").seconds) == (4.0, None)


def test_experience_is_kept_and_pauses_grow() -> None:
    known = Experience().after_build(10.0).after_build(2.0)
    assert (known.seconds, known.budget(10**9)) == (2.0, 0.6)
    pauses, changes = [], {"t": 10, "u": 10}
    for _ in range(8):
        known = known.after_giving_up(changes)
        pauses.append(0)
        while known.is_paused(changes):
            known, pauses[-1] = known.after_pausing(changes), pauses[-1] + 1
    assert pauses == [1, 2, 4, 8, 16, 32, 32, 32]
    assert Experience.from_notes(known.notes()) == known
    assert known.after_success(changes).pauses == {}


def test_pauses_concern_as_many_changes_of_the_same_tables() -> None:
    known = Experience().after_build(10.0).after_giving_up({"t": 100})
    paused = [{"t": 50}, {"t": 49}, {"t": 1000}, {"u": 100}, {"t": 100, "u": 1}]
    assert [known.is_paused(each) for each in paused] == [True, False, True, False, False]
    assert known.after_success({"t": 49}).is_paused({"t": 100})
    assert not known.after_success({"t": 50}).is_paused({"t": 100})


def test_changes_that_took_longer_than_recomputation_are_not_tried_next() -> None:
    known = Experience(seconds=1.0)
    large = experience.SMALL + 1
    assert known.after_run({"t": 10}, 1.5, large).is_paused({"t": 10})
    assert not known.after_run({"t": 10}, 0.5, large).is_paused({"t": 10})
    assert not known.after_run({"t": 10}, 1.5, 100).is_paused({"t": 10}), "a tiny lake"
    assert known.after_run({"t": 10}, 2.5, 100).is_paused({"t": 10}), "much longer"
    assert not Experience().after_run({"t": 10}, 1.5, large).is_paused({"t": 10})
