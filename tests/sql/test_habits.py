"""How people write SQL: what each habit means is the same as what it stands for."""

import pytest

from viewkeep.errors import ParseError
from viewkeep.query.tables import Table
from viewkeep.sql.column_names import stored_names
from viewkeep.sql.parse import parse_view

TABLES = {
    "r": Table({"a": "int", "b": "string", "d": "date"}, key=["a"]),
    "n": Table({"k": "int", "p": "struct<x:int,y:string>", "t": "timestamp_ntz"}, key=["k"]),
    "s": Table({"a": "int", "order": "int"}, key=["a"]),
}
SAME = {
    "select * except (b) from r": "select a, d from r",
    "select r.* except (a, d) from r": "select b from r",
    "select * except (r.b, s.a) from r join s on r.a = s.a": (
        "select r.a, r.d, s.`order` from r join s on r.a = s.a"
    ),
    "select a + 1 as x, x * 2 as y, y - x as z from r": (
        "select a + 1 as x, (a + 1) * 2 as y, (a + 1) * 2 - (a + 1) as z from r"
    ),
    "select b, count(*) as n, n + 1 as m from r group by b": (
        "select b, count(*) as n, count(*) + 1 as m from r group by b"
    ),
    "select b, count(*) as n from r group by all": "select b, count(*) as n from r group by b",
    "select upper(b) as u, d, max(a) as m from r group by all": (
        "select upper(b) as u, d, max(a) as m from r group by upper(b), d"
    ),
    "select count(*) as n from r group by all": "select count(*) as n from r",
    "select date_part('YEAR', d) as y from r": "select year(d) as y from r",
    "select extract(month from d) as m from r": "select month(d) as m from r",
    "select `a`, -- the key\n /* and */ b from r order by b desc": "select a, b from r",
    "select order from s": "select `order` from s",
    "select distinct a, a from r order by a limit 3": (
        "select distinct a, a as a_2 from r order by a limit 3"
    ),
    "select distinct r.a, A, b from r order by b, r.a limit 3": (
        "select distinct a, a as A_2, b from r order by b, a limit 3"
    ),
    "select distinct *, a from r order by a limit 3": (
        "select distinct a, b, d, a as a_2 from r order by a limit 3"
    ),
    "select distinct x.a, y.a from r x join r y on x.b = y.b order by y.a limit 3": (
        "select distinct x.a, y.a as a_2 from r x join r y on x.b = y.b order by a_2 limit 3"
    ),
    "select a, a from r union all select a, 1 from s order by a limit 3": (
        "select a, a as a_2 from r union all select a, 1 from s order by a limit 3"
    ),
    "select q.a from (select a, a, b from r) q where a > 1": (
        "select q.a from (select a, a as a_2, b from r) q where a > 1"
    ),
    "select a from (select * from (select distinct a, a from r) p) q": (
        "select a from (select * from (select distinct a, a as a_2 from r) p) q"
    ),
    "select q.* except (a) from (select a, a, b from r) q": (
        "select b from (select a, a as a_2, b from r) q"
    ),
    "select * from s join (select a, a from r) q using (a)": (
        "select s.a, `order` from s join (select a, a as a_2 from r) q on s.a = q.a"
    ),
    "table s": "select * from s",
    "select a from r distribute by b sort by d": "select a from r",
    "select a from r cluster by b limit 3": "select a from r limit 3",
    "select any(a > 1) as x from r": "select some(a > 1) as x from r",
    "select a from r where b like any ('x%', 'y')": (
        "select a from r where b like 'x%' or b like 'y'"
    ),
    "select a from r where b not like all ('x', 'y') and not b like all ('z')": (
        "select a from r where not b like 'x' and not b like 'y' and not b like 'z'"
    ),
    "select a from r where b not ilike any ('x', 'y')": (
        "select a from r where not b ilike 'x' or not b ilike 'y'"
    ),
    "select a from r where b like '!_!!%' escape '!' or b not like 'x\\\\y' escape '/'": (
        "select a from r where b like '\\\\_!%' or not b like 'x\\\\\\\\y'"
    ),
    "select a from r where d - date '2024-01-01' > interval 2 days": (
        "select a from r where d > date '2024-01-01' + interval 2 days"
    ),
    "select k from n where interval 1 hour >= (t - timestamp_ntz '2024-01-01 00:00:00')": (
        "select k from n where t <= timestamp_ntz '2024-01-01 00:00:00' + interval 1 hour"
    ),
    "select p.*, x.p.* from n x": "select p.x, p.y, p.x as x_2, p.y as y_2 from n x",
    "select count(distinct *) as c from r": "select count(distinct a, b, d) as c from r",
    "select struct(*) as s from r": "select struct(a, b, d) as s from r",
    "select coalesce(*) as c from s": "select coalesce(a, `order`) as c from s",
    "select struct(x.a, x.b) as s from r x": "select named_struct('a', a, 'b', b) as s from r x",
    "select a from r where (a, b) = (1, 'x') and (a, 1) in ((1, 2), (2, null))": (
        "select a from r where named_struct('col1', a, 'col2', b) ="
        " named_struct('col1', 1, 'col2', 'x') and named_struct('col1', a, 'col2', 1) in ("
        "named_struct('col1', 1, 'col2', 2), named_struct('col1', 2, 'col2', cast(null as int)))"
    ),
    "select concat(a, '-', d) as x, a || b as y, upper(a) as z from r": (
        "select concat(string(a), '-', string(d)) as x, string(a) || b as y, upper(string(a)) as z"
        " from r"
    ),
    "select a from r where a = '12' and '-3' < a and a in ('1', 2) and b = '7'": (
        "select a from r where a = 12L and -3L < a and a in (1L, 2) and b = '7'"
    ),
    "select a from r order by a limit 1 + 2 offset 2 * 2": (
        "select a from r order by a limit 3 offset 4"
    ),
    "select r.a, v.n from r, lateral (values (1), (2)) v(n)": (
        "select r.a, v.n from r, lateral (select * from values (1), (2)) v(n)"
    ),
    "select dateadd(day, 3, t) as x from n": "select t + interval 3 days as x from n",
}


