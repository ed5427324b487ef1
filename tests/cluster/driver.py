"""What a driver does on a cluster, in a process of its own: it tells what came of it as JSON.

python -m tests.cluster.driver SCENARIO CLUSTER FOLDER
"""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bench._spark_cluster import Cluster, driver_memory, tasks_by_executor
from bench._tpch_data import TABLES, Tpch
from tests.keeper.lakes import as_bag
from viewkeep import Keeper
from viewkeep.execute import engines
from viewkeep.execute.spark.driver import scanned
from viewkeep.refresh import costs
from viewkeep.tables.files import mark, rewrite
from viewkeep.tables.spark_rows import frame_rows

QUERIES = Path(__file__).parents[2] / "examples" / "tpch"
VIEWS = ("q01", "q03", "q13")
ROWS = 1_500_000
LIMIT = 1 << 20
BIG = f"""SELECT id, id % 1000 AS kind, md5(CAST(id AS string)) AS text, id * 7 AS n
    FROM range({ROWS})"""


def tpch(cluster: Cluster, folder: Path) -> dict[str, Any]:
    """Queries of TPC-H as views, through all kinds of changes."""
    spark = cluster.session("tpch")
    data, keeper = Tpch(0.01), Keeper(folder / "lake", spark, backend="spark")
    for name, path in data.tables(folder / "data").items():
        keeper.create_table(name, TABLES[name], rows=_typed_frame(spark, name, path))
    for name in VIEWS:
        keeper.create_view(name, _query(name))
    keeper.create_view("marked", _query("q03").partition("ORDER BY")[0], layout="merge-on-read")
    strategies: Counter[str] = Counter()
    for changes in (data.rf1(15), data.rf2(15), data.updates(5, 1)):
        for change in changes:
            keeper.apply(change.table, **change.parts)
        strategies.update(each.strategy for each in keeper.refresh())
    right = {name: _equals_spark(spark, keeper, name) for name in (*VIEWS, "marked")}
    return {"right": right, "strategies": strategies, "tasks": tasks_by_executor(spark)}


def large(cluster: Cluster, folder: Path) -> dict[str, Any]:
    """A table and views of more bytes than the driver may take from its executors."""
    spark = cluster.session("large", spark__driver__maxResultSize="4m")
    # Tables of more bytes than these are not read by the driver; here, of few.
    for module in (scanned, mark, rewrite, costs):
        module.DRIVER_BYTES = LIMIT  # type: ignore[attr-defined]
    rewrite.JOB_BYTES = engines.JOB_BYTES = engines.REWRITE_BYTES = LIMIT  # type: ignore[misc]
    keeper = Keeper(folder / "lake", spark, driver_bytes=0)
    keeper.create_table("few", {"kind": "bigint", "name": "string"}, key=["kind"])
    keeper.apply("few", inserts=[(kind, f"name {kind}") for kind in range(1000)])
    before = driver_memory(spark).python
    keeper.create_table("big", spark.sql(BIG), key=["id"])
    keeper.create_view(
        "pairs", "SELECT b.id, b.text, f.name FROM big b JOIN few f ON b.kind = f.kind"
    )
    keeper.create_view("texts", "SELECT id, concat(text, '!') AS t FROM big", strategy="recompute")
    keeper.apply("few", updates=[{"kind": 3, "name": "other"}])
    keeper.apply("big", deletes=[{"id": 17}], updates=[{"id": 18, "text": "new"}])
    ways = {each.view: (each.strategy, each.reason) for each in keeper.refresh()}
    grown = driver_memory(spark).python - before
    return {
        "right": {name: keeper.verify(name).ok for name in ("pairs", "texts")},
        "rows": {name: keeper.read(name).count() for name in ("pairs", "texts")},
        "ways": ways,
        "grown": grown,
        "files": {name: _parts(folder / "lake" / name) for name in ("big", "texts")},
        "bytes": sum(map(os.path.getsize, DeltaTable(folder / "lake" / "big").file_uris())),
    }


def deaths(cluster: Cluster, folder: Path) -> dict[str, Any]:
    """An executor dies while a view is built, and a worker with its own while it is refreshed."""
    spark = cluster.session("deaths")
    keeper = Keeper(folder / "lake", spark, backend="spark")
    keeper.create_table("big", spark.sql(BIG), key=["id"])
    first, second = cluster.workers

    def kill_executors() -> list[int]:
        pids = cluster.executors(first)
        for each in pids:
            os.kill(each, signal.SIGKILL)
        return pids

    def kill_worker() -> list[int]:
        os.killpg(second, signal.SIGKILL)
        return [second]

    sql = "SELECT kind, count(DISTINCT text) AS c, sum(n) AS s FROM big GROUP BY kind"
    with at_work(spark, kill_executors) as killed:
        keeper.create_view("kinds", sql, strategy="recompute")
    with at_work(spark, kill_worker) as gone:
        keeper.apply("big", updates=[{"id": 5, "kind": 7}])
        keeper.refresh()
    rows = keeper.read("kinds").collect()
    return {
        "killed": [len(killed), len(gone)],
        "right": keeper.verify("kinds").ok,
        "kinds": len(rows),
        "versions": keeper.version("kinds"),
        "files": len(_parts(folder / "lake" / "kinds")),
        "sum": sum(row["s"] for row in rows),
    }


@contextmanager
def at_work(spark: SparkSession, act: Callable[[], list[int]]) -> Iterator[list[int]]:
    """Do something once tasks run on the cluster; what it answers is in the list."""
    done: list[int] = []
    stop = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def wait() -> None:
        while not done and not stop.wait(0.02):
            stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
            if any(each is not None and each.numActiveTasks for each in stages):
                done.extend(act())

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def _query(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text()


def _typed_frame(spark: SparkSession, name: str, path: Path) -> Any:
    fields = TABLES[name].columns
    return spark.read.parquet(str(path)).selectExpr(
        *(f"CAST({each.name} AS {each.type}) AS {each.name}" for each in fields)
    )


def _equals_spark(spark: SparkSession, keeper: Keeper, name: str) -> bool:
    """Whether a view has the rows that Spark computes by its query over the tables."""
    for table in keeper.tables:
        keeper.read(table).createOrReplaceTempView(table)
    text = _query("q03" if name == "marked" else name)
    if name == "marked":
        text = text.partition("ORDER BY")[0]
    wanted, shown = (frame_rows(each) for each in (spark.sql(text), keeper.read(name)))
    bags = (as_bag(zip(*(c.to_pylist() for c in each.columns), strict=True))
            for each in (wanted, shown))  # fmt: skip
    first, second = bags
    return first == second and bool(first)


def _parts(table: Path) -> list[str]:
    """The files of a table, as its log names them."""
    return sorted(os.path.relpath(each, table) for each in DeltaTable(table).file_uris())


SCENARIOS = {each.__name__: each for each in (tpch, large, deaths)}


def main() -> None:
    """Run one scenario."""
    name, about, folder = sys.argv[1:]
    values = json.loads(about)
    cluster = Cluster(**{**values, "workers": tuple(values["workers"])})
    start = time.monotonic()
    answer = SCENARIOS[name](cluster, Path(folder))
    print(json.dumps({**answer, "seconds": round(time.monotonic() - start, 1)}))


if __name__ == "__main__":
    main()
