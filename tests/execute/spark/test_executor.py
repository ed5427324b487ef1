"""Scripts on Spark: every kind of change, few jobs, and errors that name the statement."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import tzset
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.execute.spark.kept import bag
from viewkeep.diffs.generate import generate
from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema, base_diff_columns
from viewkeep.diffs.script import Apply, Compute, Materialized, Script, Statement
from viewkeep.execute.duckdb.run_in_connection import run_in_connection as run_in_duckdb
from viewkeep.execute.errors import RunError
from viewkeep.execute.spark.driver.collect import empty
from viewkeep.execute.spark.run import Run, create_frames, run_script
from viewkeep.query.algebra import Output, Project, Scan, Select, Stored
from viewkeep.query.expressions import Call, Column, literal
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import INT, Field
from viewkeep.sql.parse import parse_view

Rows = Sequence[tuple[Any, ...]]

BASE = Table({"a": "int", "b": "int", "x": "int"})
VIEW = Materialized(
    "view",
    Project(
        Scan("base", BASE, "t"),
        tuple(Output(name, Column(f"t.{name}")) for name in ("a", "b", "x")),
    ),
    ids=("a", "b"),
)
START: Rows = [(1, 1, 10), (1, 2, 20), (2, 1, 30), (None, 1, 40)]


def ints(spark: SparkSession, columns: Sequence[str], rows: Rows) -> DataFrame:
    return spark.createDataFrame(list(rows), ", ".join(f"`{column}` int" for column in columns))


def leaf(name: str, columns: Sequence[str]) -> Stored:
    return Stored(name, tuple(Field(column, INT) for column in columns))


def script(*statements: Statement) -> Script:
    return Script(VIEW, (), (), statements, (("a", "a"),))


def rows_of(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


def applied(spark: SparkSession, diffs: Sequence[tuple[DiffSchema, Rows]], **options: Any) -> Run:
    view = ints(spark, ("a", "b", "x"), START)
    frames: dict[Any, DataFrame] = {"view": view}
    steps = []
    for i, (schema, rows) in enumerate(diffs):
        frames[f"d{i}"] = ints(spark, schema.columns, rows)
        steps.append(Apply(f"d{i}", "view", schema))
    return run_script(spark, script(*steps), frames, **options)


DELETES = DiffSchema(DELETE, ("a",))
UPDATES = DiffSchema(UPDATE, ("a",), before=("x",), after=("b", "x"), changed=("x",))
INSERTS = DiffSchema(INSERT, ("a", "b"), after=("x",))


@pytest.mark.parametrize("local_rows", [100, 0])
@pytest.mark.parametrize(
    ("schema", "rows", "expected"),
    [
        (DELETES, [(1,), (None,)], [START[2]]),
        (DiffSchema(DELETE, ("a", "b")), [(None, 1), (9, 9)], START[:3]),
        (DiffSchema(DELETE, (), before=("x",)), [(7,)], []),
        (
            UPDATES,
            [(1, 10, 8, 77), (None, 40, 8, None), (5, 0, 0, 0)],
            [(1, 1, 77), (1, 2, 77), START[2], (None, 1, None)],
        ),
        (
            DiffSchema(UPDATE, (), after=("x",), changed=("x",)),
            [(5,)],
            [(a, b, 5) for a, b, _ in START],
        ),
        (
            INSERTS,
            [(1, 1, 11), (None, 1, 41), (None, None, 0), (None, None, 0)],
            [(1, 1, 11), *START[1:3], (None, 1, 41), (None, None, 0)],
        ),
    ],
)
def test_a_diff_changes_the_rows_that_its_ids_mean(
    spark: SparkSession, schema: DiffSchema, rows: Rows, expected: Rows, local_rows: int
) -> None:
    """Also when it is too large to be collected; and `gone` and `came` say the same."""
    with applied(spark, [(schema, rows)], local_rows=local_rows) as done:
        changed = done.changed["view"]
        assert rows_of(changed.after) == Counter(expected)
        assert changed.after.dtypes == [("a", "int"), ("b", "int"), ("x", "int")]
        small = Counter(START) - rows_of(changed.old_rows) + rows_of(changed.new_rows)
        assert small == Counter(expected)
        assert bool(done.persisted) == (local_rows == 0)
    assert not any(frame.storageLevel.useMemory for frame in done.persisted)


def test_deletes_come_first_and_inserts_last(spark: SparkSession) -> None:
    by_b = DiffSchema(UPDATE, ("b",), after=("x",), changed=("x",))
    done = applied(spark, [(INSERTS, [(1, 1, 100)]), (by_b, [(1, 0)]), (DELETES, [(1,)])])
    assert [each.kind for each in done.report.statements] == [DELETE, UPDATE, INSERT]
    assert rows_of(done.frames["view"]) == Counter([(1, 1, 100), (2, 1, 0), (None, 1, 0)])


def test_diffs_of_one_kind_are_applied_as_one_and_the_last_insert_stays(
    spark: SparkSession,
) -> None:
    done = applied(spark, [(INSERTS, [(1, 1, 5), (3, 3, 3)]), (INSERTS, [(1, 1, 6)])])
    assert len(done.changed["view"].parts) == 1
    expected = Counter([(1, 1, 6), (3, 3, 3), *START[1:]])
    assert rows_of(done.frames["view"]) == expected


def test_an_empty_diff_changes_nothing(spark: SparkSession) -> None:
    assert applied(spark, [(DELETES, []), (INSERTS, [])]).changed == {}


def test_accesses_are_look_ups_and_rows_changed(spark: SparkSession) -> None:
    """Two look-ups find three rows; an insert only writes."""
    rows = [(1, 0, 0, 5), (None, 0, 0, 6)]
    done = applied(spark, [(UPDATES, rows), (INSERTS, [(7, 7, 7)])], count_accesses=True)
    assert [each.accesses for each in done.report.statements] == [2 + 3, 1]
    assert done.report.accesses == 6


# Computations.


def test_computations_read_the_state_before_and_each_other(spark: SparkSession) -> None:
    small = Compute(
        "small", Select(leaf("view", ("a", "b", "x")), Call("<", (Column("x"), literal(25))))
    )
    new = (("a", Call("+", (Column("a"), literal(100)))), ("b", Column("b")))
    outputs = (*(Output(name, value) for name, value in new), Output("x#post", Column("x")))
    copied = Compute("copied", Project(leaf("small", ("a", "b", "x")), outputs))
    old = Compute("old", Project(leaf("small", ("a", "b", "x")), (Output("a", Column("a")),)))
    steps = (small, copied, old, Apply("old", "view", DELETES), Apply("copied", "view", INSERTS))
    view = ints(spark, ("a", "b", "x"), START)
    done = run_script(spark, script(*steps), {"view": view}, find_changed=True)
    expected = Counter([*START[2:], (101, 1, 10), (101, 2, 20)])
    assert rows_of(done.frames["view"]) == expected
    assert [each.rows for each in done.report.statements] == [2, 2, 2, 2, 2]
    assert [each.reads for each in done.report.statements] == [None, 2, 2, 2, 2]
    assert done.report.jobs == 2  # `small` reads what is kept; then what changes is looked up


def test_any_name_is_only_a_name(spark: SparkSession) -> None:
    columns = ("a`b", "x#post.y", "it's")
    table = Table(dict.fromkeys(columns, "int"))
    outputs = tuple(Output(f"{c}!", Column(f"t`.{c}")) for c in columns)
    kept = Materialized("v`; --", Project(Scan("base", table, "t`"), outputs), (f"{columns[0]}!",))
    spark_columns = ", ".join(f"`{c.replace('`', '``')}` int" for c in columns)
    base = spark.createDataFrame([(1, 2, 3), (4, 5, 6)], spark_columns)
    gone = DiffSchema(DELETE, kept.ids)
    whole = Script(kept, (), (), (Apply("d` x", kept.name, gone),), ())
    made = create_frames(spark, whole, {("base", "post"): base})
    diff = spark.createDataFrame([(1,)], "`a``b!` int")
    done = run_script(spark, whole, {**made, "d` x": diff})
    assert rows_of(done.frames[kept.name]) == Counter([(4, 5, 6)])


def test_runs_at_the_same_time_do_not_meet(spark: SparkSession) -> None:
    """In a session of its own: no other test has left a temporary view there."""
    own = spark.newSession()
    with ThreadPoolExecutor(4) as pool:
        runs = pool.map(lambda i: applied(own, [(INSERTS, [(i, i, i)])]), range(50, 54))
        rows = [rows_of(done.frames["view"]) for done in runs]
    assert rows == [Counter([*START, (i, i, i)]) for i in range(50, 54)]
    assert own.sql("SHOW TABLES").collect() == []


def test_moments_are_collected_as_they_are_wherever_this_process_runs(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once by a job, once from the driver; both are applied as one."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    tzset()
    table = Table({"k": "int", "t": "timestamp"})
    outputs = tuple(Output(name, Column(f"s.{name}")) for name in ("k", "t"))
    kept = Materialized("view", Project(Scan("base", table, "s"), outputs), ("k",))
    changes = DiffSchema(INSERT, ("k",), after=("t",))
    whole = Script(
        kept, (), (), (Apply("near", "view", changes), Apply("far", "view", changes)), ()
    )
    text = "SELECT {} AS k, TIMESTAMP '2024-03-01 22:30:00' AS `t#post`"
    near = spark.createDataFrame(spark.sql(text.format(1)).toArrow())
    far = spark.sql(text.format("CAST(id AS INT)") + " FROM range(2, 3)")
    old = spark.sql(text.format(9).replace("t#post", "t"))
    try:
        done = run_script(spark, whole, {"view": old, "near": near, "far": far})
        [part] = done.changed["view"].parts
        shown = done.frames["view"].selectExpr("k", "CAST(t AS STRING)")
        assert rows_of(shown) == Counter((k, "2024-03-01 22:30:00") for k in (1, 2, 9))
        assert part.diff.rows == 2
    finally:
        monkeypatch.undo()
        tzset()


# Errors.


@pytest.mark.parametrize("local_rows", [100, 0])
@pytest.mark.parametrize("schema", [UPDATES, INSERTS])
def test_a_diff_that_contradicts_itself_is_refused(
    spark: SparkSession, schema: DiffSchema, local_rows: int
) -> None:
    rows = [(1, 1, *range(i, i + len(schema.columns) - 2)) for i in (5, 6)]
    with pytest.raises(RunError, match="two rows of the diff set the same row differently"):
        applied(spark, [(schema, rows)], local_rows=local_rows)


def test_an_error_names_the_statement_and_other_results_are_not_blamed(
    spark: SparkSession,
) -> None:
    """ANSI mode: dividing by zero is an error, found when both results are collected."""
    view = leaf("view", ("a", "b", "x"))
    good = Compute("good", Project(view, (Output("a", Column("a")),)))
    by_zero = Call("div", (Column("x"), Call("-", (Column("x"), Column("x")))))
    bad = Compute("bad one", Project(view, (Output("a", by_zero),)))
    steps = [good, bad, *(Apply(each.name, "view", DELETES) for each in (good, bad))]
    with pytest.raises(RunError, match=r"^bad one: .*DIVIDE_BY_ZERO"):
        run_script(spark, script(*steps), {"view": ints(spark, ("a", "b", "x"), START)})


def test_what_is_missing_is_named(spark: SparkSession) -> None:
    with pytest.raises(RunError, match=r"give frames\['d'\]"):
        run_script(spark, script(Apply("d", "view", DELETES)), {})
    with pytest.raises(RunError, match=r"give frames\[\('base', 'post'\)\]"):
        create_frames(spark, script(), {})
    with pytest.raises(RunError, match='there is no cache or view "veiw"'):
        run_script(spark, script(Apply("d", "veiw", DELETES)), {"d": ints(spark, ("a",), [(1,)])})


# The paper's views: devices and the parts that they are made of.

TABLES = {
    "parts": Table({"pid": "int", "price": "int"}, key=["pid"]),
    "devices": Table({"did": "int", "category": "string"}, key=["did"]),
    "devices_parts": Table({"did": "int", "pid": "int"}, key=["did", "pid"]),
}
JOINED = (
    "from parts p join devices_parts dp on p.pid = dp.pid join devices d on d.did = dp.did "
    "where d.category = 'phone'"
)
V = f"select d.did, p.pid, p.price {JOINED}"
COST = f"select d.did, sum(p.price) as cost {JOINED} group by d.did"
PRICES = {"parts": [("update", frozenset({"price"}))]}


def tables(spark: SparkSession, folder: Path, parts: int = 100) -> dict[Any, DataFrame]:
    """Tables as Parquet files; every device has four parts."""
    prices = spark.range(parts).selectExpr("CAST(id AS INT) AS pid", "CAST(id AS INT) AS price")
    devices = spark.range(parts).selectExpr(
        "CAST(id AS INT) AS did", "IF(id % 2 = 0, 'phone', 'tablet') AS category"
    )
    pairs = spark.range(4 * parts).selectExpr(
        "CAST(id DIV 4 AS INT) AS did", f"CAST((id DIV 4 + id % 4) % {parts} AS INT) AS pid"
    )
    frames: dict[Any, DataFrame] = {}
    for name, frame in (("parts", prices), ("devices", devices), ("devices_parts", pairs)):
        frames[name, "post"] = stored(frame, folder / name)
    return frames


def stored(frame: DataFrame, path: Path) -> DataFrame:
    frame.write.parquet(str(path))
    return frame.sparkSession.read.parquet(str(path))


def price_update(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [(2, 2, 1000), (3, 3, 3)], "pid int, `price#pre` int, `price#post` int"
    )


def kept_on_disk(
    spark: SparkSession, sql: str, folder: Path, changes: Any = None
) -> tuple[Script, dict[str, DataFrame]]:
    node = parse_view(sql, TABLES)
    made = create_frames(spark, generate(node).script, tables(spark, folder))
    kept = {name: stored(frame, folder / name) for name, frame in made.items()}
    return generate(node, changes).script, kept


def test_a_price_update_of_v_reads_no_base_table(spark: SparkSession, tmp_path: Path) -> None:
    """No table is even given; the view is read only when its new rows are."""
    update, kept = kept_on_disk(spark, V, tmp_path, PRICES)
    before = rows_of(kept["view"])
    local = spark.createDataFrame(price_update(spark).toArrow())
    done = run_script(spark, update, {**kept, "du(parts)": local})
    assert done.report.jobs == 0
    names = kept["view"].columns
    place = names.index("price"), names.index("pid")
    expected = Counter(
        {
            tuple(1000 if i == place[0] and row[place[1]] == 2 else v for i, v in enumerate(row)): n
            for row, n in before.items()
        }
    )
    assert rows_of(done.frames["view"]) == expected
    assert rows_of(done.changed["view"].old_rows) == before - expected
    assert rows_of(done.changed["view"].new_rows) == expected - before


def test_a_price_update_of_the_cost_per_device_takes_few_jobs(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One finds the parts in the cache, one their devices in the view."""
    update, kept = kept_on_disk(spark, COST, tmp_path, PRICES)
    before = dict(kept["view"].select("did", "cost").collect())
    local = spark.createDataFrame(price_update(spark).toArrow())
    done = run_script(spark, update, {**kept, "du(parts)": local})
    after = dict(done.frames["view"].select("did", "cost").collect())
    assert {d: after[d] - before[d] for d in before if after[d] != before[d]} == {2: 998, 0: 998}
    assert done.report.jobs == 2


