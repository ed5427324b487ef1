"""A process that changes and refreshes a lake until it is killed, or kills itself.

    python -m tests.keeper.crashing LAKE LOG SEED FIRST AT AFTER

It uses the Spark of the process that started it, as `attached` finds it, or starts its own.
LOG tells what it did: "begin 7" before change number 7, "end 7" after it, "fresh 7" after the
refresh that follows.
With AT, it kills itself at the AT-th place where it writes, before or after; else it lives on.
"""

import os
import signal
import sys
from pathlib import Path
from random import Random
from typing import Any

from deltalake import DeltaTable
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tests.diffs.random_tables import Database, apply_batches, random_batch
from tests.keeper.faults import POINTS, TABLES, Fault, apply, chosen
from viewkeep import Keeper
from viewkeep.changes import ChangeBatch
from viewkeep.execute.spark.session import session

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


def to_attach(spark: SparkSession) -> dict[str, str]:
    """The environment in which another process can use a Spark that runs."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    known = gateway.gateway_parameters
    return {PORT: str(known.port), SECRET: known.auth_token}


def own_or_attached() -> SparkSession:
    """The Spark that the environment names, else one that dies with this process group."""
    if PORT in os.environ:
        return attached()
    return session(1, "viewkeep victim", spark__driver__memory="512m")


def attached() -> SparkSession:
    """The Spark of another process; it stays there when this process dies."""
    gateway = launch_gateway()
    jvm = gateway.jvm
    context = jvm.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    conf = SparkConf(_jvm=jvm, _jconf=context.getConf())
    spark = SparkContext(gateway=gateway, jsc=context, conf=conf)
    return SparkSession(spark)


def next_batch(model: Database, seed: int, number: int) -> ChangeBatch:
    """The change with a number: the same in every process that sees the same rows."""
    rng = Random(f"{seed} {number}")
    ordered = {name: dict(sorted(rows.items())) for name, rows in model.items()}
    while True:
        found = random_batch(ordered, TABLES, rng, 5)
        if any(not each.is_empty for each in found.values()):
            return chosen(found, rng)


def read_model(place: Path) -> Database:
    """The rows of the tables, by their keys."""
    model: Database = {}
    for name, table in TABLES.items():
        stored = DeltaTable(place / name).to_pyarrow_table().select(list(table.names))
        width = len(table.key)
        found = zip(*(column.to_pylist() for column in stored.columns), strict=True)
        model[name] = {row[:width]: row for row in found}
    return model


def main(place: Path, log: Path, seed: int, number: int, at: int, after: bool) -> None:
    """Change and refresh for ever."""
    keeper, model = Keeper(place, own_or_attached()), read_model(place)
    with log.open("a", buffering=1) as told:
        print("ready", file=told)
        _deadly(at, after)
        while True:
            batch = next_batch(model, seed, number)
            print("begin", number, file=told)
            apply(keeper, batch)
            print("end", number, file=told)
            model = apply_batches(model, {batch.name: batch})
            keeper.refresh()
            print("fresh", number, file=told)
            number += 1


def _deadly(at: int, after: bool) -> None:
    """This process ends at a place where it writes."""

    class Kill(Fault):
        def _die(self, name: str) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

    found = Kill(at, after)
    for owner, name in POINTS:
        write: Any = getattr(owner, name)
        setattr(owner, name, found.around(name, write))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]), Path(given[1]), *map(int, given[2:5]), after=given[5] == "after")
