"""Lakes whose views are kept by view trees and recursive maps, on both engines and in Python."""

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.keeper.faults import fault
from tests.keeper.lakes import check
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute import few_rows

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
ROUNDS = 12 if LONG else 2
VIEWS = {
    "star": """SELECT r.y, sum(r.a * s.a) AS x, avg(t.a) AS m, count(*) AS n
        FROM r JOIN s ON r.y = s.y JOIN t ON s.y = t.y GROUP BY r.y""",
    "often": """SELECT s.y, max(r.a) AS most, count(t.a) AS n FROM r JOIN s ON r.y = s.y
        JOIN t ON t.id = s.id WHERE r.a > 1 GROUP BY s.y HAVING count(*) > 2""",
    "total": """SELECT count(*) AS n, sum(e.a * f.a) AS x
        FROM r e JOIN r f ON e.y = f.a JOIN r g ON f.y = g.a AND g.y = e.a""",
    "pairs": "SELECT DISTINCT r.a, t.a AS b FROM r JOIN s ON r.y = s.y JOIN t ON t.id = s.a",
}


def fill(
    keeper: Keeper, rng: Random, strategy: str = "viewtree", views: Iterable[str] = VIEWS
) -> None:
    """Three tables, and views over them."""
    columns = {"id": "int", "y": "int", "a": "int"}
    for name in "rst":
        keeper.create_table(name, columns, ["id"], rows=[row(i, rng) for i in range(30)])
    for name in views:
        keeper.create_view(name, VIEWS[name], strategy, policy="incremental")


def row(key: int, rng: Random) -> tuple[int, int | None, int | None]:
    """A row whose other values are few, and sometimes NULL."""
    return key, rng.choice([0, 1, 1, 2, 3, None]), rng.choice([0, 1, 2, 5, None])


def change(keeper: Keeper, rng: Random, names: str) -> None:
    """Rows that come, change and go, of some tables."""
    for name in names:
        there = [each["id"] for each in keeper.read(name, backend="duckdb").to_pylist()]
        keys = rng.sample(there, 6)
        keeper.apply(
            name,
            inserts=[row(max(there) + i, rng) for i in (1, 2)],
            updates=[dict(zip(("id", "y", "a"), row(k, rng), strict=True)) for k in keys[:4]],
            deletes=[(key,) for key in keys[4:]],
        )


@pytest.mark.parametrize("strategy", ["viewtree", "recursive"])
def test_embedded_lakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    rng, keeper = Random(5), Keeper(tmp_path, durable=False)
    fill(keeper, rng, strategy)
    check(keeper)
    for number in range(ROUNDS):
        monkeypatch.setattr(few_rows, "MOST_ROWS", 4000 if number % 2 else 0)
        change(keeper, rng, rng.choice(["r", "rst", "st"]))
        assert {report.strategy for report in keeper.refresh()} <= {strategy, "none"}
        check(keeper)


@pytest.mark.slow
def test_lakes_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng, keeper = Random(6), Keeper(tmp_path, spark, backend="spark", durable=False)
    fill(keeper, rng, views=["often"])
    keeper.create_view("total", VIEWS["total"], strategy="recursive", policy="incremental")
    change(keeper, rng, "rst")
    assert {report.strategy for report in keeper.refresh()} == {"viewtree", "recursive"}
    check(keeper)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT id, y FROM r", "it sums up no join of tables"),
        ("SELECT r.y, s.a FROM r JOIN s ON r.y = s.y", "it sums up no join of tables"),
        ("SELECT count(*) AS n FROM r JOIN s ON r.y < s.y", "r.y < s.y between tables"),
        ("SELECT count(s.id) AS n FROM r LEFT JOIN s ON r.y = s.y", "a union"),
        ("SELECT sum(r.a / s.a) AS n FROM r JOIN s ON r.y = s.y", "which is not of one table"),
        ("SELECT sum(1 / s.a) AS n FROM r JOIN s ON r.y = s.y", "1 / s.a, which may fail"),
        ("SELECT median(r.a) AS n FROM r JOIN s ON r.y = s.y", "the aggregate median"),
    ],
)
def test_other_views_are_refused(tmp_path: Path, sql: str, why: str) -> None:
    keeper = Keeper(tmp_path, durable=False)
    for name in "rs":
        keeper.create_table(name, {"id": "int", "y": "int", "a": "int"}, ["id"])
    with pytest.raises(ViewkeepError, match=f'no view tree .*{why}.*strategy="auto"'):
        keeper.create_view("v", sql, strategy="viewtree")
    with pytest.raises(ViewkeepError, match=f'no recursive maps .*{why}.*strategy="auto"'):
        keeper.create_view("v", sql, strategy="recursive")


def test_explain_tells_the_theory(tmp_path: Path) -> None:
    """The class, strategies with their bounds, the lower bound, and what to declare."""
    keeper = Keeper(tmp_path, durable=False)
    for name in "rst":
        keeper.create_table(name, {"id": "int", "y": "int", "a": "int"}, ["id"])
    keeper.create_view("star", VIEWS["star"], strategy="viewtree")
    told = keeper.explain("star", script=False)
    assert "class     q-hierarchical\n" in told
    assert "viewtree  preprocessing O(N), update O(1)" in told
    assert "tuple     preprocessing O(N), update O(N^2)" in told
    assert "lower     constant time, which nothing can beat; reached" in told
    path = "SELECT count(*) AS n FROM r JOIN s ON r.y = s.y JOIN t ON t.y = s.a"
    keeper.create_view("path", path)
    told = keeper.explain("path", script=False)
    assert "better    updates would take O(1) if t were declared static" in told
    assert "better    updates would take O(1) if s.y were a key" in told
    films = "SELECT s.a, t.y, count(*) AS n FROM r JOIN s ON r.y = s.id JOIN t ON r.a = t.id"
    keeper.create_view("films", f"{films} GROUP BY s.a, t.y")
    told = keeper.explain("films", script=False)
    better = "updates would take O(1) amortized if r.y -> s.id and r.a -> t.id were foreign keys"
    assert f"better    {better}" in told
    keeper.create_table(
        "u", {"id": "int", "y": "int", "a": "int"}, ["id"], ["y -> s.id", "a -> t.id"]
    )
    keeper.create_view("declared", f"{films} GROUP BY s.a, t.y".replace("FROM r", "FROM u r"))
    told = keeper.explain("declared", script=False)
    assert "better" not in told, "whatever tables are called in the view"
    assert "foreign keys: r refers to {s, t} by foreign keys" in told
    keeper.create_view("plain", "SELECT id, y FROM r WHERE a > 1")
    assert "class" not in keeper.explain("plain", script=False)


def test_a_refresh_that_dies_is_made_again(tmp_path: Path) -> None:
    """At its first writes, before or after them, whichever strategy keeps the view."""
    rng, keeper = Random(7), Keeper(tmp_path, durable=False)
    fill(keeper, rng, views=["star"])
    keeper.create_view("maps", VIEWS["star"], strategy="recursive", policy="incremental")
    deaths = 0
    for at in range(1, 25 if LONG else 7):
        change(keeper, rng, "rt")
        with fault(at, after=at % 2 == 0) as died:
            Keeper(tmp_path, durable=False).refresh()
        deaths += died.dead
        keeper.refresh()
        check(keeper)
    assert deaths > 5
