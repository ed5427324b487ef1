"""Commits beside the computation of the next views: each view is committed before another reads it,
an error is that of its view, and a process that dies leaves every view as it was or refreshed."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.keeper.faults import fault
from viewkeep import Keeper
from viewkeep.errors import ViewkeepError
from viewkeep.refresh import all_views
from viewkeep.refresh.all_views import RefreshError
from viewkeep.tables.log.delta import ConflictError, LakeTable, StorageError

VIEWS = {
    "sums": "SELECT g, sum(n) AS s FROM t GROUP BY g",
    "large": "SELECT id, n FROM t WHERE n > 5",
    "above": "SELECT s, count(*) AS groups FROM sums GROUP BY s",
    "joined": "SELECT t.id, u.m, t.n FROM t JOIN u ON t.g = u.g",
    "both": "SELECT large.id, large.n, above.groups FROM large JOIN above ON large.n = above.s",
    "counts": "SELECT count(*) AS rows, max(n) AS most FROM t",
}


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    rows = [(n, n % 3, n) for n in range(12)]
    keeper.create_table("t", {"id": "int", "g": "int", "n": "int"}, key=["id"], rows=rows)
    keeper.create_table("u", {"g": "int", "m": "int"}, key=["g"], rows=[(0, 7), (1, 8), (2, 9)])
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql)
    return keeper


def change(keeper: Keeper, number: int) -> None:
    keeper.apply("t", updates=[{"id": number % 12, "n": 100 + number}])


def check(keeper: Keeper) -> None:
    for name in VIEWS:
        result = keeper.verify(name)
        assert (result.ok, result.fresh) == (True, True), result


def raise_once(
    monkeypatch: pytest.MonkeyPatch, view: str, error: ViewkeepError
) -> list[threading.Thread]:
    """The next commit of a view fails; the threads of all commits."""
    commit, threads, errors = LakeTable.commit, [], [error]

    def failing(table: LakeTable, *given: Any, **named: Any) -> int:
        threads.append(threading.current_thread())
        if table.uri.endswith(f"/{view}") and errors:
            raise errors.pop()
        return commit(table, *given, **named)

    monkeypatch.setattr(LakeTable, "commit", failing)
    return threads


def test_a_view_is_committed_before_another_reads_it(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    compute = all_views.compute_refresh

    def computed(view: Any, *rest: Any) -> Any:
        events.append(("compute", view.name))
        commit = compute(view, *rest)

        def committed() -> Any:
            report = commit()
            events.append(("committed", view.name))
            return report

        return committed

    monkeypatch.setattr(all_views, "compute_refresh", computed)
    for number in range(5):
        change(keeper, number)
        events.clear()
        reports = keeper.refresh()
        order = [name for what, name in events if what == "compute"]
        assert [each.view for each in reports] == order, "whichever was committed first"
        for lower, upper in (("sums", "above"), ("above", "both"), ("large", "both")):
            assert events.index(("committed", lower)) < events.index(("compute", upper))
        assert len(events) == 2 * len(VIEWS), "none is left behind"
    check(keeper)


def test_an_error_of_a_commit_is_that_of_its_view(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(keeper, 1)
    threads = raise_once(monkeypatch, "sums", StorageError("the disk is full"))
    with pytest.raises(RefreshError, match=r'view "sums": the disk is full') as raised:
        keeper.refresh()
    errors = {each.view: each.error for each in raised.value.reports}
    assert set(errors) == set(VIEWS)
    assert {name for name, error in errors.items() if error} == {"sums", "above", "both"}
    assert set(threads) - {threading.current_thread()}, "commits happen beside the computation"
    keeper.refresh()
    check(keeper)


def test_a_conflict_beside_other_commits_begins_the_round_anew(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(keeper, 2)
    versions = {name: keeper.history(name)[0].version for name in VIEWS}
    raise_once(monkeypatch, "large", ConflictError("another process was first"))
    reports = {each.view: each for each in keeper.refresh()}
    assert reports["large"].strategy != "none"
    assert all(reports[name].version == versions[name] + 1 for name in VIEWS)
    check(keeper)


def test_a_refresh_dies_at_every_write(keeper: Keeper, tmp_path: Path) -> None:
    deaths = 0
    for number in range(60):
        change(keeper, number)
        with fault(1 + number, after=number % 2 == 0) as died:
            Keeper(tmp_path / "lake", durable=False).refresh()
        deaths += died.dead
        again = Keeper(tmp_path / "lake", durable=False)
        again.refresh()
        if not died.dead:
            break
        if number % 7 == 0:
            check(again)
    assert deaths >= 2 * len(VIEWS)
    check(keeper)
