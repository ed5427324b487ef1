"""The tables of a lake are real Delta tables: other engines see the same rows and history.

Tables of others that use what cannot be read correctly here are refused, by the name of what it is.
"""

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, delta_rows, rows
from viewkeep import Keeper, ViewkeepError

TYPES = {
    "id": "bigint",
    "n": "int",
    "text": "string",
    "x": "double",
    "m": "decimal(8, 2)",
    "d": "date",
    "moment": "timestamp",
    "yes": "boolean",
}
LONG = "long " * 2000
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
NAN = float("nan")
FIRST = [
    (1, 1, "a", 0.5, Decimal("1.50"), date(2026, 1, 1), AT, True),
    (2, None, None, None, None, None, None, None),
    (3, 3, LONG, -1.0, Decimal("-2.00"), date(1900, 1, 1), AT.replace(year=1970), False),
]
FILTERS = {
    "n > 0": 3,
    "n IS NULL": 1,
    "text >= 'a'": 3,
    "text IS NULL": 1,
    "x > 0": 2,
    "x < 0": 1,
    "m > 0": 1,
    "m IS NULL": 1,
    "d < DATE '1950-01-01'": 1,
    "moment > TIMESTAMPTZ '2000-01-01 00:00:00+00'": 2,
    "yes": 2,
    "NOT yes": 1,
    "id = 9": 0,
}
"""How many of the rows that the tables end with a condition holds for."""


