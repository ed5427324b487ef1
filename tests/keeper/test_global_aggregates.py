"""Aggregates without groups, inside views and on top of them, and views on views without a key.

Their one row has an ID as any other row has: what is kept of it is replaced, never added to.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.keeper.lakes import check
from viewkeep import Keeper

BACKENDS = ("duckdb", "spark")

VIEWS = {
    "by_group": """
        SELECT a.g, sum(a.x) AS s, max(b.m) AS m
        FROM t a CROSS JOIN (SELECT count(*) AS m FROM o) b GROUP BY a.g""",
    "total": "SELECT sum(x) AS s, count(*) AS n, max(x) AS top FROM t",
    "half": "SELECT sum(x) * 0.5 AS half FROM t",
    "joined": "SELECT sum(t.x) AS s, count(*) AS n FROM t JOIN o ON t.g = o.id",
    "alone": "SELECT count(*) AS n FROM t WHERE NOT EXISTS (SELECT * FROM o WHERE o.id = t.g)",
    "outer_total": "SELECT count(o.id) AS n, sum(t.x) AS s FROM t LEFT JOIN o ON t.g = o.id",
    "top": "SELECT a.id FROM t a JOIN (SELECT max(x) AS top FROM t) b ON a.x = b.top",
    "distance": "SELECT a.x - b.top AS d FROM t a CROSS JOIN (SELECT max(x) AS top FROM t) b",
    "counts": "SELECT d, count(*) AS n FROM distance GROUP BY d",
    "shown": "SELECT g AS shown FROM t WHERE x > 0",
    "shown_again": "SELECT shown + 1 AS next FROM shown WHERE shown > 0",
}
HISTORY: list[Mapping[str, Mapping[str, Any]]] = [
    {"o": {"inserts": [(1,)]}},
    {"o": {"inserts": [(2,)]}},
    {"t": {"inserts": [(3, 1, 1)]}},
    {"t": {"inserts": [(4, 7, 5)]}},
    {"t": {"deletes": [(4,)], "inserts": [(5, 2, 9)]}},
    {"t": {"updates": [{"id": 5, "x": 11}], "deletes": [(1,)], "inserts": [(6, None, None)]}},
    {"t": {"updates": [{"id": 2, "g": None}]}, "o": {"deletes": [(1,)]}},
    {"t": {"deletes": [(2,), (3,), (5,), (6,)]}},
    {"o": {"deletes": [(2,)], "inserts": [(9,)]}},
    {"t": {"inserts": [(1, 9, 4), (2, 9, 4)]}},
]


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.create_table("t", {"id": "int", "g": "int", "x": "int"}, key=["id"])
    keeper.create_table("o", {"id": "int"}, key=["id"])
    keeper.apply("t", inserts=[(1, 1, 1000), (2, 1, 500)])
    return keeper


def test_every_view_follows_every_change(keeper: Keeper) -> None:
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, policy="incremental")
    for changes in HISTORY:
        for table, change in changes.items():
            keeper.apply(table, **change)
        ways = {each.strategy for each in keeper.refresh()}
        assert ways <= {"id", "none"}
        check(keeper)


def test_an_unforeseen_error_of_one_view_stops_no_other(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    from viewkeep.refresh import all_views as refresh_round

    keeper.create_view("bad", "SELECT sum(x) AS s FROM t")
    keeper.create_view("good", "SELECT g FROM t")
    compute = refresh_round.compute_refresh

    def failing(view: Any, *rest: Any) -> Any:
        assert view.name != "bad", "something nobody thought of"
        return compute(view, *rest)

    monkeypatch.setattr(refresh_round, "compute_refresh", failing)
    keeper.apply("t", inserts=[(3, 1, 1)])
    with pytest.raises(refresh_round.RefreshError, match="unexpected AssertionError") as raised:
        keeper.refresh()
    assert {each.view: bool(each.error) for each in raised.value.reports} == {
        "bad": True,
        "good": False,
    }
    check(keeper, ["good"])


def test_verify_tells_stale_from_right(keeper: Keeper) -> None:
    keeper.create_view("total", VIEWS["total"])
    assert keeper.verify("total").fresh
    keeper.apply("t", inserts=[(3, 1, 1), (4, 1, 1)])
    found = keeper.verify("total")
    assert (found.ok, found.fresh, dict(found.behind)) == (True, False, {"t": 2})
    keeper.refresh()
    assert keeper.verify("total").fresh


def test_what_was_kept_in_another_way_is_computed_anew(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    from viewkeep.lake.views.view import View

    with monkeypatch.context() as older:
        older.setattr(View, "plan", "as an older version planned it")
        keeper.create_view("total", VIEWS["total"])
    [report] = keeper.refresh()
    assert (report.strategy, "another way" in report.reason) == ("recompute", True)
    [report] = keeper.refresh()
    assert report.strategy == "none"
