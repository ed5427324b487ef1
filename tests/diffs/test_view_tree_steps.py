"""View trees of q-hierarchical views: what a changed row touches, and what is kept, on data on
which the join is cubic (recent_increments_in_ivm, section 4.1: O(1) update, O(N) space)."""

from functools import cache
from math import log

import duckdb
import pytest

from viewkeep.diffs.generate import generate
from viewkeep.diffs.id_plan import id_plan, view_tree_plan
from viewkeep.diffs.script import Script
from viewkeep.execute.duckdb.run_in_connection import create, read, run_in_connection
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view

TABLES = {name: Table({"id": "int", "y": "int", "a": "int"}, key=["id"]) for name in "rst"}
STAR = "from r join s on r.y = s.y join t on s.y = t.y"
VIEWS = {
    "by key": f"select r.y, sum(r.a * s.a) as x, count(*) as n {STAR} group by r.y",
    "of all": f"select count(*) as n, sum(t.a) as x {STAR}",
    "often": f"select r.y, avg(t.a) as x {STAR} where s.a >= 0 group by r.y having count(*) > 2",
}
SIZES = (20, 40, 80)


@cache
def script_of(sql: str, has_tree: bool) -> Script:
    view = parse_view(sql, TABLES)
    plan = view_tree_plan(view) if has_tree else id_plan(view)
    return generate(view, {"r": [("insert", frozenset())]}, True, plan).script


def steps(script: Script, size: int) -> tuple[int, int]:
    """The accesses of a refresh after one insert, and the rows of all caches; all rows of the
    tables have the same value of `y`."""
    with duckdb.connect() as connection:
        for name in TABLES:
            connection.execute(
                f"CREATE TABLE {name} AS SELECT i::INT AS id, 1 AS y, (i % 7)::INT AS a "
                f"FROM range({size}) AS rows(i)"
            )
        create(connection, script, {})
        kept = [f'SELECT count(*) FROM "{each.name}"' for each in script.caches]
        rows = sum(connection.execute(each).fetchall()[0][0] for each in kept)
        connection.execute("CREATE TABLE old AS FROM r")
        connection.execute(f"INSERT INTO r VALUES ({size}, 1, 3)")
        connection.execute(
            f'CREATE TABLE "d+(r)" AS SELECT {size} AS id, 1 AS "y#post", 3 AS "a#post"'
        )
        report = run_in_connection(connection, script, {("r", "pre"): "old"}, count_accesses=True)
        assert read(connection, script).fetchall()
        return sum(each.accesses or 0 for each in report.statements), rows


@pytest.mark.parametrize("name", VIEWS)
def test_a_change_touches_as_many_rows_however_large_tables_are(name: str) -> None:
    measured = [steps(script_of(VIEWS[name], True), size) for size in SIZES]
    accesses, rows = zip(*measured, strict=True)
    assert exponent(accesses) <= 0.1
    assert max(rows) <= len(TABLES) + 1


def test_tuple_diffs_look_through_the_tables() -> None:
    accesses = [steps(script_of(VIEWS["by key"], False), size)[0] for size in SIZES]
    assert exponent(accesses) > 0.8


def exponent(accesses: tuple[int, ...] | list[int]) -> float:
    """The exponent e of N^e between the smallest and the largest size."""
    return log(accesses[-1] / accesses[0]) / log(SIZES[-1] / SIZES[0])