def test_keys_of_a_diff_are_pushed_into_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    update, kept = kept_on_disk(spark, V, tmp_path, PRICES)
    local = spark.createDataFrame(price_update(spark).toArrow())
    done = run_script(spark, update, {**kept, "du(parts)": local})
    gone: Any = done.changed["view"].old_rows
    plan = gone._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [EqualTo(pid,2)]" in plan


def test_a_refresh_without_changes_takes_no_job(spark: SparkSession, tmp_path: Path) -> None:
    update, kept = kept_on_disk(spark, COST, tmp_path, PRICES)
    nothing = spark.createDataFrame(price_update(spark).limit(0).toArrow())
    done = run_script(spark, update, {**kept, "du(parts)": nothing})
    assert (done.report.jobs, done.changed) == (0, {})


def test_a_large_diff_is_joined_where_it_is(spark: SparkSession, tmp_path: Path) -> None:
    update, kept = kept_on_disk(spark, COST, tmp_path, PRICES)
    with run_script(
        spark, update, {**kept, "du(parts)": price_update(spark)}, local_rows=0
    ) as done:
        assert done.persisted
        small = run_script(spark, update, {**kept, "du(parts)": price_update(spark)})
        assert rows_of(done.frames["view"]) == rows_of(small.frames["view"])
        assert bag(done.frames["cache_6"].toArrow()) == bag(small.frames["cache_6"].toArrow())


