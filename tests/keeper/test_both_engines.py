"""One lake, two engines in turn: what one has written, the other reads, changes and verifies."""

import os
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, check_replayed
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute.errors import NeedsSparkError
from viewkeep.lake.views import caches
from viewkeep.refresh import write_changes

ROUNDS = 20 if os.environ.get("VIEWKEEP_LONG") else 8
VIEWS = {
    "joined": "SELECT u.did, u.pid, p.price FROM uses u JOIN parts p ON u.pid = p.pid",
    "cost": """SELECT u.did, sum(p.price) AS cost, count(*) AS n, min(p.name) AS first
        FROM uses u JOIN parts p ON u.pid = p.pid GROUP BY u.did""",
    "unused": """SELECT pid, name FROM parts p
        WHERE NOT EXISTS (SELECT 1 FROM uses u WHERE u.pid = p.pid)""",
    "all_parts": "SELECT p.pid, p.name, u.did FROM parts p LEFT JOIN uses u ON p.pid = u.pid",
    "total": "SELECT count(*) AS n, sum(price) AS s, max(name) AS last FROM parts",
    "names": "SELECT DISTINCT name FROM parts",
    "dear": "SELECT did, cost FROM cost WHERE cost > 20",
}


def change(keeper: Keeper, rng: Random, parts: dict[int, tuple[int, str | None]]) -> None:
    """New, other and fewer parts; their uses."""
    new = {rng.randrange(60): (rng.randrange(30), rng.choice(["a", "b", None])) for _ in range(4)}
    inserts = [(pid, *values) for pid, values in new.items() if pid not in parts]
    updates = [{"pid": pid, "price": values[0]} for pid, values in new.items() if pid in parts]
    gone = [pid for pid in parts if pid not in new and rng.random() < 0.08]
    keeper.apply("parts", inserts, updates, [(pid,) for pid in gone])
    parts |= {pid: (price, name) for pid, price, name in inserts}
    for pid in gone:
        del parts[pid]
    used = {(rng.randrange(6), rng.randrange(60)) for _ in range(3)}
    there = {tuple(row.values()) for row in keeper.read("uses", backend="duckdb").to_pylist()}
    keeper.apply("uses", inserts=list(used - there), deletes=list(used & there))


@pytest.mark.slow
def test_engines_in_turn(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "OVERLAY_ROWS", 10)  # overlays grow and are compacted
    monkeypatch.setattr(write_changes, "SMALL_ROWS", 10)
    rng, parts = Random(3), {pid: (pid, "a") for pid in range(20)}
    embedded, both = Keeper(tmp_path), Keeper(tmp_path, spark)
    rows = [(pid, *values) for pid, values in parts.items()]
    embedded.create_table(
        "parts", {"pid": "int", "price": "int", "name": "string"}, ["pid"], rows=rows
    )
    uses = [(pid % 6, pid) for pid in range(20)]
    both.create_table("uses", {"did": "int", "pid": "int"}, ["did", "pid"], rows=uses)
    for number, (name, sql) in enumerate(VIEWS.items()):
        both.create_view(name, sql, policy="incremental", backend=("spark", "duckdb")[number % 2])
    done = set()
    for _ in range(ROUNDS):
        change(rng.choice([embedded, both]), rng, parts)
        for name in VIEWS:
            engine = rng.choice(["spark", "duckdb", None])
            report = (embedded if engine is None else both).refresh(name, backend=engine)[-1]
            done.add((report.strategy, report.backend))
        check(both)
        name = rng.choice(list(VIEWS))
        assert both.verify(name, backend="spark").ok
        assert embedded.verify(name).ok
    assert {("id", "spark"), ("id", "duckdb")} <= done
    check_replayed(embedded)


def test_what_an_embedded_lake_cannot_compute_is_refused_by_name(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int", "x": "double"}, ["id"], rows=[(1, 0.1), (2, 0.2)])
    with pytest.raises(NeedsSparkError, match=r"needs Spark: Keeper\(path, spark\)"):
        keeper.create_view("v", "SELECT id, cast(x AS string) AS s FROM t")
    assert not keeper.views
    with pytest.raises(ViewkeepError, match='backend="spark" needs a session'):
        Keeper(tmp_path, backend="spark")
    with pytest.raises(ViewkeepError, match="give one of auto, spark, duckdb"):
        Keeper(tmp_path, backend="polars")
    with pytest.raises(ViewkeepError, match="the path comes first"):
        Keeper(lambda: None, tmp_path)


def test_a_plan_is_what_a_refresh_does(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"id": "int", "g": "int"}, ["id"], rows=[(i, i % 3) for i in range(9)])
    keeper.create_view("sums", "SELECT g, count(*) AS n FROM t GROUP BY g")
    keeper.create_view("large", "SELECT g FROM sums WHERE n > 2")
    keeper.create_view("anew", "SELECT id FROM t", policy="full")
    assert [each.action for each in keeper.plan()] == ["skip"] * 3
    keeper.apply("t", inserts=[(20, 1)])
    stages = {each.view: each for each in keeper.plan()}
    assert keeper.status("sums")[0].behind == {"t": 1}, "planning runs nothing"
    reports = {each.view: each for each in keeper.refresh()}
    assert {name: each.action for name, each in stages.items()} == {
        "sums": "incremental",
        "large": "incremental",
        "anew": "recompute",
    }
    assert stages["sums"].changes == reports["sums"].changes == {"t": 1}
    assert {name: each.strategy for name, each in reports.items()} == {
        name: each.strategy for name, each in stages.items()
    }
    assert stages["large"].reason.startswith("after sums")
    assert str(stages["sums"]).startswith("sums: incremental (id); by duckdb; changes: 1 of t")
