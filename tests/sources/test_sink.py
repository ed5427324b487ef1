"""Batches of streams: each of them once by its number, also after a restart."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.keeper.faults import fault
from tests.keeper.lakes import check
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake import transactions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = pa.table({"pid": [1, 3], "price": [11, 30]})
SECOND = pa.table({"op": ["update", "delete", "insert"], "pid": [1, 2, 1], "price": [12, 0, 0]})


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 10), (2, 20)])
    keeper.create_view("total", "SELECT sum(price) AS total FROM parts")
    return keeper


def rows(keeper: Keeper, name: str = "parts") -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in keeper.read(name).to_pylist())


def test_a_batch_counts_once(keeper: Keeper) -> None:
    sink = keeper.sink("parts", query="q")
    assert sink.take_in(FIRST, 0).records == 2
    assert rows(keeper) == [(1, 11), (2, 20), (3, 30)]
    sink(SECOND, 1)
    again = Keeper(keeper._lake.uri).sink("parts", query="q")
    for batch_id in (0, 1):
        assert not again.take_in(FIRST, batch_id).changed
    assert rows(keeper) == [(1, 12), (3, 30)]
    [record] = keeper.quarantine("parts").to_pylist()
    assert (record["name"], record["part"], record["record"]) == ("stream q", 1, 3)
    other = keeper.sink("parts", query="another")
    assert other.take_in(FIRST, 0).changed


def test_views_are_fresh_after_a_batch(keeper: Keeper) -> None:
    keeper.sink("parts", refresh=True, query="q")(FIRST, 0)
    assert rows(keeper, "total") == [(61,)]
    check(keeper)


def test_whoever_dies_a_batch_counts_once(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "PATIENCE", 0)
    keeper.sink("parts", query="q")(FIRST, 0)
    deaths = 0
    for batch_id, at in enumerate(range(1, 12, 2), 1):
        batch = pa.table({"op": ["insert"], "pid": [100 + batch_id], "price": [1]})
        with fault(at, after=bool(at % 4 == 1)) as found:
            Keeper(keeper._lake.uri, durable=False).sink("parts", query="q")(batch, batch_id)
        deaths += found.dead
        Keeper(keeper._lake.uri, durable=False).sink("parts", query="q")(batch, batch_id)
        assert keeper.read("parts").num_rows == 3 + batch_id
    assert deaths > 2
    assert keeper.quarantine("parts").num_rows == 0


def test_envelopes_as_kafka_has_them(keeper: Keeper) -> None:
    after = {"pid": 5, "price": 50}
    event = {"op": "c", "before": None, "after": after, "source": {"lsn": 2}}
    gone = {"op": "d", "before": None, "after": None, "source": {"lsn": 3}}
    old = {"op": "c", "before": None, "after": {"pid": 2, "price": 0}, "source": {"lsn": 1}}
    batch = pa.table(
        {
            "key": [b"5", b'{"pid": 2}', b'{"pid": 2}', b'{"pid": 2}', b"x"],
            "value": [json.dumps(each).encode() for each in (event, gone, old)] + [None, b"{"],
        }
    )
    sink = keeper.sink("parts", records="debezium", query="q")
    report = sink.take_in(batch, 0)
    assert (report.records, report.skipped, report.rejected) == (5, 2, 1)
    assert rows(keeper) == [(1, 10), (5, 50)]
    with pytest.raises(ViewkeepError, match='the batch has no column "value"'):
        sink(FIRST, 1)


def test_a_sink_that_does_not_know_its_query(keeper: Keeper) -> None:
    with pytest.raises(ViewkeepError, match="give the sink a name that stays"):
        keeper.sink("parts")(FIRST, 0)
    with pytest.raises(ViewkeepError, match='"total" is a view'):
        keeper.sink("total")


def test_a_stream_of_spark_restarts_where_it_was(
    spark: "SparkSession", keeper: Keeper, tmp_path: Path
) -> None:
    source = tmp_path / "stream"
    source.mkdir()

    def run(sink: Any) -> None:
        stream = spark.readStream.schema("op string, pid int, price int").json(str(source))
        writer = stream.writeStream.foreachBatch(sink).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    def taken_then_dead(batch: Any, batch_id: int) -> None:
        keeper.sink("parts", refresh=True)(batch, batch_id)
        raise ValueError("the stream dies before its checkpoint")

    (source / "a.json").write_text('{"op":"insert","pid":7,"price":70}\n')
    with pytest.raises(Exception, match="the stream dies"):
        run(taken_then_dead)
    (source / "b.json").write_text('{"op":"insert","pid":8,"price":80}\n')
    run(keeper.sink("parts", refresh=True))
    assert rows(keeper) == [(1, 10), (2, 20), (7, 70), (8, 80)]
    assert rows(keeper, "total") == [(180,)]
    assert keeper.quarantine("parts").num_rows == 0
