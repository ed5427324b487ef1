"""Views with ROLLUP, CUBE and GROUPING SETS, kept through random batches."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.diffs.harness import PlayedView, keep_through_batches
from tests.diffs.in_duckdb import tables_of
from tests.diffs.random_tables import as_arrow, random_database
from tests.diffs.views import TABLES
from viewkeep.errors import QueryError
from viewkeep.execute.spark.driver.collect import collect
from viewkeep.sql.parse import parse_view
from viewkeep.sql.text import to_sql
from viewkeep.tables.arrow_rows import to_rows

VIEWS = [
    "select status, cid, sum(discount) as s, count(*) as n from orders "
    "group by rollup (status, cid)",
    "select status, cid, count(discount) as n from orders group by status, cid with cube",
    "select status, cid, avg(discount) as a from orders group by status, rollup (cid, oid)",
    "select status, cid, sum(cid) as s, max(status) as m from orders "
    "group by grouping sets ((status, cid), (status), (status), ())",
    "select count(*) as n, sum(discount) as s from orders group by grouping sets (())",
    "select status, cid, max(oid) as m from orders group by status, cid grouping sets (cid)",
    "select cid % 2 as odd, upper(status) as u, grouping(upper(status)) as g, grouping_id() as i, "
    "count(distinct discount) as d from orders group by cube (cid % 2, upper(status))",
    "select status, cid, n, rank() over (partition by g order by n desc, cid) as r from ("
    "select status, cid, grouping(cid) as g, count(*) as n from orders "
    "group by rollup (status, (cid, oid)) having grouping_id() < 7) q",
    "select status, cid, grouping(status) + grouping(cid) as level, "
    "rank() over (partition by grouping(status) + grouping(cid), "
    "case when grouping(cid) = 0 then status end order by count(*) desc) as r, "
    "sum(count(*)) over (partition by grouping(cid) * 2) as n from orders "
    "group by rollup (status, cid) order by grouping(cid) + 1, cid, status limit 9",
]


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_views_equal_themselves_computed_anew(number: int) -> None:
    node = parse_view(VIEWS[number], TABLES)
    tables = tables_of(node, TABLES)
    database = random_database(tables, Random(number), rows=0 if number % 3 == 0 else 8)
    keep_through_batches(PlayedView(node, tables, database), number, batches=5)


@pytest.mark.parametrize("rows", [0, 12])
def test_spark_answers_the_same(spark: SparkSession, rows: int) -> None:
    """Also where there are no rows: no groups, not even the one of all rows beside others."""
    own = spark.newSession()
    tables = {"orders": TABLES["orders"]}
    database = random_database(tables, Random(7), rows=rows)
    frame = own.createDataFrame(as_arrow(TABLES["orders"], database["orders"].values()))
    frame.createOrReplaceTempView("orders")
    frames: dict[str, Any] = {}
    for number, sql in enumerate(VIEWS):
        text = to_sql(parse_view(sql, TABLES), lambda leaf: leaf.name)
        frames[f"own {number}"], frames[f"as written {number}"] = own.sql(text), own.sql(sql)
    answers = {name: Counter(to_rows(rows)) for name, rows in collect(frames, 10_000).items()}
    for number, sql in enumerate(VIEWS):
        assert answers[f"own {number}"] == answers[f"as written {number}"], sql
        assert bool(answers[f"own {number}"]) == (bool(rows) or "sets (())" in sql)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select grouping(status) as g from orders group by status", "needs ROLLUP"),
        ("select grouping(oid) as g from orders group by rollup (status)", "takes a key"),
        ("select grouping(status, cid) as g from orders group by cube (status, cid)", "1 argument"),
        ("select oid from orders group by rollup (status)", "must be in GROUP BY"),
        ("select grouping_id(cid) as g from orders group by cube (status, cid)", "all keys"),
    ],
)
def test_what_has_no_meaning_is_refused(sql: str, problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        parse_view(sql, TABLES)
