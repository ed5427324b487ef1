"""Lakes whose views are kept in heavy and light parts, on both engines and in Python."""

import os
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.keeper.faults import fault
from tests.keeper.lakes import check
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute import few_rows
from viewkeep.lake.views.balance import Balance

GRAPH = """SELECT count(*) AS n FROM e a JOIN e b ON a.dst = b.src
    JOIN e c ON b.dst = c.src AND c.dst = a.src"""
SUMS = """SELECT sum(r.w * t.w) AS x, count(*) AS n
    FROM e r JOIN f s ON r.dst = s.src JOIN e t ON s.dst = t.src AND t.dst = r.src"""
GROUPS = """SELECT r.src, sum(r.w * t.w) AS x, count(*) AS n
    FROM e r JOIN f s ON r.dst = s.src JOIN e t ON s.dst = t.src AND t.dst = r.src
    GROUP BY r.src HAVING count(*) <> 2"""
BY_WEIGHT = """SELECT avg(b.w) AS x, a.w % 3 AS v FROM e a JOIN e b ON a.dst = b.src
    JOIN e c ON b.dst = c.src AND c.dst = a.src GROUP BY a.w % 3"""
CHAIN = """SELECT sum(r.w * t.w) AS x, count(*) AS n
    FROM e r JOIN f s ON r.dst = s.src JOIN e t ON s.dst = t.src"""
CYCLE = """SELECT count(*) AS n, sum(a.w * c.w) AS x FROM e a JOIN f b ON a.dst = b.src
    JOIN e c ON b.dst = c.src JOIN f d ON c.dst = d.src AND d.dst = a.src"""
LOOMIS_WHITNEY = """SELECT count(*) AS n FROM g a JOIN g b ON a.y = b.x AND a.z = b.y
    JOIN g c ON b.y = c.x AND b.z = c.y AND a.x = c.z
    JOIN g d ON c.y = d.x AND c.z = d.y AND a.y = d.z"""
LONG = bool(os.environ.get("VIEWKEEP_LONG"))
SPREAD = [(i, i + 1, 1) for i in range(20, 40)]


def fill(keeper: Keeper, **views: str) -> None:
    """Two tables of edges without hubs, and views over them."""
    for name in "ef":
        columns = {"src": "int", "dst": "int", "w": "int"}
        keeper.create_table(name, columns, ["src", "dst"], rows=SPREAD)
    for name, sql in views.items():
        keeper.create_view(name, sql, strategy="epsilon", policy="incremental")


def star(rng: Random, edges: int) -> list[tuple[int, int, int]]:
    """Edges from a hub, back to it, and between the others."""
    others = rng.sample(range(1, 20), edges)
    back = [(v, 0, 2) for v in others[::2]]
    return [*((0, v, 1) for v in others), *back, *zip(others, others[1:], others, strict=False)]


