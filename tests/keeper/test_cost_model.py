"""Which of the two ways a view goes: estimates, and caches that recomputations leave out."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.keeper.lakes import check_verified
from viewkeep import Keeper
from viewkeep.diffs.script import Materialized
from viewkeep.execute.backend import Target
from viewkeep.execute.duckdb.backend import DuckdbBackend
from viewkeep.execute.engines import Choice
from viewkeep.lake import Costs, Experience
from viewkeep.lake.views.shared_caches import expand_caches
from viewkeep.query.algebra import Stored
from viewkeep.query.traversal import walk
from viewkeep.query.verbatim import Query
from viewkeep.refresh import costs, plan
from viewkeep.refresh.prices import (
    DRIVER,
    LOOK_UP_JOBS,
    PRICES,
    Prices,
    script_prices,
    way_of_diffs,
)

JOBS_FROM = [("spark", 5, ""), ("spark", 200_000, "jobs"), ("duckdb", 50_000, "")]
COST = "SELECT did, sum(price) AS cost FROM uses JOIN parts USING (pid) GROUP BY did"


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """An embedded lake that is large enough for estimates."""
    monkeypatch.setattr(costs, "SMALL", 0)
    keeper = Keeper(tmp_path)
    parts = [(n, 10 * n) for n in range(12)]
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=parts)
    uses = [(n % 5, n) for n in range(12)]
    keeper.create_table("uses", {"did": "int", "pid": "int"}, ["did", "pid"], rows=uses)
    keeper.create_view("cost", COST)
    return keeper


def _set_prices(monkeypatch: pytest.MonkeyPatch, **prices: float) -> None:
    for name, each in PRICES.items():
        monkeypatch.setitem(PRICES, name, replace(each, **prices))


def _refreshed(keeper: Keeper, price: int) -> tuple[str, str, bool]:
    """The strategy and the reason of a refresh after a change, and whether it wrote caches."""
    keeper.apply("parts", updates=[{"pid": 3, "price": price}])
    stages = keeper.plan()
    [report] = keeper.refresh()
    assert stages[0].reason == report.reason, "what was planned is what was done"
    check_verified(keeper)
    return report.strategy, report.reason, "caches" in report.phases


def test_a_dear_refresh_is_a_recomputation_without_caches(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FALLS_BACK", True)
    _set_prices(monkeypatch, change=1e6)
    strategy, reason, caches = _refreshed(keeper, 1)
    assert (strategy, caches) == ("recompute", False)
    assert reason.startswith("bringing the changes in would take about 1000000")


def test_caches_are_written_again_once_they_would_have_paid(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FALLS_BACK", True)
    with monkeypatch.context() as dear:
        _set_prices(dear, change=1e6)
        _refreshed(keeper, 1)
    _set_prices(monkeypatch, **dict.fromkeys(asdict(PRICES["duckdb"]), 0.0))
    monkeypatch.setattr(Experience, "recompute", lambda self, size, estimate: 0.4)
    monkeypatch.setattr(Experience, "wants_caches", property(lambda self: self.missed > 1.0))
    ways = [_refreshed(keeper, 10 + number) for number in range(4)]
    assert [(strategy, caches) for strategy, _, caches in ways] == [
        ("recompute", False),
        ("recompute", False),
        ("recompute", True),
        ("id", False),
    ]
    assert [reason for _, reason, _ in ways[1:3]] == [
        "it has no caches",
        "the caches that bring changes in are written anew",
    ]


def test_small_views_that_gave_up_go_on_without_caches(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FALLS_BACK", True)
    monkeypatch.setattr(costs, "SMALL", 1 << 30)
    monkeypatch.setattr("viewkeep.lake.views.experience.LONG", -1.0)
    monkeypatch.setattr(Experience, "after_run", lambda self, c, s, z: self.after_giving_up(c))
    ways = [_refreshed(keeper, 20 + number) for number in range(5)]
    assert [(strategy, caches) for strategy, _, caches in ways] == [
        ("id", False),
        *[("recompute", False)] * 4,
    ]


def test_views_that_may_not_be_recomputed_have_no_estimate(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FALLS_BACK", True)
    keeper.create_view("strictly", COST, policy="strict")
    _set_prices(monkeypatch, change=1e6)
    keeper.apply("parts", updates=[{"pid": 3, "price": 5}])
    assert {each.view: each.strategy for each in keeper.refresh()} == {
        "cost": "recompute",
        "strictly": "id",
    }
    check_verified(keeper)


def test_queries_compute_the_caches_that_they_lack(keeper: Keeper) -> None:
    script = keeper.script("cost")
    [cache] = script.caches
    above = replace(cache, name="above", definition=Stored("cache_9", cache.definition.schema))
    known: dict[str, Materialized] = {"cache_9": cache, "above": above}
    query = expand_caches(Stored("above", cache.definition.schema), known)
    assert query == cache.definition
    assert not [each for each in walk(query) if isinstance(each, Stored)]


def test_a_run_that_was_estimated_corrects_the_next_estimate(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FALLS_BACK", True)
    _set_prices(monkeypatch, refresh=0.0, kept=1e-9, few_statement=0.0)
    monkeypatch.setattr(Experience, "recompute", lambda self, size, estimate: 1e9)
    assert _refreshed(keeper, 1)[0] == "id"
    keeper.apply("parts", updates=[{"pid": 3, "price": 2}])
    [stage] = keeper.plan()
    assert stage.estimate is not None
    assert stage.estimate.incremental > 2 * stage.estimate.plain, "it took longer"


def test_experience_corrects_estimates() -> None:
    warm = Costs().after_build("duckdb", 2.3, size=100, caches=1.8).of("duckdb")
    assert warm.seconds == 1.8, "most of the time, and the engine had run before"
    warm = Costs().after_build("duckdb", 2.3, 100, caches=1.6, estimate=0.4).of("duckdb")
    assert warm.seconds == 0.8, "between the two: the caches were also written"
    warm = Costs().after_build("duckdb", 2.3, 100, estimate=0.4).of("duckdb")
    assert warm.seconds == 2.3, "there were none"
    known = Costs().after_build("duckdb", 2.3, 100, 1.8, estimate=0.1, is_warm=False).of("duckdb")
    assert known.seconds == 1.5, "of 1.8 s for the caches, the start took a part"
    quick = Costs().after_build("duckdb", 0.9, 100, 0.5, estimate=0.1, is_warm=False)
    assert 0.2 < (quick.of("duckdb").seconds or 0.0) < 0.3, "the start may have taken the most"
    later = quick.after_build("duckdb", 0.9, 100).of("duckdb")
    assert (later.seconds or 0.0) < 0.5, "by and by"
    on_spark = [
        Costs().after_build("spark", seconds, 100, estimate=0.5, is_warm=warm).of("spark").seconds
        for seconds, warm in ((8.0, True), (8.0, False), (5.0, False), (60.0, False))
    ]
    assert on_spark == [4.0, 2.0, 0.5, 54.0], "a start of Java takes seconds, not minutes"
    assert known.recompute(size=300, estimate=9.0) == 4.5
    assert Experience().recompute(size=300, estimate=9.0) == 9.0
    slow = known.after_measuring({"t": 1}, seconds=3.0, estimate=1.0)
    assert [slow.corrected({name: 1}, 2.0) for name in "tu"] == [6.0, 2.0], "the first, wholly"
    assert [slow.has_tried({name: 1}) for name in "tu"] == [True, False]
    slower = slow.after_measuring({"t": 1}, 4.0, 1.0)
    assert slower.corrected({"t": 1}, 2.0) == 7.0, "later ones by half"
    assert slow.after_measuring({"t": 1}, 1.0, 1.0).corrected({"t": 1}, 2.0) == 4.0
    assert 2.0 < slow.after_avoiding({"t": 1}).corrected({"t": 1}, 2.0) < 6.0
    assert Costs.from_notes(Costs({"duckdb": slow}).notes()).of("duckdb") == slow


def test_what_few_changes_have_cost_tells_less_of_many() -> None:
    """A cold disk made 5,000 changes take four times what was expected: 50,000 are still tried."""
    known = Experience(seconds=2.8).after_measuring({"t": 5000}, 1.6, 0.3)
    factors = [known.corrected({"t": count}, 1.0) for count in (9999, 50_000, 500_000, 999)]
    assert factors == [4.0, 2.0, 2**0.5, 2.0]
    assert known.has_tried({"t": 50_000})
    both = known.after_measuring({"t": 50_000}, 0.8, 0.8)
    factors = [both.corrected({"t": count}, 1.0) for count in (5000, 50_000, 500_000)]
    assert factors == [4.0, 1.0, 1.0]
    forgotten = known.after_avoiding({"t": 50_000})
    assert forgotten.corrected({"t": 50_000}, 1.0) == 2.0**0.8
    assert forgotten.corrected({"t": 5000}, 1.0) == 4.0
    assert Experience.from_notes(json.loads(json.dumps(both.notes()))) == both


def test_what_the_driver_takes_tells_nothing_of_jobs() -> None:
    known = Experience(seconds=2.8).after_measuring({"t": 5000}, 0.1, 0.4)
    assert [known.corrected({"t": 5000}, 1.0, way) for way in ("", "jobs")] == [0.25, 1.0]
    assert [known.has_tried({"t": 5000}, way) for way in ("", "jobs")] == [True, False]
    both = known.after_measuring({"t": 5000}, 2.0, 1.0, "jobs")
    assert [both.corrected({"t": 5000}, 1.0, way) for way in ("", "jobs")] == [0.25, 2.0]
    assert Experience.from_notes(json.loads(json.dumps(both.notes()))) == both


@pytest.mark.parametrize(("backend", "count", "way"), JOBS_FROM)
def test_many_changes_on_spark_are_jobs(keeper: Keeper, backend: str, count: int, way: str) -> None:
    view = keeper._plans.view(
        keeper._lake.catalog.read().views["cost"], keeper._lake.catalog.read()
    )
    choice, inputs = Choice(backend, "", 1 << 30), {"parts": 0, "uses": 0}
    about = costs.estimate(view, view.stored(), inputs, choice, {"parts": count}, Experience())
    assert about is not None
    assert about.way == way
    is_tried_at_half = about.error >= about.plain
    assert is_tried_at_half is (way == "jobs")


def test_a_marked_view_is_not_sorted_where_time_matters(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And changes are brought into rows in any order."""
    monkeypatch.setattr(plan, "FALLS_BACK", True)
    sql = "SELECT did, pid, price FROM uses JOIN parts USING (pid)"
    keeper.create_view("marked", sql, layout="merge-on-read")
    targets: list[Target] = []

    def write(self: DuckdbBackend, place: str, query: Query, *about: Any) -> Any:
        targets.append(about[-1])
        return original(self, place, query, *about)

    original = DuckdbBackend.write
    monkeypatch.setattr(DuckdbBackend, "write", write)
    with monkeypatch.context() as dear:
        _set_prices(dear, change=1e6)
        keeper.apply("parts", updates=[{"pid": 3, "price": 1}])
        assert [each.strategy for each in keeper.refresh()] == ["recompute", "recompute"]
    assert [each.is_quick for each in targets if each.is_sorted] == [True]
    _set_prices(monkeypatch, **dict.fromkeys(asdict(PRICES["duckdb"]), 0.0))
    monkeypatch.setattr(Experience, "recompute", lambda self, size, estimate: 9.0)
    for number in range(3):
        keeper.apply("parts", updates=[{"pid": number, "price": -1}], deletes=[(9 + number,)])
        assert keeper.refresh("marked")[-1].strategy == "id"
        check_verified(keeper)
    keeper.repair("marked")
    assert [each.is_quick for each in targets if each.is_sorted] == [True, False]


