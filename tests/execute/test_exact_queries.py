"""Whole queries at edge values: groups, joins, aggregates, and what fails only for other rows."""

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Context, Decimal
from math import inf, nan
from typing import Any

import duckdb
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.execute.edge_values import VALUES
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.dialect.python_functions import register_python_functions
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.exact import inexact
from viewkeep.execute.spark.driver.collect import CollectedRows
from viewkeep.query.algebra import Distinct, Join, Output, Project, Scan
from viewkeep.query.expressions import Call, Column
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import parse_type
from viewkeep.query.types.internal_functions import COMPARABLE
from viewkeep.sql.parse import parse_view
from viewkeep.sql.text import to_sql
from viewkeep.tables.arrow_rows import to_arrow, to_rows

Rows = list[tuple[Any, ...]]

TABLES = {
    "d": Table({"i": "int", "x": "double", "f": "float"}),
    "e": Table({"i": "int", "x": "double", "f": "float"}),
    "v": Table(
        {
            "g": "int",
            "t": "tinyint",
            "n": "int",
            "b": "bigint",
            "c": "decimal(5, 2)",
            "m": "decimal(20, 4)",
            "w": "decimal(38, 10)",
            "x": "double",
            "f": "float",
            "s": "string",
            "y": "binary",
            "o": "boolean",
            "day": "date",
            "at": "timestamp",
        }
    ),
    "big": Table({"i": "int", "b": "bigint", "w": "decimal(38, 0)"}),
    "good": Table({"k": "int", "one": "int"}),
    "mixed": Table({"k": "int", "z": "int", "s": "string", "ok": "boolean"}),
}
"""Half of `mixed` has 0 and a text that is no number; `good` has the keys of the other half."""

SPECIAL = [0.0, -0.0, nan, nan, None, None, inf, -inf, 1.5, -1.5]
NUMBERS = 4000


def rows() -> dict[str, Rows]:
    half = NUMBERS // 2
    return {
        "d": [(i, x, x) for i, x in enumerate(SPECIAL)],
        "e": [(i, x, x) for i, x in enumerate(reversed(SPECIAL[1:]))],
        "v": [
            *(
                (g, t, n, t, Decimal(c), Decimal(m), Decimal(w), x, x, s, s.encode(), o, day, at)
                for g, t, n, c, m, w, x, s, o, day, at in VALUES_OF_GROUPS
            ),
            (3, *[None] * 13),
        ],
        "big": [(1, 2**63 - 1, Decimal("9" * 38)), (1, 1, Decimal(1)), (2, -(2**63), Decimal(0))],
        "good": [(k, 1) for k in range(half)],
        "mixed": [
            *((k, k + 1, str(k), True) for k in range(half)),
            *((k, 0, "none", False) for k in range(half, NUMBERS)),
        ],
    }


LAST = datetime(2024, 2, 29, 23, 59, 59, 999999)
VALUES_OF_GROUPS = [
    (1, 127, 2**31 - 1, "999.99", "0.0001", "0.0000000001", 0.5, "Z", True, date(1, 1, 1), LAST),
    (1, 127, 2**31 - 1, "0.01", "1.5", "1.5", 0.25, "Ä", False, date(9999, 12, 31), LAST),
    (1, -128, 7, "-1.50", "-2", "7", 4.0, "a", False, date(1970, 1, 1), datetime(1, 1, 1)),
    (2, 1, 1, "0.01", "0.0001", "1" * 20, nan, "", True, date(2024, 2, 29), datetime(1970, 1, 1)),
    (2, 2, 2, "0.02", "0.0002", "2" * 20, -inf, "😀", True, date(2024, 3, 1), LAST),
    (None, 0, 0, "0", "0", "0", -2.0, "x", None, date(2000, 1, 1), LAST),
]


