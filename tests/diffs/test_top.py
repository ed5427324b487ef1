"""First rows of an order with their reserve: what is read, and how often."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from tests.diffs.harness import PlayedView
from tests.diffs.interpret import run_script
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.optimize import reserve_rows
from viewkeep.diffs.prune import prune
from viewkeep.query.algebra import Scan
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk
from viewkeep.sql import parse_view

R = Table({"k": "int", "b": "int"}, key=["k"])
Row = tuple[int, int | None]


def _view(sql: str, rows: Mapping[int, int | None]) -> PlayedView:
    database: dict[str, Any] = {"r": {(k,): (k, b) for k, b in rows.items()}}
    return PlayedView(parse_view(sql, {"r": R}), {"r": R}, database)


def _reads_after(view: PlayedView, **changes: list[Any]) -> bool:
    """Whether the script for some changes reads the table; the view is checked."""
    script, relations = view.prepare({"r": ChangeBatch("r", R, **changes)})
    view.kept, computed = run_script(script, relations, view.kept)
    view.check()
    queries = [
        prune(each.query, lambda name: not computed.get(name, [1])) for each in script.computes()
    ]
    return any(isinstance(each, Scan) for query in queries if query for each in walk(query))


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ({"inserts": [(11, 5)]}, False),  # behind the rows that are kept
        ({"inserts": [(11, 85)]}, False),  # among them
        ({"updates": [((1, 10), (1, 81))]}, False),  # moves in
        ({"updates": [((10, 100), (10, 79))]}, False),  # moves within
        ({"deletes": [(1, 10)]}, False),  # behind them
        ({"deletes": [(10, 100)], "inserts": [(11, 99)]}, False),  # one for another
        ({"deletes": [(9, 90)]}, False),  # one of them
        ({"updates": [((9, 90), (9, 1))]}, False),  # moves out
        ({"deletes": [(k, 10 * k) for k in (6, 8, 10)]}, False),  # as many as the reserve has
        ({"deletes": [(k, 10 * k) for k in (5, 6, 7, 8)]}, True),  # more
        ({"updates": [((k, 10 * k), (k, -k)) for k in (7, 8, 9, 10)]}, True),
    ],
)
def test_the_input_is_read_only_where_the_reserve_is_used_up(
    changes: dict[str, Any], reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserve_rows, "LEAST", 3)
    view = _view("select k, b from r order by b desc, k limit 3", {k: 10 * k for k in range(1, 11)})
    assert _reads_after(view, **changes) == reads


@pytest.mark.parametrize(("limit", "offset"), [(5, 0), (3, 2), (40, 0)])
def test_random_changes_rarely_read_the_input(limit: int, offset: int) -> None:
    rng = Random(limit)
    rows = {k: rng.choice([None, *range(30)]) for k in range(120)}  # many ties
    view = _view(f"select k, b from r order by b nulls last limit {limit} offset {offset}", rows)
    reads = 0
    for number in range(200):
        held = view.database["r"]
        if rng.random() < 0.5:
            reads += _reads_after(view, deletes=[held[rng.choice(sorted(held))]])
        else:
            reads += _reads_after(view, inserts=[(1000 + number, rng.choice([None, *range(30)]))])
        ordered = sorted(
            view.database["r"].values(), key=lambda row: (row[1] is None, row[1] or 0, row[0])
        )
        assert Counter(view.visible()) == Counter(ordered[offset : offset + limit])
    assert reads <= 2


def test_deletes_of_first_rows_alone_read_the_input_once_per_reserve() -> None:
    view = _view("select k from r order by k limit 4", dict.fromkeys(range(100)))
    reads = [_reads_after(view, deletes=[(k, None)]) for k in range(60)]
    assert [k for k, read in enumerate(reads) if read] == [16, 33, 50]


def test_first_rows_of_partitions_are_read_again_where_their_own_reserve_is_used_up() -> None:
    sql = "select k, b from r qualify row_number() over (partition by b order by k desc) <= 2"
    view = _view(sql, {k: k % 3 for k in range(30)})
    assert not _reads_after(view, deletes=[(29, 2), (26, 2), (28, 1)], inserts=[(31, 7)])
    assert not _reads_after(view, updates=[((25, 1), (25, 0))], deletes=[(31, 7)])
    assert _reads_after(view, deletes=[(22, 1), (23, 2)])
    assert sorted(view.visible()) == [(16, 1), (17, 2), (19, 1), (20, 2), (25, 0), (27, 0)]


def test_the_first_rows_of_a_table_that_becomes_empty_and_grows_again() -> None:
    view = _view("select k, b from r order by b, k limit 2", {1: 3, 2: None, 3: 3})
    for k in range(1, 4):
        held: Row = view.database["r"][k,]
        _reads_after(view, deletes=[held])
    for k in range(30):
        assert not _reads_after(view, inserts=[(k, -k if k % 3 else None)])
