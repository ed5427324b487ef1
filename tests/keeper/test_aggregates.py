"""Aggregates that are kept by their groups: NULLs, ties, duplicates, groups that come and vanish.

After every round the views equal what Spark answers to the text of `ORACLE`, which is that of the
view but where Spark leaves the answer to the order of rows.
"""

import os
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from viewkeep import Keeper
from viewkeep.errors import ParseError
from viewkeep.execute.errors import NeedsSparkError

Rows = list[tuple[Any, ...]]
LONG = bool(os.environ.get("VIEWKEEP_LONG"))

PAIRS = "corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2"
PAIRS += " regr_slope regr_sxx regr_sxy regr_syy"
MAX = "max(struct(y, s IS NOT NULL, s)) FILTER (WHERE y IS NOT NULL"
BOTH: Mapping[str, str] = {
    **{f"{name}(x, y)": f"{name}(x, y)" for name in PAIRS.split()},
    "percentile(y, 0.25)": "percentile(y, 0.25)",
    "percentile_cont(0.125) WITHIN GROUP (ORDER BY y DESC)": "percentile(y, 0.875)",
    "percentile_disc(0.75) WITHIN GROUP (ORDER BY y)": "",
    "mode(s)": "mode(s, true)",
    "mode() WITHIN GROUP (ORDER BY y DESC)": "",
    "max_by(s, y)": f"({MAX})).s",
    "min_by(x, y)": "(min(struct(y, x IS NOT NULL, x)) FILTER (WHERE y IS NOT NULL)).x",
    "max_by(s, y) FILTER (WHERE y < 2)": f"({MAX} AND y < 2)).s",
    "collect_list(y)": "sort_array(collect_list(y))",
    "collect_set(s)": "sort_array(collect_set(s))",
    "array_agg(x) FILTER (WHERE y > 1)": "sort_array(array_agg(x) FILTER (WHERE y > 1))",
    "listagg(s)": "listagg(s) WITHIN GROUP (ORDER BY s)",
    "string_agg(s, ', ') WITHIN GROUP (ORDER BY y DESC NULLS LAST)": (
        "listagg(s, ', ') WITHIN GROUP (ORDER BY y DESC NULLS LAST, s)"
    ),
    "listagg(y, '-')": "listagg(y, '-') WITHIN GROUP (ORDER BY y)",
    "count_if(y > 1)": "",
    "any_value(g)": "g",
    "bool_or(y > 1)": "",
}
"""What both engines compute, by the text that Spark has one answer for, if it is another."""

ONLY_SPARK: Mapping[str, str] = {
    "skewness(x)": "",
    "kurtosis(y)": "",
    "percentile(x, 0.3)": "",
    "percentile_disc(0.3) WITHIN GROUP (ORDER BY x DESC)": "",
    "approx_count_distinct(s)": "",
    "approx_count_distinct(y, 0.1) FILTER (WHERE y > 0)": "",
    "try_sum(y)": "",
    "try_avg(x)": "",
    "mode(x)": "mode(x, true)",
    "collect_set(x)": "sort_array(collect_set(x))",
}
DISTINCT: Mapping[str, str] = {
    "covar_pop(DISTINCT x, y)": "",
    "collect_list(DISTINCT y)": "sort_array(collect_list(DISTINCT y))",
    "listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s DESC)": (
        "CASE WHEN count(s) > 0 THEN array_join(sort_array(collect_set(s), false), ',') END"
    ),
    "percentile(DISTINCT y, 0.5)": "",
    "regr_count(DISTINCT x, y)": "",
}

