"""What a session of any version of Spark does for a lake, classic or by Spark Connect.

`make test-matrix` runs this module, and others, with every version that is supported.
"""

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from viewkeep import Keeper, ViewkeepError
from viewkeep.execute.spark.versions import (
    cancellable,
    counted_jobs,
    frame_of_arrow,
    is_connect,
)
from viewkeep.tables.spark_rows import frame_rows

BACKENDS = ("auto", "spark")
COLUMNS = "pid int, name string, price decimal(8, 2), at timestamp, tags array<string>"
AT = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
FIRST = [
    (1, "a", Decimal("2.50"), AT, ["x", None]),
    (2, "b", Decimal("3.50"), None, []),
    (3, None, None, AT.replace(year=1999), None),
]


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.create_table("parts", spark.createDataFrame(FIRST, COLUMNS), key=["pid"])
    return keeper


def bag(keeper: Keeper, name: str) -> "Counter[tuple[object, ...]]":
    """The rows of a view, as its DataFrame gives them."""
    return Counter(map(tuple, keeper.read(name).collect()))


def test_frames_are_rows(spark: SparkSession, keeper: Keeper) -> None:
    keeper.create_view("names", "SELECT name, count(*) AS c, sum(price) AS s FROM parts GROUP BY 1")
    new = spark.createDataFrame([(4, "a", Decimal("1.00"), None, ["y"])], COLUMNS)
    changed = spark.createDataFrame([(3, "c")], "pid int, name string")
    gone = spark.createDataFrame([(2,)], "pid int")
    keeper.apply("parts", inserts=new, updates=changed, deletes=gone)
    keeper.apply("parts", inserts=spark.createDataFrame([], COLUMNS))
    keeper.refresh()
    assert bag(keeper, "names") == Counter([("a", 2, Decimal("3.50")), ("c", 1, None)])
    assert keeper.verify("names").ok


def test_values_come_as_they_went(spark: SparkSession, keeper: Keeper) -> None:
    back = frame_rows(keeper.read("parts")).sort_by("pid")
    assert back["at"].cast(pa.timestamp("us", "UTC")).to_pylist() == [row[3] for row in FIRST]
    assert back["price"].to_pylist() == [row[2] for row in FIRST]
    assert back["tags"].to_pylist() == [row[4] for row in FIRST]


def test_arrow_as_frames(spark: SparkSession) -> None:
    days = pa.array([date(2026, 1, 2), None])
    maps = pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32()))
    parts = pa.array([{"m": [("k", 1)]}, None], pa.struct([("m", maps.type)]))
    rows = pa.table({"day": days, "map": maps, "part": parts})
    frame = frame_of_arrow(spark, rows)
    assert frame_rows(frame).to_pylist() == rows.to_pylist()
    assert frame_rows(frame.where("day > current_date() + 1000000")).num_rows == 0


def test_text_that_only_spark_computes(spark: SparkSession, keeper: Keeper) -> None:
    keeper.create_view("middle", "SELECT name, percentile(pid, 0.5) AS p FROM parts GROUP BY name")
    keeper.apply("parts", deletes=[{"pid": 2}])
    keeper.refresh()
    assert bag(keeper, "middle") == Counter([("a", 1.0), (None, 3.0)])
    with pytest.raises(ViewkeepError, match="pidd"):
        keeper.create_view("wrong", "SELECT percentile(pidd, 0.5) AS p FROM parts")


def test_settings_of_the_user_change_nothing(spark: SparkSession, keeper: Keeper) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        keeper.create_view("days", "SELECT pid, CAST(at AS date) AS d FROM parts", policy="full")
        assert keeper.verify("days").ok
        found = {row["pid"]: row["d"] for row in keeper.read("days").collect()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    assert found == {1: date(2026, 5, 1), 2: None, 3: date(1999, 5, 1)}


def test_work_can_be_cancelled_and_counted(spark: SparkSession) -> None:
    with cancellable(spark) as cancel, counted_jobs(spark) as jobs:
        spark.range(3).selectExpr("sum(id)").collect()
        assert jobs.count >= 1 or is_connect(spark)
        cancel()
    assert spark.range(3).count() == 3


def test_changes_are_frames(spark: SparkSession, keeper: Keeper) -> None:
    since = keeper.version("parts")
    keeper.apply("parts", deletes=[{"pid": 2}])
    [change] = keeper.changes("parts", since).collect()
    assert change["operation"] == "delete"
    assert change["before"]["name"] == "b"
