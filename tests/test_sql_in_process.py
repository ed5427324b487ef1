"""Views in SQL kept in process: rows, changes and copies equal to what DuckDB computes."""

import copy
import os
import random
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from threading import Thread

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import viewkeep as vk
from tests.engine.engines import engine as engine

LONG = "VIEWKEEP_LONG" in os.environ

TABLES = """
create table parts (pid int primary key, kind string, price int);
create table uses (did int not null, pid int, amount int);
create table makers (name string, pid int, share double);
"""

VIEWS = {
    "rows": "select did, pid from uses",
    "aliases": "select u.did as device, u.pid as part, u.did as again from uses u",
    "equal columns": "select u.pid, p.pid as same, p.kind from uses u join parts p on u.pid "
    "= p.pid",
    "computed": "select did, amount * 2 + 1 as a, coalesce(pid, -1) as p from uses where "
    "amount > 0",
    "computed of two tables": "select u.did, u.amount * p.price as cost "
    "from uses u join parts p on u.pid = p.pid",
    "band": "select x.did, y.amount from uses x join uses y on x.pid = y.pid and x.amount < "
    "y.amount",
    "join on an expression": "select u.did, p.kind from uses u join parts p on u.amount + 1 "
    "= p.pid",
    "join of types": "select u.did, m.name from uses u join makers m on u.amount = m.share",
    "theta": "select u.did, p.pid from uses u join parts p on u.amount < p.price",
    "distinct": "select distinct did, amount from uses",
    "distinct computed": "select distinct amount % 2 as odd from uses",
    "distinct of two tables": "select distinct u.amount + p.price as s "
    "from uses u join parts p on u.pid = p.pid",
    "groups": "select did, sum(amount) as s, count(*) as n, avg(amount) as m from uses "
    "group by did",
    "groups in another order": "select count(*) as n, p.kind, min(u.amount) as lo, u.did "
    "from uses u join parts p on u.pid = p.pid group by u.did, p.kind",
    "groups of an expression": "select amount % 2 as odd, count(*) as n from uses group by "
    "amount % 2",
    "groups of two tables": "select u.amount + p.price as s, count(*) as n "
    "from uses u join parts p on u.pid = p.pid group by u.amount + p.price",
    "aggregates of two tables": "select u.did, max(u.amount + p.price) as m, "
    "sum(u.amount * p.price) as s from uses u join parts p on u.pid = p.pid group by u.did",
    "computed of aggregates": "select did, sum(amount) * 2 + count(*) as x from uses group by did",
    "groups that are not shown": "select sum(amount) as s from uses group by did",
    "having": "select did, sum(amount) as s from uses group by did having count(*) > 1",
    "having of the rest": "select pid from uses group by pid having sum(amount) > 2 and pid > 0",
    "total": "select count(*) as n, sum(amount) as s, max(pid) as m from uses",
    "total with having": "select sum(amount) as s from uses having count(*) > 2",
    "count distinct": "select did, count(distinct pid) as n from uses group by did",
    "count distinct and more": "select pid, count(distinct did) as n, sum(amount) as s, "
    "count(distinct amount) as m from uses group by pid",
    "count distinct of several": "select p.kind, count(distinct u.did) as n, "
    "count(distinct u.amount + 1) as m, count(distinct p.kind) as k, count(*) as c "
    "from uses u join parts p on u.pid = p.pid group by p.kind having count(distinct u.did) > 1",
    "count distinct of floats": "select pid, count(distinct share) as n, "
    "count(distinct name) as m, count(*) as c from makers group by pid",
    "total of distinct": "select count(distinct amount) as n, sum(distinct amount) as s, "
    "count(*) as c from uses",
    "filter": "select did, count(*) filter (where amount > 1) as n from uses group by did",
    "left join": "select u.did, u.pid, p.kind from uses u left join parts p on u.pid = p.pid",
    "left join with a condition": "select u.did, p.price from uses u "
    "left join parts p on u.pid = p.pid and p.price > 1 and u.amount > 0",
    "left join of many": "select p.pid, u.did, u.amount from parts p left join uses u on "
    "u.pid = p.pid",
    "left joins": "select u.did, p.kind, m.name from uses u left join parts p on u.pid = p.pid "
    "left join makers m on p.pid = m.pid",
    "left join of itself": "select x.did, y.did as other from uses x left join uses y on "
    "x.amount = y.did",
    "groups of a left join": "select p.kind, count(u.did) as n, sum(u.amount) as s "
    "from parts p left join uses u on u.pid = p.pid group by p.kind",
    "rows without a match": "select u.did from uses u left join parts p on u.pid = p.pid "
    "where p.pid is null",
    "right join": "select u.did, p.pid from uses u right join parts p on u.pid = p.pid",
    "full join": "select u.did, p.kind from uses u full join parts p on u.pid = p.pid",
    "union all": "select did, amount from uses union all select pid, price from parts",
    "union": "select pid from uses union select pid from parts",
    "groups of a union": "select k, count(*) as n from "
    "(select pid as k from uses union all select pid from makers) t group by k",
    "except": "select pid from uses except select pid from makers",
    "intersect": "select pid from uses intersect select pid from makers",
    "in": "select did, amount from uses where pid in (select pid from parts where price > 0)",
    "not in": "select did from uses where pid not in (select pid from makers)",
    "exists": "select kind from parts p where exists (select 1 from uses u where u.pid = p.pid)",
    "not exists": "select kind from parts p where not exists "
    "(select 1 from uses u where u.pid = p.pid and u.amount > 1)",
    "scalar subquery": "select did, amount from uses where amount >= (select max(amount) "
    "from uses)",
    "correlated subquery": "select p.pid, (select sum(amount) from uses u where u.pid = "
    "p.pid) as s "
    "from parts p",
    "groups of groups": "select n, count(*) as devices from "
    "(select did, count(*) as n from uses group by did) t group by n",
    "join of groups": "select p.kind, t.s from parts p join "
    "(select pid, sum(amount) as s from uses group by pid) t on p.pid = t.pid where t.s > 0",
    "with": "with big as (select * from uses where amount > 1) "
    "select b.did, c.did as other from big b join big c on b.pid = c.pid",
    "case": "select did, sum(case when amount > 1 then amount else 0 end) as s from uses "
    "group by did",
    "nulls that are equal": "select x.did, y.did as d from uses x join uses y "
    "on x.pid is not distinct from y.pid",
    "floats": "select name, sum(share) as s, avg(share) as m from makers group by name",
    "triangle": "select count(*) as n from uses a join uses b on a.pid = b.did "
    "join uses c on b.pid = c.did and c.pid = a.did",
}
COMPILED = (
    "having",
    "count distinct and more",
    "count distinct of several",
    "groups of a left join",
    "floats",
)
"""The views that the compiled engine keeps in every run."""
SMALL = [None, 0, 1, 2, 3]


