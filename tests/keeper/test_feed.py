"""What changed in a table: written down, from the change data feed, and by difference."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.changes.memory_table import difference
from tests.diffs.random_tables import random_batch, random_database
from tests.keeper.lakes import as_bag, check, check_verified, rows
from viewkeep import Keeper, Table, ViewkeepError
from viewkeep.changes import ChangeBatch, Key, Row
from viewkeep.execute.duckdb.scans import DuckdbScans
from viewkeep.execute.spark.scans import SparkScans
from viewkeep.execute.spark.session import lake_session
from viewkeep.tables.arrow_rows import to_arrow
from viewkeep.tables.feed import Feed
from viewkeep.tables.files.scans import Scans
from viewkeep.tables.log.delta import LakeTable

TABLE = Table(
    {
        "id": "int",
        "part": "smallint",
        "name": "string",
        "x": "double",
        "at": "timestamp",
        "m": "decimal(8, 2)",
        "d": "date",
    },
    key=["id"],
)
FEED = {"delta.enableChangeDataFeed": "true"}
State = Mapping[Key, Row]


class Writer:
    """Another writer of a Delta table, and what each version should hold."""

    def __init__(self, place: Path, model: State, rng: Random, partitioned: bool, feed: bool):
        self.place, self.rng = place, rng
        self.partitions = ["part", "d"] if partitioned else None
        write_deltalake(
            place,
            self._arrow(model),
            partition_by=self.partitions,
            configuration=FEED if feed else None,
        )
        self.states = [dict(model)]

    def step(self) -> None:
        """One random change, as another writer would make it."""
        now = self.states[-1]
        batch = random_batch({"t": now}, {"t": TABLE}, self.rng, 5)["t"]
        after = batch.apply(now)
        match self.rng.choice(["merge", "merge", "delete", "overwrite", "compact", "append"]):
            case "merge":
                self._merge(batch)
                after = _without(now, batch, deletes=False)
            case "delete":
                keys = [old[0] for old in batch.deletes] or [-1]
                listed = ", ".join(map(str, keys))
                DeltaTable(self.place).delete(f"id IN ({listed})")
                after = {key: row for key, row in now.items() if key[0] not in keys}
            case "overwrite":
                write_deltalake(
                    self.place, self._arrow(after), mode="overwrite", partition_by=self.partitions
                )
            case "compact":
                DeltaTable(self.place).optimize.compact()
                after = dict(now)
            case "append":
                new = {(row[0],): row for row in batch.inserts}
                write_deltalake(
                    self.place, self._arrow(new), mode="append", partition_by=self.partitions
                )
                after = {**now, **new}
        self._saw(after)

    def _saw(self, after: State) -> None:
        """A change that does nothing makes no version."""
        made = DeltaTable(self.place).version()
        self.states += [dict(after)] * (made + 1 - len(self.states))

    def _merge(self, batch: ChangeBatch) -> None:
        source = [*batch.inserts, *(new for _, new in batch.updates)]
        merger = DeltaTable(self.place).merge(
            to_arrow(TABLE.columns, source), "t.id = s.id", source_alias="s", target_alias="t"
        )
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def _arrow(self, state: State) -> pa.Table:
        return to_arrow(TABLE.columns, list(state.values()))


def _without(now: State, batch: ChangeBatch, deletes: bool) -> dict[Key, Row]:
    kept = ChangeBatch("t", TABLE, batch.inserts, batch.deletes if deletes else (), batch.updates)
    return kept.apply(now)


def scans_of(engine: str, spark: SparkSession) -> Scans:
    return DuckdbScans() if engine == "duckdb" else SparkScans(lake_session(spark))


@pytest.mark.parametrize("feed", [True, False], ids=["feed", "difference"])
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "whole"])
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_another_writer(
    spark: SparkSession, tmp_path: Path, feed: bool, partitioned: bool, engine: str
) -> None:
    """Between any two versions, the net changes are those of the model."""
    rng = Random(7 + feed + 2 * partitioned)
    model = random_database({"t": TABLE}, rng, 15)["t"]
    writer = Writer(tmp_path / "t", model, rng, partitioned, feed)
    for _ in range(10):
        writer.step()
    reader = Feed(scans_of(engine, spark), "t", TABLE, LakeTable(str(tmp_path / "t")))
    last = len(writer.states) - 1
    pairs = [(0, last), *(sorted(rng.sample(range(last + 1), 2)) for _ in range(8 if feed else 4))]
    for since, until in pairs:
        found = reader.changes(since, until)
        expected = difference(
            "t", TABLE, writer.states[since].values(), writer.states[until].values()
        )
        assert _steps(found.batch()) == _steps(expected), (since, until)


def test_written_down(spark: SparkSession, tmp_path: Path) -> None:
    """The changes of `apply`, put together, are the difference of the versions."""
    rng = Random(3)
    model = random_database({"t": TABLE}, rng, 15)
    keeper = Keeper(tmp_path, spark)
    keeper.create_table("t", TABLE, rows=list(model["t"].values()))
    states = [model["t"]]
    for _ in range(6):
        batch = random_batch({"t": states[-1]}, {"t": TABLE}, rng, 6)["t"]
        keeper.apply(
            "t",
            list(batch.inserts),
            [dict(zip(TABLE.names, new, strict=True)) for _, new in batch.updates],
            [(old[0],) for old in batch.deletes],
        )
        states.append(batch.apply(states[-1]))
    reader = Feed(DuckdbScans(), "t", TABLE, LakeTable(str(tmp_path / "t")))
    for since in range(7):
        for until in range(since, 7):
            found = reader.changes(since, until)
            assert _steps(found.batch()) == _steps(
                difference("t", TABLE, states[since].values(), states[until].values())
            )
    assert _steps(reader._difference(0, 6, 1000).batch()) == _steps(reader.changes(0, 6).batch())


def _steps(batch: ChangeBatch) -> dict[Any, Any]:
    """Rows before and after, comparable where they hold NaN."""
    return {str(step[0] or step[1]).split(",")[0]: str(step) for step in batch.steps()}


def test_a_feed_with_a_gap(spark: SparkSession, tmp_path: Path) -> None:
    """Where the feed was switched off for a while, the versions are compared."""
    place = tmp_path / "orders"
    write_deltalake(place, pa.table({"oid": [1, 2, 3], "n": [1, 2, 3]}), configuration=FEED)
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM orders")
    DeltaTable(place).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    DeltaTable(place).update(updates={"n": "100"}, predicate="oid = 2")
    DeltaTable(place).alter.set_table_properties(FEED)
    DeltaTable(place).update(updates={"n": "1000"}, predicate="oid = 3")
    (report,) = keeper.refresh()
    assert report.strategy == "id"
    assert report.changes == {"orders": 2}
    check(keeper)


def test_vacuum_of_the_feed(spark: SparkSession, tmp_path: Path) -> None:
    """The files of the feed are gone and the versions are there: the versions are compared."""
    place = tmp_path / "orders"
    write_deltalake(place, pa.table({"oid": [1, 2, 3], "n": [1, 2, 3]}), configuration=FEED)
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM orders")
    DeltaTable(place).update(updates={"n": "100"}, predicate="oid = 2")
    for file in (place / "_change_data").iterdir():
        file.unlink()
    assert keeper.refresh()[0].changes == {"orders": 1}
    check(keeper)


def test_what_changes_no_rows_is_no_change(spark: SparkSession, tmp_path: Path) -> None:
    """Files put together, properties: the view's state moves on, its rows do not."""
    place = tmp_path / "orders"
    write_deltalake(place, pa.table({"oid": [1, 2], "n": [1, 2]}))
    write_deltalake(place, pa.table({"oid": [3], "n": [3]}), mode="append")
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM orders")
    DeltaTable(place).optimize.compact()
    DeltaTable(place).alter.set_table_properties({"delta.appendOnly": "false"})
    assert keeper.status()[0].behind == {"orders": 0}
    (report,) = keeper.refresh()
    assert (report.rows_changed, report.jobs, report.changes) == (0, 0, {"orders": 0})
    assert keeper.status()[0].is_fresh
    assert rows(keeper, "total") == {(6,): 1}


