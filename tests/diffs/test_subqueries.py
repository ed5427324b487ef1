"""Views with subqueries in expressions, kept by scripts in Python through random batches."""

from random import Random

import pytest

from tests.diffs.harness import PlayedView, keep_through_batches
from tests.diffs.in_duckdb import tables_of
from tests.diffs.random_tables import random_database
from tests.diffs.views import TABLES
from viewkeep.sql.parse import parse_view

# A name, then the query until the next empty line.
_TEXT = """
scalar subquery by a key that may be absent
select oid, (select count(*) from lines where lines.oid = orders.oid) as n,
  (select max(price) from lines where lines.oid = orders.oid) as top from orders

scalar subquery by an inequality
select cid from customers c where boss > (select count(*) from customers d where d.boss < c.boss)

scalar subquery of everything
select region, sum(credit) as s from customers group by region
  having sum(credit) > (select avg(credit) from customers)

scalar subquery by a key
select cid, (select tax from regions where regions.region = customers.region) as tax from customers

not in beside or
select oid from orders where cid not in (select boss from customers) or status = 'a'

exists of groups
select oid from orders where exists (select item from lines where lines.oid = orders.oid
  group by item having sum(quantity) > 2)

scalar subquery that is a key
select (select max(price) from lines where lines.oid = orders.oid) as k, count(*) as n from orders
  group by 1

aggregate of scalar subqueries
select max((select sum(quantity) from lines where lines.oid = orders.oid)) as m from orders

subquery in the condition of an outer join
select o.oid, l.item from orders o left join lines l
  on o.oid = l.oid and l.quantity > (select avg(quantity) from lines)

in beside case
select cid, case when cid in (select cid from orders) then 'x' else 'y' end as k from customers

the greatest
select item from items where cost = (select max(cost) from items)

groups with a condition by key
select region, sum(credit) as s from customers group by region
  having sum(credit) > (select max(tax) from regions where regions.region = customers.region)

common table that reads the rows around
select oid, (with c as (select quantity from lines where lines.oid = orders.oid)
  select sum(x.quantity * y.quantity) from c x, c y) as s from orders

common table called as the table that it reads
select oid, (with lines as (select item from lines where lines.oid = orders.oid)
  select count(*) from lines) as n from orders

common table of first rows
select oid, (with c as (select item from lines where lines.oid = orders.oid order by item limit 2)
  select max(item) from c) as m from orders

common table of a union with renamed columns
select cid, (with c(N) as (select oid from orders where orders.cid = customers.cid union
  select customers.boss) select count(n) from c) as n from customers

subqueries in from joined with each other
select oid, (select max(x.quantity + y.n) from (select item, quantity from lines
  where lines.oid = orders.oid) x join (select item, count(*) as n from tags
  where tags.item > orders.cid group by item) y on x.item = y.item) as m from orders

scalar subquery beside groups
select region, count(*) as n,
  (select max(tax) from regions where regions.region = customers.region) as tax
  from customers group by region

scalar subquery beside sets of groups
select region, boss, count(*) as n,
  (select count(*) from regions where regions.region <=> customers.region) as k
  from customers group by rollup (region, boss)

scalar subquery by a computed key
select cid + 1 as k, (select count(*) from customers d where d.boss = orders.cid + 1) as n
  from orders group by orders.cid + 1

union in having
select cid, count(*) as n from orders group by cid having cid in (select boss from customers
  where customers.cid < orders.cid union select item from items where items.cost = orders.cid)
"""
VIEWS = dict(part.split("\n", 1) for part in _TEXT.strip().split("\n\n"))


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("tuple_based", [False, True], ids=["id", "tuple"])
def test_views_equal_themselves_computed_anew(name: str, tuple_based: bool) -> None:
    """One view of three starts with empty tables."""
    seed = list(VIEWS).index(name)
    node = parse_view(VIEWS[name], TABLES)
    tables = tables_of(node, TABLES)
    database = random_database(tables, Random(seed), rows=0 if seed % 3 == 0 else 6)
    keep_through_batches(PlayedView(node, tables, database, tuple_based), seed, batches=5)
