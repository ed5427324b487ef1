"""Refreshing views: which way each is brought up to date, and what it costs."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.diffs.harness import expect, rounded
from tests.execute.spark.kept import bag
from tests.keeper.lakes import check, check_verified, rows, set_driver_bytes, version, versions
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute.spark.backend import _query_frame
from viewkeep.lake.views import caches
from viewkeep.lake.views.cache_versions import open_caches
from viewkeep.query.algebra import Stored
from viewkeep.refresh import replace_view, write_changes
from viewkeep.refresh.relations import ViewRelations
from viewkeep.tables import feed
from viewkeep.tables.files import rewrite

BACKENDS = ("duckdb", "spark")

COST = "SELECT did, sum(price) AS cost FROM uses JOIN parts USING (pid) GROUP BY did"


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path, spark)
    parts = [(n, 10 * n) for n in range(12)]
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=parts)
    uses = [(n % 5, n) for n in range(12)]
    keeper.create_table("uses", {"did": "int", "pid": "int"}, ["did", "pid"], rows=uses)
    return keeper


@contextmanager
def no_jobs(spark: SparkSession) -> Iterator[None]:
    """A block in which Spark has nothing to do."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()  # type: ignore[union-attr]
    before = scheduler.numTotalJobs()
    yield
    assert scheduler.numTotalJobs() == before


def test_nothing_changed_costs_nothing(spark: SparkSession, keeper: Keeper) -> None:
    keeper.create_view("cost", COST)
    keeper.create_view("dear", "SELECT did FROM cost WHERE cost > 100")
    before = versions(keeper)
    with no_jobs(spark):
        reports = keeper.refresh()
    assert [(each.strategy, each.jobs, each.changed) for each in reports] == [
        ("none", 0, False)
    ] * 2
    assert versions(keeper) == before


def test_a_change_that_concerns_no_view(spark: SparkSession, keeper: Keeper) -> None:
    """A column that the view does not read: its state moves on, without Spark."""
    keeper.create_view("pairs", "SELECT did, pid FROM uses WHERE pid IN (SELECT pid FROM parts)")
    keeper.apply("parts", updates=[{"pid": 1, "price": 99}])
    with no_jobs(spark):
        (report,) = keeper.refresh()
    assert (report.rows_changed, report.changes) == (0, {"parts": 1})
    assert keeper.status()[0].is_fresh


def test_a_report_tells_what_was_done(keeper: Keeper) -> None:
    keeper.create_view("cost", COST)
    keeper.apply("parts", updates=[{"pid": 1, "price": 99}])
    keeper.apply("uses", inserts=[(7, 1)], deletes=[(0, 0)])
    (report,) = keeper.refresh()
    assert (report.view, report.strategy) == ("cost", "id")
    assert report.changes == {"parts": 1, "uses": 2}
    assert report.rows_changed == 3  # device 1 costs more, device 7 is new, device 0 lost a part
    assert report.rows == 6
    assert (report.before, report.after) == ({"uses": 0, "parts": 0}, {"uses": 1, "parts": 1})
    assert report.version == version(keeper, "cost") == 1
    assert report.seconds >= sum(report.phases.values()) > 0
    assert {"changes", "compute", "write"} <= set(report.phases)
    assert report.jobs == 0  # so few rows are looked up without Spark
    kept, built = keeper.history("cost")
    assert (kept.changes, kept.refresh) == (report.changes, report.refresh)
    assert (built.strategy, built.version, built.from_scratch) == ("id", 0, True)
    assert not kept.from_scratch


def test_one_view_and_what_it_reads(keeper: Keeper) -> None:
    keeper.create_view("cost", COST)
    keeper.create_view("dear", "SELECT did FROM cost WHERE cost > 100")
    keeper.create_view("cheap", "SELECT pid FROM parts WHERE price < 50")
    keeper.apply("parts", updates=[{"pid": 3, "price": 500}])
    assert [each.view for each in keeper.refresh("dear")] == ["cost", "dear"]
    check(keeper, ["cost", "dear"])
    status = {each.name: each.behind for each in keeper.status()}
    assert status == {"cost": {}, "dear": {}, "cheap": {"parts": 1}}
    assert [each.view for each in keeper.refresh() if each.changed] == ["cheap"]
    check(keeper)