class Both:
    """The same tables in both engines."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark.newSession()
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        register_python_functions(self.connection)
        for name, given in rows().items():
            table = to_arrow(TABLES[name].columns, given)
            CollectedRows(self.spark, TABLES[name].columns, table).frame.createOrReplaceTempView(
                name
            )
            self.connection.register(name, table)

    def in_spark(self, sql: str) -> Counter[Any]:
        node = parse_view(sql, TABLES)
        text = to_sql(node, lambda leaf: leaf.name)
        return _bag(self.spark.sql(text).toArrow())

    def in_duckdb(self, sql: str) -> Counter[Any]:
        node = parse_view(sql, TABLES)
        assert inexact(node) is None
        text = statements.query(node, lambda leaf: quote_name(leaf.name))
        return _bag(self.connection.sql(text).to_arrow_table())


def _bag(table: Any) -> Counter[Any]:
    return Counter(tuple(map(_plain, row)) for row in to_rows(table))


def _plain(value: Any) -> Any:
    """Values that are equal exactly if they are the same, with their type."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, Decimal):
        return "decimal", value
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return type(value).__name__, value


@pytest.fixture(scope="module")
def both(spark: SparkSession) -> Iterator[Both]:
    both = Both(spark)
    yield both
    both.connection.close()


SPECIAL_QUERIES = [
    "SELECT x, f, count(*) AS n FROM d GROUP BY x, f",
    "SELECT DISTINCT x FROM d",
    "SELECT DISTINCT f FROM d",
    "SELECT count(DISTINCT x) AS n, count(DISTINCT x, f) AS m FROM d",
    "SELECT d.i, e.i AS j FROM d JOIN e ON d.x = e.x",
    "SELECT d.i, e.i AS j, d.x, e.f FROM d JOIN e ON d.f <=> e.f",
    "SELECT d.i, e.i AS j FROM d JOIN e ON d.x < e.x",
    "SELECT d.i, e.i AS j, e.x FROM d LEFT JOIN e ON d.x = e.x AND e.i > 2",
    "SELECT d.i, e.i AS j FROM d FULL JOIN e ON d.x = e.f AND d.i < e.i",
    "SELECT i FROM d WHERE x IN (SELECT x FROM e WHERE i > 3)",
    "SELECT i FROM d WHERE x NOT IN (SELECT x FROM e WHERE x IS NOT NULL AND i > 3)",
    "SELECT i FROM d WHERE x NOT IN (SELECT x FROM e)",
    "SELECT i FROM d WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.x = d.x AND e.i > 4)",
    "SELECT x FROM d EXCEPT SELECT x FROM e WHERE i > 5",
    "SELECT x FROM d INTERSECT SELECT x FROM e WHERE i > 2",
    "SELECT x FROM d UNION SELECT x FROM e",
    "SELECT i FROM d WHERE x > 1e300 OR x = 0",
    "SELECT max(x) AS a, min(x) AS b, max(f) AS c, min(f) AS d FROM d",
    "SELECT max(x) AS a FROM d WHERE x < 2 GROUP BY i % 2",
    "SELECT i, CASE WHEN x = x THEN 1 WHEN x IS NULL THEN 2 ELSE 3 END AS c FROM d",
    "SELECT array(x, f) AS a, count(*) AS n FROM d GROUP BY array(x, f)",
    "SELECT d.i, rank() OVER (ORDER BY array(d.f, d.x)) AS r FROM d "
    "JOIN e ON array(d.x) = array(e.x)",
]
AGGREGATES = [
    f"SELECT {key}{function}({column}) AS v FROM v{group}"
    for key, group in (("g, ", " GROUP BY g"), ("", ""))
    for function, columns in (
        ("min", "t n b c m w x f s y o day at"),
        ("max", "t n b c m w x f s y o day at"),
        ("count", "n s"),
        ("sum", "t n b c m w x f"),
        ("avg", "t n b c m w x f"),
        ("bit_and", "t b"),
        ("bit_or", "n"),
        ("bit_xor", "n"),
        ("bool_and", "o"),
        ("some", "o"),
        ("median", "t n"),
        ("count", "DISTINCT s"),
        ("sum", "DISTINCT n"),
    )
    for column in ([columns] if "DISTINCT" in columns else columns.split())
] + [
    "SELECT sum(n) AS v, avg(c) AS w, count(*) AS n FROM v WHERE FALSE",
    "SELECT g, sum(c) / count(*) AS a, sum(n) / sum(t) AS b FROM v WHERE g < 3 GROUP BY g",
    "SELECT g, avg(c * n) AS a, sum(m * c) AS b FROM v GROUP BY g HAVING sum(n) > 2",
]


