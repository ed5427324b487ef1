"""Accesses on examples small enough to count by hand (id_based_ivm, appendix A)."""

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pytest

from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema
from viewkeep.diffs.script import Apply, Compute, Materialized, Script, Statement
from viewkeep.execute.duckdb.run_in_connection import create, run_in_connection
from viewkeep.execute.report import RunReport
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
from viewkeep.query.expressions import Call, Column, Expression, literal
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import INT, Field

Connection = duckdb.DuckDBPyConnection

PARTS = Scan("parts", Table({"pid": "int", "price": "int"}), "p")
USES = Scan("uses", Table({"did": "int", "pid": "int"}), "u")
DEVICES = Scan("devices", Table({"did": "int", "phone": "boolean"}), "d")


def equal(left: str, right: str) -> Call:
    return Call("=", (Column(left), Column(right)))


def projected(node: Node, **columns: str) -> Project:
    return Project(node, tuple(Output(new, Column(old)) for new, old in columns.items()))


VIEW = Materialized(
    "view",
    projected(
        Join(Join(PARTS, USES, equal("p.pid", "u.pid")), DEVICES, equal("u.did", "d.did")),
        did="u.did",
        pid="p.pid",
        price="p.price",
    ),
    ids=("did", "pid"),
)
DIFF = Stored("diff", tuple(Field(name, INT) for name in ("pid", "price#pre", "price#post")))
CHANGED = DiffSchema(UPDATE, ("pid",), before=("price",), after=("price",), changed=("price",))


