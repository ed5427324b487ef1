"""Constant rows, set operations on bags, pivots and nested values in views, kept through changes.

DuckDB's own answer is the oracle, and Spark's for what both write alike.
"""

import os
from collections import Counter
from random import Random
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from tests.diffs.harness import PlayedView, expect, keep_through_batches, plain
from tests.diffs.in_duckdb import KeptInDuckdb, tables_of
from tests.diffs.random_tables import Database, as_arrow, random_database
from viewkeep.execute.spark.driver.collect import collect
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view
from viewkeep.sql.text import to_sql
from viewkeep.tables.arrow_rows import to_rows

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
TABLES = {
    "r": Table({"k": "int", "a": "int", "b": "int", "c": "string"}, key=["k"]),
    "s": Table({"a": "int", "d": "int", "e": "int"}, key=["a", "d"]),
}
VALUES = "(values (1, 'one'), (2, null), (2, 'two'), (null, 'none')) v(a, name)"
VIEWS = {
    "constants beside rows": "select a, b from r union all select 1, null union all select 1, null",
    "a constant once": "select a from r union select 3",
    "values joined": f"select r.k, v.name from r join {VALUES} on r.a = v.a",
    "values kept": f"select v.a, v.name, r.k from {VALUES} left join r on r.a = v.a",
    "values without rows": f"select v.name from {VALUES} where not exists "
    "(select 1 from r where r.a = v.a)",
    "counted by values": f"select v.name, count(r.k) n, sum(r.b) x from {VALUES} "
    "left join r on r.a = v.a group by v.name",
    "common values": "with v as (select * from (values (1), (2)) w(x)), "
    "one as (select 1 as y, 1 + 1 as z) "
    "select r.k, one.z, v.x from r join v on r.a = v.x cross join one",
    "in values": "select k from r where a in (select x from (values (1), (2)) w(x))",
    "in a value": "select k, (select 7) seven from r where b > (select 1)",
    "values as a side": "select a from r except select * from (values (1), (2)) v",
    "except all": "select a from r except all select a from s",
    "except all of two": "select a, b from r except all select a, d from s",
    "intersect all": "select a from r intersect all select a from s",
    "intersect all of groups": "select a, count(*) n from (select a, b from r intersect all "
    "select a, e from s) q group by a",
    "pivot": "select * from (select a, b, c from r) pivot (sum(b) for a in (1, 2))",
    "pivot of all": "select * from (select a, b from r) p pivot (max(b) for a in (1 as x, 3 as y))",
    "pivot by two": "select q.d, q.one_s, q.two_m from (select r.a, r.b, s.d from r join s "
    "on r.a = s.a) j pivot (sum(b) as s, min(b) as m for a in (1 as one, 2 as two)) q "
    "where q.d > 1",
    "unpivot": "select u.k, u.n, u.v from r unpivot (v for n in (a, b)) u where u.v <> 2",
    "unpivot with nulls": "select n, count(*) x, sum(v) y from r unpivot include nulls "
    "(v for n in (a as first, b)) group by n",
    "except all of constants": "select a from r except all select * from (values (1), (1), (2)) v",
}


SERIES = "generate_series(a, b, case when a <= b then 1 else -1 end)"
UNNESTED = {
    "elements": (
        "select k, x from r lateral view explode(array(a, b, a)) v as x where x > 1",
        "select k, x from (select k, unnest([a, b, a]) x from r) where x > 1",
    ),
    "elements in the select list": (
        "select *, explode(array(a, b)) as x from r where b < 4",
        "select *, unnest([a, b]) x from r where b < 4",
    ),
    "positions": (
        "select k, posexplode(sequence(a, b)) as (p, x) from r",
        f"select k, unnest(range(len({SERIES}))) p, unnest({SERIES}) x from r",
    ),
    "rows without elements": (
        "select r.k, r.c, v.x from r lateral view outer explode(sequence(a, b)) v as x",
        f"select r.k, r.c, v.x from r left join lateral (select unnest({SERIES}) x) v on true",
    ),
    "two of them": (
        "select k, x, y from r lateral view explode(array(a, b)) v as x "
        "lateral view explode(sequence(0, x)) w as y where y <> 1",
        "select k, x, y from (select k, x, unnest(generate_series(0, x, sign(x - 0.5))) y "
        "from (select k, unnest([a, b]) x from r)) where y <> 1",
    ),
    "counted": (
        "select x, count(*) n, sum(k) z from r lateral view explode(array(a, b)) v as x group by x",
        "select x, count(*) n, sum(k) z from (select k, unnest([a, b]) x from r) group by x",
    ),
    "joined": (
        "select r.k, s.d, x from r join s on r.a = s.a, lateral explode(array(s.d, s.e)) v(x) "
        "where x = r.b or x is null",
        "select k, d, x from (select r.k, r.b, s.d, unnest([s.d, s.e]) x from r join s "
        "on r.a = s.a) where x = b or x is null",
    ),
    "of groups": (
        "select c, explode(array(min(a), max(b))) as x from r group by c",
        "select c, unnest([min(a), max(b)]) as x from r group by c",
    ),
    "apart and together": (
        "select distinct x from explode(sequence(1, 3)) q(x) where x in (select (array(a, b))[1] "
        "from r)",
        "select distinct x from generate_series(1, 3) q(x) where x in (select b from r)",
    ),
}
"""Views that make rows of arrays, and the same in DuckDB's words."""