def random_row(choose: random.Random, table: str) -> tuple:
    match table:
        case "parts":
            return choose.randrange(4), choose.choice([None, "a", "b"]), choose.choice(SMALL)
        case "uses":
            return choose.randrange(3), choose.choice(SMALL), choose.choice(SMALL)
    return (
        choose.choice([None, "x", "y"]),
        choose.choice(SMALL),
        choose.choice([None, 0.5, 1.0, 2.0]),
    )


class Twin:
    """The same tables in DuckDB."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple]] = {"parts": [], "uses": [], "makers": []}
        self._database = duckdb.connect()
        self._database.execute(TABLES)

    def answer(self, sql: str) -> Counter:
        for name, rows in self.rows.items():
            self._database.execute(f"delete from {name}")
            if rows:
                places = ", ".join(["(?, ?, ?)"] * len(rows))
                values = [value for row in rows for value in row]
                self._database.execute(f"insert into {name} values {places}", values)
        return Counter(self._database.execute(sql).fetchall())

    def changes(self, choose: random.Random, count: int) -> dict[str, tuple[list, list]]:
        """Some random changes, made here, as rows and multiplicities by table."""
        made: dict[str, tuple[list, list]] = {}
        for _ in range(count):
            table = choose.choice(["parts", "uses", "uses", "makers"])
            rows = self.rows[table]
            if rows and choose.random() < 0.4:
                row, sign = rows.pop(choose.randrange(len(rows))), -1
            else:
                row, sign = random_row(choose, table), 1
                if table == "parts" and any(row[0] == other[0] for other in rows):
                    continue
                rows.append(row)
            made.setdefault(table, ([], []))[0].append(row)
            made[table][1].append(sign)
        return made


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_equals_what_duckdb_computes(name, engine):
    sql, choose, twin = VIEWS[name], random.Random(name), Twin()
    if engine == "compiled" and not LONG and name not in COMPILED:
        pytest.skip("compiling takes long: for long runs")
    live = vk.maintain(sql, tables=TABLES)
    twin.changes(choose, 12)
    seen = Counter(live)
    token = live.subscribe(lambda changes: follow(seen, changes))
    if choose.random() < 0.5:
        live.unsubscribe(token)
        live.load(twin.rows)
        seen = Counter(live)
        live.subscribe(lambda changes: follow(seen, changes))
    else:
        live.load(twin.rows)
    for step in range(40 if LONG else 7):
        live.update_tables(twin.changes(choose, choose.choice([1, 1, 5])))
        expected = twin.answer(sql)
        assert Counter(live) == expected, f"step {step}"
        assert +seen == expected, f"subscriber at step {step}"
        if step == 3:
            live = copy.deepcopy(live)
            live.subscribe(lambda changes: follow(seen, changes))
    assert len(live) == expected.total()
    assert all(count > 0 for _, count in live.enumerate())


def follow(seen: Counter, changes: list[vk.OutputChange]) -> None:
    for change in changes:
        assert seen[change.row] == (change.before or 0)
        seen[change.row] = change.after or 0


# --- the interface --------------------------------------------------------------------------------


def devices(**options: object) -> vk.SqlMaintainer:
    sql = "select did, sum(amount) as total from uses group by did having sum(amount) > 1"
    live = vk.maintain(sql, tables=TABLES, **options)
    live.load({"uses": [(1, 1, 5), (2, 1, 1), (2, None, 3)], "parts": [(1, "a", 2)]})
    return live


def test_rows_are_read_in_every_form():
    live = devices()
    assert live.columns == ("did", "total")
    assert sorted(live) == [(1, 5), (2, 4)]
    assert live.to_arrow().sort_by("did").to_pydict() == {"did": [1, 2], "total": [5, 4]}
    assert sorted(live.to_pandas()["total"]) == sorted(live.to_polars()["total"]) == [4, 5]
    assert (live.lookup((2,)), live.lookup((7,)), len(live)) == ((2, 4), None, 2)
    assert repr(live).startswith("<SqlMaintainer of select did, sum(amount)")
    assert "<td>4</td>" in live._repr_html_()


def test_the_schema_is_the_same_when_there_are_no_rows():
    sql = (
        "select kind, avg(price) as m, sum(price / 2) as h, max(kind) as k from parts group by kind"
    )
    live = vk.maintain(sql, tables=TABLES)
    empty = live.to_arrow().schema
    live.update("parts", (1, "a", 3))
    assert live.to_arrow().schema == empty == live.schema
    assert list(map(str, empty.types)) == ["string", "double", "double", "string"]
    assert list(live) == [("a", 3.0, 1.5, "a")]


def test_decimals_have_the_scale_of_their_types():
    tables = {"t": vk.Table({"k": "int", "d": "decimal(10,2)"})}
    sql = "select k, sum(d) as s, avg(d) as m, sum(d) * 2 as twice from t group by k"
    live = vk.maintain(sql, tables=tables)
    live.load({"t": [(1, Decimal("1.10")), (1, Decimal("2.00")), (1, 2)]})
    assert [str(each) for each in next(iter(live))] == ["1", "5.10", "1.700000", "10.20"]
    assert live.to_arrow().to_pylist()[0]["m"] == Decimal("1.700000")


FORMS = {
    "text": "create table t (a int, b string)",
    "types": {"t": {"a": "int", "b": "string"}},
    "a table": {"t": vk.Table({"a": "int", "b": "string"})},
    "an Arrow schema": {"t": pa.schema({"a": pa.int32(), "b": pa.string()})},
    "an Arrow table": {"t": pa.table({"a": [7], "b": ["z"]})},
    "pandas": {"t": pd.DataFrame({"a": [7], "b": ["z"]})},
    "Polars": {"t": pl.DataFrame({"a": [7], "b": ["z"]})},
    "lazy Polars": {"t": pl.LazyFrame({"a": [7], "b": ["z"]})},
}


@pytest.mark.parametrize("form", FORMS)
def test_tables_are_declared_in_every_form_and_no_rows_are_read(form):
    live = vk.maintain("select b, sum(a) as s from t group by b", tables=FORMS[form])
    assert list(live) == []
    frames = [pd.DataFrame({"b": ["x", "y"], "a": [1, 2]}), pl.LazyFrame({"a": [3], "b": ["x"]})]
    for frame in frames:
        live.update_batch("t", frame)
    live.update_batch("t", [{"b": None, "a": 4}, (5, "y"), [6, "y"]], [1, 1, 1])
    assert sorted(live, key=str) == [("x", 4), ("y", 13), (None, 4)]
    missing = pd.DataFrame({"a": [1.0, None], "b": ["x", None], "more": [0, 0]})
    live.update_batch("t", missing)
    assert sorted(live, key=str) == [("x", 5), ("y", 13), (None, 4)]


COLUMNAR = {
    "groups": "select b, sum(a) as s, count(*) as n, min(d) as d from t group by b",
    "join": "select x.a, y.b, y.d from t x join t y on x.a = y.a where x.d is not null",
    "join of two": "select t.a, s.b from t join s on t.a = s.a",
    "count": "select count(*) as n from t",
    "moments": "select a, max(m) as m from t group by a",
}


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("name", COLUMNAR)
def test_frames_and_rows_are_the_same(name, trust):
    """Columns may go to a query as a whole; then single rows of Python must meet their values."""
    tables = (
        "create table t (a int, b string, d date, m timestamp); create table s (a int, b double)"
    )
    choose = random.Random(name)
    days = [None, date(2026, 1, 2), date(2026, 3, 4)]
    moments = [None, datetime(2026, 1, 2, 3), datetime(2026, 1, 2, 4)]
    t = [
        (choose.randrange(4), choose.choice("xyz"), choose.choice(days), choose.choice(moments))
        for _ in range(40)
    ]
    s = [(choose.randrange(4), choose.choice([None, 0.5, 2.0])) for _ in range(9)]
    by_rows, by_frames = (vk.maintain(COLUMNAR[name], tables=tables, trust=trust) for _ in range(2))
    by_rows.load({"t": t[:30], "s": s})
    frame = pd.DataFrame(t[:30], columns=["a", "b", "d", "m"])[["m", "d", "b", "a"]]
    by_frames.load({"t": frame, "s": pl.DataFrame(s, schema=["a", "b"], orient="row")})
    assert Counter(by_rows) == Counter(by_frames)
    last = pl.DataFrame(t[28:], schema=["a", "b", "d", "m"], orient="row")
    signs = [-1, -1] + [1] * 10
    by_rows.update_batch("t", t[28:], signs)
    by_frames.update_batch("t", last, signs)
    for row in t[:5]:
        by_rows.update("t", row, -1)
        by_frames.update("t", row, -1)
    by_frames.update_batch("t", pa.table(last).to_reader(), signs)
    by_rows.update_batch("t", t[28:], signs)
    assert Counter(by_rows) == Counter(by_frames)
    with pytest.raises(vk.SchemaError):
        by_frames.load({"t": frame, "s": pd.DataFrame({"a": ["x"], "b": [1.0]})})
    assert Counter(by_rows) == Counter(by_frames)


BAD_ROWS = {
    "another type": ("uses", (1, "x", 2), "(int): 'x' is of type str; give an int"),
    "a null": ("uses", (None, 1, 2), "NULL in a NOT NULL column"),
    "a number that is too large": ("uses", (2**40, 1, 2), "out of range"),
    "too few values": ("uses", (1, 2), "expected a tuple of 3 values"),
    "no such name": ("uses", {"did": 1, "pid": 2, "amout": 3}, "has no amount"),
    "a key that is taken": ("parts", (1, "b", 3), "has the key (1,) of another row"),
    "no such table": ("use", (1, 2, 3), 'did you mean "uses"'),
}


@pytest.mark.parametrize("problem", BAD_ROWS)
def test_a_bad_row_is_refused_and_nothing_has_changed(problem):
    table, row, message = BAD_ROWS[problem]
    live = devices()
    for change in (
        lambda: live.update(table, row),
        lambda: live.load({"uses": [(1, 1, 9)], table: [row]}),
        lambda: live.update_tables({"uses": ([(1, 1, 9)], None), table: ([row], [1])}),
    ):
        with pytest.raises(vk.ViewkeepError) as caught:
            change()
        assert message in str(caught.value)
    assert sorted(live) == [(1, 5), (2, 4)]


def test_keys_are_checked_between_batches_and_not_within():
    live = vk.maintain("select pid, price from parts", tables=TABLES)
    live.load({"parts": [(1, "a", 2)]})
    live.update_batch("parts", [(1, "a", 3), (1, "a", 2)], [1, -1])
    assert list(live) == [(1, 3)]
    for row, count in (((1, "a", 2), -1), ((2, "a", 2), -1), ((3, "a", 1), 2)):
        with pytest.raises(vk.SchemaError, match=r"not there so often|another row"):
            live.update("parts", row, count)
    assert list(live) == [(1, 3)]
    trusting = vk.maintain("select pid, price from parts", tables=TABLES, trust=True)
    trusting.update_batch("parts", [(1, "a", 3), (1, "a", 4)])
    assert len(trusting) == 2


def test_keys_and_static_tables_may_be_told_beside_the_frames():
    tables = {"t": pd.DataFrame({"a": [1], "b": [2]}), "s": {"a": "bigint"}}
    sql = "select t.a, t.b from t join s on t.a = s.a"
    live = vk.maintain(sql, tables=tables, keys=["t.a"], static=["s"])
    live.load({"t": [(1, 2)], "s": [(1,)]})
    with pytest.raises(vk.SchemaError, match="of another row"):
        live.update("t", (1, 3))
    with pytest.raises(vk.SchemaError, match="declared static"):
        live.update("s", (2,))
    assert list(live) == [(1, 2)]


def test_an_error_in_a_later_stage_takes_the_earlier_ones_back():
    sql = "select n, 12 / (n - 3) as q from (select did, count(*) as n from uses group by did) t"
    live = vk.maintain(sql, tables=TABLES)
    live.load({"uses": [(1, 1, 1), (1, 2, 1), (2, 2, 2)]})
    before = Counter(live)
    with pytest.raises(vk.QueryError, match="division by zero"):
        live.update_batch("uses", [(1, 5, 5), (2, 5, 5)])
    assert Counter(live) == before
    live.update_batch("uses", [(1, 5, 5), (1, 6, 6), (2, 5, 5)])
    assert sorted(live) == [(2, -12.0), (4, 12.0)]


REFUSED = {
    "select did from uses order by did limit 3": "LIMIT",
    "select did, row_number() over (order by did) as n from uses": "window",
    "select did, stddev(amount) as s from uses group by did": r"stddev",
    "select u.did from uses u left join parts p on u.pid < p.pid": "equalities",
    "select count(cast(null as int)) as n from uses": "of NULL in every row",
    "select sum(did * pid + cast(null as int)) as n from uses": "of NULL in every row",
    "select count(n) as n from (select null as n from uses) t": "of NULL in every row",
    "select u.did from uses u left join parts p on p.price = "
    "(select max(price) from parts q where q.pid = u.pid)": r"correlated.*Keeper\(folder, spark\)",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_kept_in_process_names_the_lake(sql):
    with pytest.raises(vk.QueryError, match=REFUSED[sql]) as caught:
        vk.maintain(sql, tables=TABLES)
    assert "vk.Keeper" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": [1]}, "expected CREATE TABLE"),
        ({"tables": {"uses": 7}}, "expected CREATE TABLE"),
        ({"tables": {"#1": {"a": "int"}}}, "no name of a table"),
        ({"tables": TABLES, "keys": ["user.did"]}, 'no table "user"'),
        ({"tables": TABLES, "fds": ["a -> b"]}, "declared with its tables"),
        ({"tables": TABLES, "trust": 1}, "expected True or False"),
        ({"tables": {"uses": pa.schema({"d": pa.time64("us")})}}, "views do not read"),
    ],
)
def test_bad_declarations_are_refused(options, message):
    with pytest.raises(vk.ViewkeepError, match=message):
        vk.maintain("select did from uses", **options)


def test_insert_only_views_refuse_deletes():
    for sql in ("select did, max(amount) as m from uses group by did", VIEWS["count distinct"]):
        live = vk.maintain(sql, tables=TABLES, insert_only=True)
        live.load({"uses": [(1, 1, 1)]})
        with pytest.raises(vk.SchemaError, match="inserts only"):
            live.update("uses", (1, 1, 1), -1)
        assert len(live) == 1


def test_a_saved_view_goes_on(tmp_path):
    live = vk.maintain(VIEWS["total of distinct"], tables=TABLES)
    live.load({"uses": [(1, 1, 5), (2, 1, 5)]})
    live.save(tmp_path / "view")
    restored = vk.SqlMaintainer.restore(tmp_path / "view")
    restored.update("uses", (3, 3, 7))
    assert (live.value(), restored.value()) == ((1, 5, 2), (2, 12, 3))
    with pytest.raises(vk.ViewkeepError, match=r"SqlMaintainer\.restore"):
        vk.Maintainer.restore(tmp_path / "view")
    vk.maintain("Q(a) = R(a)", engine="reference").save(tmp_path / "query")
    with pytest.raises(vk.ViewkeepError, match=r"Maintainer\.restore"):
        vk.SqlMaintainer.restore(tmp_path / "query")


def test_threads_share_a_view():
    live = vk.maintain(VIEWS["left join"], tables=TABLES)
    live.load({"parts": [(p, "a", p) for p in range(4)]})

    def work(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(15):
            live.update("uses", (seed, choose.randrange(8), 1))
            assert len(live) >= 1

    threads = [Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(live) == 45