def keys(edges: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """The keys of edges."""
    return [(source, target) for source, target, _ in edges]


def test_embedded_lakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub comes and goes, by DuckDB and by Python in turn."""
    rng, keeper = Random(5), Keeper(tmp_path, durable=False)
    fill(keeper, sums=SUMS, groups=GROUPS, by_weight=BY_WEIGHT)
    first, second = star(rng, 18), star(rng, 3)
    steps = [("e", first, []), ("f", second, []), ("e", [], first[6:18])]
    for number, (name, came, went) in enumerate(steps):
        monkeypatch.setattr(few_rows, "MOST_ROWS", 4000 if number % 2 else 0)
        keeper.apply(name, inserts=came, deletes=keys(went))
        assert {report.strategy for report in keeper.refresh()} <= {"epsilon", "none"}
        check(keeper)
    for view in keeper.status():
        assert view.balance is not None
        assert view.balance.moves > 0 or view.name == "by_weight"
        assert view.balance.rebuilds > 0


def test_cycles_of_four_and_chains_of_three(tmp_path: Path) -> None:
    """A hub becomes heavy and light again, and at last the size leaves its bounds."""
    rng, keeper = Random(5), Keeper(tmp_path, durable=False)
    fill(keeper, cycle=CYCLE, chain=CHAIN)
    hub = star(rng, 9)
    heavy = _balances(keeper, "e", hub, [])["cycle"]
    light = _balances(keeper, "e", [], hub[1:])["cycle"]
    assert (heavy.rebuilds, light.rebuilds) == (0, 0)
    assert 0 < heavy.moves < light.moves
    last = _balances(keeper, "f", [(0, v, 1) for v in range(50, 115)], [])
    assert [each.rebuilds for each in last.values()] == [1, 1]
    assert "heavy     a.dst = b.src: 1 with" in keeper.explain("cycle", script=False)


def test_tables_that_each_lack_one_column(tmp_path: Path) -> None:
    keeper, columns = Keeper(tmp_path, durable=False), dict.fromkeys("xyz", "int")
    spread = [(i, i, i) for i in range(30)]
    keeper.create_table("g", columns, list("xyz"), rows=spread)
    keeper.create_view("v", LOOMIS_WHITNEY, strategy="epsilon", policy="incremental")
    cube = [row for row in product((40, 41, 42), repeat=3) if 40 in row]
    assert _balances(keeper, "g", cube, [])["v"].moves == 0
    many = [(0, 0, c) for c in range(1, 26)]
    heavy = _balances(keeper, "g", many, cube[1:])["v"]
    assert (heavy.moves > 0, heavy.rebuilds) == (True, 0)
    last = _balances(keeper, "g", [(1, c, 1) for c in range(2, 80)], many[1:])["v"]
    assert last.rebuilds == 1


def _balances(
    keeper: Keeper, table: str, came: Sequence[tuple[int, ...]], went: Sequence[tuple[int, ...]]
) -> dict[str, Balance]:
    """Change a table, refresh and check: the balance of each view."""
    key = 2 if table in "ef" else 3
    keeper.apply(table, inserts=list(came), deletes=[row[:key] for row in went])
    assert {report.strategy for report in keeper.refresh()} == {"epsilon"}
    check(keeper)
    return {each.name: each.balance for each in keeper.status() if each.balance}


def test_views_read_groups_in_heavy_and_light_parts(tmp_path: Path) -> None:
    """By the columns that show the groups, which are the key."""
    rng, keeper = Random(8), Keeper(tmp_path, durable=False)
    fill(keeper, groups=GROUPS)
    keeper.create_view("top", "SELECT src, n FROM groups WHERE n > 3", policy="incremental")
    edges = star(rng, 18)
    keeper.transaction({name: {"inserts": edges} for name in "ef"})
    keeper.refresh()
    check(keeper)
    updates = [{"src": 0, "dst": edges[1][1], "w": 7}]
    keeper.apply("e", updates=updates, deletes=keys(edges[4:16]))
    keeper.refresh()
    check(keeper)
    text = keeper.explain("groups", script=False)
    assert "IDs       src\n" in text
    assert "epsilon   update O(N^1/2) amortized for each group that a change may reach" in text


def test_explain_tells_heavy_values(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, durable=False)
    fill(keeper, graph=GRAPH)
    keeper.apply("e", inserts=[(0, v, 1) for v in range(1, 20)])
    keeper.refresh("graph")
    text = keeper.explain("graph", script=False)
    assert "strategy  epsilon: as asked" in text
    assert "balance   117 tuples, thresholds from M = 121; values moved: 3" in text
    assert "heavy     a.src: 1 with degrees from 11.0 on: 0 (19)" in text
    assert "epsilon   preprocessing" in text


def test_a_refresh_that_dies_is_made_again(tmp_path: Path) -> None:
    """At its first writes, before or after them: rebalancing is committed with the rest."""
    rng, keeper = Random(7), Keeper(tmp_path, durable=False)
    fill(keeper, sums=SUMS)
    edges, deaths = star(rng, 18), 0
    for at in range(1, 4):
        keeper.apply("e", **({"inserts": edges} if at % 2 else {"deletes": keys(edges)}))
        with fault(4 * at, after=at % 2 == 0) as died:
            Keeper(tmp_path, durable=False).refresh()
        deaths += died.dead
        keeper.refresh()
        check(keeper)
    assert deaths > 1


@pytest.mark.slow
def test_lakes_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng, keeper = Random(6), Keeper(tmp_path, spark, backend="spark", durable=False)
    more = {"by_weight": BY_WEIGHT, "cycle": CYCLE} if LONG else {}
    fill(keeper, sums=SUMS, groups=GROUPS, chain=CHAIN, **more)
    edges = star(rng, 18)
    keeper.apply("e", inserts=edges, deletes=[(20, 21)])
    keeper.apply("f", inserts=star(rng, 3))
    assert {report.strategy for report in keeper.refresh()} == {"epsilon"}
    check(keeper)
    keeper.apply("e", deletes=keys(edges[4:18]))
    keeper.refresh()
    check(keeper)


def test_other_views_are_refused(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, durable=False)
    fill(keeper)
    sql = "SELECT e.src, count(*) AS n FROM e JOIN f ON e.dst = f.src GROUP BY e.src"
    why = r'no heavy and light parts .*view trees.*strategy="auto", which takes IDs'
    with pytest.raises(ViewkeepError, match=why):
        keeper.create_view("v", sql, strategy="epsilon")