@pytest.mark.parametrize("strategy", ["id", "tuple", "recompute"])
def test_strategies(keeper: Keeper, strategy: str) -> None:
    keeper.create_view("cost", COST, strategy=strategy)
    for price in (5, 6):
        keeper.apply("parts", updates=[{"pid": n, "price": price * n} for n in (1, 2, 3)])
        keeper.apply("uses", deletes=[(price, price)] if (price, price) in _uses(keeper) else None)
        assert keeper.refresh()[0].strategy == strategy
        check(keeper)


def _uses(keeper: Keeper) -> set[Any]:
    return set(rows(keeper, "uses"))


def test_policies(keeper: Keeper) -> None:
    keeper.create_view("kept", COST, policy="incremental")
    keeper.create_view("anew", COST, policy="full")
    keeper.create_view("asked", COST, policy="strict")
    keeper.apply("parts", updates=[{"pid": 1, "price": 7}])
    done = {each.view: each.strategy for each in keeper.refresh()}
    assert done == {"kept": "id", "anew": "recompute", "asked": "id"}
    check(keeper)
    check_verified(keeper)


def test_strict_refuses_what_cannot_be_kept(keeper: Keeper, tmp_path: Path) -> None:
    tags = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32()))
    write_deltalake(tmp_path / "log", pa.table({"tags": tags}))
    keeper.register_table("log", tmp_path / "log")
    with pytest.raises(ViewkeepError, match="no key"):
        keeper.create_view("seen", "SELECT tags FROM log", policy="strict")
    assert "seen" not in keeper.views
    keeper.create_view("seen", "SELECT tags FROM log", policy="incremental")
    assert keeper.refresh()[0].strategy == "none"


