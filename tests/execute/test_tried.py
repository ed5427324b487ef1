"""TRY_CAST, try_add and their kin: DuckDB's answers are Spark's, and views with them are kept."""

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from viewkeep import Keeper, maintain
from viewkeep.errors import QueryError, ViewkeepError

COLUMNS = {"id": "int", "a": "int", "b": "bigint", "m": "decimal(38, 2)", "x": "double"}
COLUMNS |= {"f": "float", "s": "string", "n": "tinyint", "q": "decimal(12, 10)"}
_MOST = Decimal("9" * 36 + ".99")
ROWS: list[tuple[Any, ...]] = [
    (1, 2**31 - 1, 2**63 - 1, _MOST, 1e308, 1.5, "12", 127, Decimal("99.9999999999")),
    (2, 0, 0, Decimal(0), 0.0, 0.0, "abc", 0, Decimal(0)),
    (
        3,
        -(2**31),
        -(2**63),
        _MOST.copy_negate(),
        float("nan"),
        float("inf"),
        " 7 ",
        -128,
        Decimal("0.1"),
    ),
    (4, -1, 1, Decimal("0.07"), -0.0, -2.25, "2024-02-30", 1, Decimal("-0.0000000001")),
    (5, 7, 10**10, Decimal(1), float("inf"), 16777217.0, "1e400", 3, Decimal(7)),
    (6, 3, 2, Decimal(3), 3.5, 0.5, "error('')", 3, Decimal(3)),
    (7, *[None] * 8),
]
CALLS = (
    *(f"try_cast(s AS {kind})" for kind in ("int", "bigint", "tinyint", "double", "boolean")),
    *("try_cast(s AS float)", "try_cast(s AS decimal(4, 1))", "try_cast(s AS date)"),
    *(
        "try_cast(a AS tinyint)",
        "try_cast(b AS int)",
        "try_cast(x AS bigint)",
        "try_cast(x AS int)",
    ),
    *("try_cast(m AS int)", "try_cast(m AS decimal(5, 2))", "try_cast(f AS smallint)"),
    *("try_cast('x' AS int)", """try_cast("error('')" AS string)""", "try_cast(NULL AS date)"),
    *("try_cast('2024-02-30' AS date)", "try_cast(300 AS tinyint)", "try_cast(s AS string)"),
    *(f"try_{name}(a, a)" for name in ("add", "subtract", "multiply", "divide", "mod")),
    *(f"try_{name}(b, a)" for name in ("add", "subtract", "multiply", "divide", "mod")),
    *(f"try_{name}(m, m)" for name in ("add", "subtract", "multiply", "divide")),
    *(f"try_{name}(m, 3)" for name in ("add", "subtract", "multiply", "divide")),
    *(f"try_{name}(x, f)" for name in ("add", "subtract", "multiply", "divide", "mod")),
    *(
        "try_add(n, n)",
        "try_add(n, 1)",
        "try_multiply(a, 2)",
        "try_add(NULL, a)",
        "try_divide(1, 0)",
    ),
    *(
        "try_add(b, m)",
        "try_divide(m, x)",
        "try_divide(f, f)",
        "try_divide(q, q)",
        "try_divide(m, q)",
    ),
    *("try_cast(try_add(a, a) AS tinyint)", "try_add(try_cast(s AS int), a)"),
    *(
        "q / nullif(q, 0)",
        "coalesce(try_cast(s AS int), -1)",
        "try_add(a, a) IS NULL",
        "try_add(try_multiply(b, 2), b)",
    ),
)


def _exact(value: Any) -> Any:
    return float.hex(value) if isinstance(value, float) else value


def test_embedded_lakes_answer_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    """All in one query, where an optimizer computes at once what they have in common."""
    spark = spark.newSession()
    keeper = Keeper(tmp_path)
    keeper.create_table("t", COLUMNS, key=["id"], rows=ROWS)
    sql = "SELECT id, " + ", ".join(f"{call} AS c{i}" for i, call in enumerate(CALLS)) + " FROM t"
    assert keeper.create_view("v", sql).strategy == "id"
    kept = keeper.read("v").sort_by("id")
    kinds = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    spark.createDataFrame(ROWS, kinds).createOrReplaceTempView("t")
    answer = spark.sql(f"{sql} ORDER BY id").toArrow()
    for name, call in zip(answer.column_names[1:], CALLS, strict=True):
        expected = list(map(_exact, answer[name].to_pylist()))
        assert list(map(_exact, kept[name].to_pylist())) == expected, call
        assert str(kept[name].type) == str(answer[name].type), call


