"""LATERAL subqueries, kept by scripts in Python through random batches and compared with DuckDB."""

from collections import Counter
from random import Random

import duckdb
import pytest

from tests.diffs.harness import PlayedView, as_bag, expect, plain
from tests.diffs.in_duckdb import tables_of
from tests.diffs.random_tables import as_arrow, random_batch, random_database
from tests.diffs.views import TABLES
from tests.transpile import to_duckdb
from viewkeep.query.algebra import Scan
from viewkeep.query.traversal import walk
from viewkeep.sql.parse import parse_view

# A name, then the query until the next empty line.
_TEXT = """
a count
select c.cid, q.n from customers c, lateral (select count(*) as n, max(o.status) as top
  from orders o where o.cid = c.cid) q

a total with a condition, or NULL
select c.cid, q.n, q.s from customers c left join lateral (select count(*) as n, sum(o.oid) as s
  from orders o where o.cid = c.cid having count(*) > 1) q on true

a total with a condition
select c.cid, q.n from customers c, lateral (select count(*) as n
  from orders o where o.cid = c.cid having count(*) <> 1) q

values of the row beside
select c.cid, q.s, r.t from customers c, lateral (select c.cid + c.boss as s) q,
  lateral (select q.s * 2 as t) r

rows by more than equality
select c.cid, q.oid, q.x from customers c, lateral (select o.oid, o.oid * c.cid as x
  from orders o where o.cid = c.cid and o.oid > c.boss) q

rows or NULLs
select c.cid, q.oid, q.x, q.one from customers c left join lateral (select o.oid,
  o.oid + c.cid as x, 1 as one from orders o where o.cid = c.cid and o.oid > c.boss) q on true

the first rows
select c.cid, q.oid from customers c, lateral (select o.oid from orders o where o.cid = c.cid
  order by o.status desc, o.oid limit 2) q

the second row by more than equality, or NULL
select c.cid, q.oid, q.status from customers c left join lateral (select o.oid, o.status
  from orders o where o.cid = c.cid and o.oid >= c.boss order by o.oid limit 1 offset 1) q on true

groups
select c.cid, q.status, q.n from customers c join lateral (select o.status, count(*) as n
  from orders o where o.cid = c.cid group by o.status having count(*) > 1) q on q.n > c.boss

the first of groups
select c.cid, q.status, q.n from customers c left join lateral (select o.status, count(*) as n
  from orders o where o.cid = c.cid group by o.status order by n desc, o.status limit 1) q on true

distinct rows
select c.cid, q.status from customers c, lateral (select distinct o.status from orders o
  where o.cid <> c.cid) q

windows
select c.cid, q.oid, q.r from customers c, lateral (select o.oid, rank() over (order by o.status)
  as r from orders o where o.cid = c.cid qualify rank() over (order by o.status) <= 2) q

rows or NULLs by a condition
select c.cid, q.oid, q.x from customers c left join lateral (select o.oid, o.oid + c.cid as x
  from orders o where o.cid = c.cid) q on q.x > c.boss and q.oid <> 2

the first of those, or NULL by a condition
select c.cid, q.i, q.s from customers c left join lateral (select o.oid, o.status
  from orders o where o.cid = c.cid order by o.oid limit 1) q(i, s)
  on q.s is not null or q.i > c.boss

a total, or NULL by a condition
select c.cid, q.n, q.s from customers c left join lateral (select count(*) as n, sum(o.oid) as s
  from orders o where o.cid = c.cid having count(*) <> 2) q on q.n <> c.boss

a value, or NULL by a condition
select c.cid, q.s from customers c left join lateral (select c.cid + c.boss as s) q on q.s > 2

both of two subqueries
select c.cid, q.a, q.b from customers c, lateral (select o.oid as a, o.status as b from orders o
  where o.cid = c.cid union all select max(o.oid), cast(count(*) as string) from orders o
  where o.oid > c.cid) q where q.a is not null

each of two subqueries once
select c.cid, q.a from customers c, lateral (select o.oid as a from orders o where o.cid = c.cid
  union select o.oid from orders o where o.oid > c.boss) q

either of two subqueries, or NULL by a condition
select c.cid, q.a from customers c left join lateral (select o.oid as a from orders o
  where o.cid = c.cid union all select o.oid + c.cid from orders o where o.oid > c.boss) q
  on q.a <> 3

rows beside equal ones once
select c.boss, q.a from (select boss from customers) c, lateral (select o.cid as a from orders o
  where o.oid > c.boss union select o.oid from orders o where o.cid = c.boss) q

rows of one and not of another
select c.cid, q.a from customers c, lateral (select o.oid as a from orders o where o.cid = c.cid
  except select o.oid from orders o where o.oid > c.boss) q

copies of one and of another
select c.boss, q.a from (select boss from customers) c left join lateral (select o.cid as a
  from orders o where o.oid >= c.boss intersect all select o.cid from orders o) q on true

groups with values of the row beside
select c.cid, q.status, q.n from customers c, lateral (select o.status, count(*) + c.cid as n,
  max(o.oid * c.boss) as m from orders o where o.cid >= c.cid group by o.status
  having max(o.oid) > c.boss) q

groups by a value of the row beside
select c.cid, q.k, q.n from customers c left join lateral (select o.oid % c.cid as k, count(*) as n
  from orders o where o.cid <> c.cid and c.cid > 0 group by o.oid % c.cid) q on true

a total of values of the row beside
select c.cid, q.n, q.s from customers c, lateral (select count(*) + c.boss as n,
  sum(o.oid + c.cid) as s, c.boss as b from orders o where o.cid = c.cid) q

the first rows by a value of the row beside
select c.cid, q.oid, q.x from customers c, lateral (select o.oid, o.oid + c.cid as x from orders o
  where o.cid = c.cid order by abs(o.oid - c.boss), o.oid limit 1) q

distinct values of the row beside
select c.cid, q.x from customers c, lateral (select distinct o.oid % 2 + c.cid as x from orders o
  where o.cid > 0) q

elements, or NULL by a condition
select c.cid, q.x from customers c left join lateral explode(array(c.cid, c.boss, 2)) q(x)
  on q.x > c.boss

one beside another
select c.cid, q.n, p.m from customers c, lateral (select count(*) as n from orders o
  where o.cid = c.cid) q, lateral (select max(l.item) as m from lines l where l.quantity > q.n) p

the first value
select c.cid, (select o.oid from orders o where o.cid = c.cid order by o.oid desc limit 1) as last
  from customers c where exists (select 1 from orders o where o.cid = c.cid limit 1)

the first of two subqueries
select c.cid, q.a from customers c, lateral (select o.oid as a from orders o where o.cid = c.cid
  union all select o.oid + c.cid from orders o where o.oid > c.boss order by a desc limit 2) q

the second of what both have, or NULL by a condition
select c.cid, q.a from customers c left join lateral (select o.oid as a from orders o
  where o.oid >= c.boss union select o.cid from orders o where o.cid = c.cid
  order by 1 nulls last limit 1 offset 1) q on q.a <> c.cid

the first of one and not of another, beside equal rows
select c.boss, q.a from (select boss from customers) c, lateral (select o.oid as a from orders o
  where o.oid <> c.boss except select o.oid from orders o where o.cid = c.boss order by a limit 1) q

a subquery of the subquery that reads the row beside both
select c.cid, q.k from customers c, lateral (select r.k + 1 as k from (select o.oid as k,
  o.status as s from orders o where o.cid = c.cid) r where r.k > c.boss) q

such subqueries on both sides
select c.cid, q.k from customers c, lateral (select r.k from (select o.oid as k from orders o
  where o.cid = c.cid) r union select r.k from (select l.item as k from lines l
  where l.oid = c.cid and l.quantity > 0) r) q

such a subquery on one side, or NULL
select c.cid, q.k from customers c left join lateral (select o.oid as k from orders o
  where o.cid = c.cid except select r.k from (select l.oid as k from lines l
  where l.item = c.boss) r) q on true

such a subquery with the value of the row beside
select c.cid, q.k, q.s from customers c, lateral (select r.k, r.s from (select o.oid as k,
  c.credit as s from orders o where o.cid = c.cid) r union all select c.boss, c.credit) q

the first rows of such subqueries
select c.cid, q.k from customers c, lateral (select r.k from (select o.oid as k from orders o
  where o.cid = c.cid order by o.oid limit 1) r union all select r.k from (select l.oid as k
  from lines l where l.item = c.cid order by l.oid, l.item limit 1) r) q

such a set operation with names, or NULL
select c.cid, q.k from customers c left join lateral (select z as k from (select o.oid
  from orders o where o.cid = c.cid union select l.oid from lines l where l.item = c.boss) r(z)
  where z > 0) q on true

such groups
select c.cid, q.k from customers c, lateral (select r.k from (select o.cid as k, sum(o.oid) as s
  from orders o where o.oid > c.cid group by o.cid) r where r.s > 3) q

a value of such groups
select c.cid, (select max(r.n) from (select o.status, count(*) as n from orders o
  where o.cid = c.cid group by o.status) r) as most from customers c

a count over such a set operation, which may be empty
select c.cid, (select count(*) from (select o.oid as k from orders o where o.cid = c.cid
  union all select l.oid from lines l where l.item = c.boss) r where r.k > c.cid) as n
  from customers c

rows with something in such a set operation
select c.cid from customers c where exists (select 1 from (select o.oid from orders o
  where o.cid = c.cid intersect select l.oid from lines l where l.item > c.cid) r) or c.boss = 1

rows whose value is in no such set operation
select c.cid from customers c where c.boss not in (select r.k from (select o.oid as k
  from orders o where o.cid = c.cid union all select l.oid from lines l where l.item = c.cid) r)
"""
OTHER_TEXTS = {
    "elements, or NULL by a condition": "select c.cid, q.x from customers c left join "
    "(select cid as id, unnest([cid, boss, 2]) as x from customers) q "
    "on q.id = c.cid and q.x > c.boss"
}
"""The same in a text that DuckDB takes."""
VIEWS = dict(part.split("\n", 1) for part in _TEXT.strip().split("\n\n"))


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("tuple_based", [False, True], ids=["id", "tuple"])
def test_views_follow_their_tables(name: str, tuple_based: bool) -> None:
    """One view of three starts with empty tables."""
    seed = list(VIEWS).index(name)
    node = parse_view(VIEWS[name], TABLES)
    tables = tables_of(node, TABLES)
    database = random_database(tables, Random(seed), rows=0 if seed % 3 == 0 else 6)
    view = PlayedView(node, tables, database, tuple_based)
    rng = Random(seed)
    for _ in range(5):
        view.refresh(random_batch(view.database, tables, rng, 4))
        view.check_kept()
        text = OTHER_TEXTS.get(name) or to_duckdb(VIEWS[name])
        expect(name, plain(as_bag(view.visible())), answer(text, view))


def answer(sql: str, view: PlayedView) -> Counter[tuple[object, ...]]:
    """What DuckDB answers."""
    with duckdb.connect() as connection:
        for name, table in view.tables.items():
            connection.register(name, as_arrow(table, view.database[name].values()))
        return plain(Counter(connection.execute(sql).fetchall()))


def test_equal_values_need_no_table_of_outer_values() -> None:
    """The subquery is read by what it is linked by; the rows beside it are read once."""
    node = parse_view(VIEWS["the first rows"], TABLES)
    assert [each.name for each in walk(node) if isinstance(each, Scan)] == ["customers", "orders"]
