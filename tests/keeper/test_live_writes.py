"""Live views that write their rows into the lake, beside refreshes that do so too."""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from tests.keeper.faults import fault
from tests.keeper.test_live_view import change
from viewkeep import Keeper, ViewkeepError
from viewkeep.live_view import LiveView
from viewkeep.refresh import write_rows
from viewkeep.tables.log.delta import ConflictError

VIEWS = {
    "cost": """SELECT sum(p.price * u.n) AS cost, u.did, count(*) AS parts
               FROM uses u JOIN parts p ON u.pid = p.pid GROUP BY u.did""",
    "names": """SELECT name, avg(weight) AS weight, min(price) AS least, sum(size) AS size
                FROM parts GROUP BY name""",
    "total": "SELECT sum(price) AS total, count(*) AS n FROM parts WHERE price > 4",
    "used": "SELECT DISTINCT u.did, p.name FROM uses u JOIN parts p ON u.pid = p.pid",
    "dear": "SELECT name, pid FROM parts WHERE price > 3",
}
ABOVE = "SELECT parts, count(*) AS n, sum(cost) AS cost FROM cost GROUP BY parts"


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    parts = {
        "pid": "int",
        "price": "int not null",
        "name": "string",
        "weight": "decimal(6,2)",
        "size": "double",
    }
    first = [(n, n, f"n{n % 2}", n, n / 4 if n else None) for n in range(6)]
    keeper.create_table("parts", parts, ["pid"], rows=first)
    uses = {"did": "int", "pid": "int", "n": "int not null"}
    keeper.create_table("uses", uses, ["did", "pid"], rows=[(1, 1, 2), (1, 2, 1), (2, 1, 1)])
    return keeper


def reopened(keeper: Keeper) -> Keeper:
    return Keeper(keeper._lake.uri, durable=False)


def stored_rows(keeper: Keeper, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in keeper.read(name).to_pylist())


def live_rows(live: LiveView) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in live.to_arrow().to_pylist())


