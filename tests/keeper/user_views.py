"""Views as people write them over the shop of `tests.diffs.views`: models of data warehouses in
chains of common tables, monitoring, ranking, reconciliation, and the idioms of other engines."""

from tests.diffs.views import views_of_text

# A name, then the query until the next empty line.
_TEXT = """
newest_order
with ranked as (select *, row_number() over (partition by cid order by placed desc nulls last,
  oid desc) as nr from orders) select cid, oid, status, placed from ranked where nr = 1

order_facts
with staged as (select oid, cid, upper(status) as status, placed from orders),
  amounts as (select oid, sum(quantity * price) as amount, count(*) as parts from lines
  group by oid)
  select s.oid, s.cid, s.status, coalesce(a.amount, 0) as amount, coalesce(a.parts, 0) as parts
  from staged s left join amounts a on a.oid = s.oid

customer_orders
with orders_by_customer as (select cid, min(placed) as first_order, max(placed) as last_order,
  count(*) as orders from orders group by cid),
  money as (select o.cid, sum(l.price) as spent from orders o join lines l on l.oid = o.oid
  group by o.cid)
  select c.cid, c.region, f.first_order, f.last_order, coalesce(f.orders, 0) as orders, m.spent
  from customers c left join orders_by_customer f on f.cid = c.cid left join money m
  on m.cid = c.cid

share_of_region
with totals as (select c.region, sum(c.credit) as credit from customers c group by c.region),
  everything as (select sum(credit) as credit from totals)
  select t.region, t.credit, e.credit as whole from totals t cross join everything e

running_count
select oid, placed, count(*) over (partition by status order by placed, oid
  rows between unbounded preceding and current row) as so_far from orders

days_between_orders
select oid, cid, datediff(placed, lag(placed) over (partition by cid order by placed, oid)) as gap
  from orders where placed is not null

sessions
with steps as (select oid, cid, placed, case when lag(placed) over (partition by cid
  order by placed, oid) >= date_sub(placed, 1) then 0 else 1 end as is_start from orders
  where placed is not null and cid is not null)
  select oid, cid, sum(is_start) over (partition by cid order by placed, oid
  rows between unbounded preceding and current row) as session from steps

sessions_per_customer
with steps as (select oid, cid, case when lag(placed) over (partition by cid order by placed, oid)
  >= date_sub(placed, 1) then 0 else 1 end as is_start from orders where placed is not null),
  numbered as (select cid, oid, sum(is_start) over (partition by cid order by oid
  rows between unbounded preceding and current row) as session from steps)
  select cid, session, count(*) as orders from numbered group by cid, session

cohorts
with first_orders as (select cid, min(placed) as cohort from orders group by cid)
  select f.cohort, datediff(o.placed, f.cohort) as age, count(distinct o.cid) as customers
  from orders o join first_orders f on f.cid = o.cid group by f.cohort, datediff(o.placed, f.cohort)

funnel
select count(distinct case when status = 'a' then cid end) as opened,
  count(distinct case when status = 'b' then cid end) as paid,
  count(distinct cid) filter (where status = 'c') as shipped from orders

status_columns
select cid, sum(case when status = 'a' then 1 else 0 end) as a, sum(case when status = 'b' then 1
  else 0 end) as b, count(*) - count(discount) as without_discount from orders group by cid

status_pivot
select * from (select cid, status, oid from orders where cid is not null)
  pivot (sum(oid) for status in ('a' as a, 'b' as b))

long_form
select cid, name, amount from (select cid, cast(credit as double) as credit,
  cast(boss as double) as boss from customers) unpivot (amount for name in (credit, boss))

top_items
select kind, item, cost from (select i.*, dense_rank() over (partition by kind
  order by cost desc nulls last) as place from items i) where place <= 2

best_customers
select c.cid, c.region, sum(l.price) as spent from customers c join orders o on o.cid = c.cid
  join lines l on l.oid = o.oid group by c.cid, c.region having sum(l.price) > 0

never_ordered
select i.item, i.kind from items i left join lines l on l.item = i.item where l.oid is null

without_orders
select cid from customers except select cid from orders

both_sides
select cid from customers intersect select boss from customers

customers_in_trouble
select cid, credit from customers c where credit < (select avg(credit) from customers d
  where d.region = c.region)

above_average
select oid, total from (select oid, sum(price) as total from lines group by oid) t
  where total >= (select avg(total) from (select sum(price) as total from lines group by oid) u)

employees
select c.cid, b.cid as boss, b.region as boss_region from customers c left join customers b
  on b.cid = c.boss

teams
select b.cid, count(c.cid) as team, sum(c.credit) as credit from customers b left join customers c
  on c.boss = b.cid group by b.cid

same_region_pairs
select a.cid as one, b.cid as other from customers a join customers b on a.region = b.region
  and a.cid < b.cid

bought_together
select a.item as one, b.item as other, count(*) as times from lines a join lines b on a.oid = b.oid
  and a.item < b.item group by a.item, b.item

bought_together_often
with pairs as (select a.item as one, b.item as other, count(*) as times from lines a join lines b
  on a.oid = b.oid and a.item < b.item group by a.item, b.item),
  sizes as (select item, count(distinct oid) as orders from lines group by item)
  select p.one, p.other, p.times, s.orders from pairs p join sizes s on s.item = p.one
  where p.times > 1

monthly
select year(placed) as year, month(placed) as month, count(*) as orders,
  count(distinct cid) as customers from orders group by year(placed), month(placed)

monthly_growth
with months as (select month(placed) as month, count(*) as orders from orders
  where placed is not null group by month(placed))
  select month, orders, orders - lag(orders) over (order by month) as growth from months

calendar
with days as (select distinct placed as day from orders where placed is not null)
  select d.day, count(o.oid) as orders from days d left join orders o on o.placed <= d.day
  and o.placed > date_sub(d.day, 3) group by d.day

open_orders_at_day
select d.placed, count(*) as before from (select distinct placed from orders) d join orders o
  on o.placed < d.placed group by d.placed

events
select 'order' as kind, oid as id, placed as day from orders union all
  select 'customer', cid, since from customers union all select 'line', l.oid, o.placed
  from lines l join orders o on o.oid = l.oid where l.quantity > 1

events_by_day
with events as (select placed as day, 1 as orders, 0 as customers from orders union all
  select since, 0, 1 from customers)
  select day, sum(orders) as orders, sum(customers) as customers from events group by day
  having sum(orders) + sum(customers) > 1

reconciliation
select coalesce(o.cid, c.cid) as cid, o.cid is null as missing_orders, c.cid is null as unknown
  from (select distinct cid from orders) o full outer join customers c on c.cid = o.cid
  where o.cid is null or c.cid is null

duplicates
select region, credit, count(*) as copies from customers group by region, credit having count(*) > 1

quality
select count(*) as orders, count(cid) as with_customer, count_if(placed is null) as undated,
  sum(case when discount < 0 or discount > 1 then 1 else 0 end) as odd from orders

quality_by_table
select 'orders' as name, count(*) as records, max(placed) as newest from orders union all
  select 'customers', count(*), max(since) from customers

orphans
select l.oid, l.item from lines l where not exists (select 1 from orders o where o.oid = l.oid)
  or l.item not in (select item from items where item is not null)

some_tag
select i.item, i.kind from items i where exists (select 1 from tags t where t.item = i.item
  and t.tag in ('a', 'b')) and not exists (select 1 from tags t where t.item = i.item
  and t.tag = 'c')

all_tags
select t.item from tags t where t.tag in ('a', 'b') group by t.item having count(distinct t.tag) = 2

tag_list
select i.item, listagg(t.tag, ', ') within group (order by t.tag) as tags, count(t.tag) as n
  from items i left join tags t on t.item = i.item group by i.item

levels
select region, grouping(region) as is_total, count(*) as customers, sum(credit) as credit
  from customers group by rollup(region)

cube
select c.region, o.status, count(*) as orders from orders o join customers c on c.cid = o.cid
  group by cube(c.region, o.status)

buckets
select case when credit < 0 then 'debt' when credit < 1 then 'low' when credit is null
  then 'unknown' else 'high' end as bucket, count(*) as customers, min(credit) as least,
  max(credit) as most from customers group by 1

width
select kind, max(weight) - min(weight) as width, avg(cost) as mean, max(cost) as dearest
  from items group by kind having max(weight) is distinct from min(weight)

newest_of_region
select region, max_by(cid, since) as newest, min_by(cid, since) as oldest from customers
  where since is not null group by region

half
select status, percentile(oid, 0.5) as middle from orders group by status

moving
select oid, avg(quantity) over (partition by item order by oid rows between 1 preceding
  and 1 following) as smooth from lines

rank_of_regions
with r as (select c.region, count(o.oid) as orders from customers c left join orders o
  on o.cid = c.cid group by c.region)
  select region, orders, rank() over (order by orders desc) as place from r

quarter_of_items
select item, kind, ntile(3) over (partition by kind order by cost, item) as third from items

share_of_order
select oid, item, quantity, sum(quantity) over (partition by oid) as whole from lines

dear_lines
select l.oid, l.item, l.price from lines l join (select item, avg(price) as mean from lines
  group by item) m on m.item = l.item and l.price > m.mean

lateral_newest
select c.cid, n.oid, n.placed from customers c, lateral (select o.oid, o.placed from orders o
  where o.cid = c.cid order by o.placed desc nulls last, o.oid desc limit 1) n

lateral_totals
select o.oid, t.n, t.total from orders o left join lateral (select count(*) as n,
  sum(l.price) as total from lines l where l.oid = o.oid) t on true

three_of_each
(select cid as id, 'customer' as kind from customers order by cid limit 3) union all
  (select oid, 'order' from orders order by oid desc limit 3)

first_and_last
select * from (select oid, placed from orders order by placed, oid limit 2) union all
  select * from (select oid, placed from orders order by placed desc nulls last, oid limit 2)

either_union
select cid from orders where status = 'a' union select cid from customers where credit > 0 union
  select boss from customers

deep_chain
with a as (select * from orders where status <> 'c'), b as (select a.*, c.region from a
  left join customers c on c.cid = a.cid), d as (select b.*, r.tax from b left join regions r
  on r.region = b.region), e as (select d.region, d.status, count(*) as n, max(tax) as tax from d
  group by d.region, d.status), f as (select e.*, sum(n) over (partition by region) as whole from e)
  select f.region, f.status, f.n, f.whole, f.tax from f where f.whole > 1

same_cte_thrice
with l as (select oid, sum(quantity) as q from lines group by oid)
  select o.oid, x.q, y.q as next_q, z.q as previous_q from orders o left join l x on x.oid = o.oid
  left join l y on y.oid = o.oid + 1 left join l z on z.oid = o.oid - 1

heads_of_regions
select r.region, r.head, c.credit, (select count(*) from customers d where d.boss = r.head) as team
  from regions r left join customers c on c.cid = r.head

in_or_exists
select oid from orders o where o.cid in (select cid from customers where credit > 0) or exists
  (select 1 from lines l where l.oid = o.oid and l.quantity > 2)

flags
select cid, bool_or(status = 'a') as ever_a, every(placed is not null) as all_dated,
  any_value(cid) as same from orders where cid is not null group by cid

totals_of_nothing
select sum(l.price) as price, count(*) as n, max(o.placed) as newest from lines l join orders o
  on o.oid = l.oid where o.status = 'e' and l.quantity > 3

having_subquery
select region, count(*) as n from customers group by region
  having count(*) > (select count(*) from regions) - 3

values_join
select o.oid, v.label from orders o join (values ('a', 'new'), ('b', 'paid')) as v(code, label)
  on v.code = o.status

qualified
select oid, item, price from lines qualify row_number() over (partition by oid
  order by price desc nulls last, item) <= 2

case_in_join
select l.oid, l.item, case when i.cost > 1 then i.kind else 'cheap' end as class, t.n from lines l
  join items i on i.item = l.item left join (select item, count(*) as n from tags group by item) t
  on t.item = case when i.cost > 1 then l.item else -1 end
"""

USER_VIEWS = views_of_text(_TEXT)
"""The views by name."""
