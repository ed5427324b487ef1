"""SQL in, maintained in process, and DuckDB's own answer beside it after every change."""

import random
from collections import Counter

import duckdb
import pytest

import viewkeep as vk

TABLES = {
    "parts": vk.Table({"pid": "int", "kind": "string", "price": "int"}, key=["pid"]),
    "uses": vk.Table({"did": "int not null", "pid": "int", "amount": "int"}),
}

VIEWS = [
    "select u.did, p.price from uses u join parts p on u.pid = p.pid",
    "select u.did, p.kind from uses u join parts p on u.pid = p.pid where p.price > 2",
    "select did, sum(amount) as s, count(amount) as n, count(*) as c from uses group by did",
    "select u.did, sum(p.price * u.amount) as cost, avg(p.price) as mean "
    "from uses u join parts p on u.pid = p.pid group by u.did",
    "select u.did, sum(p.price + u.amount) as s, min(p.price) as lo, max(u.amount) as hi "
    "from uses u join parts p on u.pid = p.pid group by u.did",
    "select p.kind, count(*) as n from uses u join parts p on u.pid = p.pid "
    "where p.kind = 'a' group by p.kind",
    "select x.did, y.did as other, sum(x.amount) as s from uses x join uses y on x.pid = y.pid "
    "group by x.did, y.did",
]


def random_row(choose: random.Random, table: str) -> tuple:
    small = [None, 0, 1, 2, 3]
    if table == "parts":
        return (choose.randrange(4), choose.choice([None, "a", "b"]), choose.choice(small))
    return (choose.randrange(3), choose.choice(small), choose.choice(small))


@pytest.mark.parametrize("strategy", ["auto", "delta", "recursive", "epsilon"])
@pytest.mark.parametrize("sql", VIEWS)
def test_a_maintained_view_equals_what_duckdb_computes(sql, strategy):
    choose = random.Random(sql + strategy)
    query = vk.from_sql(sql, TABLES)
    try:
        live = vk.maintain(query, strategy=strategy)
    except vk.QueryError:
        assert strategy == "epsilon", "other strategies take any query"
        pytest.skip("no heavy and light parts")
    database = duckdb.connect()
    database.execute("create table parts (pid int, kind text, price int)")
    database.execute("create table uses (did int, pid int, amount int)")
    rows: dict[str, list[tuple]] = {"parts": [], "uses": []}
    for _ in range(30):
        table = choose.choice(["parts", "uses", "uses"])
        if rows[table] and choose.random() < 0.3:
            change(live, query, table, rows[table].pop(choose.randrange(len(rows[table]))), -1)
        else:
            row = random_row(choose, table)
            taken = table == "parts" and any(row[0] == other[0] for other in rows["parts"])
            if not taken:
                rows[table].append(row)
                change(live, query, table, row, 1)
        for name, content in rows.items():
            database.execute(f"delete from {name}")
            if content:
                database.executemany(f"insert into {name} values (?, ?, ?)", content)
        assert answer(live, query) == Counter(database.execute(sql).fetchall())


def change(live, query, table, row, count):
    """One whole row of a table; the query may use some of its columns, or none."""
    if table in query.relations:
        live.update(table, row, count)


def answer(live, query) -> Counter:
    """The output as a bag of rows: keys and aggregates, or keys as often as they count."""
    if query.aggregates:
        return Counter(row + payload for row, payload in live.enumerate())
    return Counter(dict(live.enumerate()))


def test_rows_may_be_whole_or_cut_to_the_columns_that_are_used():
    query = vk.from_sql("select did, count(*) as n from uses group by did", TABLES)
    assert query.columns_of("uses") == ("did",)
    live = vk.maintain(query)
    live.load({"uses": [(1, 2, 3), [1, 2, 4]]})
    live.update("uses", (1,))
    live.update_batch("uses", [(2, None, 0)])
    assert dict(live.enumerate()) == {(1,): (3,), (2,): (1,)}
    with pytest.raises(vk.SchemaError, match="does not fit uses"):
        live.update("uses", (1, 2))


@pytest.mark.parametrize("tables", [None, {"uses": {"did": "int"}}])
def test_tables_must_be_tables(tables):
    with pytest.raises(vk.SchemaError, match="tables are given by name"):
        vk.from_sql("select did from uses", tables)
