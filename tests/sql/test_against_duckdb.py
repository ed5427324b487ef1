"""Every supported construct gives the rows that DuckDB gives, on random tables with NULLs."""

import pytest

from tests.sql.database import TABLES, Oracle, normalized, random_data
from tests.sql.evaluate import evaluate
from viewkeep.sql.parse import parse_view

_TEXT = """
select * from r
select r.*, a + 1 as next from r
select R.A as aa, S from R
select a x, b y from r z where z.a = 1 or z.b is null
select a + b as s, a - b as d, a * b as p, a / b as q, -a as n from r
select a % b as m, mod(a, 2) as k, b div 2 as v from r
select upper(s) as u, lower(s) as l, trim(s) as t, length(s) as n from r
select substring(s, 1, 2) as f, replace(s, 'y', 'z') as z, s || '!' as e, concat(s, s) as g from r
select coalesce(a, b, 0) as c, nullif(a, b) as n, if(a > 1, 'big', 'small') as i from r
select case when a = 1 then 'one' when a > 1 then 'many' end as w, case b when 1 then 10 else
  0 end as v from r
select abs(x) as a, round(x, 1) as r, floor(x) as f, ceil(x) as c, greatest(c, 2) as g,
  least(c, 2) as l from u
select sqrt(abs(x)) as q, power(x, 2) as p, m * 2 as mm, m + 1 as m1, cast(m as double) as d
  from u
select year(d) as y, month(d) as m, day(d) as dd, extract(year from d) as y2 from t
select date_add(d, 3) as a, d + interval '1' day as b, d - interval '2' month as c from t
select datediff(d, date '2024-01-01') as n from t where d >= '2024-01-01'
select a from r where a in (1, 2, null)
select a from r where a not in (1, 2)
select a from r where a not in (1, null)
select a from r where a between 1 and 2 and not b between 2 and 3
select s from r where s like '%y%' or s not like '_'
select a, b from r where a <=> b
select a, b from r where a is distinct from b
select a from r where not (a = 1 and b = 2)
select a from r where s is not null and a is null
select distinct a, b from r
select r.a, t.c from r join t on r.b = t.b
select r.a, t.c from r inner join t on r.b = t.b and t.c > r.a
select r.a, t.c from r, t where r.b = t.b
select r.a, t.c from r cross join t
select r.a, r.b, t.b as tb, t.c from r left join t on r.b = t.b
select r.a, r.b, t.b as tb, t.c from r left join t on r.b = t.b and t.c > 0 where r.a is not null
select r.a, r.b, t.b as tb, t.c from r right outer join t on r.b = t.b
select r.a, r.b, t.b as tb, t.c from r full outer join t on r.b = t.b
select r.a, t.c, u.x from r left join t on r.b = t.b left join u on t.c = u.c
select r.a, t.c, u.x from r full join t on r.b = t.b full join u on t.c = u.c
select r.a, u.x from r, t right join u on t.c = u.c
select r.a, t.c from r left semi join t on r.b = t.b cross join t
select r.a from r left semi join t on r.b = t.b
select r.a from r left anti join t on r.b = t.b and t.c = 1
select * from r join t using (b)
select b, a, c from r left join t using (b)
select b, a, c from r right join t using (b)
select b, a, c from r full join t using (b)
select r.b as rb, t.b as tb, b from r full join t using (b) where b is null or b > 1
select * from r natural join t
select * from r natural left join t
select r.*, (c) from r join t using (b)
select * from r left semi join t using (b)
select b, c, a, x from r join t using (b) join u using (c)
select r.a from r join (t join u on t.c = u.c) on r.b = t.b
select q.z from (select a + 1 as z from r) q where q.z > 1
select z from (select a + 1 as z, b from r) where b = 1
select q.p from (select a, b from r) as q(p, o) where o is not null
with q as (select a, b from r) select q.a, p.b from q join q p on q.a = p.a
with q(z) as (select a from r), w as (select z + 1 as z from q) select * from w
with q as (with w as (select b from t) select b from w) select * from q
select * from (with w as (select b from t) select b from w) v
select a, sum(b) as s, count(*) as n, count(b) as nb, avg(b) as v, min(b) as lo, max(b) as hi
  from r group by a
select sum(a) as s, count(*) as n, count(a) as k, min(s) as m from r
select sum(a) as s, count(*) as n from r where a > 100
select a + 1 as k, count(*) as n from r group by a + 1
select a as k, count(*) as n from r group by k
select a, b, count(*) as n from r group by 1, 2
select upper(s) as k, sum(a) * 2 + count(*) as n from r group by upper(s)
select a, sum(b) as s from r group by a having sum(b) > 1 and count(*) < 4
select a, sum(b) as total from r group by a having total > 1
select a, count(*) as b from r group by a having b > 1
select a + 10 as a, count(*) as n from r group by a having a > 2
select count(*) as n from r having count(*) > 2
select a from r group by a
select a, b from r group by b, a
select count(distinct a) as n from r
select a, count(distinct b) as n from r group by a
select a, count(distinct b) as n, sum(b) as s, count(*) as k from r group by a
select a, count(distinct b) as n, count(distinct s) as m, max(b) as hi from r group by a
select count(distinct a) as n, sum(distinct b) as s, avg(b) as v from r
select count(distinct a) as n, count(distinct b) as m from r where a > 100
select a, count(distinct b) as n from r group by a having count(distinct b) > 1
select a, count(*) filter (where b > 1) as n, sum(b) filter (where s is not null) as s from r
  group by a
select t.c, sum(r.a * t.c) as w from r join t on r.b = t.b group by t.c
select year(d) as y, count(*) as n from t group by year(d) having min(c) >= 0
select a from r union all select b from t
select a from r union select b from t
select a, s from r union all select c, 'w' from t union all select 7, null from u
select a from r except select b from t
select a, b from r except select b, c from t
select a from r intersect select b from t
select a from r union select b from t intersect select c from t
(select a from r union all select b from t) except select c from t
select a from r union all select x from u
select a from r where a in (select b from t)
select a from r where a not in (select b from t)
select a from r where a not in (select b from t where b is not null)
select a from r where a + 1 in (select c from t where t.b = r.b)
select a from r where a not in (select c from t where t.b = r.b)
select a from r where (a, b) in (select b, c from t)
select a from r where (a, b) not in (select b, c from t)
select a from r where exists (select * from t where t.b = r.b)
select a from r where not exists (select 1 from t where t.b = r.b and t.c > 0)
select a from r where exists (select 1 from t where t.b = r.b and t.c < r.a)
select a from r where exists (select 1 from t where c > 4)
select a from r where exists (select t.c + r.a from t where t.b = r.b)
select a from r where exists (select 1 from t where t.b = r.b and exists (select 1 from u
  where u.c = t.c))
select a from r where exists (select 1 from t where t.b = r.b and t.c in (select c from u))
select a from r where a in (select max(b) from t)
select a, (select max(c) from t where t.b = r.b) as m from r
select a, (select count(*) from t where t.b = r.b) + 1 as n from r
select a, (select count(*) from t where t.b < r.b) as n from r
select a, (select sum(c) from t where t.b = r.b and t.c > r.a) as n from r
select a, (select max(c) from t where t.b <=> r.b) as m from r
select a, (select max(c) from t where r.a is null) as m from r
select a, (select max(b) from t where t.c = u.x) as m from r, u
select a, (select count(*) from t where t.b = r.b having count(*) > 1) as n from r
select a, (select count(*) from t where t.b = r.b having count(*) < 1) as n from r
select a, (select count(distinct c) from t where t.b = r.b) as n from r
select did, (select price from parts where pid = did) as p from devices
select did, (select price from parts where pid = 1) as p from devices
select a from r where a > (select avg(c) from t) or b = (select min(c) from t where t.b = r.a)
select a from r where a = (select c from t where t.b = r.b group by c having c = 1)
select coalesce((select max(c) from t where t.b = r.b), -1) as m from r
select sum((select max(c) from t where t.b = r.b)) as m from r
select (select max(c) from t where t.b = r.b) as k, count(*) as n from r group by 1
select a, count(*) as n from r group by a having count(*) >= (select min(c) from t where t.b = r.a)
select a, count(*) as n, (select max(c) from t) as m from r group by a
select a + 1 as k from r group by a + 1 having a + 1 in (select c from t) or count(*) > 1
select a, exists (select 1 from t where t.b = r.b) as e from r
select a, case when not exists (select 1 from t) then 1 else 2 end as e from r
select a from r where exists (select 1 from t where t.b = r.b) or a = 3
select a from r where a in (select b from t) or b = 2
select a from r where a not in (select c from t where t.b = r.b) or a = 3
select a from r where not (a in (select b from t) or b = 2)
select a from r where not (a in (select b from t) and b not in (select c from t))
select a from r where not not a in (select b from t) or b = 1
select a from r where a in (select x from u) or b = 1
select a from r where (a, b) in (select b, c from t) or a = 1
select a from r where a in (select count(*) from t where t.b = r.b)
select a from r where a not in (select max(c) from t where t.b = r.b having max(c) > 0)
select a from r where exists (select count(*) from t where t.b = r.b)
select a from r where exists (select c from t where t.b = r.b group by c having count(*) > 1)
select a from r where exists (select c from t where t.b > r.b group by c having count(*) > 1)
select a from r where not exists (select 1 from t where t.b = r.b and t.c > (select count(*) from u
  where u.c = t.b))
select r.a, t.c from r join t on r.b = t.b and t.c > (select avg(c) from u)
select r.a, t.c from r left join t on r.b = t.b and t.c > (select avg(c) from u)
select r.a, t.c from r left join t on r.b = t.b and exists (select 1 from u where u.c = r.a)
select r.a, t.c from r full join t on r.b = t.b and t.c in (select c from u)
select a from r where a in (select b from t group by b having count(*) > 1)
select a from r where a in (select b from t union select c from t)
select a from r where b = 1 and a in (select b from t) and not exists (select 1 from u where
  u.c = r.a)
select a, count(*) as n from r group by a having a in (select b from t) and max(b) not in
  (select c from t)
select a, count(*) as n from r group by a having exists (select 1 from t where t.b = r.a)
select d.did, sum(p.price) as cost from devices d join devices_parts dp on d.did = dp.did join
  parts p on dp.pid = p.pid where d.category = 'phone' group by d.did
select category, avg(cost) as v from (select d.did, d.category, sum(price) as cost from
  devices d left join devices_parts dp on d.did = dp.did left join parts p on p.pid = dp.pid
  group by d.did, d.category) x group by category
select a, (select max(c) from t where t.b = r.a) as m from r group by a
select a + 1 as k, (select count(*) from t where t.b = r.a + 1) as n from r group by r.a + 1
select a, b, (select count(*) from t where t.b <=> r.a) as n from r group by rollup (a, b)
select a, (with c as (select t.c from t where t.b = r.a) select max(c.c) from c) as m from r
select a, (with t as (select c from t where t.b = r.a) select max(c) from t) as m from r
select a, (with q(Z) as (select c + r.a from t), w as (select z as y from Q) select
  sum(x.y) + count(w.y) from w x, w) as m from r
select a, (with c as (select distinct t.c from t where t.b = r.a union select r.b) select
  count(*) from c) as n from r
select a from r where exists (with c as (select b, count(*) as n from t where t.c > r.a group by b)
  select 1 from c where n > 1)
select a, (select sum(x.c * y.n) from (select c from t where t.b = r.a) x,
  (select count(*) as n from u where u.c > r.b) y) as m from r
select a, count(*) as n from r group by a having a in (select b from t where c > r.a union
  select c from u where u.c = r.a)
select pid from parts where pid not in (select pid from devices_parts)
select e.source, count(*) as n from edge e join edge f on e.target = f.source join edge g on
  f.target = g.source and g.target = e.source group by e.source
select distinct e.source, f.target from edge e, edge f where e.target = f.source
"""
QUERIES = _TEXT.strip().replace("\n  ", " ").split("\n")  # a line that is indented goes on

