"""A process that changes and refreshes a lake until it is killed, or kills itself.

    python -m tests.keeper.crashing LAKE LOG SEED FIRST AT AFTER

It uses the Spark of the process that started it, as `attached` finds it, or starts its own.
LOG tells what it did: "begin 7" before change number 7, "end 7" after it, "fresh 7" after the
refresh that follows.
With AT, it kills itself at the AT-th place where it writes, before or after; else it lives on.
"""

import os
import sys
from pathlib import Path

from deltalake import DeltaTable
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tests.diffs.random_tables import Database
from tests.keeper.faults import TABLES
from tests.keeper.victim import change_until_killed
from viewkeep import Keeper
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


def read_model(place: Path) -> Database:
    """The rows of the tables, by their keys."""
    model: Database = {}
    for name, table in TABLES.items():
        stored = DeltaTable(place / name).to_pyarrow_table().select(list(table.names))
        width = len(table.key)
        found = zip(*(column.to_pylist() for column in stored.columns), strict=True)
        model[name] = {row[:width]: row for row in found}
    return model


def main(place: Path, log: Path, *numbers: int, after: bool) -> None:
    """Change and refresh for ever."""
    keeper, model = Keeper(place, own_or_attached()), read_model(place)
    change_until_killed(keeper, model, log, *numbers, after=after)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]), Path(given[1]), *map(int, given[2:5]), after=given[5] == "after")