def test_a_view_on_a_table_without_a_key(spark: SparkSession, tmp_path: Path) -> None:
    """Copies of equal rows are told apart by their numbers."""
    place = tmp_path / "events"
    write_deltalake(place, pa.table({"n": [1, 1, 2]}))
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("events", place)
    keeper.create_view("large", "SELECT n FROM events WHERE n < 5")
    keeper.create_view("counted", "SELECT n, count(*) AS c FROM large GROUP BY n")
    write_deltalake(place, pa.table({"n": [1, 7]}), mode="append")
    assert [each.strategy for each in keeper.refresh()] == ["id", "id"]
    check(keeper)
    check_verified(keeper)


def test_types_are_widened_in_old_files(spark: SparkSession, tmp_path: Path) -> None:
    """A column that came later is NULL in files from before it."""
    place = tmp_path / "orders"
    write_deltalake(place, pa.table({"oid": [1, 2]}))
    more = pa.table({"oid": [3], "n": [3]})
    write_deltalake(place, more, mode="append", schema_mode="merge")
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("known", "SELECT oid, n FROM orders WHERE n IS NULL OR n > 1")
    DeltaTable(place).update(updates={"n": "9"}, predicate="oid = 1")
    keeper.refresh()
    check(keeper)
    assert rows(keeper, "known") == {(1, 9): 1, (2, None): 1, (3, 3): 1}


