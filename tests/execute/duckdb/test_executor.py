"""Scripts in DuckDB: every kind of change, all or nothing, whatever the names and NULLs."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pytest

from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema
from viewkeep.diffs.script import Apply, Compute, Materialized, Script, Statement
from viewkeep.errors import ViewkeepError
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.run_in_connection import (
    create,
    prepare,
    read,
    run_in_connection,
    run_prepared,
)
from viewkeep.execute.errors import RunError
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    GroupBy,
    Join,
    Node,
    Output,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
)
from viewkeep.query.expressions import Call, Cast, Column, literal
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import INT, STRING, Field, Type

Rows = Sequence[tuple[Any, ...]]
Connection = duckdb.DuckDBPyConnection

BASE = Table({"a": "int", "b": "int", "x": "int"})
SCAN = Scan("base", BASE, "t")
VIEW = Materialized(
    "view",
    Project(SCAN, tuple(Output(name, Column(f"t.{name}")) for name in ("a", "b", "x"))),
    ids=("a", "b"),
)
START: Rows = [(1, 1, 10), (1, 2, 20), (2, 1, 30), (None, 1, 40)]


@pytest.fixture
def connection() -> Iterator[Connection]:
    with duckdb.connect() as connection:
        yield connection


def fill(connection: Connection, name: str, columns: Sequence[str], rows: Rows) -> None:
    """A table of integers."""
    quoted = ", ".join(f'"{column}" INT' for column in columns)
    connection.execute(f'CREATE OR REPLACE TABLE "{name}" ({quoted})')
    if rows:
        marks = ", ".join("?" * len(columns))
        connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)


def leaf(name: str, columns: Sequence[str], kind: Type = INT) -> Stored:
    return Stored(name, tuple(Field(column, kind) for column in columns))


def script(*statements: Statement) -> Script:
    visible = (("first", "a"), ("value", "x"))
    return Script(VIEW, (), (), statements, visible)


def created(connection: Connection) -> None:
    fill(connection, "base", ("a", "b", "x"), START)
    create(connection, script(), {})


def rows_of(connection: Connection, name: str = "view") -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute(f'SELECT * FROM "{name}"').fetchall())


def changed(
    connection: Connection, schema: DiffSchema, rows: Rows
) -> tuple[Counter[tuple[Any, ...]], int]:
    """The view after one diff, and how many rows it says it changed."""
    created(connection)
    fill(connection, "d", schema.columns, rows)
    report = run_in_connection(connection, script(Apply("d", "view", schema)), {})
    [statement] = report.statements
    assert statement.kind == schema.kind
    return rows_of(connection), statement.rows


def test_the_view_is_created_with_its_types_and_read_under_the_users_names(
    connection: Connection,
) -> None:
    created(connection)
    assert rows_of(connection) == Counter(START)
    relation = read(connection, script())
    assert relation.columns == ["first", "value"]
    assert Counter(relation.fetchall()) == Counter((a, x) for a, _, x in START)


@pytest.mark.parametrize(
    ("ids", "rows", "left"),
    [
        (("a", "b"), [(1, 2), (9, 9)], [START[0], START[2], START[3]]),
        (("a",), [(1,)], START[2:]),
        (("a",), [(None,)], START[:3]),
        (("b",), [(1,), (1,)], [START[1]]),
        (("a", "b"), [], START),
    ],
)
def test_deletes_remove_all_rows_that_their_ids_mean(
    connection: Connection, ids: tuple[str, ...], rows: Rows, left: Rows
) -> None:
    assert changed(connection, DiffSchema(DELETE, ids), rows) == (Counter(left), 4 - len(left))


@pytest.mark.parametrize(("rows", "left"), [([(7,)], []), ([], START)])
def test_a_delete_without_ids_means_all_rows_if_it_has_one(
    connection: Connection, rows: Rows, left: Rows
) -> None:
    schema = DiffSchema(DELETE, (), before=("x",))
    assert changed(connection, schema, rows)[0] == Counter(left)


def test_updates_set_only_the_changed_columns_of_all_rows_they_mean(
    connection: Connection,
) -> None:
    schema = DiffSchema(UPDATE, ("a",), before=("x",), after=("b", "x"), changed=("x",))
    rows = [(1, 10, 8, 77), (None, 40, 8, None), (5, 0, 0, 0)]
    expected = [(1, 1, 77), (1, 2, 77), (2, 1, 30), (None, 1, None)]
    assert changed(connection, schema, rows) == (Counter(expected), 3)


def test_an_update_that_changes_nothing_changes_nothing(connection: Connection) -> None:
    schema = DiffSchema(UPDATE, ("a",), after=("x",))
    assert changed(connection, schema, [(1, 5)]) == (Counter(START), 0)


def test_an_update_without_ids_means_all_rows(connection: Connection) -> None:
    schema = DiffSchema(UPDATE, (), after=("x",), changed=("x",))
    expected = Counter((a, b, 5) for a, b, _ in START)
    assert changed(connection, schema, [(5,)]) == (expected, 4)


def test_inserts_replace_rows_with_the_same_ids_and_count_once(connection: Connection) -> None:
    schema = DiffSchema(INSERT, ("a", "b"), after=("x",))
    rows = [(1, 1, 11), (None, 1, 41), (None, None, 0), (None, None, 0), (3, 3, 3), (3, 3, 3)]
    expected = [(1, 1, 11), START[1], START[2], (None, 1, 41), (None, None, 0), (3, 3, 3)]
    assert changed(connection, schema, rows) == (Counter(expected), 4)


def test_changes_are_applied_deletes_first_and_inserts_last(connection: Connection) -> None:
    """Written in the other order: the row that is inserted stays as it was inserted."""
    created(connection)
    new, gone = DiffSchema(INSERT, ("a", "b"), after=("x",)), DiffSchema(DELETE, ("a",))
    updated = DiffSchema(UPDATE, ("b",), after=("x",), changed=("x",))
    fill(connection, "new", new.columns, [(1, 1, 100)])
    fill(connection, "updated", updated.columns, [(1, 0)])
    fill(connection, "gone", gone.columns, [(1,)])
    applies = [("new", new), ("updated", updated), ("gone", gone)]
    report = run_in_connection(connection, script(*(Apply(n, "view", s) for n, s in applies)), {})
    assert [each.kind for each in report.statements] == [DELETE, UPDATE, INSERT]
    assert rows_of(connection) == Counter([(1, 1, 100), (2, 1, 0), (None, 1, 0)])


@pytest.mark.parametrize("seed", range(30))
def test_random_diffs_do_what_their_definition_says(connection: Connection, seed: int) -> None:
    rng = random.Random(seed)
    values = (None, 1, 2)
    kept = {(rng.choice(values), rng.choice(values)): rng.randint(0, 9) for _ in range(6)}
    ids = rng.choice([("a", "b"), ("a",), ("b",), ()])
    meant = {tuple(rng.choice(values) for _ in ids): rng.randint(10, 19) for _ in range(2)}
    fill(connection, "base", ("a", "b", "x"), [(*key, x) for key, x in kept.items()])
    create(connection, script(), {})
    kind = rng.choice([DELETE, UPDATE, INSERT])
    if kind == INSERT:
        ids, meant = ("a", "b"), {(rng.choice(values), rng.choice(values)): 50 for _ in range(3)}
    schema = {
        DELETE: DiffSchema(DELETE, ids, before=("x",)),
        UPDATE: DiffSchema(UPDATE, ids, after=("x",), changed=("x",)),
        INSERT: DiffSchema(INSERT, ids, after=("x",)),
    }[kind]
    fill(connection, "d", schema.columns, [(*key, x) for key, x in meant.items()] * 2)
    run_in_connection(connection, script(Apply("d", "view", schema)), {})

    def named(key: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(key["ab".index(name)] for name in ids)

    if kind == DELETE:
        kept = {key: x for key, x in kept.items() if named(key) not in meant}
    elif kind == UPDATE:
        kept = {key: meant.get(named(key), x) for key, x in kept.items()}
    else:
        kept |= {(a, b): x for (a, b), x in meant.items()}
    assert rows_of(connection) == Counter((*key, x) for key, x in kept.items()), f"seed {seed}"


# Computations.


def test_computations_read_the_state_before_and_each_other(connection: Connection) -> None:
    """The view's rows are copied before they are deleted, with what an earlier diff says."""
    created(connection)
    view = leaf("view", ("a", "b", "x"))
    gone, new = DiffSchema(DELETE, ("a",)), DiffSchema(INSERT, ("a", "b"), after=("x",))
    small = Compute("small", Select(view, Call("<", (Column("x"), literal(25)))))
    copied = Compute(
        "copied",
        Project(
            leaf("small", ("a", "b", "x")),
            (
                Output("a", Call("+", (Column("a"), literal(100)))),
                Output("b", Column("b")),
                Output("x#post", Column("x")),
            ),
        ),
    )
    old = Compute("old", Project(leaf("small", ("a", "b", "x")), (Output("a", Column("a")),)))
    steps = (small, copied, old, Apply("old", "view", gone), Apply("copied", "view", new))
    report = run_in_connection(connection, script(*steps), {})
    assert rows_of(connection) == Counter([*START[2:], (101, 1, 10), (101, 2, 20)])
    assert [each.rows for each in report.statements] == [2, 2, 2, 2, 2]
    assert report.accesses is None
    assert all(each.seconds >= 0 for each in report.statements)
    tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert sorted(name for (name,) in tables) == ["base", "view"]