@pytest.mark.parametrize("sql", [V, COST])
def test_accesses_are_those_that_are_counted_in_duckdb(
    spark: SparkSession, tmp_path: Path, sql: str
) -> None:
    """The whole script, for all kinds of changes, most of them empty."""
    update, kept = kept_on_disk(spark, sql, tmp_path)
    frames = {**tables(spark, tmp_path / "again"), **kept}
    frames |= {(name, "pre"): frames[name, "post"] for name in TABLES}
    for diff in update.diffs:
        schema = base_diff_columns(diff.schema, TABLES[diff.table].columns)
        frames[diff.name] = empty(spark, schema).frame
    frames["du(parts)"] = price_update(spark)
    done = run_script(spark, update, frames, count_accesses=True)
    with duckdb.connect() as connection:
        for name, frame in frames.items():
            stored_as = name if isinstance(name, str) else f"{name[0]}@{name[1]}"
            connection.register("rows", frame.toArrow())
            connection.execute(f'CREATE TABLE "{stored_as}" AS SELECT * FROM rows')
        sources = {key: f'"{key[0]}@{key[1]}"' for key in frames if isinstance(key, tuple)}
        report = run_in_duckdb(connection, update, sources, count_accesses=True)
    found = {each.name: each.accesses for each in done.report.statements}
    assert found == {each.name: each.accesses for each in report.statements}
    assert done.report.accesses
