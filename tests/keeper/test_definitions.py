"""Tables and views are defined in the lake: create, register, replace, drop, read versions."""

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, delta_rows, location, rows, version
from viewkeep import Keeper, Table, ViewkeepError

PARTS = {"pid": "int", "price": "int"}


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.create_table("parts", PARTS, key=["pid"], rows=[(1, 10), (2, 20), (3, 30)])
    return keeper


def test_a_table_of_every_form(spark: SparkSession, tmp_path: Path) -> None:
    """The same rows, given in all forms, make the same table."""
    given = [(1, "a"), (2, None)]
    frame = spark.createDataFrame(given, "id int, name string")
    arrow = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", None]})
    keeper = Keeper(tmp_path, spark)
    forms = {"spark": frame, "arrow": arrow, "pandas": arrow.to_pandas(), "large": _large(arrow)}
    for name, data in forms.items():
        keeper.create_table(name, data, key=["id"])
    keeper.create_table("listed", Table({"id": "int", "name": "string"}, key=["id"]), rows=given)
    keeper.create_table("text", "id int not null, name string", key=["id"], rows=frame)
    keeper.create_table("empty", frame.schema, key=["id"])
    for name in ("spark", "arrow", "large", "listed", "text"):
        assert rows(keeper, name) == Counter(given), name
        assert [tuple(row) for row in keeper.read(name).sort("id").collect()] == given
    assert not rows(keeper, "empty")
    assert keeper.tables["empty"].names == keeper.tables["text"].names == ("id", "name")


def _large(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([("id", pa.int64()), ("name", pa.large_string())]))


def test_values_of_all_types_come_back(spark: SparkSession, tmp_path: Path) -> None:
    """Through a table, a change, and a view."""
    types = {
        "id": "bigint",
        "tiny": "tinyint",
        "small": "smallint",
        "yes": "boolean",
        "real": "float",
        "wide": "double",
        "text": "string",
        "raw": "binary",
        "day": "date",
        "at": "timestamp",
        "money": "decimal(12, 2)",
    }
    at = datetime(2026, 7, 1, 12, 30, 15, 123456)
    full = (1, -3, 300, True, 0.5, 1e300, "ü'`\"", b"\x00\xff", date(1969, 12, 31), at)
    first = (*full, Decimal("-0.01"))
    null = (2, *[None] * (len(types) - 1))
    odd = (3, 127, -1, False, float("inf"), float("-inf"), "", b"", date(9999, 12, 31), at, 7)
    keeper = Keeper(tmp_path, spark)
    keeper.create_table("every", types, key=["id"], rows=[first])
    keeper.create_view("seen", "SELECT * FROM every")
    keeper.apply("every", inserts=[null, odd])
    keeper.refresh()
    moment = at.replace(tzinfo=UTC)
    expected = Counter(
        tuple(moment if value == at else value for value in row) for row in (first, null, odd)
    )
    assert rows(keeper, "every") == rows(keeper, "seen") == expected
    check(keeper)
    assert keeper.verify("seen").ok
    keeper.apply("every", updates=[{"id": 1, "at": moment, "raw": None, "text": "x"}])
    keeper.refresh()
    check(keeper)


def test_a_registered_table_is_left_alone(keeper: Keeper, tmp_path: Path) -> None:
    place = tmp_path / "orders"
    write_deltalake(place, pa.table({"oid": [1, 2], "pid": pa.array([1, 3], pa.int32())}))
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("bought", "SELECT oid, price FROM orders JOIN parts USING (pid)")
    assert rows(keeper, "bought") == Counter([(1, 10), (2, 30)])
    with pytest.raises(ViewkeepError, match="its own writers change it"):
        keeper.apply("orders", deletes=[(1,)])
    keeper.drop_view("bought")
    keeper.drop_table("orders")
    assert DeltaTable(place).version() == 0
    assert delta_rows(place) == Counter([(1, 1), (2, 3)])


def test_definitions_are_in_the_lake(spark: SparkSession, keeper: Keeper, tmp_path: Path) -> None:
    """Another keeper finds them, and so do people."""
    keeper.create_view("dear", "SELECT pid FROM parts WHERE price > 15", policy="strict")
    other = Keeper(tmp_path / "lake", spark)
    assert other.tables == keeper.tables
    assert other.views == {"dear": "SELECT pid FROM parts WHERE price > 15"}
    said = json.loads((tmp_path / "lake/_viewkeep/catalog.json").read_text())
    assert said["views"]["dear"]["policy"] == "strict"
    assert said["tables"]["parts"]["columns"] == {"pid": "int not null", "price": "int"}
    log = DeltaTable(tmp_path / "lake/_viewkeep/catalog").history()
    assert [each["viewkeep"]["change"] for each in reversed(log)] == [
        "init",
        "create_table parts",
        "create_view dear",
        "finish dear",
    ]


def test_views_on_views(keeper: Keeper) -> None:
    keeper.create_view("dear", "SELECT pid, price FROM parts WHERE price > 15")
    keeper.create_view("by_tens", "SELECT price % 20 AS m, count(*) AS n FROM dear GROUP BY 1")
    keeper.create_view("most", "SELECT max(n) AS n FROM by_tens")
    keeper.apply("parts", inserts=[(4, 50), (5, 70)], updates=[{"pid": 1, "price": 90}])
    assert [report.view for report in keeper.refresh()] == ["dear", "by_tens", "most"]
    check(keeper)
    with pytest.raises(ViewkeepError, match="read by by_tens"):
        keeper.drop_view("dear")
    with pytest.raises(ViewkeepError, match="read by dear"):
        keeper.drop_table("parts")