def test_tables_before_and_after_are_found_where_the_sources_say(connection: Connection) -> None:
    fill(connection, "base@1", ("a", "b", "x"), START)
    fill(connection, "base@2", ("a", "b", "x"), START[1:])
    kept = Materialized("view", VIEW.definition, VIEW.ids)
    sources = {("base", "post"): '"base@1"', "view": '"view of base"', "d": '"my diff"'}
    create(connection, Script(kept, (), (), (), ()), sources)
    assert rows_of(connection, "view of base") == Counter(START)
    before, after = Scan("base", BASE, "t", state="pre"), SCAN
    keys = [Output("a", Column("t.a")), Output("b", Column("t.b"))]
    other = Project(after, tuple(Output(f"{o.name}2", o.expression) for o in keys))
    same = Call(
        "and",
        (
            Call("<=>", (Column("a"), Column("a2"))),
            Call("<=>", (Column("b"), Column("b2"))),
        ),
    )

    gone = Compute("gone", AntiJoin(Project(before, tuple(keys)), other, same))
    statement = Apply("gone", "view", DiffSchema(DELETE, ("a", "b")))
    now = {**sources, ("base", "pre"): '"base@1"', ("base", "post"): '"base@2"'}
    run_in_connection(connection, script(gone, statement), now)
    assert rows_of(connection, "view of base") == Counter(START[1:])
    assert len(read(connection, script(), now).fetchall()) == 3
    with pytest.raises(RunError, match='no relation for table "base" as it was before'):
        run_in_connection(connection, script(gone), sources)