@pytest.fixture
def connection() -> Iterator[Connection]:
    """Parts 1, 2 and 3; device 1 has parts 1 and 2, device 2 part 1, device 3 parts 1 and 3."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE parts (pid INT, price INT)")
        connection.execute("INSERT INTO parts VALUES (1, 10), (2, 20), (3, 30)")
        connection.execute("CREATE TABLE uses (did INT, pid INT)")
        connection.execute("INSERT INTO uses VALUES (1, 1), (1, 2), (2, 1), (3, 1), (3, 3)")
        connection.execute("CREATE TABLE devices (did INT, phone BOOLEAN)")
        connection.execute("INSERT INTO devices VALUES (1, true), (2, true), (3, false)")
        connection.execute('CREATE TABLE diff (pid INT, "price#pre" INT, "price#post" INT)')
        connection.execute("INSERT INTO diff VALUES (1, 10, 11), (2, 20, 21)")
        create(connection, _script(), {})
        yield connection


def _script(*statements: Statement) -> Script:
    return Script(VIEW, (), (), statements, (("did", "did"),))


def report(connection: Connection, *statements: Statement) -> RunReport:
    return run_in_connection(connection, _script(*statements), {}, count_accesses=True)


def cost(connection: Connection, query: Node) -> int | None:
    """The accesses of one computation."""
    return report(connection, Compute("c", query)).accesses


def test_an_update_by_ids_costs_a_look_up_per_diff_tuple_and_an_access_per_row(
    connection: Connection,
) -> None:
    """Table 2, ID-based: nothing to compute; 2 look-ups, and the 3 + 1 rows of parts 1 and 2."""
    found = report(connection, Apply("diff", "view", CHANGED))
    assert [each.accesses for each in found.statements] == [2 + 4]
    assert found.accesses == 6


def test_an_update_by_tuples_costs_the_diff_driven_loop_and_as_many_look_ups_as_rows(
    connection: Connection,
) -> None:
    """Table 2, tuple-based: |D|a + |D|p + |D|p with |D| = 2 and p = 2.

    The 2 diff tuples look up 2 parts in `uses` and read 4 tuples; these have the devices 1, 2 and
    3, so that 3 look-ups in `devices` read 3 tuples for the distinct ones: |D|a = 2 + 4 + 3 + 3.
    The diff of the view has 4 tuples: 4 look-ups and 4 accesses. Together 20.
    """
    joined = Join(Join(DIFF, USES, equal("pid", "u.pid")), DEVICES, equal("u.did", "d.did"))
    columns = {"did": "u.did", "pid": "pid", "price#post": "price#post"}
    compute = Compute("c", projected(joined, **columns))
    schema = DiffSchema(UPDATE, ("did", "pid"), after=("price",), changed=("price",))
    found = report(connection, compute, Apply("c", "view", schema))
    assert [each.accesses for each in found.statements] == [2 + 4 + 3 + 3, 4 + 4]
    assert found.accesses == 20


def test_an_insert_costs_an_access_per_row_and_a_delete_looks_up(connection: Connection) -> None:
    """Two rows are inserted (one twice in the diff); the delete of device 3 removes 2 rows."""
    new = DiffSchema(INSERT, ("did", "pid"), after=("price",))
    gone = DiffSchema(DELETE, ("did",))
    connection.execute('CREATE TABLE new (did INT, pid INT, "price#post" INT)')
    connection.execute("INSERT INTO new VALUES (7, 1, 1), (7, 2, 1), (7, 2, 1)")
    connection.execute("CREATE TABLE gone AS SELECT 3 AS did")
    found = report(connection, Apply("new", "view", new), Apply("gone", "view", gone))
    assert [(each.kind, each.accesses) for each in found.statements] == [
        (DELETE, 1 + 2),
        (INSERT, 2),
    ]


KEY: Expression = equal("pid", "u.pid")


@pytest.mark.parametrize(
    ("query", "accesses", "why"),
    [
        (DIFF, 0, "diffs cost nothing"),
        (USES, 5, "all tuples"),
        (Select(DIFF, Call(">", (Column("pid"), literal(1)))), 0, "diffs cost nothing"),
        (Join(DIFF, USES, KEY), 2 + 4, "parts 1 and 2 have 3 and 1 uses"),
        (Join(USES, DIFF, KEY), 2 + 4, "the diff drives, wherever it stands"),
        (SemiJoin(USES, DIFF, KEY), 2 + 4, "also in a semijoin"),
        (SemiJoin(DIFF, USES, KEY), 2 + 4, "in both directions"),
        (AntiJoin(DIFF, USES, KEY), 2 + 4, "an antijoin looks up its right side"),
        (AntiJoin(USES, DIFF, KEY), 5, "an antijoin needs its whole left side"),
        (Join(DIFF, USES, Call("<", (Column("pid"), Column("u.pid")))), 5, "no index"),
        (Join(DIFF, USES), 5, "no index either"),
        (Join(PARTS, USES, equal("p.pid", "u.pid")), 3 + 5, "no diff"),
        (
            Join(DIFF, Select(USES, Call("=", (Column("u.did"), literal(1)))), KEY),
            2 + 4,
            "tuples are read before they are tested",
        ),
        (
            Join(DIFF, projected(USES, key="u.pid"), equal("pid", "key")),
            2 + 4,
            "a projection passes a look-up on",
        ),
        (
            Join(
                DIFF,
                GroupBy(USES, ("u.pid",), (AggregateColumn("n", "count"),)),
                KEY,
            ),
            2 + 4,
            "so do groups by the key",
        ),
        (
            Join(
                DIFF,
                GroupBy(USES, ("u.did",), (AggregateColumn("n", "max", Column("u.pid")),)),
                equal("pid", "n"),
            ),
            5,
            "but not by an aggregate",
        ),
        (
            Join(DIFF, Join(DEVICES, USES, equal("d.did", "u.did")), KEY),
            2 + 4 + 3 + 3,
            "first uses, then the 3 distinct devices, in whatever order they are written",
        ),
        (
            Join(
                DIFF,
                AntiJoin(USES, Select(DEVICES, Column("d.phone")), equal("d.did", "u.did")),
                KEY,
            ),
            2 + 4 + 3 + 3,
            "the antijoin is asked for the tuples that were found",
        ),
        (
            Join(DIFF, AntiJoin(USES, projected(DIFF, gone="pid"), equal("gone", "u.pid")), KEY),
            2 + 4,
            "an antijoin with a diff costs nothing more",
        ),
        (
            Join(
                DIFF,
                UnionAll((projected(USES, k="u.pid"), projected(PARTS, k="p.pid"))),
                equal("pid", "k"),
            ),
            2 + 4 + 2 + 2,
            "a look-up in each part of a union",
        ),
        (
            UnionAll((Join(DIFF, USES, KEY), Join(DIFF, USES, KEY))),
            2 + 4,
            "a shared subtree is computed once",
        ),
        (
            Join(DIFF, Join(projected(DIFF, again="pid"), USES, equal("again", "u.pid")), KEY),
            2 + 4,
            "with both sides from diffs, their join costs nothing",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_cost_of_a_query(connection: Connection, query: Node, accesses: int, why: str) -> None:
    assert cost(connection, query) == accesses, why


def test_equal_outer_values_are_looked_up_once(connection: Connection) -> None:
    """Two updates of part 1 and one of part 2: still 2 look-ups and 4 tuples."""
    connection.execute("INSERT INTO diff VALUES (1, 0, 0)")
    assert cost(connection, Join(DIFF, USES, KEY)) == 2 + 4


def test_reading_the_view_counts_like_reading_a_table(connection: Connection) -> None:
    """The 2 diff tuples find 4 rows of the view; nothing is counted unless asked for."""
    names: Sequence[str] = ("did", "pid", "price")
    view = Stored("view", tuple(Field(name, INT) for name in names))
    query = Join(projected(DIFF, part="pid"), view, equal("part", "pid"))
    assert cost(connection, query) == 2 + 4
    found: Any = run_in_connection(connection, _script(Compute("c", query)), {})
    assert [each.accesses for each in found.statements] == [None]