COLUMNS = {"id": "int", "g": "int", "y": "int", "x": "double", "s": "string"}
ROWS: Rows = [
    *((i, i % 3, i % 4, i / 2, "abca"[i % 4]) for i in range(9)),
    (20, 3, None, None, None),
    (21, 4, 2, 1.5, "b"),
    (22, 4, 2, 2.5, None),
    (23, 4, 2, 2.5, "c"),
    (24, None, 1, 7.0, "z"),
    (25, 5, 3, float("nan"), "y"),
    (26, 5, 1, 1.0, "y"),
]
ROUNDS: Sequence[dict[str, Rows]] = [
    {
        "inserts": [(30, 6, 5, 1.0, "n"), (31, 4, 3, 0.5, "a"), (32, 7, 1, 0.0, "")],
        "deletes": [(24,), (20,)],
        "updates": [(25, 5, 2, 2.0, "y"), (0, 1, None, 3.0, None)],
    },
    {"deletes": [(i,) for i in range(9)], "updates": [(21, 4, None, None, "d")]},
    {"deletes": [(i,) for i in (21, 22, 23, 25, 26, 30, 31, 32)]},
]


def _selected(aggregates: Mapping[str, str], oracle: bool) -> str:
    texts = [(of_spark or text) if oracle else text for text, of_spark in aggregates.items()]
    return ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))


def _view(aggregates: Mapping[str, str], keys: str = "") -> tuple[str, str]:
    """Its text, and the text that Spark has one answer for."""
    own = {t: o for t, o in aggregates.items() if keys or t != "any_value(g)"}
    end = f"GROUP BY {keys}" if keys else ""
    texts = [f"{keys}, {_selected(own, oracle)}".lstrip(", ") for oracle in (False, True)]
    return f"SELECT {texts[0]} FROM t {end}", f"SELECT {texts[1]} FROM t {end}"


EVERY = {**BOTH, **ONLY_SPARK}
DUCKDB = {
    "groups": _view(BOTH, "g"),
    "all": _view(BOTH),
    "distinct": _view(DISTINCT, "g"),
}


def _plain(value: Any) -> Any:
    """Floats with the digits that do not depend on the order of rows; NaN equals NaN."""
    if isinstance(value, float):
        return "NaN" if isnan(value) else round(value, 9) + 0.0
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _sorted(rows: Rows) -> Rows:
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _answers(keeper: Keeper, name: str) -> Rows:
    table = keeper.read(name, backend="duckdb")
    return _sorted(list(zip(*table.to_pydict().values(), strict=True)))


def _lake(keeper: Keeper, views: Mapping[str, str]) -> Keeper:
    keeper.create_table("t", COLUMNS, key=["id"], rows=ROWS)
    for name, text in views.items():
        assert keeper.create_view(name, text, policy="incremental").strategy == "id", name
    return keeper


def test_aggregates_equal_spark_after_every_round(spark: SparkSession, tmp_path: Path) -> None:
    spark = spark.newSession()
    embedded = _lake(Keeper(tmp_path / "d"), {name: text for name, (text, _) in DUCKDB.items()})
    text, oracle = _view(EVERY, "g")
    on_spark = _lake(Keeper(tmp_path / "s", spark, backend="spark"), {"groups": text})
    for changes in ROUNDS:
        updates = [dict(zip(COLUMNS, row, strict=True)) for row in changes.get("updates", [])]
        for keeper in (embedded, on_spark):
            keeper.apply("t", **{**changes, "updates": updates})
            assert {each.strategy for each in keeper.refresh()} == {"id"}
        _register(spark, embedded)
        expected = _sorted([tuple(row) for row in spark.sql(oracle).collect()])
        assert _answers(on_spark, "groups") == expected
        assert _answers(embedded, "groups") == [row[: len(BOTH) + 1] for row in expected]
        for name in ("all", "distinct"):
            rows = spark.sql(DUCKDB[name][1]).collect()
            assert _answers(embedded, name) == _sorted([tuple(row) for row in rows]), name


@pytest.mark.parametrize("aggregate", ONLY_SPARK)
def test_a_lake_without_spark_names_what_it_does_not_compute(
    aggregate: str, tmp_path: Path
) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", COLUMNS, key=["id"])
    with pytest.raises(NeedsSparkError, match="not known to compute this as Spark does"):
        keeper.create_view("v", f"SELECT g, {aggregate} AS c FROM t GROUP BY g")


