"""Rows of arrays and maps, parts of nested values, constants and pivots in a lake without Spark."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from viewkeep import Keeper

COLUMNS = {
    "a": "int",
    "b": "int",
    "tags": "array<string>",
    "place": "struct<x:int,y:string>",
    "counts": "map<string,int>",
    "parts": "array<struct<p:int,q:string>>",
}
ROWS = [
    (1, 1, ["x", "y"], {"x": 1, "y": "p"}, {"k": 1, "j": 2}, [{"p": 1, "q": "a"}]),
    (2, 1, [], None, None, None),
    (3, 2, None, {"x": None, "y": "q"}, {}, [{"p": None, "q": "b"}, None]),
]
VIEWS: dict[str, tuple[str, list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {
    "tags": (
        "SELECT a, tag FROM t LATERAL VIEW explode(tags) e AS tag",
        [(1, "x"), (1, "y")],
        [(1, "y"), (1, "z"), (3, "q"), (5, "y"), (5, None), (5, "y")],
    ),
    "counted": (
        "SELECT tag, count(*) AS n FROM t LATERAL VIEW OUTER explode(tags) e AS tag GROUP BY tag",
        [("x", 1), ("y", 1), (None, 2)],
        [("y", 3), ("z", 1), ("q", 1), (None, 1)],
    ),
    "fields": (
        "SELECT a, place.y, counts['k'] AS k, t.place.x FROM t WHERE place.x > 0 OR a > 2",
        [(1, "p", 1, 1), (3, "q", None, None)],
        [(1, "p", None, 1), (3, "q", 5, None), (5, "p", 7, 4)],
    ),
    "grouped": (
        "SELECT place.y AS y, count(*) AS n, max(place.x) AS m FROM t GROUP BY place.y",
        [("p", 1, 1), ("q", 1, None), (None, 1, None)],
        [("p", 2, 4), ("q", 1, None)],
    ),
    "structs": (
        "SELECT a, inline_outer(parts) FROM t",
        [(1, 1, "a"), (2, None, None), (3, None, "b"), (3, None, None)],
        [(1, 1, "a"), (3, None, "b"), (3, None, None), (5, None, None)],
    ),
    "entries": (
        "SELECT a, posexplode(counts) FROM t",
        [(1, 0, "k", 1), (1, 1, "j", 2)],
        [(3, 0, "k", 5), (5, 0, "k", 7)],
    ),
    "elements": ("SELECT a, tags[0] AS tag FROM t WHERE a < 2", [(1, "x")], [(1, "y")]),
    "series": (
        "SELECT a, explode(sequence(1, b)) AS x FROM t",
        [(1, 1), (2, 1), (3, 1), (3, 2)],
        [(1, 1), (3, 1), (5, 1), (5, 2)],
    ),
    "pivoted": (
        "SELECT * FROM (SELECT a, b FROM t) PIVOT (sum(a) FOR b IN (1, 2))",
        [(3, 3)],
        [(4, 5)],
    ),
    "left": ("SELECT b FROM t EXCEPT ALL VALUES (1)", [(1,), (2,)], [(1,), (2,)]),
    "constant": ("SELECT 1 AS one, 'x' AS s", [(1, "x")], [(1, "x")]),
}


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Keeper:
    """A lake with all views, before its table changes."""
    keeper = Keeper(Path(tmp_path_factory.mktemp("lake")))
    keeper.create_table("t", COLUMNS, key=["a"], rows=ROWS)
    for name, (sql, _, _) in VIEWS.items():
        report = keeper.create_view(name, sql)
        assert (report.strategy, report.backend) == ("id", "duckdb"), name
    return keeper


def rows(keeper: Keeper, name: str) -> Counter[tuple[Any, ...]]:
    """The rows of a view, as a bag."""
    return Counter(tuple(row.values()) for row in keeper.read(name).to_pylist())


def test_views_are_computed_and_refreshed(keeper: Keeper) -> None:
    for name, (_, before, _) in VIEWS.items():
        assert rows(keeper, name) == Counter(before), name
    new = (5, 2, ["y", None, "y"], {"x": 4, "y": "p"}, {"k": 7}, [])
    updates = [
        {"a": 1, "b": 1, "tags": ["y", "z"], "counts": None},
        {"a": 3, "b": 1, "tags": ["q"], "counts": {"k": 5}},
    ]
    keeper.apply("t", inserts=[new], deletes=[(2,)], updates=updates)
    strategies = {report.view: report.strategy for report in keeper.refresh()}
    assert strategies == {name: "none" if name == "constant" else "id" for name in VIEWS}
    for name, (_, _, after) in VIEWS.items():
        assert rows(keeper, name) == Counter(after), name
        assert keeper.verify(name).ok, name
