"""Views in the engine of this process: equal to the lake's, resumed exactly once."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from tests.keeper.test_watch import wait_for
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake.live_states import CURRENT
from viewkeep.live_view import LiveView, LiveViewError

VIEWS = {
    "cost": """SELECT u.did, sum(p.price * u.n) AS cost, count(*) AS parts
               FROM uses u JOIN parts p ON u.pid = p.pid GROUP BY u.did""",
    "pairs": "SELECT u.did, p.name FROM uses u JOIN parts p ON u.pid = p.pid WHERE p.price > 2",
    "total": "SELECT sum(price) AS total FROM parts",
}


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    parts = {"pid": "int", "price": "int not null", "name": "string"}
    keeper.create_table("parts", parts, ["pid"], rows=[(n, n, f"n{n % 2}") for n in range(6)])
    uses = {"did": "int", "pid": "int", "n": "int not null"}
    keeper.create_table("uses", uses, ["did", "pid"], rows=[(1, 1, 2), (1, 2, 1), (2, 1, 1)])
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql)
    return keeper


def change(keeper: Keeper, rng: Random) -> None:
    """Some of both tables at once."""
    uses = {(row["did"], row["pid"]) for row in keeper.read("uses").to_pylist()}
    key = rng.randrange(3), rng.randrange(6)
    kind = {"deletes": [key]} if key in uses else {"inserts": [(*key, rng.randrange(4))]}
    price = {"pid": rng.randrange(6), "price": rng.randrange(9), "name": f"n{rng.randrange(3)}"}
    keeper.transaction({"uses": kind, "parts": {"updates": [price]}})


def expected(keeper: Keeper, name: str) -> Counter[tuple[Any, ...]]:
    keeper.refresh(name)
    return Counter(tuple(row.values()) for row in keeper.read(name).to_pylist())


def rows(live: LiveView) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row, payload in live.enumerate():
        if isinstance(payload, tuple):
            found[(*row, *payload)] += 1
        else:
            found[row] += payload
    return found


@pytest.mark.parametrize("name", ["cost", "pairs"])
def test_a_live_view_follows_its_tables_and_is_resumed(keeper: Keeper, name: str) -> None:
    live, rng = keeper.live(name), Random(7)
    assert rows(live) == expected(keeper, name)
    for step in range(12):
        change(keeper, rng)
        if step % 4 == 1:
            live.save()
        if step % 4 == 3:  # what happened since it was saved is brought in once
            live = Keeper(keeper._lake.uri, durable=False).live(name)
        else:
            assert live.catch_up() > 0
        assert rows(live) == expected(keeper, name)
    assert live.catch_up() == 0
    assert live.versions == {each: keeper.version(each) for each in ("parts", "uses")}


def test_look_ups_values_and_subscribers(keeper: Keeper) -> None:
    cost, total, told = keeper.live("cost"), keeper.live("total"), list[Any]()
    assert (cost.lookup((1,)), cost.lookup((9,))) == ((4, 2), None)
    assert cost.columns == ("did",)
    assert total.value() == (15,)
    cost.subscribe(told.extend)
    keeper.apply("parts", updates=[{"pid": 1, "price": 10}])
    stop = Event()
    thread = Thread(target=cost.follow, args=(stop, 0.01))
    thread.start()
    wait_for(lambda: cost.lookup((1,)) == (22, 2))
    stop.set()
    thread.join()
    assert sorted((each.row, each.after) for each in told) == [((1,), (22, 2)), ((2,), (10, 1))]
    [batch] = cost.batches()
    assert sorted(batch.to_pydict()["did"]) == [1, 2]


def test_a_state_of_another_definition_or_history_is_not_resumed(keeper: Keeper) -> None:
    live = keeper.live("cost")
    live.save()
    folder = Path(keeper._lake.uri) / "_viewkeep" / "live" / "cost"
    about = json.loads((folder / CURRENT).read_text())
    assert set(about["tables"]) == {"parts", "uses"}
    [state] = folder.glob("*.state")
    state.write_bytes(state.read_bytes()[:100])  # damaged: the tables are still there
    assert rows(keeper.live("cost")) == expected(keeper, "cost")
    live.save()
    keeper.create_view("cost", VIEWS["cost"].replace("p.price", "2 * p.price"), replace=True)
    assert keeper.live("cost").lookup((1,)) == (8, 2)
    about["tables"]["parts"]["fingerprint"] = "entry:0"
    (folder / CURRENT).write_text(json.dumps(about))
    assert keeper.live("cost").lookup((1,)) == (8, 2)


def test_what_is_not_conjunctive_or_reads_views_is_refused(keeper: Keeper) -> None:
    keeper.create_view("top", "SELECT pid FROM parts ORDER BY price LIMIT 1")
    keeper.create_view("above", "SELECT did FROM cost WHERE cost > 1")
    with pytest.raises(ViewkeepError, match="not a conjunctive query"):
        keeper.live("top")
    with pytest.raises(ViewkeepError, match='view "above" reads the view "cost"'):
        keeper.live("above")
    with pytest.raises(ViewkeepError, match='there is no view "parts"'):
        keeper.live("parts")


def test_look_ups_sum_over_no_heavy_values(keeper: Keeper) -> None:
    """The best strategy of groups over a join would; triangles have one result to look up."""
    assert "strategy viewtree" in keeper.live("cost").explain()
    edges = "uses a JOIN uses b ON a.pid = b.did JOIN uses c ON b.pid = c.did AND c.pid = a.did"
    keeper.create_view("triangles", f"SELECT count(*) AS n FROM {edges}")
    assert "strategy epsilon" in keeper.live("triangles").explain()


def test_a_transaction_is_one_change(keeper: Keeper) -> None:
    live, calls = keeper.live("cost"), list[list[Any]]()
    live.subscribe(calls.append)
    live.unsubscribe(live.subscribe(lambda changes: pytest.fail("it was ended")))
    price, more = {"pid": 1, "price": 10}, (1, 3, 1)
    keeper.transaction({"parts": {"updates": [price]}, "uses": {"inserts": [more]}})
    assert live.catch_up() == 2
    [changes] = calls
    told = sorted(live.row_changes(changes), key=lambda each: each["after"]["did"])
    assert [(each["operation"], *each["after"].values()) for each in told] == [
        ("update", 1, 25, 3),
        ("update", 2, 10, 1),
    ]
    assert told[0]["before"] == {"did": 1, "cost": 4, "parts": 2}


def test_a_subscriber_that_fails_has_heard_of_the_change(keeper: Keeper) -> None:
    live, heard = keeper.live("total"), list[Any]()

    def fail(changes: list[Any]) -> None:
        heard.extend(changes)
        raise RuntimeError("busy")

    live.subscribe(fail)
    keeper.apply("parts", inserts=[(9, 9, "n9")])
    with pytest.raises(RuntimeError, match="busy"):
        live.catch_up()
    assert live.catch_up() == 0
    assert (live.value(), len(heard)) == ((24,), 1)


def test_what_cannot_be_told_of_one_table_leaves_all_as_they_were(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = keeper.live("cost")
    live.save()
    change(keeper, Random(1))
    seen, tell = (live.versions, rows(live)), LiveView._table_changes

    def only_parts(self: LiveView, name: str, version: int) -> Any:
        if name == "parts":
            return tell(self, name, version)
        raise LiveViewError("it cannot be told")

    monkeypatch.setattr(LiveView, "_table_changes", only_parts)
    with pytest.raises(LiveViewError, match="cannot be told"):
        live.catch_up()
    assert (live.versions, rows(live)) == seen
    assert rows(keeper.live("cost")) == expected(keeper, "cost")  # not resumed, but built anew


def test_the_state_of_a_view_goes_with_it(keeper: Keeper) -> None:
    keeper.live("cost").save()
    keeper.drop_view("cost")
    assert not (Path(keeper._lake.uri) / "_viewkeep" / "live" / "cost").exists()


def test_rows_have_the_types_and_the_order_of_the_sql(keeper: Keeper) -> None:
    copies = "SELECT p.name, u.did FROM uses u JOIN parts p ON u.pid = p.pid"
    sizes = "SELECT count(*) AS n, name, avg(price) AS mean FROM parts GROUP BY name"
    for name, sql in {"copies": copies, "sizes": sizes}.items():
        keeper.create_view(name, sql)
        keeper.apply("parts", updates=[{"pid": 2, "name": "n1"}])
        keeper.refresh(name)
        found, stored = keeper.live(name).to_arrow(), keeper.read(name)
        assert found.schema.types == stored.schema.types
        order = [(each, "ascending") for each in found.column_names]
        assert found.sort_by(order).to_pylist() == stored.sort_by(order).to_pylist()
    keeper.apply("uses", deletes=[(1, 1), (1, 2), (2, 1)])
    assert keeper.live("copies").to_arrow().num_rows == 0
    live, told = keeper.live("copies"), list[Any]()
    live.subscribe(told.extend)
    keeper.apply("uses", inserts=[(1, 1, 1), (1, 2, 1)])
    live.catch_up()
    row = {"name": "n1", "did": 1}
    assert live.row_changes(told) == [{"operation": "insert", "before": None, "after": row}] * 2


def test_the_state_of_a_view_that_is_gone_is_not_kept(keeper: Keeper, tmp_path: Path) -> None:
    live = keeper.live("total")
    live.save()
    keeper.create_view("total", "SELECT count(*) AS total FROM parts", replace=True)
    with pytest.raises(LiveViewError, match="was defined anew"):
        live.save()
    keeper.drop_view("total")
    states = list((tmp_path / "lake").rglob("*.state"))
    with pytest.raises(ViewkeepError, match='no view "total"'):
        live.save()
    assert list((tmp_path / "lake").rglob("*.state")) == states
    assert live.catch_up() == 0