IN_DUCKDB = ("values kept", "except all of constants")
"""Views whose scripts DuckDB runs as well."""


class Compared(PlayedView):
    """A view in Python, compared with what DuckDB answers to its text."""

    def __init__(self, sql: str, database: Database, tuple_based: bool, expected: str = "") -> None:
        self._sql = expected or sql
        super().__init__(parse_view(sql, TABLES), TABLES, database, tuple_based)

    def check(self) -> None:
        self.check_kept()
        with duckdb.connect() as connection:
            for name, table in TABLES.items():
                connection.register(name, as_arrow(table, self.database[name].values()))
            answer = connection.execute(self._sql).fetchall()
        expect("visible", plain(Counter(self.visible())), plain(Counter(answer)))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_follows_its_tables(name: str) -> None:
    for seed in range(10 if LONG else 2):
        database = random_database(TABLES, Random(seed), rows=8 * (1 - seed % 2))
        keep_through_batches(Compared(VIEWS[name], database, seed % 3 == 1), seed, 3)


@pytest.mark.parametrize("name", UNNESTED)
def test_rows_of_arrays_follow_their_tables(name: str) -> None:
    sql, expected = UNNESTED[name]
    for seed in range(10 if LONG else 2):
        database = random_database(TABLES, Random(seed), rows=8 * (1 - seed % 2))
        keep_through_batches(Compared(sql, database, seed % 3 == 1, expected), seed, 3)


@pytest.mark.parametrize("name", UNNESTED if LONG else ["rows without elements", "counted"])
def test_rows_of_arrays_in_duckdb(name: str) -> None:
    sql, expected = UNNESTED[name]
    node = parse_view(sql, TABLES)
    tables = tables_of(node, TABLES)
    database = random_database(tables, Random(5), rows=8)
    with duckdb.connect() as connection:
        view = KeptInDuckdb(node, tables, database, connection, expected, 1, determined=True)
        keep_through_batches(view, 5, 2)


@pytest.mark.parametrize("name", VIEWS if LONG else IN_DUCKDB)
def test_scripts_in_duckdb_do_the_same(name: str) -> None:
    node = parse_view(VIEWS[name], TABLES)
    tables = tables_of(node, TABLES)
    database = random_database(tables, Random(5), rows=8)
    with duckdb.connect() as connection:
        view = KeptInDuckdb(node, tables, database, connection, VIEWS[name], 1, determined=True)
        keep_through_batches(view, 5, 2)


PIVOTS = {
    "a count of nothing is null": "select * from (select a, b, c from r) "
    "pivot (count(*) as n, sum(b) as s for a in (1, 2, null))",
    "but not beside a text": "select * from (select a, b, c from r) "
    "pivot (count(b) as n, max(c) as m for a in (1, 2 as two))",
    "by two columns": "select * from (select a, b, c from r) "
    "pivot (count(b) for (a, c) in ((1, 'a') as x, (2, 'b')))",
    "into two columns": "select * from r unpivot ((v, w) for n in ((a, b) as ab, (b, k)))",
}
"""What DuckDB does otherwise, or writes in another way."""


def test_spark_answers_the_same(spark: SparkSession) -> None:
    """The text of every view, and the text of its tree."""
    own = spark.newSession()
    database = random_database(TABLES, Random(7), rows=9)
    for name, table in TABLES.items():
        frame = own.createDataFrame(as_arrow(table, database[name].values()))
        frame.createOrReplaceTempView(name)
    frames: dict[str, Any] = {}
    views = VIEWS | PIVOTS | {name: sql for name, (sql, _) in UNNESTED.items()}
    for name, sql in views.items():
        node = parse_view(sql, TABLES)
        frames[f"own {name}"] = own.sql(to_sql(node, lambda leaf: leaf.name))
        frames[f"as written {name}"] = own.sql(sql)
    answers = {name: Counter(to_rows(rows)) for name, rows in collect(frames, 10_000).items()}
    for name in views:
        assert list(frames[f"own {name}"].columns) == list(frames[f"as written {name}"].columns)
        assert answers[f"own {name}"] == answers[f"as written {name}"], name
