"""How the constructs of SQL are rewritten, as printed trees: small enough to check by eye."""

import pytest

from tests.sql.database import TABLES
from viewkeep.query.algebra import Scan
from viewkeep.query.traversal import walk
from viewkeep.sql.parse import parse_view

TREES = {
    "select did, price from devices_parts left join parts using (pid)": """
Project devices_parts.did as did, parts.price as price
  UnionAll
    Join on devices_parts.pid = parts.pid
      Scan devices_parts
      Scan parts
    Project devices_parts.did, devices_parts.pid, cast(null as int) as parts.pid, NULL_PRICE
      AntiJoin on devices_parts.pid = parts.pid
        Scan devices_parts
        Scan parts
""".replace("NULL_PRICE", "cast(null as int) as parts.price"),
    "select a from r where a not in (select b from t)": """
Project r.a as a
  AntiJoin on coalesce(r.a = t.b, true)
    Scan r
    Scan t
""",
    "select pid from parts where pid not in (select did from devices)": """
Project parts.pid as pid
  AntiJoin on parts.pid = devices.did
    Scan parts
    Scan devices
""",
    "select a from r where exists (select 1 from t where t.b = r.b and c > 1)": """
Project r.a as a
  SemiJoin on t.b = r.b
    Scan r
    Select t.c > 1
      Scan t
""",
    "select a from r except select b from t": """
AntiJoin on a <=> right.a
  Distinct
    Project r.a as a
      Scan r
  Project t.b as right.a
    Scan t
""",
    "select a, m from r, u union select t.c, x from t, u": """
Distinct
  UnionAll
    Project a, cast(m as double) as m
      Project r.a as a, u.m as m
        Join (cross)
          Scan r
          Scan u
    Project t.c as a, u_2.x as m
      Join (cross)
        Scan t
        Scan u as u_2
""",
    "select a, count(distinct b) as n, count(*) as k from r group by a having k > 1": """
Project r.a as a, count_1 as n, count_2 as k
  Select count_2 > 1
    Join on r.a <=> group_2.r.a
      GroupBy r.a, count() as count_2
        Scan r
      Project r.a as group_2.r.a, count_1
        GroupBy r.a, count(distinct_1) as count_1
          Distinct
            Project r.a, r.b as distinct_1
              Scan r
""",
    "select year(d) as y, sum(c) as s from t group by y": """
Project key_1 as y, sum_1 as s
  GroupBy key_1, sum(t.c) as sum_1
    Project year(t.d) as key_1, t.c
      Scan t
""",
    "with q as (select a from r) select q.a, p.a as b from q join q p on q.a = p.a": """
Project q.a as a, p.a as b
  Join on q.a = p.a
    Project r.a as q.a
      Scan r
    Project r_2.a as p.a
      Scan r as r_2
""",
}


@pytest.mark.parametrize("sql", TREES)
def test_tree(sql: str) -> None:
    assert str(parse_view(sql, TABLES)) == TREES[sql].strip()


def test_unnamed_columns_are_called_by_their_text() -> None:
    node = parse_view("select a, a + 1, SUM(b) from r group by a", TABLES)
    assert node.names == ("a", "a + 1", "sum(b)")


def test_names_are_found_in_any_case() -> None:
    assert parse_view("SELECT R.A, B FROM R", TABLES).names == ("A", "B")


def test_every_table_of_from_has_its_own_alias() -> None:
    sql = "select a from r where a in (select b from r) union all select b from r"
    scans = [node.alias for node in walk(parse_view(sql, TABLES)) if isinstance(node, Scan)]
    assert scans == ["r", "r_2", "r_3"]


def test_a_common_table_hides_a_base_table() -> None:
    tree = parse_view("with r as (select c from t) select * from r", TABLES)
    assert tree.names == ("c",)


def test_a_common_table_may_read_the_base_table_it_hides() -> None:
    tree = parse_view("with r as (select a from r) select * from r", TABLES)
    assert tree.names == ("a",)


def test_many_left_joins_share_their_sides() -> None:
    joins = " ".join(f"left join t t{i} on r.b = t{i}.b" for i in range(20))
    tree = parse_view(f"select r.a from r {joins}", TABLES)
    assert len(list(walk(tree))) < 200


def test_dates_in_quotes_are_read_as_dates() -> None:
    tree = parse_view("select c from t where d between '2024-01-01' and '2024-02-01'", TABLES)
    assert "t.d >= date '2024-01-01' and t.d <= date '2024-02-01'" in str(tree)


@pytest.mark.parametrize(
    ("number", "type_"),
    [
        ("-2147483648", "int"),
        ("- 2147483648", "int"),
        ("-(2147483648)", "bigint"),
        ("2147483648", "bigint"),
        ("-2147483649", "bigint"),
        ("-(-2147483648)", "int"),
        ("-9223372036854775808", "bigint"),
        ("-(9223372036854775808)", "decimal(19, 0)"),
        ("-9223372036854775809", "decimal(19, 0)"),
        ("-1.50", "decimal(3, 2)"),
        ("-2e3", "double"),
        ("- -3", "int"),
    ],
)
def test_a_minus_before_digits_is_part_of_the_number(number: str, type_: str) -> None:
    """As Spark reads them: the least int is an int, though 2147483648 is none."""
    tree = parse_view(f"select {number} as n from r", TABLES)
    assert str(tree.schema[0].type) == type_
