"""Heavy and light parts of triangles: what a changed row touches on data with hubs, against N
(triangle_ivm_epsilon, theorem 1: O(N^1/2); first-order deltas O(N))."""

from collections.abc import Iterable
from functools import cache
from math import isqrt, log
from typing import Any

import pytest

from tests.diffs.interpret import Rows, evaluate
from viewkeep.diffs.accesses import count_accesses
from viewkeep.diffs.generate import generate
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.programs.heavy_light import generate_heavy_light
from viewkeep.diffs.prune import prune
from viewkeep.diffs.script import Script
from viewkeep.query.algebra import Leaf, Node, Scan
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view

TABLES = {name: Table({"x": "int", "y": "int"}, key=["x", "y"]) for name in "rst"}
VIEW = "select count(*) as n from r join s on r.y = s.x join t on s.y = t.x and t.y = r.x"
BY_VERTEX = f"{VIEW} group by r.x"
SIZES = (64, 256, 1024)
NEW = (0, 0)


@cache
def script_of(table: str, adaptive: bool, sql: str = VIEW) -> Script:
    view = optimize(parse_view(sql, TABLES))
    changes = {table: [("insert", frozenset[str]())]}
    if adaptive:
        return generate_heavy_light(view, changes)
    return generate(view, changes, tuple_based=True).script


def hubs(size: int) -> Rows:
    """Edges of which half lead from one hub to all vertices, and half from some hubs to others: to
    as many as there are hubs, the first among them."""
    some = isqrt(size) // 2
    out = [(0, v) for v in range(1, size // 2)]
    return out + [(u, v) for u in range(1, some) for v in range(some)]


def steps(script: Script, table: str, size: int) -> int:
    """The accesses of a refresh after one insert."""
    edges, by_target = hubs(size), [(v, u) for u, v in hubs(size)]
    relations: dict[Any, Any] = {
        (name, state): [*rows, NEW] if name == table and state == "post" else rows
        for name, rows in (("r", edges), ("s", edges), ("t", by_target + edges[size // 2 :]))
        for state in ("pre", "post")
    }
    before = {(name, "post"): relations[name, "pre"] for name in TABLES}
    for each in script.materialized:
        relations[each.name] = before[each.name] = evaluate(each.definition, before)
    relations |= {diff.name: [NEW] for diff in script.diffs}
    return sum(_statements(script, relations))


def _statements(script: Script, relations: dict[Any, Any]) -> Iterable[int]:
    """The accesses of each statement that is run, and the rows that it changes."""
    kept = {each.name for each in script.materialized}
    empty = set[str]()

    def is_kept(leaf: Leaf) -> bool:
        return isinstance(leaf, Scan) or leaf.name in kept

    def size_of(node: Node) -> int:
        return len(evaluate(node, relations))

    for statement in script.computes():
        query = prune(statement.query, empty.__contains__)
        relations[statement.name] = [] if query is None else evaluate(query, relations)
        if not relations[statement.name]:
            empty.add(statement.name)
        if query is not None:
            yield count_accesses(query, is_kept, size_of)
    yield from (len(relations[each.diff]) for each in script.applies())


@pytest.mark.parametrize("table", TABLES)
def test_a_change_touches_as_many_rows_as_the_root_of_all(table: str) -> None:
    measured = [steps(script_of(table, True), table, size) for size in SIZES]
    assert exponent(measured) <= 0.6


@pytest.mark.parametrize("table", ["r", "t"])
def test_so_it_does_where_it_reaches_one_group(table: str) -> None:
    measured = [steps(script_of(table, True, BY_VERTEX), table, size) for size in SIZES]
    assert exponent(measured) <= 0.6


def test_first_order_deltas_look_through_a_hub() -> None:
    measured = [steps(script_of("r", False), "r", size) for size in SIZES]
    assert exponent(measured) > 0.9


def exponent(accesses: list[int]) -> float:
    """The exponent e of N^e between the smallest and the largest size."""
    return log(accesses[-1] / accesses[0]) / log(SIZES[-1] / SIZES[0])
