"""Views under `auto` take a better strategy when they are computed anew: they stay right, readers
see one version or the other, and a process may die at any write."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import viewkeep as vk
from tests.keeper.faults import fault
from tests.keeper.lakes import check, rows
from viewkeep import Keeper
from viewkeep.lake import Costs
from viewkeep.lake.views.view import View
from viewkeep.refresh import choose_strategy, strategy_costs
from viewkeep.refresh.choose_strategy import Comparison, StatusAdvice
from viewkeep.refresh.strategy_costs import StrategyCost, seen_shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
COLUMNS = {"id": "int", "y": "int", "a": "int"}
STAR = "SELECT r.y, sum(r.a * s.a) AS x FROM r JOIN s ON r.y = s.y GROUP BY r.y"
ABOVE = "SELECT x, count(*) AS n FROM star GROUP BY x"
PAIRS = "SELECT sum(r.a) AS x, count(*) AS n FROM r JOIN s ON r.y = s.y"
SUMS = "SELECT y, sum(a) AS x FROM r GROUP BY y"

Prefer = Callable[[str], None]


@pytest.fixture
def prefer(monkeypatch: pytest.MonkeyPatch) -> Prefer:
    """Views over tables of any size find a strategy much faster, where it can keep them."""
    monkeypatch.setattr(strategy_costs, "SMALL", 0)
    monkeypatch.setattr(choose_strategy, "WORTH", 0)
    monkeypatch.setattr(Comparison, "is_recomputed", False)

    def set_better(strategy: str) -> None:
        def better(comparison: Comparison) -> StrategyCost | None:
            others = [each for each in comparison.costs[1:] if each.strategy == strategy]
            return others[0] if others else None

        monkeypatch.setattr(Comparison, "better", property(better))

    set_better("none")
    return set_better


def open_lake(path: Path) -> Keeper:
    return Keeper(path, durable=False)


def fill(path: Path, **views: str) -> Keeper:
    keeper, rng = open_lake(path), Random(3)
    for name in "rs":
        rows_of_table = [(i, rng.randrange(5), rng.randrange(9)) for i in range(20)]
        keeper.create_table(name, vk.Table(COLUMNS, key=["id"]), rows=rows_of_table)
    for name, sql in views.items():
        keeper.create_view(name, sql)
    return keeper


def change(keeper: Keeper, rng: Random) -> None:
    """Inserts, deletes and updates of a table."""
    name = rng.choice("rs")
    ids = keeper.read(name).column("id").to_pylist()
    gone, moved = rng.sample(ids, 2)
    new = max(ids) + 1
    keeper.apply(
        name,
        inserts=[(new, rng.randrange(7), rng.randrange(9))],
        updates=[{"id": moved, "y": rng.randrange(7)}],
        deletes=[(gone,)],
    )


def forget_plans(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next versions of views are as another release would keep them."""
    with monkeypatch.context() as patch:
        patch.setattr(View, "plan", "of another release")
        for name in keeper.views:
            view = keeper._view(name)
            view.__dict__.pop("plan", None)
        change(keeper, Random(1))
        keeper.refresh()


def test_repair_takes_the_better_strategy(tmp_path: Path, prefer: Prefer) -> None:
    keeper = fill(tmp_path, star=STAR, above=ABOVE)
    prefer("viewtree")
    assert 'repair("star") takes it, as the next rebuild does' in keeper.explain("star")
    report = keeper.repair("star")
    assert (report.strategy, report.from_scratch) == ("viewtree", True)
    assert report.reason.startswith("repaired; viewtree is expected to be faster than by IDs: id ")
    assert "  strategy  viewtree: expected to be faster than by IDs: id " in keeper.explain("star")
    check(keeper)
    change(keeper, Random(2))
    reports = {each.view: each for each in open_lake(tmp_path).refresh()}
    assert (reports["star"].strategy, reports["star"].from_scratch) == ("viewtree", False)
    check(keeper)
    prefer("id")
    assert keeper.repair("star").reason.startswith("repaired; id is expected to be faster than by ")
    check(keeper)


def test_what_is_asked_for_stays(tmp_path: Path, prefer: Prefer) -> None:
    keeper = fill(tmp_path)
    keeper.create_view("by_ids", STAR, strategy="id")
    keeper.create_view("never_anew", STAR, policy="incremental")
    prefer("viewtree")
    for name in keeper.views:
        report = keeper.repair(name)
        assert (report.strategy, report.reason) == ("recompute", "repaired")
        assert 'the last ones: strategy="viewtree"' in keeper.explain(name)
    check(keeper)