@pytest.mark.parametrize(("habit", "meaning"), SAME.items())
def test_a_habit_means_the_same(habit: str, meaning: str) -> None:
    assert parse_view(habit, TABLES) == parse_view(meaning, TABLES)


@pytest.mark.parametrize(
    ("sql", "problem"),
    {
        "select * except (nope) from r": 'column "nope" is not in r',
        "select * except (a, b, d) from r": "leaves no column",
        "select x + 1 as y, a as x from r": 'column "x" is not in r',
        "select a + 1 as b, b from r": 'two output columns are called "b"',
        "select a as x, a as x, x + 1 as y from r": "lateral column alias",
        "select b, a, count(*) as n from r group by b": 'column "a" must be in GROUP BY',
        "select a from (select x.a, y.a from r x, r y) q": 'column "a" is ambiguous',
        "select distinct x.a, y.a from r x, r y order by a limit 1": 'column "a" is ambiguous',
    }.items(),
)
def test_what_means_nothing(sql: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        parse_view(sql, TABLES)


@pytest.mark.parametrize(
    ("sql", "names"),
    {
        "select * from r x join r y on x.a = y.a": ("a", "b", "d", "a_2", "b_2", "d_2"),
        "select x.a, y.a, y.b as a_2 from r x, r y": ("a", "a_3", "a_2"),
        "select q.* from (select x.a, y.a from r x, r y) q": ("a", "a_2"),
        "select * from (select x.a, y.a from r x, r y union select 1, 2 from r) q": ("a", "a_2"),
        "select d from (select x.a, y.a, x.d from r x, r y) q": ("d",),
        "with q(v, w) as (select x.a, y.a from r x, r y) select w from q": ("w",),
        "select a, a from r order by a limit 2": ("a", "a_2"),
        "select * from (select a, a, b from r) pivot (max(b) for a in (1, 2))": ("1", "2"),
    }.items(),
)
def test_columns_of_one_name_are_told_apart(sql: str, names: tuple[str, ...]) -> None:
    """Who reads such a query as a table can name neither of two different ones, as in Spark."""
    assert parse_view(sql, TABLES).names == names


def test_columns_without_a_name() -> None:
    sql = "select count(*), count(1), max(a + 1), a as `b c`, b from r group by all"
    names = parse_view(sql, TABLES).names
    assert stored_names(sql, names, TABLES) == ["count_1", "count_1_2", "max_a_1", "b c", "b"]
