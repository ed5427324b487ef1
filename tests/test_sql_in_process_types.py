"""Views in SQL kept in process over decimals, floats, dates, times and truths, beside DuckDB."""

import os
import random
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import viewkeep as vk

LONG = "VIEWKEEP_LONG" in os.environ

TABLES = """
create table orders (oid int primary key, cid int, day date, amount decimal(10, 2), rate double,
    paid boolean, moment timestamp);
create table customers (cid int primary key, name string, city string);
"""
JOINED = "from orders o join customers c on o.cid = c.cid"
VIEWS = {
    "decimals times floats": f"select c.city, sum(o.amount * o.rate) as s {JOINED} group by c.city",
    "decimals times floats of two rows": "select sum(o.amount * x.rate) as s "
    "from orders o join orders x on o.cid = x.cid",
    "parts of dates": "select year(day) as y, month(day) as m, count(*) as n, max(amount) as a "
    "from orders group by year(day), month(day)",
    "many aggregates of a left join": "select c.name, coalesce(sum(o.amount), 0) as s, "
    "max(o.day) as d, count(distinct o.day) as n "
    "from customers c left join orders o on o.cid = c.cid group by c.name",
    "all columns": f"select o.*, c.name, c.city {JOINED} "
    "where name like 'a%' and amount between 1 and 3",
    "keys that are computed": f"select upper(c.city) as u, o.paid, count(*) as n {JOINED} "
    "where lower(c.name) = 'ab' group by upper(c.city), o.paid",
    "truths": "select distinct city, paid from customers c left join orders o "
    "on c.cid = o.cid and o.paid",
    "moments": "select cid, max(moment) as m, min(paid) as k from orders group by cid "
    "having max(moment) > timestamp '2026-01-01 12:00:00'",
    "groups of groups of a left join": "select city, avg(n) as a from (select c.city, c.cid, "
    "count(o.oid) as n from customers c left join orders o on o.cid = c.cid "
    "group by c.city, c.cid) t group by city",
    "casts and rounding": "select -amount as a, amount % 2 as m, round(rate, 1) as r, "
    "cast(oid as string) as t, abs(rate) as b from orders",
    "rows and a total": "select day, sum(amount) as s from orders group by day "
    "union all select null, sum(amount) from orders",
}


def random_row(choose: random.Random, table: str, key: int) -> tuple[Any, ...]:
    if table == "customers":
        return key, choose.choice([None, "ab", "AB"]), choose.choice([None, "x", "y"])
    return (
        key,
        choose.choice([None, 0, 1, 2, 3]),
        choose.choice([None, date(2026, 1, 2), date(2025, 1, 3)]),
        choose.choice([None, Decimal("1.50"), Decimal("2.25")]),
        choose.choice([None, 0.5, 2.0]),
        choose.choice([None, True, False]),
        choose.choice([None, datetime(2026, 1, 1, key + 9)]),
    )


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_over_any_type_equals_what_duckdb_computes(name):
    sql, choose = VIEWS[name], random.Random(name)
    live, database = vk.maintain(sql, tables=TABLES), duckdb.connect()
    database.execute(TABLES)
    present: dict[str, dict[int, tuple]] = {"orders": {}, "customers": {}}
    for _ in range(60 if LONG else 6):
        batches: dict[str, tuple[list, list]] = {"orders": ([], []), "customers": ([], [])}
        for _ in range(4):
            table, key = choose.choice(["orders", "orders", "customers"]), choose.randrange(6)
            row, sign = present[table].pop(key, None), -1
            if row is None:
                row, sign = random_row(choose, table, key), 1
                present[table][key] = row
            batches[table][0].append(row)
            batches[table][1].append(sign)
        live.update_tables(batches)
        assert Counter(live) == recomputed(database, sql, present)
        assert live.to_arrow().schema == live.schema
        assert live.to_arrow().num_rows == len(live)


def recomputed(database: Any, sql: str, present: dict[str, dict[int, tuple]]) -> Counter:
    for table, rows in present.items():
        database.execute(f"truncate {table}")
        for row in rows.values():
            database.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)
    return Counter(database.execute(sql).fetchall())