_OVER = "PARTITION BY g ORDER BY day, n, x"
WINDOWS = [
    "SELECT g, day, n, " + ", ".join(f"{text} AS z{i}" for i, text in enumerate(texts)) + " FROM v"
    for texts in (
        [
            f"{function} OVER ({_OVER})"
            for function in (
                *("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()"),
                *("ntile(2)", "lag(s)", "lag(n, 2, 0)", "lead(c, 1, 1)", "lead(x) IGNORE NULLS"),
                *("lag(n, -1)", "first_value(s)", "first_value(s) IGNORE NULLS"),
                *("sum(t)", "sum(c)", "avg(c)", "avg(n)", "count(*)", "count(s)", "max(at)"),
            )
        ],
        [
            f"{function} OVER ({_OVER} ROWS BETWEEN {frame})"
            for function in ("sum(m)", "avg(m)", "last_value(s)", "nth_value(s, 2)", "min(y)")
            for frame in ("1 PRECEDING AND 1 FOLLOWING", "CURRENT ROW AND UNBOUNDED FOLLOWING")
        ],
        [
            f"{function} OVER (PARTITION BY g ORDER BY {order})"
            for function in ("rank()", "dense_rank()", "sum(c)")
            for order in ("x", "x DESC", "f DESC NULLS FIRST", "s NULLS LAST", "o DESC", "y")
        ],
        [
            "sum(c) OVER (ORDER BY g RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
            "sum(c) OVER (ORDER BY g DESC RANGE BETWEEN 100 PRECEDING AND 1 FOLLOWING)",
            "count(c) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)",
            "count(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)",
            "count(*) FILTER (WHERE n > 1) OVER (PARTITION BY g)",
        ],
    )
] + [
    "SELECT i, x, rank() OVER (PARTITION BY x ORDER BY i) AS z, count(*) OVER (PARTITION BY f) c, "
    "rank() OVER (ORDER BY x DESC) AS r FROM d",
    "SELECT g, sum(n) AS a, sum(sum(t)) OVER (ORDER BY g DESC) AS b FROM v GROUP BY g",
    "SELECT s, n FROM v ORDER BY n DESC, s LIMIT 3 OFFSET 1",
]


@pytest.mark.parametrize("sql", [*SPECIAL_QUERIES, *AGGREGATES, *WINDOWS])
def test_the_rows_are_the_same(both: Both, sql: str) -> None:
    assert both.in_duckdb(sql) == both.in_spark(sql)


def test_sets_of_groups_of_no_rows(both: Both) -> None:
    """In Spark's own reading of the text: a total beside others is a group of rows, alone it is
    not."""
    none = "FROM d WHERE i < 0 GROUP BY"
    sql = f"""SELECT i, count(*) AS n {none} ROLLUP (i) UNION ALL SELECT 8, count(*) {none} CUBE (i)
        UNION ALL SELECT i, 1 {none} GROUPING SETS ((i), ())
        UNION ALL SELECT 9, count(*) {none} GROUPING SETS (())"""
    found = _bag(both.spark.sql(sql).toArrow())
    assert both.in_duckdb(sql) == found == Counter([(("int", 9), ("int", 0))])


FAILING = [
    "SELECT 1 / z AS v FROM mixed",
    "SELECT k FROM mixed WHERE 1 / z > 0.5",
    "SELECT CAST(s AS INT) AS v FROM mixed",
    "SELECT k % z AS v FROM mixed",
    "SELECT max(k DIV z) AS v FROM mixed",
    "SELECT i, sum(b) AS v FROM big GROUP BY i",
    "SELECT sum(w) AS v FROM big",
    "SELECT b + 1 AS v FROM big",
    "SELECT w + 1 AS v FROM big",
    "SELECT mixed.k FROM mixed JOIN good ON mixed.k = good.k AND 1 / (good.one - 1) > 0",
]