def replayed(keeper: Keeper, name: str) -> Counter[tuple[Any, ...]]:
    """The rows that the changes of all versions lead to."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for each in keeper.changes(name).to_pylist():
        rows[tuple((each["before"] or {}).values())] -= each["before"] is not None
        rows[tuple((each["after"] or {}).values())] += each["after"] is not None
    assert not [row for row, count in rows.items() if count < 0]
    return +rows


@pytest.mark.parametrize("seed", range(25 if os.environ.get("VIEWKEEP_LONG") else 1))
def test_live_views_and_refreshes_in_turn(keeper: Keeper, seed: int) -> None:
    """Whoever writes a version, it equals the query at the versions that it reflects."""
    rng = Random(seed)
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, layout=rng.choice(["auto", "merge-on-read"]))
    keeper.create_view("above", ABOVE)
    live = {name: keeper.live(name) for name in VIEWS}
    for _ in range(12):
        change(keeper, rng)
        name = rng.choice(list(VIEWS))
        for action in rng.sample(["write", "resume", "refresh", "refresh above"], 2):
            if action == "write":
                live[name].catch_up()
                assert live[name].write().after == live[name].versions
                assert stored_rows(keeper, name) == live_rows(live[name])
            elif action == "resume":
                live[name].save()
                live[name] = reopened(keeper).live(name)
            else:
                keeper.refresh(name if action == "refresh" else "above")
        assert keeper.verify(name).ok
    for name in VIEWS:
        live[name].catch_up()
        live[name].write()
    keeper.refresh()
    for name in (*VIEWS, "above"):
        assert keeper.verify(name).ok
        assert replayed(keeper, name) == stored_rows(keeper, name)


def test_a_refresh_goes_on_from_what_was_written(keeper: Keeper) -> None:
    keeper.create_view("cost", VIEWS["cost"])
    live = keeper.live("cost")
    keeper.apply("parts", updates=[{"pid": 1, "price": 10}])
    live.catch_up()
    report = live.write()
    assert (report.strategy, report.rows_changed, report.version) == ("live", 2, 1)
    assert live.write().strategy == "none"
    [nothing] = keeper.refresh()
    assert (nothing.strategy, keeper.version("cost")) == ("none", 1)
    keeper.apply("parts", updates=[{"pid": 1, "price": 11}])
    [anew] = keeper.refresh()
    assert "a live view has written it" in anew.reason
    keeper.apply("parts", updates=[{"pid": 1, "price": 12}])
    [next_one] = keeper.refresh()
    assert not next_one.from_scratch
    assert keeper.verify("cost").ok


def test_whoever_is_ahead_is_not_overwritten(keeper: Keeper) -> None:
    keeper.create_view("cost", VIEWS["cost"])
    live = keeper.live("cost")
    keeper.apply("parts", updates=[{"pid": 1, "price": 10}])
    keeper.refresh()
    with pytest.raises(ViewkeepError, match=r"reflects newer versions.*catch_up\(\)"):
        live.write()
    live.catch_up()
    assert live.write().strategy == "none"
    assert keeper.version("cost") == 1


@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_refresh_in_the_middle_of_a_write(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch, is_ahead: bool
) -> None:
    keeper.create_view("cost", VIEWS["cost"])
    live, differences, other = keeper.live("cost"), write_rows._differences, reopened(keeper)
    keeper.apply("parts", updates=[{"pid": 1, "price": 10}])
    live.catch_up()

    def late(*given: Any) -> Any:
        monkeypatch.setattr(write_rows, "_differences", differences)
        if is_ahead:
            other.apply("parts", updates=[{"pid": 1, "price": 11}])
        thread = Thread(target=other.refresh)  # as in another process: it remembers no logs
        thread.start()
        thread.join()
        return differences(*given)

    monkeypatch.setattr(write_rows, "_differences", late)
    if is_ahead:
        with pytest.raises(ConflictError, match="reflects newer versions"):
            live.write()
    else:
        assert live.write().strategy == "none"
    assert keeper.version("cost") == 1
    assert keeper.verify("cost").ok


@pytest.mark.parametrize("after", [False, True])
def test_a_process_that_dies_while_it_writes(keeper: Keeper, after: bool) -> None:
    """At each place where anything is written: all of it is there, or nothing."""
    keeper.create_view("cost", VIEWS["cost"])
    rng, at, places = Random(3), 1, set[str]()
    while True:
        live = keeper.live("cost")
        change(keeper, rng)
        live.catch_up()
        before = keeper.version("cost")
        with fault(at, after) as death:
            live.write()
        survivor = reopened(keeper)
        assert survivor.version("cost") - before in ((0, 1) if death.dead else (1,))
        assert survivor.verify("cost").ok
        assert survivor.live("cost").write().after == live.versions
        assert stored_rows(survivor, "cost") == live_rows(live)
        if not death.dead:
            break
        places.add(death.place)
        at += 1
    assert places >= {"write", "_write"}


def test_writers_and_refreshes_at_the_same_time(keeper: Keeper) -> None:
    keeper.create_view("total", VIEWS["total"])
    stop, rng, problems = Event(), Random(5), list[Exception]()
    live = reopened(keeper).live("total")

    def write() -> None:
        live.catch_up()
        with suppress(ConflictError):  # the refresh was first
            live.write()

    def until_stopped(work: Callable[[], object]) -> None:
        while not stop.is_set():
            try:
                work()
            except Exception as error:
                problems.append(error)
                return

    workers = [
        Thread(target=until_stopped, args=(work,)) for work in (write, reopened(keeper).refresh)
    ]
    for each in workers:
        each.start()
    for _ in range(12):
        change(keeper, rng)
    stop.set()
    for each in workers:
        each.join()
    assert problems == []
    live.catch_up()
    live.write()
    strategies = {each.strategy for each in keeper.history("total")}
    assert "live" in strategies or "recompute" in strategies
    for report in keeper.history("total"):
        parts = keeper.read("parts", report.after["parts"]).to_pylist()
        prices = [row["price"] for row in parts if row["price"] > 4]
        expected = {"total": sum(prices) if prices else None, "n": len(prices)}
        assert keeper.read("total", report.version).to_pylist() == [expected]


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "hidden IDs": (
        "SELECT u.did, p.name FROM uses u JOIN parts p ON u.pid = p.pid",
        {},
        "told apart by columns that it does not select",
    ),
    "strict": (VIEWS["cost"], {"policy": "strict"}, "its policy strict"),
    "full": (VIEWS["cost"], {"policy": "full"}, "computed as a whole"),
    "floats": ("SELECT size, count(*) AS n FROM parts GROUP BY size", {}, "floats tell its rows"),
}


@pytest.mark.parametrize(("sql", "options", "problem"), REFUSED.values(), ids=REFUSED)
def test_views_that_a_live_view_cannot_write(
    keeper: Keeper, sql: str, options: dict[str, Any], problem: str
) -> None:
    keeper.create_view("v", sql, **options)
    live = keeper.live("v")
    keeper.apply("parts", updates=[{"pid": 1, "price": 10, "size": 0.5}])
    live.catch_up()
    with pytest.raises(ViewkeepError, match=f'view "v" cannot be written.*{problem}'):
        live.write()
    assert keeper.version("v") == 0
    keeper.refresh()
    assert stored_rows(keeper, "v") == live_rows(live)


def test_averages_of_many_digits_are_not_written(keeper: Keeper) -> None:
    keeper.create_table("sums", {"id": "int", "n": "decimal(30,2)"}, ["id"], rows=[(1, 1), (2, 2)])
    keeper.create_view("mean", "SELECT avg(n) AS n FROM sums")
    live = keeper.live("mean")
    keeper.apply("sums", inserts=[(3, 4)])
    live.catch_up()
    with pytest.raises(ViewkeepError, match='"n" is an average of decimals with more than 18'):
        live.write()


def test_a_live_view_of_another_definition_or_history_does_not_write(keeper: Keeper) -> None:
    keeper.create_view("total", VIEWS["total"])
    live = keeper.live("total")
    keeper.apply("parts", updates=[{"pid": 5, "price": 10}])
    live.catch_up()
    entry = Path(keeper._lake.uri) / "parts" / "_delta_log" / f"{1:020}.json"
    entry.unlink()
    keeper.apply("parts", updates=[{"pid": 5, "price": 20}])
    with pytest.raises(ViewkeepError, match=r'table "parts" has another history.*live\("total"\)'):
        live.write()
    keeper.create_view("total", VIEWS["total"].replace("4", "3"), replace=True)
    with pytest.raises(ViewkeepError, match="the view was defined anew"):
        live.write()
    assert keeper.live("total").value() == (24, 2)


def test_an_empty_table_has_one_row_of_totals(keeper: Keeper) -> None:
    keeper.create_view("total", VIEWS["total"])
    live = keeper.live("total")
    keeper.apply("parts", deletes=[(n,) for n in range(6)])
    told = list[Any]()
    live.subscribe(told.extend)
    live.catch_up()
    live.write()
    assert keeper.read("total").to_pylist() == [{"total": None, "n": 0}]
    before, after = {"total": 5, "n": 1}, {"total": None, "n": 0}
    assert live.row_changes(told) == [{"operation": "update", "before": before, "after": after}]