def test_a_rebuild_of_a_refresh_switches(
    tmp_path: Path, prefer: Prefer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views that come before it in the round, and after it, are told as well."""
    keeper = fill(tmp_path, sums=SUMS, star=STAR, above=ABOVE)
    forget_plans(keeper, monkeypatch)
    prefer("viewtree")
    change(keeper, Random(4))
    keeper = open_lake(tmp_path)
    reports = {each.view: each for each in keeper.refresh()}
    why = "this version of Viewkeep keeps it in another way; viewtree is expected to be faster"
    assert reports["star"].strategy == "viewtree"
    assert reports["star"].reason.startswith(why)
    assert {name: each.changed for name, each in reports.items()} == dict.fromkeys(reports, True)
    assert {n: each.version for n, each in reports.items()} == {
        n: keeper.version(n) for n in reports
    }
    check(keeper)
    assert {each.strategy for each in keeper.refresh()} == {"none"}


def test_a_plan_tells_which_views_will_switch(
    tmp_path: Path, prefer: Prefer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a view above one that is computed anew; a plan changes nothing."""
    keeper = fill(tmp_path, sums=SUMS, star=STAR, above=ABOVE)
    keeper.create_view("on_view", STAR.replace("FROM r ", "FROM star AS r ").replace("r.a", "r.x"))
    change(keeper, Random(1))
    prefer("viewtree")
    assert {each.strategy for each in keeper.plan()} == {"id"}, "none has to be computed anew"
    prefer("none")
    forget_plans(keeper, monkeypatch)
    change(keeper, Random(4))
    keeper = open_lake(tmp_path)
    assert {each.strategy for each in keeper.plan()} == {"recompute"}
    prefer("viewtree")
    stages = {each.view: each for each in keeper.plan()}
    before = {name: keeper.version(name) for name in stages}
    why = "this version of Viewkeep keeps it in another way; viewtree is expected to be faster"
    assert {name for name, each in stages.items() if why in each.reason} == {"star", "on_view"}
    assert before == {name: keeper.version(name) for name in stages}
    reports = {each.view: each for each in keeper.refresh()}
    assert {n: each.strategy for n, each in stages.items()} == {
        n: each.strategy for n, each in reports.items()
    }
    assert stages["star"].reason == reports["star"].reason
    check(keeper)


def test_a_user_who_defines_it_anew_meanwhile_is_right(
    tmp_path: Path, prefer: Prefer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from viewkeep.refresh import replace_view

    keeper = fill(tmp_path, star=STAR)
    prefer("viewtree")
    compute, other = replace_view.compute_replacement, STAR.replace("r.a * s.a", "r.a")

    def interrupted(*given: object) -> object:
        monkeypatch.setattr(replace_view, "compute_replacement", compute)
        prefer("none")
        open_lake(tmp_path).create_view("star", other, replace=True)
        return compute(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(replace_view, "compute_replacement", interrupted)
    with pytest.raises(vk.ViewkeepError, match="another process has defined it anew"):
        keeper.repair("star")
    assert keeper.views["star"] == other
    check(keeper)


def test_parts_that_overflow_leave_it_to_ids(tmp_path: Path, prefer: Prefer) -> None:
    keeper = fill(tmp_path)
    columns = vk.Table({**COLUMNS, "a": "bigint"}, key=["id"])
    keeper.create_table("big", columns, rows=[(i, 99, 2**62) for i in range(4)])
    keeper.create_view("v", STAR.replace("FROM r", "FROM big AS r"))
    prefer("viewtree")
    report = keeper.repair("v")
    assert (report.strategy, report.reason) == ("recompute", "repaired")
    assert keeper.explain("v").splitlines()[1].startswith("  strategy  id")
    check(keeper)


@pytest.mark.parametrize("by", ["refresh", "repair"] if LONG else ["refresh"])
def test_it_may_die_at_any_write(
    tmp_path: Path, prefer: Prefer, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Readers see the rows from before or those from after, and the next refresh finishes it."""
    keeper, rng, ends = fill(tmp_path, star=STAR, above=ABOVE), Random(6), set()
    for at in range(1, 16) if LONG else (3, 6, 8):
        if by == "refresh":
            forget_plans(open_lake(tmp_path), monkeypatch)
        prefer("viewtree" if keeper._view("star").decision.strategy == "id" else "id")
        before = rows(keeper, "star")
        change(keeper, rng)
        with fault(at, after=at % 3 == 0) as died:
            keeper = open_lake(tmp_path)
            keeper.repair("star") if by == "repair" else keeper.refresh()
        keeper = open_lake(tmp_path)
        seen, view = rows(keeper, "star"), keeper._view("star")
        assert keeper.read("star").num_rows == seen.total()
        is_between = view.definition.build != view.stored().state.build
        ends.add((died.dead, seen == before, is_between))
        keeper.refresh()
        check(keeper)
        assert seen in (before, rows(keeper, "star"))
    assert (True, True, False) in ends, "before the definition"
    assert (True, True, True) in ends, "between the definition and the rows"


@pytest.mark.parametrize("seed", range(8 if LONG else 1))
def test_switches_at_random(
    tmp_path: Path, prefer: Prefer, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = Random(f"switches {seed}")
    keeper = fill(tmp_path, star=STAR, pairs=PAIRS, above=ABOVE)
    taken = set()
    for _ in range(12 if LONG else 4):
        prefer(rng.choice(["id", "tuple", "viewtree", "recursive", "epsilon", "none"]))
        change(keeper, rng)
        match rng.randrange(4):
            case 0:
                keeper.repair(rng.choice(list(keeper.views)))
            case 1:
                forget_plans(keeper, monkeypatch)
            case 2:
                keeper.create_view("star", STAR, replace=True)
        keeper = open_lake(tmp_path)
        taken |= {each.strategy for each in keeper.refresh()}
        check(keeper)
    assert len(taken) > 2


def test_switches_on_spark(
    tmp_path: Path, prefer: Prefer, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `repair`, and by a refresh that has to compute the view anew; changes come in between."""
    fill(tmp_path, star=STAR)
    keeper = Keeper(tmp_path, spark, backend="spark", durable=False)
    prefer("viewtree")
    report = keeper.repair("star")
    assert (report.strategy, report.backend) == ("viewtree", "spark")
    change(open_lake(tmp_path), Random(3))
    [report] = keeper.refresh()
    assert (report.strategy, report.from_scratch, report.backend) == ("viewtree", False, "spark")
    assert keeper.verify("star").ok
    prefer("none")
    forget_plans(open_lake(tmp_path), monkeypatch)
    prefer("id")
    change(open_lake(tmp_path), Random(4))
    [stage] = Keeper(tmp_path, spark, backend="spark", durable=False).plan()
    [report] = Keeper(tmp_path, spark, backend="spark", durable=False).refresh()
    assert report.version == keeper.history("star")[0].version
    assert stage.strategy == report.strategy == "id"
    assert report.backend == "spark"
    assert keeper.verify("star").ok


# --- what was seen, and what is said of it --------------------------------------------------------


def test_a_replacement_expects_the_changes_that_were_seen(tmp_path: Path, prefer: Prefer) -> None:
    keeper = fill(tmp_path, star=SUMS)
    keeper.apply("r", deletes=[(0,), (1,)])
    keeper.refresh()
    keeper.create_view("star", STAR, replace=True)
    seen = seen_shares(keeper._view("star"))
    assert seen == {"r": 2 / 18}, "the view before did not read s"
    keeper.apply("s", deletes=[(0,)])
    keeper.refresh()
    assert seen_shares(keeper._view("star")) == {"r": 1 / 18, "s": 1 / 19}


def test_experience_with_one_strategy_is_none_with_another(
    tmp_path: Path, prefer: Prefer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = fill(tmp_path, star=STAR)
    prefer("viewtree")

    def refuse(notes: object) -> None:
        raise AssertionError("costs of the strategy before")

    monkeypatch.setattr(Costs, "from_notes", refuse)
    assert keeper.create_view("star", STAR, replace=True).strategy == "viewtree"


def test_status_tells_which_strategy_would_have_been_faster(
    tmp_path: Path, prefer: Prefer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = fill(tmp_path, star=STAR, sums=SUMS)
    change(keeper, Random(2))
    keeper.refresh()
    prefer("viewtree")
    view, history = keeper._view("star"), keeper.history("star")
    slow = [replace(each, seconds=9.0) for each in history]
    advise = StatusAdvice(keeper._plans, keeper._engines)
    told = advise(view, slow)
    assert told.startswith("the last refreshes took 9 s on average, viewtree is expected to take ")
    assert told.endswith('repair("star") takes it, as the next rebuild does')
    assert advise(view, [replace(each, seconds=0.0) for each in history]) == ""
    assert advise(view, slow[-1:]) == "", "a view that was never refreshed"
    assert advise(keeper._view("sums"), slow) == "", "a view that has no choice"
    monkeypatch.setattr(View, "history", lambda view: slow)
    star, sums = keeper.status("star", "sums")
    assert (star.advice, sums.advice) == (told, "")
    monkeypatch.setattr(choose_strategy, "ADVICE_SECONDS", 0.0)
    assert keeper.status("star")[0].advice == ""
    monkeypatch.undo()
    assert keeper.status("star")[0].advice == "", "small tables are not looked at"


def test_quick_views_cost_a_status_nothing(
    tmp_path: Path, prefer: Prefer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose_strategy, "WORTH", 10_000)
    keeper = fill(tmp_path, star=STAR)
    change(keeper, Random(2))
    keeper.refresh()
    monkeypatch.setattr(choose_strategy, "compare_strategies", None)
    [status] = keeper.status()
    assert (status.advice, status.problem) == ("", "")
