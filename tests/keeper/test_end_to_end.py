"""Twelve views over five tables through rounds of random changes, checked after every refresh.

Three tables belong to the lake; two are registered and written by another writer, one of them
with a change data feed. After each refresh every view equals recomputation by Spark at the
versions that it reflects, and by DuckDB over the same Delta files; `VIEWKEEP_LONG` runs 15 rounds.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.diffs.random_tables import Database, random_batch, random_database
from tests.keeper.lakes import as_bag, check, check_verified, rows
from viewkeep import Keeper, Table
from viewkeep.changes import ChangeBatch
from viewkeep.execute.spark.driver import scanned
from viewkeep.lake.views import caches
from viewkeep.refresh import write_changes
from viewkeep.tables.arrow_rows import to_arrow

BACKENDS = ("auto", "spark")

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
ROUNDS = 15 if LONG else 6
ROWS = 40

TABLES = {
    "nation": Table({"nationkey": "int", "name": "string", "region": "string"}, key=["nationkey"]),
    "customer": Table(
        {"custkey": "int", "nationkey": "int", "acctbal": "decimal(10, 2)", "segment": "string"},
        key=["custkey"],
        foreign_keys=["nationkey -> nation.nationkey"],
    ),
    "orders": Table(
        {"orderkey": "int", "custkey": "int", "status": "string", "placed": "date"},
        key=["orderkey"],
        foreign_keys=["custkey -> customer.custkey"],
    ),
    "part": Table({"partkey": "int", "brand": "string", "price": "double"}, key=["partkey"]),
    "lineitem": Table(
        {
            "orderkey": "int",
            "line": "int",
            "partkey": "int",
            "quantity": "int not null",
            "extended": "decimal(10, 2)",
            "shipped": "timestamp",
        },
        key=["orderkey", "line"],
        foreign_keys=["orderkey -> orders.orderkey", "partkey -> part.partkey"],
    ),
}

VIEWS = {
    "open_lines": """
        SELECT l.orderkey, l.line, o.custkey, l.extended, l.shipped
        FROM lineitem l JOIN orders o ON l.orderkey = o.orderkey WHERE o.status <> 'a'""",
    "revenue": """
        SELECT c.nationkey, sum(l.extended) AS revenue, count(*) AS lines
        FROM customer c JOIN orders o ON c.custkey = o.custkey
        JOIN lineitem l ON l.orderkey = o.orderkey GROUP BY c.nationkey""",
    "mean_price": """
        SELECT brand, avg(price) AS mean, count(price) AS priced FROM part GROUP BY brand""",
    "extremes": """
        SELECT o.custkey, min(l.shipped) AS first, max(l.quantity) AS most
        FROM orders o JOIN lineitem l ON l.orderkey = o.orderkey GROUP BY o.custkey""",
    "quiet": """
        SELECT custkey, segment FROM customer c
        WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.custkey = c.custkey)""",
    "all_customers": """
        SELECT c.custkey, n.name, n.region, c.acctbal
        FROM customer c LEFT JOIN nation n ON c.nationkey = n.nationkey""",
    "brands": """
        SELECT DISTINCT p.brand, o.status
        FROM part p JOIN lineitem l ON p.partkey = l.partkey
        JOIN orders o ON l.orderkey = o.orderkey""",
    "keys": """
        SELECT custkey AS k, segment AS text FROM customer WHERE acctbal > 0
        UNION ALL SELECT orderkey AS k, status AS text FROM orders""",
    "busy": """
        SELECT orderkey, sum(quantity) AS pieces FROM lineitem
        GROUP BY orderkey HAVING sum(quantity) > 2""",
    "variety": """
        SELECT c.segment, count(DISTINCT o.status) AS kinds
        FROM customer c JOIN orders o ON c.custkey = o.custkey GROUP BY c.segment""",
    "busy_customers": """
        SELECT o.custkey, count(*) AS orders, sum(b.pieces) AS pieces
        FROM busy b JOIN orders o ON b.orderkey = o.orderkey GROUP BY o.custkey""",
    "rich_nations": """
        SELECT n.name, r.revenue FROM revenue r JOIN nation n ON r.nationkey = n.nationkey
        WHERE n.nationkey NOT IN (SELECT nationkey FROM customer WHERE segment = 'b'
                                  AND nationkey IS NOT NULL)""",
}
REGISTERED = {"part": True, "nation": False}
"""Tables of another writer, with or without a change data feed."""


class Shop:
    """The lake, the tables that others write, and a model of all rows."""

    def __init__(self, spark: SparkSession, place: Path, rng: Random) -> None:
        self.rng, self.place = rng, place
        self.model: Database = random_database(TABLES, rng, ROWS, foreign_keys=True)
        self.keeper = Keeper(place / "lake", spark)
        for name, table in TABLES.items():
            if name in REGISTERED:
                self._register(name, table)
            else:
                given = list(self.model[name].values())
                self.keeper.create_table(name, table, rows=given)
        for name, sql in VIEWS.items():
            self.keeper.create_view(name, sql, policy="incremental")

    def _register(self, name: str, table: Table) -> None:
        feed = {"delta.enableChangeDataFeed": str(REGISTERED[name]).lower()}
        first = to_arrow(table.columns, list(self.model[name].values()))
        write_deltalake(self.place / name, first, configuration=feed)
        self.keeper.register_table(name, self.place / name, key=table.key)

    def change(self) -> None:
        """A few random changes to all tables, some of which break references."""
        whole = self.rng.random() < 0.5
        size = self.rng.randint(1, 25)
        batches = random_batch(self.model, TABLES, self.rng, size, foreign_keys=whole)
        for name, batch in batches.items():
            if not batch.is_empty:
                self._write(name, batch)
                self.model[name] = batch.apply(self.model[name])

    def _write(self, name: str, batch: ChangeBatch) -> None:
        table = TABLES[name]
        keys = [[row[table.names.index(k)] for k in table.key] for row in batch.deletes]
        news = [new for _, new in batch.updates]
        if name not in REGISTERED:
            updates = [dict(zip(table.names, new, strict=True)) for new in news]
            self.keeper.apply(name, list(batch.inserts), updates, [tuple(key) for key in keys])
            return
        if keys:
            listed = ", ".join(str(key[0]) for key in keys)
            DeltaTable(self.place / name).delete(f"{table.key[0]} IN ({listed})")
        merger = DeltaTable(self.place / name).merge(
            to_arrow(table.columns, [*batch.inserts, *news]),
            f"t.{table.key[0]} = s.{table.key[0]}",
            source_alias="s",
            target_alias="t",
        )
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        if self.rng.random() < 0.2:
            DeltaTable(self.place / name).optimize.compact()


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    # Overlays of caches grow and are compacted within a few rounds.
    monkeypatch.setattr(caches, "OVERLAY_ROWS", 30)
    monkeypatch.setattr(write_changes, "SMALL_ROWS", 30)
    return Shop(spark, tmp_path, Random(11))


@pytest.mark.slow
def test_all_views_stay_right(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    strategies: dict[str, set[str]] = {name: set() for name in VIEWS}
    check(shop.keeper)
    for number in range(ROUNDS):
        for _ in range(shop.rng.choice([1, 1, 1, 2, 4])):
            shop.change()
        # Rows are looked up by the driver or, as in large lakes, by Spark.
        monkeypatch.setattr(scanned, "DRIVER_BYTES", number % 2 * 2**28)
        for report in shop.keeper.refresh():
            strategies[report.view].add(report.strategy)
        for name in TABLES:
            assert rows(shop.keeper, name) == _as_stored(shop.model[name], TABLES[name])
        check(shop.keeper)
        if LONG or number % 4 == 0:
            check_verified(shop.keeper)
    kept = {name for name, used in strategies.items() if "id" in used}
    assert kept == set(VIEWS), strategies


def _as_stored(model: Mapping[object, tuple[object, ...]], table: Table) -> object:
    """The rows as Arrow answers: with moments in UTC."""
    stored = to_arrow(table.columns, list(model.values()))
    return as_bag(zip(*(column.to_pylist() for column in stored.columns), strict=True))