def test_auto_computes_anew_after_a_large_change(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.create_view("by_auto", COST)
    keeper.create_view("by_diffs", COST, policy="incremental")
    keeper.create_table("many", {"id": "int", "n": "int"}, ["id"], rows=[(0, 0)])
    keeper.create_view("summed", "SELECT n, count(*) AS c FROM many GROUP BY n")
    keeper.apply("many", inserts=[(n, n % 7) for n in range(1, 2000)])
    (report,) = keeper.refresh("summed")
    assert report.strategy == "recompute"
    assert "1,999 changes of many" in report.reason
    monkeypatch.setattr(feed, "MOST_CHANGES", 2)
    keeper.apply("parts", updates=[{"pid": n, "price": 1} for n in range(1, 4)])
    done = {each.view: each.strategy for each in keeper.refresh() if each.changed}
    assert done == {"by_auto": "recompute", "by_diffs": "recompute"}
    check(keeper)


def test_caches_are_appended_to_and_compacted(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that change, come, go and come back, through overlays and compactions."""
    monkeypatch.setattr(caches, "OVERLAY_ROWS", 4)
    monkeypatch.setattr(caches, "OVERLAY_SHARE", 0)
    monkeypatch.setattr(write_changes, "SMALL_ROWS", 0)
    keeper.create_view(
        "cost", "SELECT did, sum(price) AS cost, max(price) AS m FROM uses JOIN parts USING (pid)"
        " GROUP BY did"
    )  # fmt: skip
    assert keeper.script("cost").caches
    overlays = []
    steps: list[dict[str, Any]] = [
        {"updates": [{"pid": 1, "price": 1000}]},
        {"updates": [{"pid": 1, "price": 3}, {"pid": 6, "price": 2000}]},
        {"deletes": [(6,), (11,)]},
        {"inserts": [(6, 60)], "updates": [{"pid": 7, "price": None}]},
        {"deletes": [(0,), (5,), (10,)]},
        {"inserts": [(0, 1), (11, 2)]},
        {"updates": [{"pid": 7, "price": 70}]},
    ]
    for step in steps:
        keeper.apply("parts", **step)
        assert keeper.refresh()[0].strategy == "id"
        check(keeper)
        check_caches(keeper, "cost")
        overlays.append(sum(_overlay_rows(keeper, "cost")))
    assert max(overlays) > 0
    assert 0 in overlays[1:], "it was never compacted"


def test_two_groups_that_swap(keeper: Keeper) -> None:
    """Group keys that are NULL, groups that empty and fill again."""
    keeper.create_table("g", {"id": "int", "k": "string", "x": "double"}, ["id"])
    keeper.create_view("s", "SELECT k, sum(x) AS s, count(x) AS n, avg(x) AS a FROM g GROUP BY k")
    keeper.apply("g", inserts=[(1, None, 1.0), (2, "a", None), (3, "a", 0.1)])
    keeper.refresh()
    check(keeper)
    keeper.apply("g", updates=[{"id": 1, "k": "a"}, {"id": 2, "k": None}, {"id": 3, "k": None}])
    keeper.refresh()
    check(keeper)
    keeper.apply("g", deletes=[(1,), (2,), (3,)])
    keeper.refresh()
    assert not rows(keeper, "s")
    check_verified(keeper)


def check_caches(keeper: Keeper, name: str) -> None:
    """The caches of a view hold what their definitions say, at the versions of its state."""
    view = keeper._view(name)
    state = view.stored().state
    relations = ViewRelations(view, {(name, "post"): v for name, v in state.inputs.items()})
    spark = keeper._engines.spark
    for cache_name, cache in open_caches(view, state).items():
        relations[cache_name] = cache.relation()
        found = _query_frame(
            spark, Stored(cache_name, cache.materialized.definition.schema), relations
        )
        expected = _query_frame(spark, cache.materialized.definition, relations)
        expect(cache_name, rounded(bag(found.toArrow())), rounded(bag(expected.toArrow())))


def _overlay_rows(keeper: Keeper, name: str) -> list[int]:
    view = keeper._view(name)
    return [each.overlay.num_rows for each in open_caches(view, view.stored().state).values()]


@pytest.mark.parametrize("small", [1, 16])
def test_spark_rewrites_what_the_driver_would(
    keeper: Keeper, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_driver_bytes(keeper, 0)
    monkeypatch.setattr(rewrite, "SMALL_FILES", small)
    keeper.create_view("joined", "SELECT did, pid, price FROM uses JOIN parts USING (pid)")
    keeper.apply("parts", updates=[{"pid": 3, "price": None}], deletes=[(4,)], inserts=[(20, 1)])
    keeper.apply("uses", inserts=[(9, 20), (9, 3)], deletes=[(1, 1)])
    assert keeper.refresh()[0].strategy == "id"
    check(keeper)
    keeper.apply("parts", deletes=[(20,), (3,)])
    keeper.refresh()
    check(keeper)
    check_verified(keeper)


def test_hidden_columns_stay_hidden(keeper: Keeper, tmp_path: Path) -> None:
    """What Viewkeep needs besides the SQL is in the table, and `read` does not show it."""
    keeper.create_view("mean", "SELECT avg(price) AS mean FROM parts GROUP BY pid % 3")
    stored = [field.name for field in DeltaTable(tmp_path / "mean").schema().fields]
    assert stored[0] == "mean"
    assert len(stored) > 1
    assert all(name.startswith("#") for name in stored[1:])
    assert keeper.read("mean").columns == ["mean"]
    keeper.create_view("means", "SELECT count(mean) AS n FROM mean")
    keeper.apply("parts", deletes=[(0,), (3,), (6,), (9,)])
    keeper.refresh()
    check(keeper)


def test_one_failure_leaves_the_others_right(keeper: Keeper) -> None:
    keeper.create_view("shares", "SELECT pid, 100 / (price + 1) AS share FROM parts")
    keeper.create_view("over", "SELECT count(*) AS n FROM shares")
    keeper.create_view("cost", COST)
    keeper.apply("parts", updates=[{"pid": 3, "price": -1}])
    before = versions(keeper)
    with pytest.raises(ViewkeepError, match=r"DIVIDE_BY_ZERO|division by zero") as caught:
        keeper.refresh()
    reports = {each.view: each for each in caught.value.reports}  # type: ignore[attr-defined]
    error = reports["shares"].error
    assert "DIVIDE_BY_ZERO" in error or "division by zero" in error
    assert "reads shares" in reports["over"].error
    assert not reports["cost"].error
    check(keeper, ["cost"])
    after = versions(keeper)
    assert (after["shares"], after["over"]) == (before["shares"], before["over"])
    keeper.apply("parts", updates=[{"pid": 3, "price": 0}])
    keeper.refresh()
    check(keeper)


def test_replacing_a_view(spark: SparkSession, keeper: Keeper, tmp_path: Path) -> None:
    """The old rows stay readable until the new ones are there; versions stay readable after."""
    keeper.create_view("dear", "SELECT pid, price FROM parts WHERE price > 90")
    keeper.create_view("over", "SELECT count(*) AS n, max(price) AS m FROM dear")
    seen: list[Counter[Any]] = []
    other = Keeper(tmp_path, spark)
    computed = replace_view.compute_view

    def watched(*given: Any, **named: Any) -> Any:
        built = computed(*given, **named)
        seen.append(Counter(tuple(row) for row in other.read("dear").collect()))
        return built

    replace_view.compute_view = watched
    try:
        report = keeper.create_view(
            "dear", "SELECT pid, price + 0.5 AS price FROM parts WHERE price < 30", replace=True
        )
    finally:
        replace_view.compute_view = computed
    assert seen == [Counter([(10, 100), (11, 110)])]
    assert (report.strategy, report.from_scratch) == ("id", True)
    assert report.version == keeper.history("dear")[0].version > 0
    assert len(keeper.read("dear").collect()) == 3
    assert Counter(tuple(r) for r in keeper.read("dear", 0).collect()) == seen[0]
    assert Counter(tuple(r) for r in keeper.read("over").collect()) == Counter([(2, 110)])
    for each in (other, keeper):  # the first one finds other types below "over" than it knew
        each.refresh()
        check(each)
        keeper.apply("parts", updates=[{"pid": 1, "price": 7}])
    keeper.refresh()
    check(keeper)
    check_verified(keeper)


def test_a_replacement_that_would_break_readers(keeper: Keeper) -> None:
    keeper.create_view("dear", "SELECT pid, price FROM parts WHERE price > 90")
    keeper.create_view("over", "SELECT max(price) AS m FROM dear")
    before, definitions = versions(keeper), keeper.views
    with pytest.raises(ViewkeepError, match='view "over" reads "dear", and would break'):
        keeper.create_view("dear", "SELECT pid FROM parts", replace=True)
    with pytest.raises(ViewkeepError, match="read each other"):
        keeper.create_view("dear", "SELECT m AS pid, m AS price FROM over", replace=True)
    with pytest.raises(ViewkeepError, match="already"):
        keeper.create_view("dear", "SELECT pid FROM parts")
    assert (versions(keeper), keeper.views) == (before, definitions)
    assert keeper.refresh()[0].strategy == "none"


def test_whoever_dies_in_a_swap_leaves_a_definition_to_build(
    spark: SparkSession, keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.create_view("dear", "SELECT pid FROM parts WHERE price > 90")

    def dies(*given: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(replace_view, "commit_view", dies)
        with pytest.raises(KeyboardInterrupt):
            keeper.create_view("dear", "SELECT pid, price FROM parts", replace=True)
    other = Keeper(tmp_path, spark)
    assert len(other.read("dear").collect()) == 2
    with pytest.raises(ViewkeepError, match="refresh it first"):
        other.verify("dear")
    assert other.refresh()[0].reason == "the definition has changed"
    check(other)


def test_a_process_with_an_old_definition(
    spark: SparkSession, keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the catalog before another process replaced the view: it must not bring it back."""
    from viewkeep.refresh import all_views as refresh_round

    keeper.create_view("dear", "SELECT pid FROM parts WHERE price > 90")
    other = Keeper(tmp_path, spark)
    refreshed, done = refresh_round._computed_commit, []

    def late(*given: Any) -> Any:
        if not done:
            done.append(True)
            other.create_view("dear", "SELECT pid, price FROM parts", replace=True)
        return refreshed(*given)

    monkeypatch.setattr(refresh_round, "_computed_commit", late)
    keeper.apply("parts", updates=[{"pid": 1, "price": 95}])
    keeper.refresh()
    assert keeper.read("dear").columns == ["pid", "price"]
    check(keeper)
    assert keeper.history("dear")[0].reason == "the definition has changed"


def test_a_replacement_with_the_same_columns_in_another_order(keeper: Keeper) -> None:
    keeper.create_view("seen", "SELECT pid, price FROM parts WHERE pid = 3")
    keeper.create_view("seen", "SELECT price, pid FROM parts WHERE pid = 3", replace=True)
    assert keeper.read("seen").columns == ["price", "pid"]
    keeper.apply("parts", updates=[{"pid": 3, "price": 7}])
    keeper.refresh()
    assert rows(keeper, "seen") == {(7, 3): 1}
    check_verified(keeper)
