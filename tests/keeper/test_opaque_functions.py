"""Expressions that only Spark computes, in views that are kept incrementally."""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

from viewkeep import Keeper
from viewkeep.errors import ParseError, UnsupportedError, ViewkeepError
from viewkeep.refresh.all_views import RefreshError

COLUMNS = {"id": "int", "g": "int", "y": "int", "x": "double", "s": "string", "d": "date"}
ROWS: list[tuple[Any, ...]] = [
    (1, 1, 3, 1.5, "ab,c", None),
    (2, 1, None, None, None, None),
    (3, 2, 3, -2.25, "Robert", None),
    (4, None, 7, 0.0, "5", None),
    (5, 3, 7, 8.0, "", None),
]
EXPRESSIONS = (
    "levenshtein(s, 'abc')",
    "soundex(s)",
    "initcap(lower(s))",
    "regexp_replace(s, '[a-c]+', '<$0>')",
    r"regexp_extract(s, '(\\w),(\\w)', -1 + 3)",
    r"translate(concat(s, 'it\'s\n\\'), '\'\n\\', 'x_')",
    r"concat_ws('\t', s, r'\d')",
    "substring_index(s, ',', -1)",
    "width_bucket(x, 1.5D, 10L, 2)",
    "lpad(s, 5, X'2A')",
    "split(s, ',')[0]",
    "size(split(s, ','))",
    "s RLIKE '^R'",
    "s ILIKE 'r%'",
    "s LIKE 'a!_%' ESCAPE '!'",
    "try_cast(s AS int)",
    "y & 1",
    "~y",
    "hash(y, s)",
    "sha2(s, 256)",
    "format_number(x, 2)",
    "date_format(date_add(DATE '2024-02-28', y), 'EEE')",
    "months_between(DATE '2024-02-28', DATE '2023-01-31')",
    "aggregate(sequence(1, coalesce(y, 1)), 0, (a, v) -> a + v * id)",
    "transform(array(y, id), v -> v + g)",
    "named_struct('a', y, 'b', s)",
    "to_json(struct(t.y, id + 1, g AS h))",
    "to_json(named_struct('a', y))",
    "y || '-' || s",
    "coalesce(y, '1')",
    "y > '4'",
    "cast(array(y) AS array<string>)",
    "sin(x) + cbrt(y)",
    "nvl2(y, s, 'none')",
    "DATE '2024-02-28' + make_interval(0, 1) - INTERVAL '2' DAY",
    "variant_get(parse_json(to_json(struct(y))), '$.y', 'int')",
    "if(s IS NULL, zeroifnull(y), x)",
)
GROUPED = (
    "SELECT soundex(s) AS code, bit_count(g) AS bits, sum(bit_count(y)) AS ones, "
    "max(levenshtein(s, 'x')) AS far, hex(max(y)) AS most FROM t WHERE NOT s RLIKE '^Z' "
    "GROUP BY soundex(s), bit_count(g) HAVING factorial(count(*)) < 100"
)
VIEWS = {
    "rows": "SELECT id, "
    + ", ".join(f"{e} AS c{i}" for i, e in enumerate(EXPRESSIONS))
    + " FROM t",
    "grouped": GROUPED,
}
ROUNDS: list[dict[str, Any]] = [
    {"inserts": [(6, 4, 1, 2.0, "Rupert", None)], "updates": [{"id": 3, "y": None, "s": "Zed"}]},
    {"deletes": [(1,), (5,)], "updates": [{"id": 2, "s": "x,y", "x": 9.5, "g": 4}]},
]


def _rows(rows: Any) -> list[Any]:
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value.values())
    return tuple(value) if isinstance(value, list | tuple) else value


def _answers(keeper: Keeper, name: str) -> list[Any]:
    return _rows(row.values() for row in keeper.read(name, backend="duckdb").to_pylist())


def _register(spark: SparkSession, keeper: Keeper) -> None:
    rows = [tuple(row.values()) for row in keeper.read("t", backend="duckdb").to_pylist()]
    kinds = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    spark.createDataFrame(rows, kinds).createOrReplaceTempView("t")


def test_views_equal_spark_after_every_round(spark: SparkSession, tmp_path: Path) -> None:
    spark = spark.newSession()
    keeper = Keeper(tmp_path, spark)
    keeper.create_table("t", COLUMNS, key=["id"], rows=ROWS)
    for name, sql in VIEWS.items():
        assert keeper.create_view(name, sql, policy="incremental").strategy == "id", name
    for changes in ROUNDS:
        keeper.apply("t", **changes)
        assert {(each.strategy, each.backend) for each in keeper.refresh()} == {("id", "spark")}
        _register(spark, keeper)
        for name, sql in VIEWS.items():
            assert _answers(keeper, name) == _rows(spark.sql(sql).collect()), name
    # What Spark found is kept with the definition: another process plans without asking it.
    embedded = Keeper(tmp_path)
    assert [each.is_fresh for each in embedded.status()] == [True] * len(VIEWS)
    keeper.apply("t", deletes=[(2,)])
    with pytest.raises(RefreshError, match="only Spark computes it"):
        embedded.refresh("rows")


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("transform(array(y), v -> v + rand())", r"non-deterministic function rand\(\)"),
        ("levenshtein(s, uuid())", r"non-deterministic function uuid\(\)"),
        ("levenstein(s, 'a')", r"unknown function levenstein\(\).*did you mean .levenshtein"),
        ("levenshtein(y)", r"levenshtein"),
        ("mine(y)", r"unknown function mine\(\)"),
    ],
)
def test_what_is_refused(
    expression: str, problem: str, spark: SparkSession, tmp_path: Path
) -> None:
    keeper = Keeper(tmp_path, spark)
    keeper.create_table("t", COLUMNS, key=["id"])
    with pytest.raises(ParseError, match=problem):
        keeper.create_view("v", f"SELECT id, {expression} AS c FROM t")


