"""SQL text of the algebra: read back by the front end, and run by DuckDB, it means the same."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from typing import Any

import duckdb
import pytest

from tests.query.test_evaluate import EXAMPLES, parse
from tests.sql.database import TABLES, Oracle, normalized, random_data
from tests.sql.evaluate import evaluate
from tests.sql.test_against_duckdb import ORACLE_TEXT, QUERIES
from viewkeep.execute.duckdb.dialect.python_functions import register_python_functions
from viewkeep.execute.duckdb.dialect.queries import DUCKDB
from viewkeep.execute.duckdb.dialect.text import quote_name as duckdb_quote
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
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
from viewkeep.query.evaluate.compile import compile_expression
from viewkeep.query.evaluate.functions import DECIMALS
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, back_quote, literal
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    Field,
    Type,
)
from viewkeep.sql.parse import parse_view
from viewkeep.sql.text import to_sql

SEEDS = range(4)
ONE = Stored("one", (Field("i", INT),))


def text_of(node: Node) -> str:
    return to_sql(node, lambda leaf: back_quote(leaf.name))


def text_for_duckdb(node: Node) -> str:
    return to_sql(node, lambda leaf: duckdb_quote(leaf.name), DUCKDB)


@cache
def duckdb_text(sql: str) -> str:
    """A view as DuckDB is asked for it."""
    return text_for_duckdb(parse_view(sql, TABLES))


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    oracle = Oracle()
    register_python_functions(oracle._connection)
    yield oracle
    oracle._connection.close()


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        register_python_functions(connection)
        connection.execute("CREATE TABLE one AS SELECT 1 AS i")
        connection.execute("CREATE TABLE parts (pid INT, price INT)")
        connection.execute("INSERT INTO parts VALUES (1, 10), (2, 20)")
        yield connection


def answer(connection: duckdb.DuckDBPyConnection, node: Node) -> list[tuple[Any, ...]]:
    return connection.execute(text_for_duckdb(node)).fetchall()


@pytest.mark.parametrize("seed", SEEDS)
def test_duckdb_answers_the_printed_query_as_the_original(oracle: Oracle, seed: int) -> None:
    oracle.load(random_data(seed))
    for sql in QUERIES:
        printed = duckdb_text(sql)
        found = normalized(Counter(oracle._connection.execute(printed).fetchall()))
        expected = oracle.answer(ORACLE_TEXT.get(sql, sql))
        assert found == expected, f"seed {seed}: {sql}\n{printed}"


def test_duckdb_computes_with_the_types_of_spark(oracle: Oracle) -> None:
    names = {"string": "VARCHAR", "int": "INTEGER"}
    for sql in QUERIES:
        result = oracle._connection.execute(duckdb_text(sql))
        found = [str(column[1]) for column in result.description]
        types = [field.type for field in parse_view(sql, TABLES).schema]
        expected = [names.get(t.name, str(t).upper().replace(", ", ",")) for t in types]
        assert found == expected, sql


@pytest.mark.parametrize("sql", QUERIES)
def test_the_front_end_reads_what_is_printed(sql: str) -> None:
    """All but the check that a subquery has one row, which no view can ask for."""
    node = parse_view(sql, TABLES)
    if "RAISE_ERROR" in text_of(node):
        return
    again = parse_view(text_of(node), TABLES)
    assert again.names == node.names
    assert [f.type for f in again.schema] == [f.type for f in node.schema]
    data = random_data(1)
    assert evaluate(again, data) == evaluate(node, data), text_of(node)


REFUSED = {"cast('2024-01-05 10' as timestamp)"}
"""DuckDB has no such text of a time: an error."""


@pytest.mark.parametrize(("text", "expected"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_every_function_gives_in_duckdb_what_it_gives_in_spark(
    connection: duckdb.DuckDBPyConnection, text: str, expected: Any
) -> None:
    node = Project(ONE, (Output("v", parse(text)),))
    if text in REFUSED:
        with pytest.raises(duckdb.Error):
            answer(connection, node)
        return
    [(found,)] = answer(connection, node)
    found = tuple(found.values()) if isinstance(found, dict) else found
    found = tuple(found) if isinstance(found, list) else found
    assert found == expected or (found != found and expected != expected)
    assert type(found) is type(expected)


@pytest.mark.parametrize("function", ["/", "%", "div"])
@pytest.mark.parametrize("kind", [INT, DOUBLE, DECIMAL(5, 2)])
def test_a_division_by_zero_is_an_error(
    connection: duckdb.DuckDBPyConnection, function: str, kind: Type
) -> None:
    if function == "div" and kind == DOUBLE:
        pytest.skip("Spark divides only exact numbers so")
    zero = Call("-", (Column("i"), Column("i")))
    call = Call(function, (Cast(Column("i"), kind), Cast(zero, kind)))
    with pytest.raises(duckdb.Error, match=r"(?i)division by zero"):
        answer(connection, Project(ONE, (Output("v", call),)))


@pytest.mark.parametrize("seed", range(20))
def test_quotients_and_averages_of_decimals_are_exact(
    connection: duckdb.DuckDBPyConnection, seed: int
) -> None:
    """With more digits than a double holds, and rounded half up as Spark does."""
    rng = random.Random(seed)
    wide, narrow = DECIMAL(20, 2), DECIMAL(rng.randint(3, 9), rng.randint(0, 3))
    values = [Decimal(rng.randint(-(10**19), 10**19)).scaleb(-2) for _ in range(3)]
    divisor = Decimal(rng.choice([-1, 1]) * rng.randint(1, 999)).scaleb(-(narrow.scale or 0))
    quotient = Call("/", (Literal(values[0], wide), Literal(divisor, narrow)))
    node = Project(ONE, (Output("v", quotient),))
    exact = evaluate_exactly(quotient, node.schema[0].type)
    assert answer(connection, node) == [(exact,)]

    rows: Node = UnionAll(tuple(Project(ONE, (Output("x", Literal(v, wide)),)) for v in values))
    average = GroupBy(rows, (), (AggregateColumn("m", "avg", Column("x")),))
    mean = (sum(values, Decimal(0)) / 3).quantize(Decimal("0.000001"), ROUND_HALF_UP)
    assert answer(connection, average) == [(mean,)]
    none = GroupBy(Select(rows, literal(False)), (), average.aggregates)
    assert answer(connection, none) == [(None,)]


def evaluate_exactly(expression: Expression, result: Type) -> Decimal:
    """The value with the digits that the type of the result keeps."""
    value: Decimal = compile_expression(expression, ())(())
    return value.quantize(Decimal(1).scaleb(-(result.scale or 0)), ROUND_HALF_UP, DECIMALS)


TEXTS = ["it's", 'a"b', "a`b", "back\\slash", "a\\'b", "\\", "'", "''", "x -- y", "/* */", "{0}"]
TEXTS += [
    "line\nbreak",
    "tab\t",
    "",
    " ",
    "%_\\%",
    "ünï ☃ 🎈",
    "$1 :a ? @b",
    "\\n",
    "; DROP TABLE one",
]


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_is_a_literal_and_a_name(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    name = f"n{text}.x#post"
    node = Project(Project(ONE, (Output(name, literal(text)),)), (Output("v", Column(name)),))
    same = Select(node, Call("=", (Column("v"), literal(text))))
    assert answer(connection, same) == [(text,)]
    assert evaluate(_over_table(same), {"one": [(1,)]}) == Counter([(text,)])


def _over_table(node: Node) -> Node:
    """The same query, printed and read back by the front end."""
    return parse_view(text_of(node), {"one": Table({"i": "int"})})


LITERALS = [
    Literal(True, BOOLEAN),
    Literal(-128, TINYINT),
    Literal(300, SMALLINT),
    Literal(-(2**31), INT),
    Literal(5, BIGINT),
    Literal(-(2**63), BIGINT),
    Literal(0.5, FLOAT),
    Literal(-0.1, DOUBLE),
    Literal(1e300, DOUBLE),
    Literal(7, DOUBLE),
    Literal(Decimal("-1.50"), DECIMAL(3, 2)),
    Literal(Decimal("0.05"), DECIMAL(2, 2)),
    Literal(Decimal(10) ** 37, DECIMAL(38, 0)),
    Literal(3, DECIMAL(10, 2)),
    Literal("x", STRING),
    Literal(b"\x00\xff", BINARY),
    Literal(b"", BINARY),
    Literal(date(987, 6, 5), DATE),
    Literal(datetime(2024, 2, 29, 1, 2, 3, 40), TIMESTAMP),
    *(Literal(None, kind) for kind in (BOOLEAN, INT, DECIMAL(5, 1), STRING, BINARY, DATE, VOID)),
]


@pytest.mark.parametrize("constant", LITERALS, ids=lambda constant: f"{constant!r}")
def test_literals_of_every_type(connection: duckdb.DuckDBPyConnection, constant: Literal) -> None:
    node = Project(ONE, (Output("v", constant),))
    [(found,)] = answer(connection, node)
    assert found == constant.value
    printed = connection.execute(text_for_duckdb(node))
    if constant.type != VOID:
        names = {"string": "VARCHAR", "binary": "BLOB", "int": "INTEGER"}
        wanted = names.get(constant.type.name, str(constant.type).upper().replace(", ", ","))
        assert str(printed.description[0][1]) == wanted
    assert str(_over_table(node).schema[0].type) == str(constant.type)


def test_a_minus_before_a_negative_number_is_no_comment(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    difference: Expression = Call("-", (Column("i"), literal(-2)))
    node = Project(ONE, (Output("v", Call("negate", (difference,))), Output("w", difference)))
    assert answer(connection, node) == [(-3, 3)]


# Shared subtrees.

PARTS = Scan("parts", Table({"pid": "int", "price": "int"}), "p")


@pytest.mark.parametrize(
    "shared",
    [
        Select(PARTS, Call(">", (Column("p.price"), literal(15)))),
        Distinct(PARTS),
        UnionAll((PARTS, PARTS)),
        Join(PARTS, ONE, Call("=", (Column("i"), Column("p.pid")))),
        GroupBy(PARTS, ("p.pid",), (AggregateColumn("n", "count"),)),
    ],
    ids=lambda node: type(node).__name__,
)
def test_a_shared_subtree_is_printed_once(
    connection: duckdb.DuckDBPyConnection, shared: Node
) -> None:
    key = Project(shared, (Output("k", Column("p.pid")),))
    for join in (Join, SemiJoin, AntiJoin):
        node = UnionAll((join(key, shared, Call("=", (Column("k"), Column("p.pid")))),) * 2)
        text = text_of(node)
        assert text.count("`shared#1` AS (") == 1
        assert text.count("WHERE `p.price` > 15") == isinstance(shared, Select)
        assert text.count("GROUP BY") == isinstance(shared, GroupBy)
        rows = [row[0] for row in answer(connection, key)]
        expected = [] if join is AntiJoin else sorted(rows * 2)
        if isinstance(shared, UnionAll) and join is Join:
            expected = sorted(expected * 2)
        assert sorted(row[0] for row in answer(connection, node)) == expected


def test_the_states_of_a_table_are_different_relations() -> None:
    before = Scan("parts", PARTS.table, "q", state="pre")
    gone = AntiJoin(before, PARTS, Call("<=>", (Column("q.pid"), Column("p.pid"))))
    text = to_sql(gone, lambda leaf: back_quote(f"{leaf.name}@{getattr(leaf, 'state', '')}"))
    assert text == (
        "SELECT `q.pid`, `q.price`\n"
        "FROM (SELECT `pid` AS `q.pid`, `price` AS `q.price` FROM `parts@pre`) AS `_1`\n"
        "LEFT ANTI JOIN (SELECT `pid` AS `p.pid` FROM `parts@post`) AS `_2`\n"
        "ON `q.pid` <=> `p.pid`"
    )
