"""Windows on Spark: partitions that a batch touches are computed again on the driver."""

from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.diffs.random_tables import random_batch, random_database
from tests.execute.spark.kept import KeptView, Tables, check, told
from viewkeep.diffs.optimize import reserve_rows
from viewkeep.query.tables import Table

TABLES = {
    "r": Table({"k": "int", "a": "int", "b": "int", "c": "int not null"}, key=["k"]),
    "s": Table({"a": "int", "d": "int", "e": "int"}, key=["a", "d"]),
}
VIEWS = {
    "ranks": "select k, rank() over (partition by a order by b desc) x, "
    "lag(b, 1, 7) over (partition by a order by c, k) y from r",
    "frames": "select k, sum(b) over (partition by a order by c, k rows between 1 preceding and 1 "
    "following) x, max(b) over (order by c) y from r",
    "joined": "select r.k, s.d, row_number() over (partition by s.e order by r.k, s.d) z "
    "from r left join s on r.a = s.a",
    "groups": "select a, sum(b) x, sum(sum(b)) over (partition by count(*)) z from r group by a",
    "spread": "select a, stddev_samp(b) x, bit_xor(b) y, median(b) z from r group by a",
    "top": "select k, b from r order by b desc, k limit 3",
    "best": "select k, a, b from r qualify row_number() over (partition by a order by b, k) <= 2",
    "second": "select k, b from r order by c, k limit 2 offset 1",
}


@pytest.mark.slow
def test_views_with_windows_stay_what_recomputation_gives(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserve_rows, "LEAST", 1)
    monkeypatch.setattr(reserve_rows, "MOST", 1)
    rng = Random(3)
    tables = Tables(spark, TABLES, random_database(TABLES, rng, rows=8))
    views = [KeptView(name, VIEWS[name], tables) for name in VIEWS]
    changes = random_batch(tables.database, TABLES, rng, 6)
    tables.change(changes)
    for view in views:
        with told(view):
            view.refresh(changes)
    check(views)