def test_a_lake_without_spark_says_that_it_needs_one(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", COLUMNS, key=["id"])
    with pytest.raises(UnsupportedError, match=r"soundex\(\).*only Spark computes it"):
        keeper.create_view("v", "SELECT soundex(s) AS c FROM t")


def test_functions_of_the_user(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python and in SQL, if they are declared; also where the view is computed as a whole."""
    user = spark.newSession()  # what it gets to know is no function of other tests
    monkeypatch.setattr(user.sparkContext, "pythonExec", sys.executable)
    monkeypatch.setattr(user.sparkContext, "pythonExec", sys.executable)
    keeper = Keeper(tmp_path, user)
    keeper.create_table("t", COLUMNS, key=["id"], rows=ROWS)
    keeper.create_view("before", "SELECT soundex(s) AS c FROM t")  # the lake's session is there
    user.udf.register("Ztwofold", lambda y: None if y is None else 2 * y, "int")
    user.sql("CREATE OR REPLACE TEMPORARY FUNCTION squared(y INT) RETURNS INT RETURN y * y")
    sql = "SELECT id, ztwofold(y) AS d, squared(y) + 1 AS s FROM t WHERE Ztwofold(id) > 2"
    with pytest.raises(ParseError, match=r"unknown function Ztwofold.*declare it: functions="):
        keeper.create_view("v", sql)
    functions = ["ZTWOFOLD", "squared"]
    report = keeper.create_view("v", sql, functions=functions, policy="incremental")
    assert report.strategy == "id"
    whole = "SELECT percentile_approx(ztwofold(y), 0.9) AS p FROM t"
    assert keeper.create_view("whole", whole, functions=functions).strategy == "recompute"
    keeper.apply("t", updates=[{"id": 3, "y": 5}], deletes=[(5,)])
    again = Keeper(tmp_path, user)
    assert {each.strategy for each in again.refresh("v", "whole")} == {"id", "recompute"}
    assert _answers(again, "v") == [(2, None, None), (3, 10, 26), (4, 14, 50)]
    assert _answers(again, "whole") == [(14,)]
    with pytest.raises(ParseError, match=r"unknown function squared"):
        keeper.create_view("w", "SELECT percentile_approx(squared(y), 0.5) AS p FROM t")


def test_aggregates_of_the_user(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = spark.newSession()
    monkeypatch.setattr(user.sparkContext, "pythonExec", sys.executable)
    keeper = Keeper(tmp_path, user)
    keeper.create_table("t", COLUMNS, key=["id"], rows=ROWS)

    def product(values: pd.Series) -> float:
        return float(values.dropna().prod())

    user.udf.register("Zproduct", pandas_udf(product, "double"))
    sql = "SELECT g, zproduct(y) AS p, 1 + Zproduct(DISTINCT x) AS q FROM t GROUP BY g"
    with pytest.raises(ParseError, match=r"unknown function zproduct"):
        keeper.create_view("v", sql)
    with pytest.raises(ParseError, match=r"aggregate zproduct\(\) is not allowed here"):
        keeper.create_view("v", "SELECT g FROM t WHERE zproduct(y) > 1", aggregates=["zproduct"])
    report = keeper.create_view("v", sql, aggregates=["zproduct"], policy="incremental")
    assert report.strategy == "id"
    keeper.apply("t", updates=[{"id": 2, "y": 5, "x": 1.5}], deletes=[(4,)])
    assert [each.strategy for each in keeper.refresh()] == ["id"]
    assert _answers(keeper, "v") == [(1, 15.0, 2.5), (2, 3.0, -1.25), (3, 7.0, 9.0)]


def test_errors_of_functions_of_the_user(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a function raised in a worker of Spark stands in the message, and nothing changes."""
    user = spark.newSession()
    monkeypatch.setattr(user.sparkContext, "pythonExec", sys.executable)
    keeper = Keeper(tmp_path, user)
    keeper.create_table("t", COLUMNS, key=["id"], rows=ROWS)

    def below_nine(y: int | None) -> int | None:
        if y == 9:
            raise ValueError(f"no part {y}")
        return y

    user.udf.register("Zbelow_nine", below_nine, "int")
    keeper.create_view("v", "SELECT id, zbelow_nine(y) AS d FROM t", functions=["zbelow_nine"])
    before = _answers(keeper, "v")
    keeper.apply("t", updates=[{"id": 3, "y": 9}])
    with pytest.raises(RefreshError, match="ValueError: no part 9"):
        keeper.refresh()
    assert _answers(keeper, "v") == before
    with pytest.raises(ViewkeepError, match="ValueError: no part 9"):
        keeper.create_view("w", "SELECT zbelow_nine(y) AS d FROM t", functions=["zbelow_nine"])