@pytest.mark.parametrize(
    ("aggregate", "problem"),
    [
        ("any_value(y)", r"any_value\(.*\) is not determined"),
        ("first(s)", r"first\(.*\) is not determined"),
        ("last(y, true) FILTER (WHERE y > 0)", r"last\(.*\) is not determined"),
        ("percentile_cont(0.5)", r"WITHIN GROUP"),
        ("sum(y) WITHIN GROUP (ORDER BY x)", r"takes no WITHIN GROUP"),
        ("listagg(DISTINCT s) WITHIN GROUP (ORDER BY y)", r"ordered by x only"),
        ("corr(x)", r"takes 2 arguments"),
    ],
)
def test_what_has_no_answer_is_refused(aggregate: str, problem: str, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", COLUMNS, key=["id"])
    with pytest.raises(ParseError, match=problem):
        keeper.create_view("v", f"SELECT g, {aggregate} AS c FROM t GROUP BY g")


def test_any_value_is_determined_by_keys(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", COLUMNS, key=["id"], rows=ROWS)
    keeper.create_table("u", {"u": "int", "t": "int"}, key=["u"], rows=[(1, 21), (2, 21), (3, 0)])
    keeper.create_view(
        "v",
        "SELECT t.id, first(s) AS s, any_value(x + 1) AS x, count(*) AS n "
        "FROM t JOIN u ON u.t = t.id GROUP BY u.t, t.id",
    )
    assert _answers(keeper, "v") == [(0, "a", 1.0, 1), (21, "b", 2.5, 2)]


def _register(spark: SparkSession, keeper: Keeper) -> None:
    rows = [tuple(row.values()) for row in keeper.read("t", backend="duckdb").to_pylist()]
    kinds = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    spark.createDataFrame(rows, kinds).createOrReplaceTempView("t")


PLACES = {
    "rollup": "SELECT g, y, max_by(s, x) AS a, collect_list(x) AS b, covar_pop(x, y) AS c, "
    "listagg(s) AS d FROM t GROUP BY ROLLUP (g, y)",
    "window": "SELECT id, regr_avgx(x, y) OVER (PARTITION BY g) AS a, "
    "max_by(s, y) FILTER (WHERE x > 0) OVER (PARTITION BY g ORDER BY y) AS b, "
    "collect_list(y) OVER (PARTITION BY g) AS c, collect_set(s) OVER (PARTITION BY y) AS d FROM t",
    "subquery": "SELECT id, (SELECT min_by(u.s, u.y) FROM t u WHERE u.g = t.y) AS a, "
    "(SELECT regr_count(u.x, u.y) FROM t u WHERE u.g = t.id) AS b FROM t",
    "having": "SELECT g, mode(y) AS a FROM t GROUP BY g HAVING max_by(y, x) > 1",
    "nested": "SELECT sum(a) AS a, max(size) AS b FROM (SELECT g, max_by(y, x) AS a, "
    "count(DISTINCT s) AS size, percentile_disc(0.5) WITHIN GROUP (ORDER BY y) AS p "
    "FROM t GROUP BY g) q",
}


def test_aggregates_in_other_places_are_the_same_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    embedded = _lake(Keeper(tmp_path), PLACES)
    updates = [dict(zip(COLUMNS, row, strict=True)) for row in ROUNDS[0]["updates"]]
    embedded.apply("t", **{**ROUNDS[0], "updates": updates})
    assert {each.strategy for each in embedded.refresh()} == {"id"}
    on_spark = Keeper(tmp_path, spark)
    for name in PLACES:
        assert embedded.verify(name).ok, name
    for name in PLACES if LONG else ("rollup", "window"):
        assert on_spark.verify(name, backend="spark").ok, name