def test_a_view_may_be_defined_over_a_cache(connection: Connection) -> None:
    """A sum of int is a bigint here, and not the hugeint that it is to DuckDB."""
    fill(connection, "base", ("a", "b", "x"), START)
    cache = Materialized("cache of view", VIEW.definition, VIEW.ids)
    totals = GroupBy(
        leaf("cache of view", ("a", "b", "x")), ("a",), (AggregateColumn("n", "sum", Column("x")),)
    )
    view = Materialized("totals", totals, ("a",))
    create(connection, Script(view, (cache,), (), (), (("a", "a"),)), {})
    assert rows_of(connection, "totals") == Counter([(1, 30), (2, 30), (None, 40)])
    assert [str(t) for t in connection.table("totals").types] == ["INTEGER", "BIGINT"]


def test_any_name_is_only_a_name(connection: Connection) -> None:
    name = 'v"; DROP TABLE base; -- `'
    columns = ('a"b', "x#post`", "it's")
    table = Table(dict.fromkeys(columns, "int"))
    scan = Scan("base", table, 't"')
    outputs = tuple(Output(f"{c}!", Column(f't".{c}')) for c in columns)
    view = Materialized(name, Project(scan, outputs), (f"{columns[0]}!",))
    quoted = ", ".join('"' + column.replace('"', '""') + '" INT' for column in columns)
    connection.execute(f"CREATE TABLE base ({quoted})")
    connection.execute("INSERT INTO base VALUES (1, 2, 3), (4, 5, 6)")
    schema = DiffSchema(DELETE, (f"{columns[0]}!",))
    diff = Compute(
        'd" `',
        Project(
            Select(scan, Call("=", (Column('t".a"b'), literal(1)))),
            (Output(f"{columns[0]}!", Column('t".a"b')),),
        ),
    )
    visible = (('it\'s "all"', "it's!"),)
    whole = Script(view, (), (), (diff, Apply(diff.name, name, schema)), visible)
    create(connection, whole, {})
    run_in_connection(connection, whole, {})
    relation = read(connection, whole)
    assert (relation.columns, relation.fetchall()) == (['it\'s "all"'], [(6,)])


