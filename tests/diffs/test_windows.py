"""Views with windows and limits, kept through random changes; DuckDB's own answer is the oracle.

Orders end with the key, so that every answer is determined; the tables have NULLs and ties.
"""

import os
from collections.abc import Sequence
from random import Random

import duckdb
import pytest

from tests.diffs.harness import PlayedView, keep_through_batches
from tests.diffs.in_duckdb import KeptInDuckdb, tables_of
from tests.diffs.random_tables import random_database
from viewkeep.diffs.generate import generate
from viewkeep.diffs.optimize import reserve_rows
from viewkeep.query.algebra import SemiJoin, Window
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk
from viewkeep.sql import parse_view

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
TABLES = {
    "r": Table({"k": "int", "a": "int", "b": "int", "c": "int not null"}, key=["k"]),
    "s": Table({"a": "int", "d": "int", "e": "int"}, key=["a", "d"]),
}
FUNCTIONS = (
    "row_number() over (partition by a order by b desc, k)",
    "rank() over (partition by a order by b)",
    "dense_rank() over (partition by a, c order by b desc)",
    "percent_rank() over (partition by a order by b)",
    "cume_dist() over (partition by a order by b)",
    "ntile(3) over (partition by a order by b, k)",
    "lag(b, 1, 7) over (partition by a order by c, k)",
    "lead(b) over (partition by a order by c desc, k)",
    "first_value(b) over (partition by a order by c, k)",
    "last_value(b) over (partition by a order by c, k rows between 1 preceding and 1 following)",
    "nth_value(b, 2) over (partition by a order by c, k rows between unbounded preceding and "
    "unbounded following)",
    "sum(b) over (partition by a order by c)",
    "avg(b) over (partition by a)",
    "count(b) over (partition by a order by c, k rows between current row and 2 following)",
    "min(b) over (partition by a order by c range between 1 preceding and 1 following)",
    "max(b) over (order by c)",
    "row_number() over (order by b nulls last, k)",
)
SHARE = 4
"""How many views have the functions, so that few scripts are made."""


def _columns(functions: Sequence[str]) -> str:
    return ", ".join(f"{text} as z{i}" for i, text in enumerate(functions))


VIEWS = {
    **{
        f"functions {i + 1}": f"select k, b, c, {_columns(FUNCTIONS[i::SHARE])} from r"
        for i in range(SHARE)
    },
    "groups": "select a, sum(b) x, sum(sum(b)) over (partition by count(*)) z from r group by a",
    "share": "select a, c, sum(b) x, sum(sum(b)) over (partition by a) z from r group by a, c",
    "spread": "select a, stddev_samp(b) x, var_pop(distinct b) y, median(b) z from r group by a",
    "bits": "select c, bit_xor(b) filter (where a > 0) x, bool_or(b > 1) y, bool_and(b > 0) z "
    "from r group by c",
    "spread of all": "select stddev(b) x, bit_xor(b) y from r",
    "qualify": "select k, a, b from r qualify row_number() over (partition by a order by b, k) < 3",
    "best": "select a, k from (select a, k, c, row_number() over (partition by a, c "
    "order by b desc, k) z from r) q where z = 1",
    "best of groups": "select a, c, x from (select a, c, sum(b) x from r group by a, c) q "
    "qualify row_number() over (partition by a order by x, c) <= 2",
    "best of a join": "select r.k, s.d, s.e from r join s on r.a = s.a "
    "qualify row_number() over (partition by r.k order by s.e desc, s.d) between 2 and 3",
    "after": "select a, count(*) n from (select a, rank() over (partition by c order by b) z "
    "from r) q where z <= 2 group by a",
    "joined": "select r.k, s.d, sum(s.e) over (partition by r.c order by r.k, s.d) z "
    "from r join s on r.a = s.a",
    "twice": "select x.k, x.z, y.z w from (select k, rank() over (partition by a order by b) z "
    "from r) x join (select k, count(*) over (partition by c) z from r) y on x.k = y.k",
    "outer": "select r.k, s.d, row_number() over (partition by s.e order by r.k, s.d) z "
    "from r left join s on r.a = s.a",
    "not read": "select k, max(b) over (order by c) z from (select r.k, r.b, r.c, "
    "rank() over (order by r.a) y from r left join s on r.a = s.a) q",
    "chained": "select k, sum(z) over (partition by c order by k) y from (select k, c, "
    "count(*) over (partition by a) z from r) q",
    "top": "select k, b from r order by b desc, k limit 3",
    "top of groups": "select a, sum(b) x from r group by a order by x desc, a limit 2",
    "top after an offset": "select k, b from r order by b, k limit 2 offset 1",
    "top in a join": "select r.k, q.d from r join (select a, d from s order by e, a, d limit 3) q "
    "on r.a = q.a",
    "top by number": "select k, z from (select k, row_number() over (order by b nulls last, k) z "
    "from r) q where z < 4",
    "top of a top": "select k, b from (select k, b, c from r order by c, k limit 5) q "
    "order by b desc, k limit 2",
    "top of a join": "select r.k, s.d, s.e from r join s on r.a = s.a "
    "order by s.e, r.k, s.d limit 4",
    "top with other columns": "select k, a, b from r order by c desc, k limit 4",
    "top with others that change": "select k, z from (select k, b, count(*) over (partition by a) "
    "as z from r) q order by b, k limit 4",
    "none": "select k, b from r order by b, k limit 0",
    "more than there are": "select k, b from r order by b, k limit 50",
    "top of a union": "select a from r union select d from s order by 1 limit 2",
}


@pytest.fixture(autouse=True)
def _reserves_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are so small that larger reserves would never be used up."""
    monkeypatch.setattr(reserve_rows, "LEAST", 1)
    monkeypatch.setattr(reserve_rows, "MOST", 1)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_follows_its_tables(name: str) -> None:
    node = parse_view(VIEWS[name], TABLES)
    for seed in range(10 if LONG else 1):
        for tuple_based in (False, True):
            database = random_database(TABLES, Random(seed), rows=8)
            keep_through_batches(PlayedView(node, TABLES, database, tuple_based), seed, 3)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_in_duckdb_equals_its_text(name: str) -> None:
    node = parse_view(VIEWS[name], TABLES)
    tables = tables_of(node, TABLES)
    database = random_database(tables, Random(5), rows=8)
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")
        view = KeptInDuckdb(node, tables, database, connection, VIEWS[name], 1, determined=True)
        keep_through_batches(view, 5, 2)


def test_only_partitions_that_changes_touch_are_read() -> None:
    node = parse_view("select k, rank() over (partition by a order by b) z from r", TABLES)
    queries = [each.query for each in generate(node).script.computes()]
    windows = {each for query in queries for each in walk(query) if isinstance(each, Window)}
    assert windows
    for window in windows:
        assert any(isinstance(each, SemiJoin) for each in walk(window.child)), str(window)
