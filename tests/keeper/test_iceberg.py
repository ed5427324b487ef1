"""Tables of Iceberg as base tables: views follow what pyiceberg writes, version by version.

The tests are skipped where pyiceberg is not installed: `pip install viewkeep[iceberg]
pyiceberg[sql-sqlite]`.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from viewkeep import Keeper, ViewkeepError
from viewkeep.tables.iceberg.place import SCHEME
from viewkeep.tables.open_table import open_table

pytest.importorskip("pyiceberg", reason='pip install "viewkeep[iceberg]" "pyiceberg[sql-sqlite]"')
pytest.importorskip("sqlalchemy", reason='pip install "pyiceberg[sql-sqlite]"')

pytestmark = pytest.mark.filterwarnings("default")
ORDERS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("who", pa.string()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("n", pa.int32()),
    ]
)
SUMS = "SELECT who, sum(n) AS s, count(*) AS c FROM orders GROUP BY who"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A catalog in SQLite that pyiceberg finds by its name `shop`, as users configure it."""
    from pyiceberg import catalog as catalogs
    from pyiceberg.utils.config import Config

    for key, value in {
        "TYPE": "sql",
        "URI": f"sqlite:///{tmp_path}/catalog.db",
        "WAREHOUSE": f"file://{tmp_path}/warehouse",
    }.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__SHOP__{key}", value)
    monkeypatch.setattr(catalogs, "_ENV_CONFIG", Config())  # it was read with the module
    catalog: Any = catalogs.load_catalog("shop")
    catalog.create_namespace("sales")
    yield catalog
    catalog.close()