def test_partitions_with_any_text(spark: SparkSession, tmp_path: Path) -> None:
    """Their values stand in the log, and in the names of folders."""
    texts = ["a b", "ü", "50%", "x/y=z", "it's", None, "2024-01-01", 'say "hi"', "back`tick"]
    days = [date(2024, 1, 1 + n) for n in range(len(texts))]
    given = pa.table({"id": range(len(texts)), "text": texts, "day": days})
    place = tmp_path / "noted"
    write_deltalake(place, given, partition_by=["text", "day"])
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("noted", place, key=["id"])
    keeper.create_view("seen", "SELECT id, text, day FROM noted")
    assert rows(keeper, "seen") == as_bag(zip(range(len(texts)), texts, days, strict=True))
    DeltaTable(place).update(updates={"text": "concat(text, '%41')"}, predicate="id < 4")
    DeltaTable(place).delete("id = 8")
    keeper.refresh()
    check(keeper)


@pytest.mark.parametrize("feed", [True, False], ids=["feed", "difference"])
def test_more_changes_than_the_driver_takes(
    spark: SparkSession, tmp_path: Path, feed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not collected: the view is computed anew, or refuses under the policy strict."""
    place = tmp_path / "orders"
    first = pa.table({"oid": list(range(10)), "n": [1] * 10})
    write_deltalake(place, first, configuration=FEED if feed else None)
    keeper = Keeper(tmp_path / "lake", spark)
    keeper.register_table("orders", place, key=["oid"])
    keeper.create_view("total", "SELECT sum(n) AS s FROM orders", policy="incremental")
    keeper.create_view("strictly", "SELECT count(*) AS c FROM orders", policy="strict")
    monkeypatch.setattr("viewkeep.tables.feed.MOST_CHANGES", 3)
    DeltaTable(place).update(updates={"n": "2"}, predicate="oid < 8")
    with pytest.raises(ViewkeepError, match=r'view "strictly": more than 3 changes of orders'):
        keeper.refresh()
    report = keeper.history("total")[0]
    assert report.strategy == "recompute"
    assert report.reason == "more than 3 changes of orders, too many to bring in one by one"
    assert rows(keeper, "total") == {(18,): 1}
