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
from viewkeep.live_view import CURRENT, LiveView

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