def orders_of(*given: tuple[Any, ...]) -> pa.Table:
    """Rows as the writer takes them."""
    columns = zip(*given, strict=True) if given else [[]] * len(ORDERS)
    arrays = [
        pa.array(list(column)).cast(field.type)
        for column, field in zip(columns, ORDERS, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=ORDERS)


FIRST = ((1, "a", "1.50", 1), (2, "b", "2.50", 2), (3, "a", None, 3))


def orders_rows(given: Any) -> pa.Table:
    """Rows with prices as texts."""
    from decimal import Decimal

    return orders_of(*((i, w, None if p is None else Decimal(p), n) for i, w, p, n in given))


@pytest.fixture
def orders(catalog: Any) -> Any:
    """A table with three rows."""
    table = catalog.create_table("sales.orders", ORDERS)
    table.append(orders_rows(FIRST))
    return table


@pytest.fixture
def keeper(tmp_path: Path, orders: Any) -> Keeper:
    keeper = Keeper(tmp_path / "lake")
    keeper.register_table("orders", "iceberg://shop/sales.orders", key=["id"])
    keeper.create_view("sums", SUMS, policy="incremental")
    keeper.create_view("dear", "SELECT id, price FROM orders WHERE price > 2")
    return keeper


def rows(keeper: Keeper, name: str) -> "Counter[tuple[Any, ...]]":
    """The rows of a table or view."""
    return Counter(tuple(each.values()) for each in keeper.read(name).to_pylist())


def bag(keeper: Keeper, view: str = "sums") -> list[tuple[Any, ...]]:
    return sorted(rows(keeper, view).elements(), key=repr)


def check(keeper: Keeper, orders: Any) -> None:
    """Views are what their queries give over the rows that pyiceberg itself reads."""
    orders.refresh()
    frame = orders.scan().to_arrow()
    assert Counter(map(tuple, map(dict.values, frame.to_pylist()))) == rows(keeper, "orders")
    with duckdb.connect() as connection:
        connection.register("orders", frame)
        for name, sql in keeper.views.items():
            wanted = connection.sql(sql).fetchall()
            assert Counter(wanted) == rows(keeper, name), name
            assert keeper.verify(name).ok


def test_views_follow_appends_updates_and_deletes(keeper: Keeper, orders: Any) -> None:
    assert bag(keeper) == [("a", 4, 2), ("b", 2, 1)]
    orders.append(orders_rows([(4, "b", "9.00", 4)]))
    [sums, *_] = keeper.refresh("sums")
    assert sums.strategy == "id"
    assert bag(keeper) == [("a", 4, 2), ("b", 6, 2)]
    orders.upsert(orders_rows([(1, "b", "3.00", 1), (7, "c", None, None)]), join_cols=["id"])
    orders.delete("id = 3")
    keeper.refresh()
    assert bag(keeper) == [("b", 7, 3), ("c", None, 1)]
    assert {row[0] for row in bag(keeper, "dear")} == {1, 2, 4}
    check(keeper, orders)
    assert all(each.strategy == "none" for each in keeper.refresh())


def test_an_append_reads_new_files_only(
    keeper: Keeper, orders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old files of both versions are the same, and not looked at."""
    from viewkeep.tables.feed import Feed

    read: list[str] = []
    whole = Feed._rows_of_files

    def counted(self: Feed, snapshot: Any, files: Any) -> Any:
        read.extend(each.path for each in files)
        return whole(self, snapshot, files)

    monkeypatch.setattr(Feed, "_rows_of_files", counted)
    orders.append(orders_rows([(4, "b", "9.00", 4)]))
    keeper.refresh("sums")
    assert len(read) == 1


def test_random_histories(keeper: Keeper, orders: Any) -> None:
    rng, model = Random(3), {row[0]: row for row in FIRST}
    for number in range(12):
        match rng.randrange(4):
            case 0:
                new = [(100 * number + i, rng.choice("abc"), "1.00", i) for i in range(3)]
                orders.append(orders_rows(new))
                model |= {row[0]: row for row in new}
            case 1 if model:
                keys = rng.sample(sorted(model), min(2, len(model)))
                new = [(key, rng.choice("abc"), f"{number}.25", number) for key in keys]
                orders.upsert(orders_rows(new), join_cols=["id"])
                model |= {row[0]: row for row in new}
            case 2 if model:
                key = rng.choice(sorted(model))
                orders.delete(f"id = {key}")
                del model[key]
            case _:
                orders.overwrite(orders_rows(model.values()))
        if rng.random() < 0.6:
            keeper.refresh()
            check(keeper, orders)
    keeper.refresh()
    assert {row[0] for row in rows(keeper, "orders")} == set(model)
    check(keeper, orders)


def test_columns_that_change(keeper: Keeper, orders: Any) -> None:
    """Files know columns by number: a rename moves no values, a column made anew is another one."""
    with orders.update_schema() as update:
        update.rename_column("n", "amount")
        update.add_column("note", _string())
    orders.append(orders_rows([(5, "e", None, 5)]).rename_columns(["id", "who", "price", "amount"]))
    keeper.refresh("dear")
    keeper.create_view("amounts", "SELECT id, amount, note FROM orders")
    assert {row[:2] for row in rows(keeper, "amounts")} == {(1, 1), (2, 2), (3, 3), (5, 5)}
    with pytest.raises(ViewkeepError, match="n"):
        keeper.refresh("sums")
    with orders.update_schema() as update:
        update.delete_column("amount")
    with orders.update_schema() as update:
        update.add_column("amount", _int())
    orders.append(
        pa.table({"id": pa.array([6], pa.int64()), "amount": pa.array([66], pa.int32())},
                 schema=pa.schema([pa.field("id", pa.int64(), False), ("amount", pa.int32())]))
    )  # fmt: skip
    keeper.refresh("amounts")
    assert {row[:2] for row in rows(keeper, "amounts")} == {
        (1, None), (2, None), (3, None), (5, None), (6, 66)
    }  # fmt: skip


def _string() -> Any:
    from pyiceberg.types import StringType

    return StringType()


def _int() -> Any:
    from pyiceberg.types import IntegerType

    return IntegerType()


def test_a_table_that_is_put_back(keeper: Keeper, orders: Any) -> None:
    first = orders.current_snapshot().snapshot_id
    orders.append(orders_rows([(4, "b", "9.00", 4)]))
    keeper.refresh()
    orders.manage_snapshots().set_current_snapshot(snapshot_id=first).commit()
    orders.append(orders_rows([(9, "z", "9.00", 9)]))
    keeper.refresh()
    assert bag(keeper) == [("a", 4, 2), ("b", 2, 1), ("z", 9, 1)]
    check(keeper, orders)


def test_snapshots_that_have_expired(keeper: Keeper, orders: Any) -> None:
    """Changes since a snapshot that is gone are not known: the views are computed anew."""
    old = orders.current_snapshot().snapshot_id
    orders.append(orders_rows([(4, "b", "9.00", 4)]))
    orders.append(orders_rows([(5, "b", "9.00", 5)]))
    orders.maintenance.expire_snapshots().by_id(old).commit()
    keeper.refresh()
    assert bag(keeper) == [("a", 4, 2), ("b", 11, 3)]


def test_nothing_was_ever_written(catalog: Any, tmp_path: Path) -> None:
    table = catalog.create_table("sales.empty", ORDERS)
    keeper = Keeper(tmp_path / "lake")
    keeper.register_table("orders", "iceberg://shop/sales.empty", key=["id"])
    keeper.create_view("sums", SUMS)
    assert bag(keeper) == []
    table.append(orders_rows(FIRST))
    keeper.refresh()
    assert bag(keeper) == [("a", 4, 2), ("b", 2, 1)]


def test_a_metadata_file_is_one_state(keeper: Keeper, orders: Any, tmp_path: Path) -> None:
    path = orders.metadata_location
    other = Keeper(tmp_path / "other")
    other.register_table("orders", path.removeprefix("file://"), key=["id"])
    other.create_view("sums", SUMS)
    orders.append(orders_rows([(4, "b", "9.00", 4)]))
    other.refresh()
    assert bag(other) == [("a", 4, 2), ("b", 2, 1)]
    newer = orders.metadata_location.removeprefix("file://")
    other.register_table("orders", newer, key=["id"], replace=True)
    other.refresh()
    assert bag(other) == [("a", 4, 2), ("b", 6, 2)]


def test_tables_without_a_key(catalog: Any, tmp_path: Path, orders: Any) -> None:
    keeper = Keeper(tmp_path / "lake")
    keeper.register_table("orders", "iceberg://shop/sales.orders")
    keeper.create_view("sums", SUMS)
    orders.append(orders_rows([FIRST[0], FIRST[0]]))
    keeper.refresh()
    assert bag(keeper) == [("a", 6, 4), ("b", 2, 1)]


def test_partitions_that_change(catalog: Any, tmp_path: Path) -> None:
    from pyiceberg.transforms import IdentityTransform

    table = catalog.create_table("sales.parted", ORDERS)
    with table.update_spec() as update:
        update.add_field("who", IdentityTransform())
    table.append(orders_rows(FIRST))
    with table.update_spec() as update:
        update.add_field("n", IdentityTransform())
    keeper = Keeper(tmp_path / "lake")
    keeper.register_table("orders", "iceberg://shop/sales.parted", key=["id"])
    keeper.create_view("sums", SUMS)
    table.append(orders_rows([(4, "b", "9.00", 4)]))
    keeper.refresh()
    assert bag(keeper) == [("a", 4, 2), ("b", 6, 2)]
    table.delete("who = 'a'")
    keeper.refresh()
    assert bag(keeper) == [("b", 6, 2)]


def test_imported_files_are_refused(catalog: Any, tmp_path: Path, orders: Any) -> None:
    """They have no numbers, and would be read as NULL."""
    import pyarrow.parquet as pq

    pq.write_table(orders_rows([(8, "x", "1.00", 8)]), tmp_path / "x.parquet")
    orders.add_files([f"file://{tmp_path}/x.parquet"])
    keeper = Keeper(tmp_path / "lake")
    with pytest.raises(ViewkeepError, match="no numbers"):
        keeper.register_table("orders", "iceberg://shop/sales.orders", key=["id"])


@pytest.mark.parametrize(
    ("place", "text"),
    [("iceberg://nowhere/a.b", "nowhere"), ("iceberg://shop/sales.none", "sales.none"),
     ("iceberg:///gone/v1.metadata.json", "gone")],
)  # fmt: skip
def test_what_is_not_there(catalog: Any, tmp_path: Path, place: str, text: str) -> None:
    keeper = Keeper(tmp_path / "lake")
    with pytest.raises(ViewkeepError, match=text):
        keeper.register_table("orders", place, key=["id"])
    assert not keeper.tables


def test_nothing_is_written_to_it(keeper: Keeper, orders: Any) -> None:
    with pytest.raises(ViewkeepError, match="orders"):
        keeper.apply("orders", deletes=[{"id": 1}])
    before = orders.metadata_location
    keeper.vacuum(hours=0, force=True)
    orders.refresh()
    assert orders.metadata_location == before
    table = open_table(f"{SCHEME}shop/sales.orders", None, True)
    assert table.exists()
    assert not table.is_writable()