@pytest.mark.parametrize("part", ["1 / (a - a)", "a div (a - a)", "CAST(s AS int)"])
@pytest.mark.parametrize("call", ["try_add(a, {})", "try_divide({}, 2)", "try_cast({} AS tinyint)"])
def test_only_the_operation_is_tried(call: str, part: str, tmp_path: Path) -> None:
    """What fails in an argument fails, as in Spark, also where the argument is a column below."""
    keeper = Keeper(tmp_path)
    columns = {"id": "int", "a": "int", "s": "string"}
    keeper.create_table("t", columns, key=["id"], rows=[(1, 1, "x")])
    for sql in (
        f"SELECT id, {call.format(part)} AS c FROM t",
        f"SELECT id, {call.format('y')} AS c FROM (SELECT *, {part} AS y FROM t)",
    ):
        with pytest.raises(ViewkeepError, match=r"division by zero|not an integer"):
            keeper.create_view("v", sql)


@pytest.mark.parametrize(
    "call",
    [
        *("try_cast(s AS timestamp)", "try_cast(x AS string)", "try_mod(m, m)"),
        "try_add(DATE'2024-01-01', a)",
    ],
)
def test_what_only_spark_computes_is_left_to_it(call: str, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", COLUMNS, key=["id"])
    with pytest.raises(ViewkeepError, match="Spark"):
        keeper.create_view("v", f"SELECT id, {call} AS c FROM t")


@pytest.mark.parametrize("seed", range(3))
def test_views_follow_changes(seed: int, tmp_path: Path) -> None:
    """Few rows are computed in Python, many in DuckDB."""
    rng = Random(seed)
    keeper = Keeper(tmp_path)
    columns = {"id": "int", "g": "string", "a": "int", "b": "bigint", "m": "decimal(10, 2)"}

    def row(number: int) -> tuple[Any, ...]:
        text = rng.choice(["1", "2", "x", "", " 3 ", "99999999999", None])
        numbers = rng.choice([0, 5, 2**31 - 1, -(2**31), None]), rng.choice([0, 2**63 - 1, 4, None])
        return (number, text, *numbers, rng.choice([Decimal("1.50"), Decimal(0), None]))

    keeper.create_table("t", columns, key=["id"], rows=[row(i) for i in range(60)])
    views = {
        "rows": "SELECT id, try_cast(g AS int) AS k, try_add(a, 1) AS up, try_multiply(b, 2) AS w, "
        "try_divide(m, m) AS one, try_mod(a, a) AS rest, try_cast(b AS smallint) AS small FROM t",
        "groups": "SELECT try_cast(g AS int) AS k, count(*) AS n, sum(try_add(a, 1)) AS up, "
        "max(try_divide(b, a)) AS share FROM t GROUP BY try_cast(g AS int)",
        "some": "SELECT id, a FROM t WHERE try_cast(g AS int) > 1 OR try_add(a, 1) IS NULL",
        "pairs": "SELECT t.id, u.id AS other FROM t JOIN t u ON try_cast(t.g AS int) = u.a",
    }
    for name, sql in views.items():
        assert keeper.create_view(name, sql).strategy != "recompute"
    for number in range(6):
        ids = rng.sample(range(60), 5)
        changed = [dict(zip(columns, row(i), strict=True)) for i in ids]
        keeper.apply("t", [row(60 + number)], changed, [(60 + number - 1,)] if number else [])
        keeper.refresh()
        for name in views:
            assert keeper.verify(name).ok, name


def test_in_one_process() -> None:
    """Casts and divisions; what is NULL for an overflow needs types."""
    tables = "create table t (id int primary key, a int, s string)"
    live = maintain("SELECT s, sum(try_cast(s AS int)) AS n FROM t GROUP BY s", tables=tables)
    live.update("t", (1, 0, "7"))
    live.update("t", (2, 0, "x"))
    assert sorted(live) == [("7", 7), ("x", None)]
    with pytest.raises(QueryError, match="no bounds"):
        maintain("SELECT s, sum(try_add(a, 1)) AS n FROM t GROUP BY s", tables=tables)