def test_dropping_a_view_removes_its_files(keeper: Keeper, tmp_path: Path) -> None:
    keeper.create_view("total", "SELECT sum(price) AS s FROM parts")
    place = Path(location(keeper, "total"))
    assert place.exists()
    keeper.drop_view("total")
    assert not place.exists()
    assert not (tmp_path / "lake/_viewkeep/caches/total").exists()
    keeper.create_view("total", "SELECT count(*) AS s FROM parts")
    assert rows(keeper, "total") == Counter([(3,)])


def test_a_dropped_table_keeps_its_rows(keeper: Keeper) -> None:
    place = location(keeper, "parts")
    keeper.create_table("others", PARTS, key=["pid"])
    keeper.drop_table("parts")
    with pytest.raises(ViewkeepError, match="there is a Delta table in"):
        keeper.create_table("parts", PARTS, key=["pid"])
    with pytest.raises(ViewkeepError, match="there is a Delta table in"):
        keeper.create_view("parts", "SELECT pid FROM others")
    assert delta_rows(place) == Counter([(1, 10), (2, 20), (3, 30)])
    keeper.register_table("parts", place, key=["pid"])
    assert keeper.read("parts").count() == 3


def test_an_unfinished_view_can_be_created_again(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that died while it created a view leaves its name taken, and nothing else."""
    from viewkeep.lake.catalog_store import CatalogStore

    kept, change = CatalogStore.change, CatalogStore.change

    def dies(store: CatalogStore, what: str, changed: object) -> object:
        if what.startswith(("finish", "give up")):
            raise KeyboardInterrupt
        return change(store, what, changed)  # type: ignore[arg-type]

    monkeypatch.setattr(CatalogStore, "change", dies)
    with pytest.raises(KeyboardInterrupt):
        keeper.create_view("total", "SELECT sum(price) AS s FROM parts")
    monkeypatch.setattr(CatalogStore, "change", kept)
    assert "never finished" in keeper.status()[0].problem
    for attempt in (lambda: keeper.refresh("total"), lambda: keeper.read("total")):
        with pytest.raises(ViewkeepError, match="never finished"):
            attempt()
    with pytest.raises(ViewkeepError, match="never finished"):
        keeper.repair("total")
    assert keeper.refresh() == []
    keeper.create_view("total", "SELECT count(*) AS n FROM parts")
    assert rows(keeper, "total") == Counter([(3,)])


def test_versions_can_be_read(keeper: Keeper) -> None:
    keeper.create_view("dear", "SELECT pid FROM parts WHERE price > 15")
    first = version(keeper, "dear")
    keeper.apply("parts", deletes=[(3,)])
    keeper.refresh()
    assert Counter(tuple(r) for r in keeper.read("dear").collect()) == Counter([(2,)])
    assert Counter(tuple(r) for r in keeper.read("dear", first).collect()) == Counter([(2,), (3,)])
    assert keeper.read("parts", 0).count() == 3
    assert [each.version for each in keeper.history("dear")] == [1, 0]
    with pytest.raises(ViewkeepError, match="no version 99"):
        keeper.read("dear", 99)


def test_a_folder_with_any_name(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "my lake é {a,b} *=+", spark)
    keeper.create_table("parts", spark.createDataFrame([(1, 2)], "pid int, price int"), ["pid"])
    keeper.create_view("all_parts", "SELECT * FROM parts")
    keeper.create_view("total", "SELECT sum(price) AS s FROM parts")
    keeper.apply("parts", inserts=[(2, 5)])
    keeper.refresh()
    check(keeper)
    assert keeper.verify("all_parts").ok


@pytest.mark.parametrize("mark", "%?#^|[]\\")
def test_folders_that_deltalake_cannot_read(spark: SparkSession, tmp_path: Path, mark: str) -> None:
    with pytest.raises(ViewkeepError, match="choose another"):
        Keeper(tmp_path / f"a{mark}b", spark)


def test_columns_of_one_name(tmp_path: Path) -> None:
    """A star over two tables is a view, and a view over it is, as long as neither is named."""
    keeper = Keeper(tmp_path)
    keeper.create_table("r", {"id": "int", "n": "int"}, ["id"], rows=[(1, 2), (2, 3)])
    keeper.create_table("t", {"id": "int", "m": "int"}, ["id"], rows=[(1, 7), (3, 8)])
    keeper.create_view("both", "SELECT * FROM r LEFT JOIN t ON r.id = t.id")
    keeper.create_view("sums", "SELECT n, sum(id_2) AS s FROM (SELECT * FROM both) GROUP BY n")
    assert keeper.read("both").column_names == ["id", "n", "id_2", "m"]
    keeper.apply("t", inserts=[(2, 9)], deletes=[(1,)])
    keeper.refresh()
    assert sorted(keeper.read("both").to_pylist(), key=str) == [
        {"id": 1, "n": 2, "id_2": None, "m": None},
        {"id": 2, "n": 3, "id_2": 2, "m": 9},
    ]
    assert keeper.verify("both").ok
    assert keeper.verify("sums").ok