# Empty diffs, and scripts that are run often.

DIFF = leaf("d", ("a",))
OLD = Scan("base", BASE, "old", state="pre")
"""The table before the changes, for which no test here says where it is: reading it would fail."""


def delete_by(query: Node) -> tuple[Compute, Apply]:
    return Compute("gone", query), Apply("gone", "view", DiffSchema(DELETE, ("a",)))


def test_what_empty_diffs_leave_without_rows_is_not_run(connection: Connection) -> None:
    created(connection)
    fill(connection, "d", ("a",), [])
    looked_up = SemiJoin(OLD, DIFF, Call("=", (Column("old.a"), Column("a"))))
    gone = Project(looked_up, (Output("a", Column("old.a")),))
    report = run_in_connection(connection, script(*delete_by(gone)), {})
    assert [(each.rows, each.reads) for each in report.statements] == [(0, 0), (0, 0)]
    assert rows_of(connection) == Counter(START)
    fill(connection, "d", ("a",), [(1,)])
    with pytest.raises(RunError, match='no relation for table "base" as it was before'):
        run_in_connection(connection, script(*delete_by(gone)), {})


def test_an_empty_diff_is_left_out_of_a_union_and_of_an_antijoin(connection: Connection) -> None:
    created(connection)
    fill(connection, "d", ("a",), [(2,)])
    fill(connection, "nothing", ("c",), [])
    nothing = leaf("nothing", ("c",))
    old = Project(
        Join(OLD, nothing, Call("=", (Column("old.a"), Column("c")))),
        (Output("a", Column("old.a")),),
    )
    gone = AntiJoin(UnionAll((DIFF, old)), nothing, Call("=", (Column("a"), Column("c"))))
    run_in_connection(connection, script(*delete_by(gone)), {})
    assert rows_of(connection) == Counter([*START[:2], START[3]])


def test_an_aggregate_without_keys_has_a_row_of_nothing(connection: Connection) -> None:
    """Of a computed diff that has no rows, and of which there is therefore no table."""
    created(connection)
    fill(connection, "d", ("a",), [])
    again = Compute("again", Select(DIFF, Call(">", (Column("a"), literal(0)))))
    number = GroupBy(leaf("again", ("a",)), (), (AggregateColumn("n", "count"),))
    counted = Compute("counted", Project(number, (Output("a", Cast(Column("n"), INT)),)))
    [first, second] = run_in_connection(connection, script(again, counted), {}).statements
    assert (first.rows, second.rows) == (0, 1)


