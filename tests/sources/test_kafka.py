"""Debezium's envelopes from Kafka by Spark's source of it: each change counts once.

The stream and the broker are killed, and messages come late, twice and with tombstones.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.keeper.lakes import check
from tests.sources.kafka_broker import Broker, connector_jars, jar_folder, running_broker
from viewkeep import Keeper
from viewkeep.lake.intake import intake_of

pytestmark = [
    pytest.mark.jars,
    pytest.mark.skipif("VIEWKEEP_LONG" not in os.environ, reason="the long form starts a broker"),
]

TOPIC, KEYS = "shop.public.orders", 30
SOURCE = {"connector": "postgresql", "name": "shop", "db": "shop", "table": "orders"}
Message = tuple[str, str | None]


class Shop:
    """A table that changes, and the messages that tell it."""

    def __init__(self, random: Random) -> None:
        self.random, self.lsn, self.rows = random, 0, dict[int, int]()

    def messages(self, count: int) -> list[Message]:
        """Messages of so many changes, some of them twice, and in a random order."""
        told = [each for _ in range(count) for each in self._change()]
        told += self.random.sample(told, count // 5)
        self.random.shuffle(told)
        return told

    def _change(self) -> list[Message]:
        oid, price = self.random.randrange(KEYS), self.random.randrange(1000)
        self.lsn += 1
        before, key = self.rows.get(oid), json.dumps({"oid": oid})
        old = None if before is None else {"oid": oid, "price": before}
        if old is not None and self.random.random() < 0.3:
            del self.rows[oid]
            return [(key, self._envelope("d", old, None)), (key, None)]
        self.rows[oid] = price
        operation = "c" if old is None else "u"
        return [(key, self._envelope(operation, old, {"oid": oid, "price": price}))]

    def _envelope(self, operation: str, before: Any, after: Any) -> str:
        source = {**SOURCE, "lsn": self.lsn}
        return json.dumps({"op": operation, "before": before, "after": after, "source": source})


def run_stream(place: Path, broker: Broker, dies: tuple[int, str] | None = None) -> int:
    """Take in what the topic holds in a process of its own; its exit code."""
    options = {
        "lake": str(place / "lake"),
        "address": broker.address,
        "topic": TOPIC,
        "jars": connector_jars(),
        "checkpoint": str(place / "checkpoint"),
        "dies": dies,
    }
    command = [sys.executable, "-m", "tests.sources.kafka_stream", json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-3000:]
    return done.returncode


def rows(keeper: Keeper) -> dict[int, int]:
    return {each["oid"]: each["price"] for each in keeper.read("orders").to_pylist()}


def taken_records(keeper: Keeper) -> int:
    intake = intake_of(keeper._lake, "orders")
    return sum(intake.rows(intake.files)["records"].to_pylist())


@pytest.mark.slow
def test_a_stream_and_a_broker_that_are_killed(tmp_path: Path) -> None:
    jar_folder()
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("orders", {"oid": "int", "price": "int"}, ["oid"])
    keeper.create_view("total", "SELECT count(*) AS orders, sum(price) AS total FROM orders")
    shop = Shop(Random(18))
    with running_broker(tmp_path) as broker:
        first = [*shop.messages(150), ("none", "no envelope")]
        broker.produce(TOPIC, first)
        assert run_stream(tmp_path, broker, dies=(1, "after")) == -signal.SIGKILL
        assert taken_records(keeper) > 0
        broker.kill()
        broker.start()
        second = shop.messages(100)
        broker.produce(TOPIC, second)
        assert run_stream(tmp_path, broker, dies=(3, "before")) == -signal.SIGKILL
        assert run_stream(tmp_path, broker) == 0
    assert taken_records(keeper) == len(first) + len(second)
    assert rows(keeper) == shop.rows
    [record] = keeper.quarantine("orders").to_pylist()
    assert "no envelope" in record["text"]
    assert keeper.read("total").to_pylist() == [
        {"orders": len(shop.rows), "total": sum(shop.rows.values())}
    ]
    check(keeper)