def test_caches_are_wanted_when_they_would_have_saved_their_cost() -> None:
    known = Costs().after_build("duckdb", 2.3, size=100, caches=1.5).of("duckdb")
    once = known.after_missing(1.0)
    assert (once.wants_caches, once.after_missing(1.0).wants_caches) == (False, True)
    assert not once.after_missing(1.0).after_writing(100, 1.5).wants_caches
    assert once.after_missing(1.0).after_writing(100, 0.0).wants_caches


def test_a_budget_leaves_room_for_what_is_expected() -> None:
    known = Experience(seconds=10.0)
    budgets = [known.budget(10**9, estimate) for estimate in (0.0, 4.0, 20.0)]
    assert budgets == [3.0, 8.0, 15.0]
    least = [Experience(seconds=seconds).budget(10**9) for seconds in (0.01, 0.2, 1.0)]
    assert least == [0.1, 0.2, 0.5], "a try takes no longer than what it saves"


def test_what_is_about_as_dear_is_brought_in() -> None:
    def ways(error: float) -> list[bool]:
        return [costs.Estimate(s, 1.0, s, error).is_dear for s in (0.9, 1.05, 1.2)]

    assert ways(0.0) == [False, False, True]
    assert ways(0.1) == [False, True, True], "the first time it must be cheaper by some"