@pytest.fixture(scope="module")
def keeper(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Keeper:
    keeper = Keeper(tmp_path_factory.mktemp("lake"), spark)
    keeper.create_table("every", TYPES, ["id"], rows=FIRST)
    keeper.create_view("seen", "SELECT * FROM every")
    keeper.create_view("by_n", "SELECT n, count(*) AS c, avg(x) AS mean FROM every GROUP BY n")
    keeper.apply("every", inserts=[(4, 1, LONG + "z", NAN, None, None, AT, True)])
    keeper.refresh()
    keeper.apply("every", updates=[{"id": 4, "x": 2.0, "m": Decimal("0.00")}])
    keeper.refresh()
    return keeper


@pytest.fixture(scope="module", params=["every", "seen"])
def place(request: pytest.FixtureRequest, keeper: Keeper) -> str:
    return f"{keeper._lake.uri}/{request.param}"


def expected() -> "Counter[Any]":
    return Counter([*FIRST, (4, 1, LONG + "z", 2.0, Decimal("0.00"), None, AT, True)])


def test_deltalake(place: str) -> None:
    assert delta_rows(place) == expected()
    assert delta_rows(place, 0) == Counter(FIRST)
    table = DeltaTable(place)
    assert [each["version"] for each in table.history()] == [2, 1, 0]
    assert table.version() == 2
    assert table.get_add_actions(flatten=True)["num_records"].to_pylist()  # type: ignore[call-overload]


def test_duckdb(place: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", DeltaTable(place).to_pyarrow_dataset())
        names = ", ".join(f'"{name}"' for name in TYPES)
        found = connection.execute(f"SELECT {names} FROM t").fetchall()
        assert Counter(_in_utc(row) for row in found) == expected()
        for condition, count in FILTERS.items():
            counted = connection.execute(f"SELECT count(*) FROM t WHERE {condition}").fetchone()
            assert counted == (count,), condition


def _in_utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.astimezone(UTC) if isinstance(v, datetime) else v for v in row)


def test_arrow(place: str) -> None:
    """What is pushed into the scan finds what is there, whatever bounds files have."""
    dataset = DeltaTable(place).to_pyarrow_dataset()
    for condition, count in (
        (ds.field("x") > 0, 2),
        (ds.field("m") > Decimal("0.00"), 1),
        (ds.field("moment") > datetime(2000, 1, 1, tzinfo=UTC), 2),
        (ds.field("text") > "long", 2),
        (ds.field("text") == LONG, 1),
        (ds.field("d").is_null(), 2),
    ):
        assert dataset.to_table(filter=condition).num_rows == count, condition


@pytest.mark.skipif(not find_spec("polars"), reason="Polars is not installed")
def test_polars(place: str) -> None:
    import polars as pl

    found = pl.read_delta(place).select(list(TYPES))
    assert Counter(found.rows()) == expected()
    lazy = pl.scan_delta(place)
    assert lazy.filter(pl.col("x") > 0).collect().height == 2
    assert lazy.filter(pl.col("m") > 0).collect().height == 1
    assert lazy.filter(pl.col("text").is_null()).collect().height == 1
    assert pl.read_delta(place, version=0).height == 3


@pytest.mark.skipif(not find_spec("polars"), reason="Polars is not installed")
def test_rows_from_polars(spark: SparkSession, tmp_path: Path) -> None:
    import polars as pl

    keeper = Keeper(tmp_path, spark)
    frame = pl.DataFrame({"id": [1, 2], "text": ["a", None], "at": [AT, None]})
    keeper.create_table("given", frame, ["id"])
    keeper.apply("given", inserts=frame.with_columns(id=pl.col("id") + 2))
    assert sum(rows(keeper, "given").values()) == 4


def test_spark(keeper: Keeper) -> None:
    assert keeper.read("seen").count() == keeper.read("every").count() == 4
    check(keeper)


def test_others_may_maintain_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Files put together, old ones removed, checkpoints: tables, views and caches go on."""
    keeper = Keeper(tmp_path, spark)
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(n, n) for n in range(5)])
    keeper.create_view("big", "SELECT id, n FROM t WHERE n > 1")
    keeper.create_view("total", "SELECT n % 2 AS g, sum(n) AS s, max(n) AS m FROM t GROUP BY 1")
    for number in range(3):
        keeper.apply("t", inserts=[(10 + number, number)], updates=[{"id": 1, "n": number}])
        keeper.refresh()
        for name in ("t", "big", "total"):
            table = DeltaTable(tmp_path / name)
            table.create_checkpoint()
            table.optimize.compact()
            table.vacuum(0, dry_run=False, enforce_retention_duration=False)
        check(keeper)
    assert [each.strategy for each in keeper.refresh()] == ["id", "id"]
    check(keeper)


# --- what is refused -----------------------------------------------------------------------------


def edited(place: Path, action: str, change: dict[str, Any]) -> None:
    """Change an action in the first entry of a log, as another writer would have written it."""
    entry = place / "_delta_log/00000000000000000000.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if action in line:
            line[action] |= change
    entry.write_text("\n".join(map(json.dumps, lines)) + "\n")


@pytest.fixture
def others(tmp_path: Path) -> Path:
    place = tmp_path / "others"
    write_deltalake(place, pa.table({"id": [1, 2, 3], "n": [1, 2, 3]}))
    return place


def refused(spark: SparkSession, tmp_path: Path, others: Path, said: str) -> None:
    keeper = Keeper(tmp_path / "lake", spark)
    with pytest.raises(ViewkeepError, match=said):
        keeper.register_table("others", others, key=["id"])
    assert keeper.tables == {}


def features(*names: str, reader: int = 3) -> dict[str, Any]:
    listed = list(names)
    return {
        "minReaderVersion": reader,
        "minWriterVersion": 7,
        "readerFeatures": listed,
        "writerFeatures": listed,
    }


VECTOR = {
    "storageType": "i",
    "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 44,
    "cardinality": 6,
}
"""Deletes the rows 3, 4, 7, 11, 18 and 29 of a file."""


def test_deletion_vectors(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that another writer has deleted, then restored."""
    place = tmp_path / "others"
    write_deltalake(place, pa.table({"id": range(40), "n": range(40)}))
    first = (place / "_delta_log/00000000000000000000.json").read_text()
    edited(place, "protocol", features("deletionVectors"))
    edited(place, "metaData", {"configuration": {"delta.enableDeletionVectors": "true"}})
    edited(place, "add", {"deletionVector": VECTOR})
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("others", place, key=["id"])
    keeper.create_view("total", "SELECT count(*) AS c, sum(n) AS s FROM others")
    keeper.create_view("copies", "SELECT id FROM others WHERE n > 10")
    assert rows(keeper, "total") == {(34, 780 - 72): 1}
    add = next(each["add"] for each in map(json.loads, first.splitlines()) if "add" in each)
    gone = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    restored = [{"remove": {**gone, "deletionVector": VECTOR}}, {"add": add}]
    entry = place / "_delta_log/00000000000000000001.json"
    entry.write_text("\n".join(map(json.dumps, restored)) + "\n")
    keeper.refresh()
    assert rows(keeper, "total") == {(40, 780): 1}
    assert sum(rows(keeper, "copies").values()) == 29
    assert Counter(map(tuple, keeper.read("others").collect())) == delta_rows(place)


def test_a_deletion_vector_that_does_not_fit(
    spark: SparkSession, tmp_path: Path, others: Path
) -> None:
    edited(others, "protocol", features("deletionVectors"))
    edited(others, "add", {"deletionVector": {**VECTOR, "cardinality": 2}})
    refused(spark, tmp_path, others, r"deletion vector .* has 6 rows, and the log says 2")


def test_deletion_vectors_that_nobody_uses(
    spark: SparkSession, tmp_path: Path, others: Path
) -> None:
    edited(others, "protocol", features("deletionVectors"))
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("others", others, key=["id"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM others")
    assert rows(keeper, "total") == {(6,): 1}


def test_a_feature_that_comes_later(spark: SparkSession, tmp_path: Path, others: Path) -> None:
    """The table was good when it was registered; a refresh looks again."""
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("others", others, key=["id"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM others")
    protocol = {"protocol": features("rowsOnTheMoon")}
    path = others / "_delta_log/00000000000000000001.json"
    path.write_text(json.dumps(protocol) + "\n")
    with pytest.raises(ViewkeepError, match="rowsOnTheMoon"):
        keeper.refresh()
    assert rows(keeper, "total") == {(6,): 1}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_of_files_without_numbers(
    spark: SparkSession, tmp_path: Path, others: Path, mode: str
) -> None:
    """By name they are read; by number the files have no columns, and Spark would not notice."""
    mapping = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "2"}
    edited(others, "protocol", {"minReaderVersion": 2, "minWriterVersion": 5})
    columns = [
        {
            "name": name,
            "type": "long",
            "nullable": True,
            "metadata": {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": name,
            },
        }
        for number, name in enumerate(["id", "n"], 1)
    ]
    schema = json.dumps({"type": "struct", "fields": columns})
    edited(others, "metaData", {"configuration": mapping, "schemaString": schema})
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("others", others)
    if mode == "name":
        assert sum(row["n"] for row in keeper.read("others").collect()) == 6
    else:
        with pytest.raises(ViewkeepError, match="columnMapping by id"):
            keeper.read("others")
        assert Keeper(tmp_path / "lake").read("others").to_pylist() == [{"id": None, "n": None}] * 3


@pytest.mark.parametrize("feature", ["catalogManaged", "rowsOnTheMoon"])
def test_unknown_features(spark: SparkSession, tmp_path: Path, others: Path, feature: str) -> None:
    edited(others, "protocol", features(feature))
    refused(spark, tmp_path, others, "(?i)catalog-?managed" if "catalog" in feature else feature)


def test_a_protocol_of_the_future(spark: SparkSession, tmp_path: Path, others: Path) -> None:
    edited(others, "protocol", {"minReaderVersion": 9, "minWriterVersion": 9})
    refused(spark, tmp_path, others, r"(?i)version.*9")
