"""Whole arrays, structs, binary values and times without a zone as keys: of groups, partitions,
joins, set operations, tables. After every refresh each view equals its query."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.diffs.harness import Bag, expect
from tests.keeper.lakes import in_duckdb, location
from viewkeep import Keeper
from viewkeep.execute import few_rows
from viewkeep.query.types.data_types import parse_columns
from viewkeep.tables.arrow_rows import arrow_schema, to_rows

COLUMNS = {
    "id": "int",
    "tags": "array<string>",
    "place": "struct<x:int,y:array<double>>",
    "raw": "binary",
    "at": "timestamp_ntz",
    "v": "int",
}
BAG = "tags array<string>, place struct<x:int,y:array<double>>, v int"
VIEWS = {
    "by_array": "SELECT tags, count(*) AS n, sum(v) AS s FROM t GROUP BY tags",
    "by_struct": "SELECT place, count(*) AS n, min(v) AS low FROM t GROUP BY place",
    "by_binary": "SELECT raw, at, count(*) AS n, max(at) AS last FROM t GROUP BY raw, at",
    "by_sets": "SELECT tags, raw, count(*) AS n FROM t GROUP BY ROLLUP (tags, raw)",
    "once": "SELECT DISTINCT tags, place FROM t",
    "united": "SELECT tags FROM t UNION SELECT tags FROM u",
    "without": "SELECT tags, v FROM t EXCEPT SELECT tags, v FROM u",
    "without_copies": "SELECT tags FROM t EXCEPT ALL SELECT tags FROM u",
    "shared": "SELECT place FROM t INTERSECT SELECT place FROM u",
    "ranked": "SELECT id, rank() OVER (PARTITION BY tags ORDER BY v) AS r, "
    "sum(v) OVER (PARTITION BY place) AS s FROM t",
    "joined": "SELECT t.id, u.v FROM t JOIN u ON t.tags = u.tags",
    "left_joined": "SELECT t.id, u.tags, u.v FROM t LEFT JOIN u ON t.place = u.place",
    "null_safe": "SELECT t.id, u.v FROM t JOIN u ON t.tags <=> u.tags AND t.v = u.v",
    "seen": "SELECT id FROM t WHERE tags IN (SELECT tags FROM u)",
    "unseen": "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.place = t.place)",
    "attached": "SELECT id, (SELECT max(u.v) FROM u WHERE u.tags = t.tags) AS m FROM t",
    "counted": "SELECT v, count(DISTINCT tags) AS n, count(DISTINCT place) AS m FROM t GROUP BY v",
    "bag": "SELECT tags, place FROM u",
    "bag_groups": "SELECT tags, place, count(*) AS n FROM u GROUP BY tags, place",
    "latest": "SELECT id FROM t WHERE at >= (SELECT max(at) FROM t)",
    "above": "SELECT b.tags, b.n, u.v FROM by_array AS b JOIN u ON u.tags = b.tags",
}
ORDERED = {
    "ordered": "SELECT id, rank() OVER (ORDER BY tags, place) AS r FROM t",
    "first_rows": "SELECT id, raw FROM t QUALIFY "
    "row_number() OVER (PARTITION BY raw ORDER BY place, id) <= 1",
    "first_groups": "SELECT tags, count(*) AS n FROM t GROUP BY tags ORDER BY n LIMIT 2",
    "extremes": "SELECT v, min(tags) AS a, max(tags) AS b, min(place) AS c, max(place) AS d "
    "FROM t GROUP BY v",
    "compared": "SELECT t.id, u.v, t.tags < u.tags AS l, t.place >= u.place AS g, "
    "greatest(t.tags, u.tags) AS m, least(t.place, u.place, t.place) AS n "
    "FROM t JOIN u ON t.v = u.v",
    "above_least": "SELECT id FROM t WHERE tags > (SELECT min(tags) FROM u)",
    "running": "SELECT id, max(tags) OVER (ORDER BY id) AS m FROM t",
}
"""Views by an order of nested values, in which DuckDB puts NULLs inside of them last."""
ARRAYS = (None, [], ["a"], ["a", None], [None], ["b", "a"])
STRUCTS = (
    None,
    {"x": None, "y": None},
    {"x": 1, "y": []},
    {"x": 1, "y": [0.0]},
    {"x": 1, "y": [-0.0]},
    {"x": 1, "y": [None, float("nan")]},
)
LONG = bool(os.environ.get("VIEWKEEP_LONG"))
SEEDS = range(20) if LONG else (1, 2)


def values(rng: Random) -> dict[str, Any]:
    return {
        "tags": rng.choice(ARRAYS),
        "place": rng.choice(STRUCTS),
        "raw": rng.choice([None, b"", b"\xff\x00"]),
        "at": rng.choice([None, datetime(2026, 1, 1), datetime(2026, 1, 1, 2)]),
        "v": rng.choice([None, 1, 2]),
    }


def lake(place: Path, views: Mapping[str, str], rng: Random) -> Keeper:
    keeper = Keeper(place / "lake", durable=False)
    rows = [{"id": i, **values(rng)} for i in range(6)]
    keeper.create_table("t", COLUMNS, key=["id"], rows=rows)
    write_deltalake(place / "u", bag(rng, 5))
    keeper.register_table("u", place / "u")
    for name, sql in views.items():
        keeper.create_view(name, sql, policy="strict")
    return keeper


def bag(rng: Random, size: int) -> pa.Table:
    drawn = [values(rng) for _ in range(size)]
    return pa.Table.from_pylist(drawn, arrow_schema(parse_columns(BAG)))


def change(keeper: Keeper, place: Path, rng: Random) -> None:
    there = set(DeltaTable(location(keeper, "t")).to_pyarrow_table()["id"].to_pylist())
    drawn = rng.sample(range(10), 4)
    keeper.apply(
        "t",
        inserts=[{"id": i, **values(rng)} for i in drawn if i not in there],
        updates=[{"id": i, **values(rng)} for i in drawn[:2] if i in there],
        deletes=[(i,) for i in drawn[2:] if i in there],
    )
    write_deltalake(place, bag(rng, 2), mode="append")
    if rng.random() < 0.7:  # one copy less, all files anew
        write_deltalake(place, DeltaTable(place).to_pyarrow_table().slice(1), mode="overwrite")


def text(rows: Any) -> Bag:
    """Rows by their text, in which NaN equals itself and there is no -0.0."""
    return Counter(repr(row).replace("-0.0", "0.0") for row in rows)


def frozen(value: Any) -> Any:
    """Values of DuckDB in the form of rows."""
    inside = value.values() if isinstance(value, dict) else value
    return tuple(map(frozen, inside)) if isinstance(value, dict | list | tuple) else value


def check(keeper: Keeper) -> None:
    with in_duckdb(keeper) as connection:
        for name in VIEWS:
            expected = connection.execute(f'FROM "{name}"').fetchall()
            expect(name, text(to_rows(keeper.read(name))), text(frozen(expected)))
    rows = to_rows(DeltaTable(location(keeper, "t")).to_pyarrow_table())
    others = to_rows(DeltaTable(location(keeper, "u")).to_pyarrow_table())
    for name, answer in in_order(rows, others).items():
        expect(name, text(to_rows(keeper.read(name))), text(answer))


def in_order(rows: list[Any], others: list[Any]) -> dict[str, list[Any]]:
    """The answers of the views by order, computed in Python."""
    keys = sorted((spark_order(row[1]), spark_order(row[2])) for row in rows)
    ranks = [(row[0], 1 + keys.index((spark_order(row[1]), spark_order(row[2])))) for row in rows]
    by_place = sorted(rows, key=lambda row: (spark_order(row[2]), row[0]), reverse=True)
    groups = Counter(row[1] for row in rows).items()
    first = sorted(groups, key=lambda group: (group[1], spark_order(group[0])))[:2]
    return {
        "ordered": ranks,
        "first_rows": [(row[0], row[3]) for row in {row[3]: row for row in by_place}.values()],
        "first_groups": first,
        "extremes": [
            (v, *(choose(row[c] for row in rows if row[5] == v) for c, choose in CHOICES))
            for v in {row[5] for row in rows}
        ],
        "compared": [
            (
                *(row[0], row[5], less(row[1], other[0], False), less(other[1], row[2], True)),
                *(greatest((row[1], other[0])), least((row[2], other[1]))),
            )
            for row in rows
            for other in others
            if row[5] is not None and row[5] == other[2]
        ],
        "above_least": [
            (row[0],) for row in rows if less(least(other[0] for other in others), row[1], False)
        ],
        "running": [
            (row[0], greatest(each[1] for each in rows if each[0] <= row[0])) for row in rows
        ],
    }


def least(choices: Iterable[Any]) -> Any:
    return min((each for each in choices if each is not None), key=spark_order, default=None)


def greatest(choices: Iterable[Any]) -> Any:
    return max((each for each in choices if each is not None), key=spark_order, default=None)


CHOICES = ((1, least), (1, greatest), (2, least), (2, greatest))


def less(left: Any, right: Any, or_equal: bool) -> bool | None:
    if left is None or right is None:
        return None
    first, second = spark_order(left), spark_order(right)
    return first < second or (or_equal and first == second)


def spark_order(value: Any) -> tuple[Any, ...]:
    """NULL is least, also inside, and NaN is greatest."""
    if isinstance(value, tuple):
        return (1, [spark_order(each) for each in value])
    if isinstance(value, float):
        return (1, value != value, value if value == value else 0.0)
    return (0,) if value is None else (1, value)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """By Python row by row, by look-ups of keys, and by DuckDB."""
    rng = Random(seed)
    match seed % 3:
        case 1:
            monkeypatch.setattr(few_rows, "ALL_ROWS", -1)
            monkeypatch.setattr(few_rows, "WHOLE_ROWS", 0)
        case 2:
            monkeypatch.setattr(few_rows, "MOST_ROWS", -1)
    keeper = lake(tmp_path, VIEWS | ORDERED, rng)
    check(keeper)
    for _ in range(4 if LONG else 2):
        change(keeper, tmp_path / "u", rng)
        for report in keeper.refresh():
            assert report.strategy in ("id", "none"), (seed, report)
        check(keeper)
    assert all(keeper.verify(name).ok for name in keeper.views)


def test_a_table_whose_key_is_nested(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, durable=False)
    rows = [(["a"], 1), (["a", None], 2), ([], 3)]
    keeper.create_table("k", {"tags": "array<string>", "v": "int"}, key=["tags"], rows=rows)
    keeper.create_view("dear", "SELECT tags, v FROM k WHERE v > 1", policy="strict")
    updates = [{"tags": ["a"], "v": 5}, {"tags": ["a", None], "v": 0}]
    keeper.apply("k", inserts=[(["b"], 7)], updates=updates, deletes=[([],)])
    [report] = keeper.refresh()
    assert (report.strategy, report.rows_changed) == ("id", 4)
    assert text(to_rows(keeper.read("dear"))) == text([(("a",), 5), (("b",), 7)])


def test_the_order_is_that_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Every pair of edge values by every comparison; the rows of a group in any order."""
    pairs = list(product((*ARRAYS, ["a", ""], [None, "z"]), STRUCTS))
    columns = "id int, tags array<string>, place struct<x:int,y:array<double>>"
    rows = [(i, *pair) for i, pair in enumerate(pairs)]
    keeper = Keeper(tmp_path, durable=False)
    keeper.create_table("t", columns, key=["id"], rows=rows)
    comparisons = [f"x.{c} {o} y.{c}" for c in ("tags", "place") for o in ("<", "<=", ">", ">=")]
    chosen = [f"{f}(x.{c}, y.{c})" for c in ("tags", "place") for f in ("least", "greatest")]
    both = ", ".join(f"{each} AS c{i}" for i, each in enumerate((*comparisons, *chosen)))
    texts = (
        f"SELECT x.id, y.id AS other, {both} FROM t x CROSS JOIN t y",
        "SELECT id % 5 AS g, min(tags) AS a, max(tags) AS b, min(place) AS c, max(place) AS d "
        "FROM t GROUP BY id % 5",
    )
    user = spark.newSession()
    user.createDataFrame(rows, columns).createOrReplaceTempView("t")
    for number, sql in enumerate(texts):
        keeper.create_view(f"v{number}", sql, policy="strict")
        answer = to_rows(user.sql(sql).toArrow())
        expect(sql, text(to_rows(keeper.read(f"v{number}"))), text(answer))
