"""Named views over keyed tables: every operator, and what goes wrong where operators meet."""

from viewkeep.query.tables import Table

TABLES = {
    "regions": Table(
        {"region": "string", "tax": "decimal(4, 2)", "head": "int"},
        key=["region"],
    ),
    "customers": Table(
        {
            "cid": "int",
            "region": "string",
            "credit": "decimal(8, 2)",
            "since": "date",
            "boss": "int",
        },
        key=["cid"],
        foreign_keys=["region -> regions.region"],
    ),
    "orders": Table(
        {
            "oid": "int",
            "cid": "int",
            "status": "string not null",
            "placed": "date",
            "discount": "double",
        },
        key=["oid"],
        foreign_keys=["cid -> customers.cid"],
    ),
    "lines": Table(
        {"oid": "int", "item": "int", "quantity": "int not null", "price": "decimal(8, 2)"},
        key=["oid", "item"],
        foreign_keys=["oid -> orders.oid", "item -> items.item"],
    ),
    "items": Table(
        {"item": "int", "kind": "string", "weight": "double", "cost": "int"},
        key=["item"],
    ),
    "tags": Table(
        {"item": "int", "tag": "string"}, key=["item", "tag"], foreign_keys=["item -> items.item"]
    ),
}

# A name, then the query until the next empty line.
_TEXT = """
scan
select * from customers

selection
select oid, cid, status from orders where cid > 1

selection with null logic
select cid, region, credit from customers where not (boss = 1) or credit < 1 and region is not null

selection that is never null
select cid, boss from customers where boss <=> null or region is distinct from 'a'

selection by in list with null
select item, kind from items where cost not in (1, 2) and kind in ('a', 'b', null)

selection on the key
select item, cost from items where item between 1 and 3

selection on dates
select oid, placed from orders where placed >= '2024-02-29' and placed < date '2024-03-03'

computed columns
select item, cost * 2 + 1 as twice, coalesce(kind, 'none') as kind, weight / 2 as half from items

scalar subquery in a condition
select oid, item from lines where quantity < (select 0.8 * avg(quantity) from lines l
  where l.item = lines.item)

exists beside or
select oid from orders where exists (select 1 from lines where lines.oid = orders.oid) or cid = 1

computed key
select item + 1 as next, item % 2 as odd, cost from items

computed from key and value
select oid * 10 + item as code, quantity * price as total from lines

dropped key
select region, boss from customers

dropped part of a key
select item, quantity from lines where quantity > 0

key twice
select item, item as again, cost from items where cost > 0 and item > 0

case and functions of dates
select cid, year(since) as y, case when credit > 1 then 'rich' when credit is null then '?' end
  as class, datediff(since, date '2024-02-28') as days from customers

nested selections and projections
select z, twice from (select y + 1 as z, twice from (select cost as y, cost * 2 as twice from items
  where cost > 0) a where y < 4) b where z + twice > 3

join on a key
select o.oid, o.status, c.cid, c.region from orders o join customers c on o.cid = c.cid

join on parts of keys
select l.oid, l.item, o.status, l.quantity from lines l join orders o on l.oid = o.oid

join on non-keys
select o.oid, i.item, o.status, i.cost from orders o join items i on o.cid = i.cost

join on several columns
select a.oid, a.item, b.item as other from lines a join lines b on a.oid = b.oid
  and a.quantity = b.quantity and a.price < b.price

join that drops ids
select c.region, i.kind from customers c join items i on c.boss = i.cost

join with null-safe equality
select c.cid, i.item from customers c join items i on c.boss <=> i.cost

join on computed values
select o.oid, i.item from orders o join items i on o.cid + 1 = i.cost * 2

join with a condition on each side
select o.oid, c.credit from orders o join customers c on o.cid = c.cid and o.status > 'a'
  and c.credit > 0 where c.credit < 10 or o.discount is null

theta join
select o.oid, i.item, o.discount, i.weight from orders o join items i on o.discount < i.weight

theta join on dates
select c.cid, o.oid from customers c join orders o on c.since < o.placed and c.cid <> o.cid

cross join
select i.item, i.cost, g.region, g.tax from items i cross join regions g

chain of joins
select l.oid, l.item, i.kind, o.status, c.region, g.tax from lines l join items i on l.item = i.item
  join orders o on l.oid = o.oid join customers c on o.cid = c.cid join regions g
  on c.region = g.region

star of joins with conditions
select l.oid, i.item, l.quantity * i.cost as value from lines l join items i on l.item = i.item
  join orders o on l.oid = o.oid where i.kind = 'a' and o.status <> 'b'

self-join
select c.cid, b.cid as boss, b.credit from customers c join customers b on c.boss = b.cid

self-join on non-keys
select a.item, b.item as other, a.cost, b.weight from items a join items b on a.cost = b.cost

self-join by key
select a.item, a.cost, b.kind from items a join items b on a.item = b.item and a.cost < 4

self-join on part of a key
select a.oid, a.item, b.item as other, a.quantity + b.quantity as q from lines a join lines b
  on a.oid = b.oid

table that is all key
select tag, item + 1 as next from tags where item > 0

join of tables that are all key
select a.item, b.item as other, i.kind from tags a join tags b on a.tag = b.tag
  join items i on a.item = i.item

aggregate over a table that is all key
select t.tag, count(*) as n, sum(i.cost) as s from tags t join items i on t.item = i.item
  group by t.tag

three aliases
select a.cid, b.cid as second, c.cid as third from customers a join customers b on a.boss = b.cid
  join customers c on b.boss = c.cid

three aliases, theta
select a.item, b.item as b, c.item as c from items a, items b, items c where a.cost < b.cost
  and b.cost < c.cost

in
select oid, status from orders where cid in (select cid from customers where credit > 0)

not in with nulls
select item, cost from items where cost not in (select boss from customers)

not in without nulls
select oid from orders where oid not in (select oid from lines where quantity > 0)

exists
select c.cid, c.region from customers c where exists (select 1 from orders o where o.cid = c.cid
  and o.status = 'a')

not exists
select c.cid, c.credit from customers c where not exists (select 1 from orders o
  where o.cid = c.cid)

exists with an inequality
select i.item, i.cost from items i where exists (select 1 from lines l where l.item = i.item
  and l.quantity > i.cost)

not exists with an inequality only
select i.item, i.cost from items i where not exists (select 1 from customers c
  where c.boss > i.cost)

exists without correlation
select item, kind from items where exists (select 1 from orders where status = 'b')

not exists of itself
select a.item, a.cost from items a where not exists (select 1 from items b where b.cost > a.cost)

semijoin and antijoin
select o.oid, o.cid from orders o where o.cid in (select boss from customers) and not exists
  (select 1 from lines l where l.oid = o.oid and l.price > 0)

nested exists
select c.cid from customers c where exists (select 1 from orders o where o.cid = c.cid
  and not exists (select 1 from lines l where l.oid = o.oid and l.quantity < 2))

left semi and anti joins
select c.cid, c.credit from customers c left semi join orders o on c.cid = o.cid
  left anti join regions g on c.region = g.region and g.tax > 0

antijoin over a join
select o.oid, c.region from orders o join customers c on o.cid = c.cid where not exists
  (select 1 from regions g where g.region = c.region and g.head = o.cid)

left join
select o.oid, o.status, c.region, c.credit from orders o left join customers c on o.cid = c.cid

left join with a condition
select i.item, i.cost, l.oid, l.quantity from items i left join lines l on i.item = l.item
  and l.quantity > i.cost

right join
select o.oid, c.cid, c.region from orders o right join customers c on o.cid = c.cid

full join
select c.cid, c.region, g.region as r, g.tax from customers c full join regions g
  on c.region = g.region

full join on non-keys
select c.cid, i.item, i.cost from customers c full join items i on c.boss = i.cost

outer joins in a chain
select c.cid, o.oid, l.item, l.quantity from customers c left join orders o on c.cid = o.cid
  left join lines l on o.oid = l.oid

left join of an inner join
select c.cid, o.oid, l.quantity from customers c left join (orders o join lines l on o.oid = l.oid)
  on c.cid = o.cid

rows without a partner
select i.item from items i left join lines l on i.item = l.item where l.oid is null

aggregate above a left join
select c.region, count(*) as n, count(o.oid) as orders, min(o.placed) as first from customers c
  left join orders o on c.cid = o.cid group by c.region

aggregate below a left join
select c.cid, c.credit, q.n, q.s from customers c left join (select cid, count(*) as n,
  sum(discount) as s from orders group by cid) q on c.cid = q.cid

aggregate above and below a full join
select coalesce(q.n, 0) as n, sum(c.credit) as credit from customers c full join (select cid,
  count(*) as n from orders group by cid) q on c.cid = q.cid group by coalesce(q.n, 0)

union all
select cid, region from customers where credit > 0 union all select head, region from regions

union all of different ids
select boss as x, region as y from customers union all select item, kind from items
  union all select quantity, null from lines union all select head, region from regions

union all of one table
select item, cost from items where cost > 0 union all select item, cost + 1 from items
  where cost < 3

union
select boss from customers union select cost from items

union of joins
select o.oid, c.region from orders o join customers c on o.cid = c.cid union select l.oid, i.kind
  from lines l join items i on l.item = i.item

except
select cid from customers except select cid from orders

except of several columns
select region, boss from customers except select region, head from regions

intersect
select boss from customers intersect select cost from items

set operations together
(select boss as x from customers union all select cost from items) except
  (select cid from orders intersect select head from regions)

distinct
select distinct region, boss from customers

distinct over a join
select distinct o.status, c.region from orders o join customers c on o.cid = c.cid

sum and count
select region, sum(boss) as s, count(*) as n, count(boss) as k from customers group by region

averages
select status, avg(cid) as m, avg(discount) as d from orders group by status

sum of decimals
select item, sum(price) as s, avg(price) as m, sum(price * quantity) as w from lines group by item

sum of doubles
select kind, sum(weight) as w, avg(weight) as m, count(weight) as n from items group by kind

minimum and maximum
select region, min(since) as first, max(credit) as most, min(boss) as b from customers
  group by region

group by part of the key
select oid, sum(quantity) as q, count(*) as n from lines group by oid

group by the key
select item, sum(cost) as c, count(*) as n from items group by item

group keys that are null
select region, boss, count(*) as n, sum(credit) as c from customers group by region, boss

computed group keys
select cost % 2 as odd, upper(kind) as k, count(*) as n, sum(cost + item) as s from items
  group by cost % 2, upper(kind)

group by dates
select year(placed) as y, month(placed) as m, count(*) as n, sum(cid) as s from orders
  group by year(placed), month(placed)

renamed group
select status as s, count(*) as n from orders group by status

computed over groups
select sum(quantity) * 2 + count(*) as x, oid % 2 as odd from lines group by oid % 2

groups without aggregates
select region from customers group by region

count distinct
select region, count(distinct boss) as n, count(*) as k from customers group by region

global aggregates
select count(*) as n, sum(cost) as s, avg(cost) as m, min(kind) as k, sum(weight) as w from items

global count
select count(*) as n from items

global sums
select count(*) as n, sum(cost) as s, avg(cost) as m, count(kind) as k from items

global aggregate of nothing
select count(*) as n, sum(quantity) as s, avg(price) as p from lines where quantity > 3

global count distinct
select count(distinct boss) as n, sum(credit) as c from customers

rows of a global aggregate
select count(*) as n, sum(1) as s from (select max(cost) as m from items) q

having
select oid, sum(quantity) as q from lines group by oid having sum(quantity) > 2 and count(*) < 4

having on another aggregate
select region from customers group by region having min(credit) > 0 or max(boss) is null

filtered aggregates
select status, count(*) filter (where cid > 1) as n, sum(cid) filter (where placed is null) as s
  from orders group by status

selection and aggregate
select kind, sum(cost) as s, count(*) as n from items where cost >= 0 group by kind

join and aggregate
select c.region, sum(l.quantity) as q, count(*) as n, avg(l.price) as p from customers c
  join orders o on c.cid = o.cid join lines l on o.oid = l.oid where o.status <> 'c'
  group by c.region

join on non-keys and aggregate
select i.kind, sum(c.boss * i.cost) as s, count(*) as n from items i join customers c
  on i.cost = c.boss group by i.kind

self-join and aggregate
select b.region, count(*) as n, sum(c.credit) as s from customers c join customers b
  on c.boss = b.cid group by b.region

aggregate of an aggregate
select n, count(*) as k, sum(q) as s from (select oid, count(*) as n, sum(quantity) as q from lines
  group by oid) x group by n

group by a group and its value
select q.region, q.n, min(q.n) as m from (select region, count(*) as n from customers
  group by region) q group by q.region, q.n

three aggregates
select max(k) as m, count(*) as c from (select n, count(*) as k from (select region, count(*) as n
  from customers group by region) x group by n) y

join of aggregates
select a.cid, a.n, b.s from (select cid, count(*) as n from orders group by cid) a join
  (select boss, sum(credit) as s from customers group by boss) b on a.cid = b.boss where a.n > 1

aggregate and its input
select o.oid, o.status, q.n from orders o join (select status, count(*) as n from orders
  group by status) q on o.status = q.status where q.n < 3

join on an aggregate
select i.item, i.kind, q.oid from items i join (select oid, sum(quantity) as s from lines
  group by oid) q on i.cost = q.s

antijoin over an aggregate
select q.region, q.n from (select region, count(*) as n from customers group by region) q
  where not exists (select 1 from regions g where g.region = q.region and g.head < q.n)

not in an aggregate
select item, cost from items where cost not in (select count(*) from orders group by cid)

in groups with having
select cid, credit from customers where cid in (select cid from orders group by cid
  having count(*) > 1)

exists on a global aggregate
select item, cost from items where cost in (select max(boss) from customers)

aggregate over a union
select x, count(*) as n, sum(y) as s from (select region as x, boss as y from customers union all
  select kind, cost from items) u group by x

aggregate over a union of different ids
select x, count(*) as n, max(y) as m from (select status as x, cid as y from orders union all
  select i.kind, l.quantity from lines l join items i on l.item = i.item) u group by x

distinct over a union over aggregates
select distinct n from (select count(*) as n from customers group by region union all
  select sum(quantity) from lines group by oid) u where n > 1

union of aggregates and rows
select region, boss from customers union all select kind, max(cost) from items group by kind

left join of a union
select c.cid, u.y from customers c left join (select item as x, cost as y from items union all
  select oid, quantity from lines) u on c.cid = u.x

join of unions
select a.x, b.y from (select boss as x from customers union all select cost from items) a
  join (select head as y from regions union all select cid from orders) b on a.x = b.y

exists over outer joins
select c.cid, g.tax from customers c left join regions g on c.region = g.region where exists
  (select 1 from orders o left join lines l on o.oid = l.oid where o.cid = c.cid and l.item is null)

join on one column twice
select i.item, q.cid, q.boss from items i join (select distinct cid, boss from customers) q
  on i.item = q.cid and i.item = q.boss

except over aggregates
select kind, count(*) as n from items group by kind except select region, count(*) from customers
  group by region

average of averages
select avg(m) as m, sum(n) as n from (select status, avg(cid) as m, count(*) as n from orders
  group by status having count(*) > 1) q

semijoin below an aggregate
select o.status, count(*) as n, sum(o.cid) as s from orders o where exists (select 1 from lines l
  where l.oid = o.oid and l.quantity > 0) group by o.status

outer join, group, having and distinct
select distinct q.n from (select g.region, count(c.cid) as n, sum(c.credit) as s from regions g
  left join customers c on g.region = c.region group by g.region having count(c.cid) < 4) q
  where q.s is null or q.s > 0

common table used twice
with q as (select cid, count(*) as n from orders group by cid) select a.cid, a.n, b.cid as other
  from q a join q b on a.n = b.n and a.cid < b.cid

constants
select 1 as one, 'x' as x, cid from customers where 1 = 1

condition that never holds
select cid from customers where 1 = 0

many operators
select q.region, sum(q.v) as v, count(*) as n from (select c.region, l.quantity * i.cost as v
  from lines l join items i on l.item = i.item left join customers c on c.cid = l.oid
  where i.cost is not null and not exists (select 1 from regions g where g.head = l.oid)) q
  group by q.region having count(*) > 0
"""


def views_of_text(text: str) -> dict[str, str]:
    parts = (part.split("\n", 1) for part in text.strip().split("\n\n"))
    return {name: " ".join(query.split()) for name, query in parts}


VIEWS = views_of_text(_TEXT)
"""The views by name."""