ORACLE_TEXT = {
    # DuckDB lets a subquery read no computed key.
    "select a + 1 as k, (select count(*) from t where t.b = r.a + 1) as n from r group by "
    "r.a + 1": "select k, (select count(*) from t where t.b = k) as n from "
    "(select distinct a + 1 as k from r)",
    # No rows give no groups in Spark, not even the one of all rows.
    "select a, b, (select count(*) from t where t.b <=> r.a) as n from r group by rollup (a, b)": (
        "select a, b, (select count(*) from t where t.b is not distinct from r.a) as n from r "
        "group by rollup (a, b) having count(*) > 0"
    ),
    # Spark puts the columns of USING and NATURAL first; DuckDB leaves them where they were.
    "select * from r join t using (b)": "select b, a, s, c, d from r join t using (b)",
    "select * from r natural join t": "select b, a, s, c, d from r join t using (b)",
    "select * from r natural left join t": "select b, a, s, c, d from r left join t using (b)",
    "select r.*, (c) from r join t using (b)": "select b, a, s, c from r join t using (b)",
    "select * from r left semi join t using (b)": "select b, a, s from r semi join t using (b)",
    # Spark's HAVING reads an alias unless a key has the same name.
    "select a, count(*) as b from r group by a having b > 1": (
        "select a, count(*) as b from r group by a having count(*) > 1"
    ),
    "select a + 10 as a, count(*) as n from r group by a having a > 2": (
        "select r.a + 10 as a, count(*) as n from r group by r.a having r.a > 2"
    ),
}
"""What to ask DuckDB where the same text means something else to it."""

SEEDS = range(8)


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_equal_duckdb(oracle: Oracle, seed: int) -> None:
    data = random_data(seed)
    oracle.load(data)
    for sql in QUERIES:
        found = normalized(evaluate(parse_view(sql, TABLES), data))
        assert found == oracle.answer(ORACLE_TEXT.get(sql, sql)), (
            f"seed {seed}: {sql}\n{parse_view(sql, TABLES)}"
        )


@pytest.mark.parametrize("sql", QUERIES)
def test_types_and_names_are_sound(sql: str) -> None:
    """A column that is declared not nullable never holds NULL, and names are the query's."""
    node = parse_view(sql, TABLES)
    required = [i for i, field in enumerate(node.schema) if not field.nullable]
    for seed in range(3):
        for row in evaluate(node, random_data(seed)):
            assert all(row[i] is not None for i in required), (sql, row, node.schema)