@pytest.mark.parametrize("sql", FAILING)
def test_what_fails_in_spark_fails(both: Both, sql: str) -> None:
    with pytest.raises(PySparkException):
        both.in_spark(sql)
    with pytest.raises(duckdb.Error):
        both.in_duckdb(sql)


HALF = NUMBERS // 2
EXCLUDED = {
    "SELECT count(1 / z) AS n FROM mixed WHERE z <> 0": HALF,
    "SELECT count(*) AS n FROM mixed WHERE z <> 0 AND 1 / z > 0": HALF,
    "SELECT count(*) AS n FROM mixed WHERE ok AND CAST(s AS INT) >= 0": HALF,
    "SELECT count(*) AS n FROM mixed WHERE NOT ok OR CAST(s AS INT) >= 0": NUMBERS,
    "SELECT count(CASE WHEN ok THEN CAST(s AS INT) END) AS n FROM mixed": HALF,
    "SELECT sum(CASE WHEN z = 0 THEN 0 ELSE z DIV z END) AS n FROM mixed": HALF,
    "SELECT count(if(ok, 1 / z, NULL)) AS n FROM mixed": HALF,
    "SELECT count(*) AS n FROM mixed WHERE coalesce(nullif(z, 0), 1) / nullif(z, 0) > 0": HALF,
    "SELECT count(*) AS n FROM (SELECT CAST(s AS INT) AS v FROM mixed WHERE ok) WHERE v >= 0": HALF,
    "SELECT count(*) AS n FROM (SELECT 1 / z AS v FROM mixed WHERE ok) WHERE v > 0": HALF,
    "SELECT count(*) AS n FROM (SELECT z, s, ok FROM mixed WHERE ok) WHERE 10 % z >= 0": HALF,
    "SELECT count(*) AS n FROM mixed JOIN good ON mixed.k = good.k WHERE CAST(s AS INT) >= 0": HALF,
    "SELECT count(*) AS n FROM mixed JOIN good ON mixed.k = good.k WHERE one / z > 0": HALF,
    "SELECT count(*) AS n FROM mixed JOIN good ON mixed.k = good.k AND CAST(s AS INT) >= 0": HALF,
    "SELECT count(*) AS n FROM mixed LEFT JOIN good ON mixed.k = good.k AND 1 / z > 0 AND ok "
    "WHERE ok": HALF,
    "SELECT count(*) AS n FROM (SELECT CAST(s AS INT) AS v FROM mixed JOIN good "
    "ON mixed.k = good.k) WHERE v >= 0": HALF,
    "SELECT count(*) AS n FROM (SELECT CAST(s AS INT) AS v FROM mixed JOIN good "
    "ON mixed.k = good.k) AS p JOIN good ON p.v = good.k": HALF,
    "SELECT count(*) AS n FROM (SELECT DISTINCT CAST(s AS INT) AS v FROM mixed JOIN good "
    "ON mixed.k = good.k) WHERE v > 9": HALF - 10,
    "SELECT count(*) AS n FROM (SELECT CAST(s AS INT) AS v, count(*) AS m FROM mixed JOIN good "
    "ON mixed.k = good.k GROUP BY CAST(s AS INT)) WHERE v > 9": HALF - 10,
    "SELECT count(*) AS n FROM good WHERE EXISTS (SELECT 1 FROM mixed WHERE mixed.k = good.k "
    "AND CAST(s AS INT) >= good.one - 1)": HALF,
    "SELECT count(*) AS n FROM good WHERE NOT EXISTS (SELECT 1 FROM mixed WHERE mixed.k = good.k "
    "AND good.one / z < 0)": HALF,
    "SELECT count(*) AS n FROM (SELECT s, z FROM mixed WHERE k IN (SELECT k FROM good)) "
    "WHERE CAST(s AS INT) >= 0": HALF,
    "SELECT count(*) AS n FROM (SELECT z FROM mixed WHERE k NOT IN (SELECT k + 2000 FROM good)) "
    "WHERE 1 / z > 0": HALF,
}
"""Half of the rows would fail, but the query, as it is written, does not compute it for them."""


