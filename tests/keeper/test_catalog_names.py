"""Tables that are registered by their names in catalogs of Spark."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.keeper.lakes import rows
from viewkeep import Keeper, ViewkeepError


@dataclass
class Catalog:
    """What stands for a session: it knows where tables are, and nothing else."""

    places: dict[str, str]
    asked: list[str] = field(default_factory=list)

    def sql(self, text: str) -> "Catalog":
        self.asked.append(text)
        name = text.removeprefix("DESCRIBE TABLE EXTENDED ")
        if name not in self.places:
            raise AnalysisException(f"[TABLE_OR_VIEW_NOT_FOUND] {name} cannot be found")
        self.place = self.places[name]
        return self

    def collect(self) -> list[tuple[str, str, str]]:
        about = [("Location", self.place, "")] if self.place else []
        return [("oid", "bigint", ""), ("Location", "string", ""), ("", "", ""), *about]

    def createDataFrame(self) -> None:  # noqa: N802 - a session is told by it
        raise NotImplementedError


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "orders", pa.table({"oid": [1, 2]}))
    return tmp_path / "orders"


def test_names_of_a_catalog(tmp_path: Path, orders: Path) -> None:
    known = {"`shop`.`sales`.`orders`": f"file:{orders}", "`sales`.`my orders`": str(orders)}
    catalog: Any = Catalog(known)
    keeper = Keeper(tmp_path / "lake", catalog)
    keeper.register_table("a", "shop.sales.orders")
    keeper.register_table("b", "sales.`my orders`")
    assert [each.location for each in keeper.describe_tables()] == [str(orders)] * 2
    with pytest.raises(ViewkeepError, match=r'"shop\.sales\.order" is no folder.*cannot be found'):
        keeper.register_table("c", "shop.sales.order")
    count = len(catalog.asked)
    keeper.register_table("d", orders)
    assert len(catalog.asked) == count, "a folder is no name"
    assert Keeper(tmp_path / "lake").read("a").num_rows == 2


def test_names_without_spark(tmp_path: Path, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(tmp_path / "lake")
    with pytest.raises(ViewkeepError, match=r'"sales\.orders" is no folder here.*Keeper\(path'):
        keeper.register_table("orders", "sales.orders")
    assert keeper.tables == {}
    monkeypatch.chdir(tmp_path)
    orders.rename(tmp_path / "sales.orders")
    keeper.register_table("orders", "sales.orders")
    assert keeper.read("orders").num_rows == 2


def test_the_session_catalog(spark: SparkSession, tmp_path: Path, orders: Path) -> None:
    name = "default.viewkeep_catalog_names"
    spark.sql(f"CREATE TABLE {name} (oid BIGINT) USING parquet LOCATION '{orders}'")
    try:
        keeper = Keeper(tmp_path / "lake", spark)
        keeper.register_table("orders", name, key=["oid"])
        keeper.create_view("total", "SELECT sum(oid) AS n FROM orders")
        assert rows(keeper, "total") == {(3,): 1}
    finally:
        spark.sql(f"DROP TABLE {name}")
