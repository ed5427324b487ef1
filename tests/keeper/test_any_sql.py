"""SQL outside the front end: kept by recomputation on Spark, with the reason told everywhere."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.keeper.lakes import rows
from viewkeep import Keeper
from viewkeep.errors import ArgumentError, ParseError, QueryError, UnsupportedError

FOLD = "aggregate(array(pid), 0, (a, x) -> a + x)"
ESTIMATE = "percentile_approx(pid, 0.9)"
HARD = f"SELECT grp, {ESTIMATE} AS dearest FROM parts GROUP BY grp"
REASON = "is not kept incrementally"


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", spark)
    columns = {"pid": "int", "grp": "string", "price": "int"}
    data = [(1, "a", 10), (2, "a", 20), (3, "b", 30)]
    keeper.create_table("parts", columns, key=["pid"], rows=data)
    return keeper


def test_a_view_that_is_recomputed_tells_why(keeper: Keeper, tmp_path: Path) -> None:
    report = keeper.create_view("hard", HARD)
    assert (report.strategy, report.backend) == ("recompute", "spark")
    assert REASON in report.reason
    assert rows_of(keeper, "hard") == [("a", 2), ("b", 3)]
    assert REASON in keeper.explain("hard")
    [again] = keeper.refresh()
    assert (again.strategy, again.jobs) == ("none", 0)
    keeper.apply("parts", updates=[{"pid": 2, "grp": "b"}])
    [stage] = keeper.plan()
    assert (stage.action, stage.backend) == ("recompute", "spark")
    assert REASON in stage.reason
    [report] = keeper.refresh()
    assert REASON in report.reason
    assert rows_of(keeper, "hard") == [("a", 1), ("b", 3)]
    assert keeper.verify("hard").ok
    # Its columns are in the catalog: nothing has to be analyzed to tell how it stands.
    embedded = Keeper(tmp_path / "lake")
    [status] = embedded.status()
    assert status.is_fresh
    assert status.last is not None
    assert REASON in status.last.reason
    assert embedded.plan()[0].action == "skip"


def rows_of(keeper: Keeper, name: str) -> list[tuple[object, ...]]:
    found = keeper.read(name, backend="duckdb").to_pylist()
    return sorted((row["grp"], row["dearest"]) for row in found)


def test_views_above_it_are_kept_by_what_it_counts(keeper: Keeper) -> None:
    keeper.create_view("hard", HARD)
    report = keeper.create_view("above", "SELECT dearest, count(*) FROM hard GROUP BY dearest")
    assert report.strategy == "id"
    assert "hard has no key" in report.reason
    keeper.create_view("on_top", "SELECT sort_array(collect_list(dearest)) AS all FROM above")
    keeper.apply("parts", deletes=[(3,)])
    assert [each.strategy for each in keeper.refresh()] == ["recompute", "id", "id"]
    assert rows(keeper, "above") == Counter([(2, 1)])
    assert keeper.read("above", backend="duckdb").column_names == ["dearest", "count_1"]


def test_names_are_those_of_the_lake(keeper: Keeper, spark: SparkSession) -> None:
    """Neither tables of the session nor common tables are taken for tables of the lake."""
    spark.createDataFrame([(7,)], "pid int").createOrReplaceTempView("parts")
    try:
        common = "WITH parts AS (SELECT * FROM `PARTS` WHERE pid < 3)"
        keeper.create_view("v", f"{common} SELECT {FOLD} AS m FROM parts")
    finally:
        spark.catalog.dropTempView("parts")
    assert rows(keeper, "v") == Counter([(1,), (2,)])
    with pytest.raises(ParseError, match='unknown table "other"'):
        keeper.create_view("w", f"SELECT {FOLD} FROM other")
    with pytest.raises(ParseError, match=r'unknown table "parquet\./tmp/x"'):
        keeper.create_view("w", f"SELECT {FOLD} FROM parts, parquet.`/tmp/x`")


@pytest.mark.parametrize(
    ("options", "sql"),
    [
        ({"policy": "strict"}, HARD),
        ({"policy": "incremental"}, HARD),
        ({"strategy": "id"}, HARD),
        ({}, f"SELECT rand() AS r, {FOLD} FROM parts"),
        ({}, f"SELECT {FOLD}, uuid() FROM parts"),
        ({}, f"SELECT {FOLD} FROM parts TABLESAMPLE (10 PERCENT)"),
        ({}, f"SELECT {FOLD} FROM parts VERSION AS OF 1"),
        ({}, f"SELECT {FOLD}, current_user FROM parts"),
        ({}, "SELECT TRANSFORM(pid) USING 'cat' AS (x) FROM parts"),
        ({}, f"SELECT {FOLD} FROM IDENTIFIER('pa' || 'rts')"),
    ],
)
def test_what_is_refused(keeper: Keeper, options: dict[str, str], sql: str) -> None:
    with pytest.raises(UnsupportedError, match=r"is not supported in a view at line 1"):
        keeper.create_view("v", sql, **options)
    assert keeper.views == {}


def test_spark_says_what_is_wrong_in_a_line(keeper: Keeper) -> None:
    with pytest.raises(ParseError) as caught:
        keeper.create_view("v", f"SELECT {ESTIMATE},\n  sum(nope) FROM parts")
    message = str(caught.value)
    assert "nope" in message
    assert "at line 2, column 7" in message
    assert "SQLSTATE" not in message
    assert len(message.split("\n")) == 3


def test_a_lake_without_spark_says_that_it_needs_one(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("parts", {"pid": "int"}, key=["pid"])
    with pytest.raises(UnsupportedError, match=r"aggregate.*at line 1.*only Spark computes it"):
        keeper.create_view("v", f"SELECT {FOLD} FROM parts")


def test_types_that_only_spark_fits(keeper: Keeper) -> None:
    keeper.create_view("v", "SELECT pid FROM parts WHERE array(pid) = array(2)")
    assert rows(keeper, "v") == Counter([(2,)])


VARIANT = """parse_json('{"a": 2}'):a::int"""


def test_text_that_only_spark_parses(keeper: Keeper, tmp_path: Path) -> None:
    cte = "WITH q (pid) AS (SELECT pid FROM Parts WHERE extract(YEAR FROM date'2024-01-01') > 1)"
    report = keeper.create_view(
        "v", f"{cte} SELECT q.pid, {VARIANT} AS a FROM q, LATERAL (SELECT 1)"
    )
    assert report.strategy == "recompute"
    assert "only Spark reads this text (line 1, column" in report.reason
    assert rows(keeper, "v") == Counter([(1, 2), (2, 2), (3, 2)])
    keeper.apply("parts", deletes=[(2,)])
    keeper.refresh()
    assert rows(keeper, "v") == Counter([(1, 2), (3, 2)])
    with pytest.raises(ParseError, match='SQL: unexpected "::" at line 1, column'):
        keeper.create_view("w", f"SELECT {VARIANT} AS a FROM parts", policy="incremental")
    embedded = Keeper(tmp_path / "lake")
    assert embedded.status()[0].is_fresh
    with pytest.raises(ParseError, match='SQL: unexpected "::" at line 1, column'):
        embedded.create_view("w", f"SELECT {VARIANT} AS a FROM parts")


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("rand() FROM parts", r"the non-deterministic function rand\(\)"),
        ("current_user FROM parts", "the non-deterministic function current_user"),
        ("1 FROM parts TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("1 FROM parts VERSION AS OF 1", "time travel"),
        ("1 FROM IDENTIFIER('parts')", "IDENTIFIER"),
        ("nowhere(1) FROM parts", "unknown function nowhere"),
        ("1 FROM parts p JOIN other o", 'unknown table "other"'),
        ("1 FROM (SELECT 1 FROM parts, `other`)", 'unknown table "other"'),
        ("1", "a query without tables"),
        ("nope FROM parts", "SQL: unexpected"),
    ],
)
def test_text_that_does_not_parse_is_refused_alike(keeper: Keeper, rest: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        keeper.create_view("v", f"SELECT {VARIANT} AS a, {rest}")
    assert keeper.views == {}


def test_create_view_as_text(keeper: Keeper) -> None:
    keeper.create_view("v", "-- prices\nCREATE MATERIALIZED VIEW V AS SELECT pid FROM parts;")
    keeper.create_view("v", "CREATE OR REPLACE VIEW v AS SELECT pid, price FROM parts")
    keeper.create_view("v", "CREATE VIEW IF NOT EXISTS `v` AS SELECT 1 AS a FROM parts")
    assert keeper.views == {"v": "SELECT pid, price FROM parts"}
    with pytest.raises(QueryError, match='creates "w"; give both the same name'):
        keeper.create_view("v", "CREATE VIEW w AS SELECT pid FROM parts")
    with pytest.raises(ParseError, match=r"at line 2, column 8"):
        keeper.create_view("w", "CREATE VIEW w AS\nSELECT nope FROM parts")
    with pytest.raises(UnsupportedError, match=r'"LOCATION" between'):
        keeper.create_view("w", "CREATE VIEW w COMMENT 'x' LOCATION 'y' AS SELECT pid FROM parts")


def test_an_order_is_left_out_with_a_note(keeper: Keeper) -> None:
    report = keeper.create_view("v", "SELECT pid FROM parts ORDER BY price")
    assert report.strategy == "id"
    assert "ORDER BY is left out" in report.reason
    assert "ORDER BY is left out" in keeper.explain("v")


def test_a_data_frame_is_no_view(keeper: Keeper, spark: SparkSession) -> None:
    with pytest.raises(ArgumentError, match="give its query as SQL text, not as DataFrame"):
        keeper.create_view("v", spark.range(3))