@pytest.mark.parametrize("sql", EXCLUDED)
def test_what_a_query_does_not_compute_does_not_fail(both: Both, sql: str) -> None:
    assert both.in_duckdb(sql) == Counter([(("int", EXCLUDED[sql]),)])


def test_every_type_of_the_edge_values_is_carried_unchanged(both: Both) -> None:
    columns = {f"c{i}": name for i, name in enumerate(VALUES)}
    fields = Table(columns).columns
    values = [(*[None] * i, value) for i, name in enumerate(VALUES) for value in VALUES[name]]
    given = to_arrow(fields, [_filled(row, len(fields), columns) for row in values])
    both.connection.register("carried", given)
    node = parse_view("SELECT * FROM carried", {"carried": Table(columns)})
    text = statements.query(node, lambda leaf: quote_name(leaf.name))
    found = both.connection.sql(text).to_arrow_table()
    assert found is not None
    stored = found.cast(given.schema)
    for name in columns:
        assert _shown(stored.column(name)) == _shown(given.column(name)), columns[name]


_DIGITS = Context(prec=38)


def _filled(row: tuple[Any, ...], width: int, columns: dict[str, str]) -> tuple[Any, ...]:
    names = list(columns.values())
    padded = (*row, *[None] * (width - len(row)))
    return tuple(
        Decimal(value).quantize(Decimal(1).scaleb(-(parse_type(name).scale or 0)), context=_DIGITS)
        if isinstance(value, str) and name.startswith("decimal")
        else value
        for value, name in zip(padded, names, strict=True)
    )


def _shown(column: Any) -> list[str]:
    return [repr(value) for value in column.to_pylist()]


CARRIED = Table(
    {
        "k": "int",
        "a": "array<double>",
        "m": "map<string,int>",
        "n": "timestamp_ntz",
        "s": "struct<x:timestamp,`y z`:array<string>,w:decimal(10,2)>",
        "b": "array<struct<p:binary,q:date>>",
    }
)
NESTED: Rows = [
    (
        *(1, (0.0, nan, None), (("a", 1), ("b", None)), datetime(2024, 1, 1, 5)),
        (datetime(2024, 1, 1), ("x", "NULL", None, "a, b", "'q'"), Decimal("1.50")),
        ((b"\xff", date(1, 1, 1)),),
    ),
    (2, (-0.0,), (("a", 1),), datetime(1, 1, 1), (None, ("NULL",), None), None),
    (3, (0.0,), (("b", 1),), datetime(1969, 12, 31, 23, 59, 59, 999999), (None, (None,), None), ()),
    (4, (), (), datetime(9999, 12, 31), None, (None,)),
    (5, None, None, None, (None, None, None), ((None, None),)),
]


def test_values_that_views_only_carry_stay_as_they_are_and_are_told_apart(both: Both) -> None:
    given = to_arrow(CARRIED.columns, NESTED)
    both.connection.register("carried", given)
    left, right = Scan("carried", CARRIED, "x"), Scan("carried", CARRIED, "y")
    same = [
        Call("<=>", (Call(COMPARABLE, (Column(f"x.{n}"),)), Call(COMPARABLE, (Column(f"y.{n}"),))))
        for n in CARRIED.names[1:]
    ]
    for condition in same:
        node = Project(
            Join(left, right, condition),
            tuple(Output(name, Column(f"x.{name}")) for name in CARRIED.names),
        )
        assert inexact(node) is None
        text = statements.query(Distinct(node), lambda leaf: quote_name(leaf.name))
        found = both.connection.sql(f"SELECT * FROM ({text}) ORDER BY k").to_arrow_table()
        assert found is not None
        assert found.schema == given.schema
        kept = repr(to_rows(given)).replace("-0.0", "0.0")  # as DISTINCT does in Spark
        assert repr(to_rows(found)) == kept
        pairs = both.connection.sql(statements.query(node, lambda leaf: quote_name(leaf.name)))
        assert len(pairs.fetchall()) == len(NESTED)
