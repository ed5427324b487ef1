"""SQL in, maintained in process, and DuckDB's own answer beside it after every change."""

import random
import re
from collections import Counter
from decimal import Decimal

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


@pytest.mark.parametrize(
    "sql",
    ["SELECT did FROM uses", "-- cost\n  with x as (select 1) select * from x", "(select 1)"],
)
@pytest.mark.parametrize("read", [vk.maintain, vk.analyze, vk.parse])
def test_sql_where_the_notation_is_read_tells_how_it_is_read(read, sql):
    with pytest.raises(vk.ParseError, match=r"found SQL at line \d.* vk.from_sql\(sql, tables\)"):
        read(sql)


def test_a_query_may_be_called_like_a_word_of_sql():
    assert str(vk.parse("select(a) = R(a)")) == "select(a) = R(a)"


KINDS = {"double": float, "int": int, "decimal(10,2)": lambda n: Decimal(n).scaleb(-1)}


@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize(
    "argument", ["x.v * y.w * 0.5", "0.5 * x.v + y.w * 0.25", "x.v - 1.5 * y.w", "x.v * 0.1 * 3"]
)
def test_constants_take_part_in_sums_over_columns_of_any_kind(argument, left, right):
    """Literals with a point are decimals, and become floats beside floats, as in SQL."""
    if "double" in (left, right) and "int" not in (left, right) and left != right:
        assert_mixed_products_are_refused(argument, left, right)
        return
    found, expected = summed(argument, left, right)
    assert [*map(float, found)] == pytest.approx(expected)
    kinds = {left, right} if "y.w" in argument else {left}
    assert all(isinstance(each, float if "double" in kinds else Decimal) for each in found)


def assert_mixed_products_are_refused(argument, left, right):
    """Decimals times floats of another table would be rounded before they are summed."""
    if "x.v * y.w" in argument:
        with pytest.raises(vk.RingError, match="numbers of one kind"):
            summed(argument, left, right)
    else:
        found, expected = summed(argument, left, right)
        assert [*map(float, found)] == pytest.approx(expected)


def summed(argument, left, right):
    """Sum and mean as they are maintained, with a row that comes and goes, and by hand."""
    tables = {
        "x": vk.Table({"k": "int not null", "v": f"{left} not null"}),
        "y": vk.Table({"k": "int not null", "w": f"{right} not null"}),
    }
    sql = f"select sum({argument}) as s, avg({argument}) as m from x join y on x.k = y.k"
    live = vk.maintain(query := vk.from_sql(sql, tables))
    rows = {
        "x": [(1, KINDS[left](n)) for n in (2, 3, 7)],
        "y": [(1, KINDS[right](n)) for n in (4, 5)],
    }
    width = {table: len(query.columns_of(table)) for table in rows}
    for table, each in rows.items():
        live.load({table: [row[: width[table]] for row in each]})
    live.update("x", (1, KINDS[left](9)), 1)
    live.update("x", (1, KINDS[left](9)), -1)
    formula = re.sub(r"x\.v|y\.w", lambda m: "left" if m[0] == "x.v" else "right", argument)
    values = [
        eval(formula, {"left": float(v), "right": float(w)})
        for _, v in rows["x"]
        for _, w in rows["y"]
    ]
    return live.value(), (sum(values), sum(values) / len(values))