def test_the_first_build_of_a_process_is_told_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewkeep.refresh.build_view.recompute_seconds", lambda *_: 1e-9)
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int"}, ["id"], rows=[(1,)])
    for name in ("cold", "warm"):
        keeper.create_view(name, "SELECT id, count(*) AS n FROM t GROUP BY id")
    reports = [keeper._view(name).stored().report for name in ("cold", "warm")]
    seconds = [Costs.from_notes(each.experience).of("duckdb").seconds or 0.0 for each in reports]
    assert 0 < seconds[0] < 1e-3, "the estimate counts as well"
    assert seconds[1] > 1e-6, "as measured"


def test_statements_that_changes_of_a_table_may_run(keeper: Keeper) -> None:
    view = keeper._view("cost")
    both = view.count_statements(["parts", "uses"])
    assert both == len(list(view.script.computes()))
    assert 0 < view.count_statements(["parts"]) < both
    assert view.count_statements([]) == 0


@pytest.mark.parametrize(
    ("backend", "changes", "touched", "size", "prices"),
    [
        ("spark", 500, 700, 1 << 26, DRIVER),
        ("spark", 200_000, 200_000, 1 << 26, PRICES["spark"]),
        ("spark", 25, 700_000, 1 << 26, DRIVER),
        ("spark", 25, 800_000, 1 << 26, PRICES["spark"]),
        ("spark", 500, 700, 1 << 30, LOOK_UP_JOBS),
        ("duckdb", 500, 700, 1 << 26, PRICES["duckdb"]),
    ],
)
def test_few_changes_on_spark_cost_what_its_driver_takes(
    backend: str, changes: int, touched: int, size: int, prices: Prices
) -> None:
    assert script_prices(backend, size, way_of_diffs(backend, changes, touched)) == prices