def test_a_prepared_script_is_run_often_and_makes_its_text_once(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    created(connection)
    made: list[Node] = []
    to_text = statements.query

    def counted(node: Node, resolve: statements.Resolve) -> str:
        made.append(node)
        return to_text(node, resolve)

    monkeypatch.setattr(statements, "query", counted)
    prepared = prepare(script(*delete_by(DIFF)), {})
    for rows in ([(1,)], [], [(2,), (7,)], []):
        fill(connection, "d", ("a",), rows)
        run_prepared(connection, prepared)
    assert rows_of(connection) == Counter([START[3]])
    assert len(made) == 1


def test_the_report_tells_what_was_read_and_written_and_when(connection: Connection) -> None:
    """Two rows of the diff and the four of the table; then the diff of three rows, twice."""
    created(connection)
    fill(connection, "d", ("a",), [(1,), (2,)])
    joined = Join(DIFF, SCAN, Call("=", (Column("a"), Column("t.a"))))
    gone = Compute("gone", Project(joined, (Output("a", Column("a")),)))
    steps = (gone, Compute("again", leaf("gone", ("a",))))
    report = run_in_connection(connection, script(*steps, delete_by(DIFF)[1]), {})
    found = [(each.kind, each.reads, each.rows) for each in report.statements]
    assert found == [("compute", 2 + 4, 3), ("compute", 3, 3), (DELETE, 3, 3)]
    assert 0 < sum(report.shares) <= 1
    assert report.shares[0] == report.statements[0].seconds / report.seconds


# All or nothing.


def failing(connection: Connection) -> tuple[Script, Counter[tuple[Any, ...]]]:
    """A delete, then an update that does not fit into an INT."""
    created(connection)
    gone = DiffSchema(DELETE, ("a",))
    large = DiffSchema(UPDATE, ("a",), after=("x",), changed=("x",))
    fill(connection, "gone", gone.columns, [(2,)])
    connection.execute('CREATE TABLE large AS SELECT 1 AS a, 10000000000 AS "x#post"')
    steps = script(Apply("gone", "view", gone), Apply("large", "view", large))
    return steps, rows_of(connection)


def test_an_error_leaves_everything_as_it_was(connection: Connection) -> None:
    steps, before = failing(connection)
    with pytest.raises(RunError, match="APPLY u large TO view: "):
        run_in_connection(connection, steps, {})
    assert rows_of(connection) == before
    connection.execute('UPDATE large SET "x#post" = 0')
    run_in_connection(connection, steps, {})
    assert rows_of(connection) == Counter([(1, 1, 0), (1, 2, 0), (None, 1, 40)])


def test_an_error_in_a_computation_names_it_and_leaves_no_table(connection: Connection) -> None:
    created(connection)
    first = Compute("first", leaf("view", ("a", "b", "x")))
    divided = Output("a", Call("/", (literal(1), literal(0))))
    second = Compute("second", Project(leaf("first", ("a", "b", "x")), (divided,)))
    for _ in range(2):
        with pytest.raises(RunError, match=r"second: .*division by zero"):
            run_in_connection(connection, script(first, second), {})
    assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (2,)


def test_a_diff_that_is_not_there_is_named(connection: Connection) -> None:
    created(connection)
    step = Compute("step", leaf("nowhere", ("a",)))
    with pytest.raises(ViewkeepError, match="reading nowhere: Catalog Error"):
        run_in_connection(connection, script(step), {})


def test_a_view_that_cannot_be_filled_leaves_no_cache_behind(connection: Connection) -> None:
    fill(connection, "base", ("a", "b", "x"), START)
    cache = Materialized("cache", VIEW.definition, VIEW.ids)
    broken = Materialized("view", leaf("nowhere", ("a",), STRING), ("a",))
    with pytest.raises(RunError, match="CREATE view"):
        create(connection, Script(broken, (cache,), (), (), ()), {})
    assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (1,)


@pytest.mark.parametrize("kind", [UPDATE, INSERT])
def test_a_diff_that_contradicts_itself_is_refused(connection: Connection, kind: str) -> None:
    schema = DiffSchema(kind, ("a", "b"), after=("x",), changed=("x",) if kind == UPDATE else ())
    with pytest.raises(RunError, match="two rows of the diff set the same row differently"):
        changed(connection, schema, [(None, 1, 5), (None, 1, 6)])
    assert rows_of(connection) == Counter(START)


def test_a_run_inside_a_transaction_is_refused_and_leaves_it_open(connection: Connection) -> None:
    created(connection)
    connection.begin()
    connection.execute("INSERT INTO base VALUES (9, 9, 9)")
    with pytest.raises(RunError, match="inside a transaction; commit it first"):
        run_in_connection(connection, script(), {})
    connection.commit()
    assert rows_of(connection, "base")[(9, 9, 9)] == 1


def test_an_unknown_target_is_named(connection: Connection) -> None:
    created(connection)
    with pytest.raises(RunError, match='there is no cache or view "veiw"'):
        run_in_connection(connection, script(Apply("view", "veiw", DiffSchema(DELETE, ("a",)))), {})
