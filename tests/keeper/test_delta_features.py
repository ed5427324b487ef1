"""Tables of the official connector with every feature of Delta, read right at every version, and
their changes from each version to later ones."""

import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.diffs.harness import Bag
from tests.keeper.delta_fixtures import NAMES, ConnectorTable
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute.spark.versions import reads_narrower_types
from viewkeep.tables.spark_rows import frame_rows

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
BACKENDS = ("duckdb", "spark")
READABLE = [name for name in NAMES if name != "variant"]


def read_rows(keeper: Keeper, name: str) -> Bag:
    """The rows of a table, as JSON tells their values."""
    rows: Any = keeper.read(name)
    table = rows if isinstance(rows, pa.Table) else frame_rows(rows)
    return Counter(tuple(map(_json_value, each.values())) for each in table.to_pylist())


def _json_value(value: Any) -> Any:
    match value:
        case float():
            return round(value, 7)
        case [tuple(), *_]:
            return json.dumps(dict(value), sort_keys=True)
        case dict() | list():
            return json.dumps(value, sort_keys=True)
        case Decimal():
            return float(value)
        case datetime():
            return value.isoformat(timespec="milliseconds")
        case date():
            return value.isoformat()
    return value


Lake = Callable[[Path], Keeper]


@pytest.fixture
def lake(request: pytest.FixtureRequest, engine: str) -> Lake:
    """Makes lakes; Spark is started only for lakes with it."""
    if engine == "duckdb":
        return Keeper
    spark: SparkSession = request.getfixturevalue("spark")
    return lambda place: Keeper(place, spark)


def steps(table: ConnectorTable, first: int) -> list[int]:
    """The versions that are looked at; in short runs, some of them."""
    every = list(range(first, table.newest + 1))
    return every if LONG else sorted({first, every[len(every) // 2], table.newest})


def refusal(engine: str, name: str) -> AbstractContextManager[object]:
    """Spark 3.5 reads no files of narrower types: such tables are refused by name."""
    is_old = engine == "spark" and not reads_narrower_types()
    if is_old and name in ("widening", "all_features"):
        return pytest.raises(ViewkeepError, match="types of columns were widened")
    return nullcontext()


@pytest.mark.parametrize("name", READABLE)
def test_every_version_is_read(lake: Lake, engine: str, tmp_path: Path, name: str) -> None:
    with refusal(engine, name):
        _check_versions(lake, tmp_path, name)


def _check_versions(lake: Lake, tmp_path: Path, name: str) -> None:
    table = ConnectorTable(name, tmp_path)
    for version in steps(table, 0):
        table.go_to(version)
        keeper = lake(tmp_path / f"lake{version}")
        keeper.register_table("t", table.place)
        assert list(keeper.tables["t"].names) == list(table.columns(version))
        assert read_rows(keeper, "t") == table.bag(version), version
    keeper.create_view("copy", "SELECT * FROM t")
    assert read_rows(keeper, "copy") == table.bag(table.newest)


@pytest.mark.parametrize("name", ["v2_checkpoints", "all_features", "mapping_by_name"])
def test_checkpoints_are_read_without_the_entries_before(
    lake: Lake, engine: str, tmp_path: Path, name: str
) -> None:
    table = ConnectorTable(name, tmp_path)
    table.go_to(table.newest)
    table.forget_entries()
    keeper = lake(tmp_path / "lake")
    keeper.register_table("t", table.place)
    with refusal(engine, name):
        assert read_rows(keeper, "t") == table.bag(table.newest)


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("key", [["id"], []], ids=["key", "copies"])
def test_views_follow(lake: Lake, tmp_path: Path, name: str, key: list[str]) -> None:
    """From each version to the next one, and from the first to the last one, as long as the columns
    of the view are there."""
    table = ConnectorTable(name, tmp_path)
    table.go_to(1)
    measure = next(n for n in table.columns(1) if n in ("n", "b", "s"))
    keeper = lake(tmp_path / "lake")
    keeper.register_table("t", table.place, key=key)
    keeper.create_view("rows", f"SELECT id, {measure} FROM t")
    keeper.create_view("total", "SELECT count(*) AS c, sum(id) AS s FROM t")
    before = keeper.tables["t"].columns
    followed = 1
    for version in steps(table, 2):
        if any(table.columns(version).get(f.name) != str(f.type) for f in before):
            break
        table.go_to(version)
        keeper.refresh()
        wanted = Counter((row["id"], _json_value(row[measure])) for row in table.rows(version))
        assert read_rows(keeper, "rows") == wanted, version
        ids = [row["id"] for row in table.rows(version)]
        assert read_rows(keeper, "total") == Counter([(len(ids), sum(ids))])
        followed = version
    assert followed > 1 or name in ("mapping_nested", "widening")


def test_a_column_that_is_dropped_and_made_anew(lake: Lake, tmp_path: Path) -> None:
    """Files that both versions have tell other values of it: the view is computed anew."""
    table = ConnectorTable("mapping_by_name", tmp_path)
    table.go_to(4)
    keeper = lake(tmp_path / "lake")
    keeper.register_table("t", table.place, key=["id"])
    keeper.create_view("names", "SELECT id, name FROM t")
    entry = table.place / "_delta_log" / f"{0:020d}.json"
    metadata = next(
        each["metaData"]
        for each in map(json.loads, entry.read_text().splitlines())
        if "metaData" in each
    )
    schema = json.loads(metadata["schemaString"])
    [name] = [each for each in schema["fields"] if each["name"] == "name"]
    name["metadata"] = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-new"}
    new = {**metadata, "schemaString": json.dumps(schema)}
    path = table.place / "_delta_log" / f"{5:020d}.json"
    path.write_text(json.dumps({"metaData": new}) + "\n")
    keeper.refresh()
    assert read_rows(keeper, "names") == Counter((row["id"], None) for row in table.rows(4))


def test_a_variant_is_refused(lake: Lake, tmp_path: Path) -> None:
    table = ConnectorTable("variant", tmp_path)
    table.go_to(table.newest)
    keeper = lake(tmp_path / "lake")
    with pytest.raises(ViewkeepError, match=r"(?i)variant"):
        keeper.register_table("t", table.place)
    assert keeper.tables == {}
