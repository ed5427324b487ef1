"""Views that read the clock: windows of time that move with it, forward and back.

The clock is a table of one row. After every refresh each view equals its query at the moment of
the refresh, which DuckDB computes with that moment as a literal.
"""

import os
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from tests.diffs.harness import expect, plain
from tests.keeper.lakes import location, rows, version
from tests.transpile import to_duckdb
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute import few_rows
from viewkeep.tables.log.delta import LakeTable, StorageError

START = datetime(2026, 5, 10, 12, tzinfo=UTC)
VIEWS = {
    "week": "SELECT id, g FROM e WHERE d > {today} - INTERVAL 7 DAYS AND d <= {today}",
    "hours": "SELECT id, ts FROM e WHERE ts >= {now} - INTERVAL 48 HOURS",
    "either": "SELECT id FROM e WHERE d = {today} OR ts > {now}",
    "counts": "SELECT g, count(*) AS n, sum(id) AS s FROM e WHERE d > {today} - INTERVAL 7 DAYS "
    "GROUP BY g",
    "least": "SELECT g, min(id) AS low FROM e WHERE ts < {now} GROUP BY g",
    "named": "SELECT n.name, count(*) AS c FROM e JOIN names AS n ON e.g = n.g "
    "WHERE e.ts BETWEEN {now} - INTERVAL 3 DAYS AND {now} GROUP BY n.name",
    "silent": "SELECT name FROM names AS n WHERE NOT EXISTS "
    "(SELECT 1 FROM e WHERE e.g = n.g AND e.d >= {today} - INTERVAL 2 DAYS)",
    "active": "SELECT g, max(ts) AS last FROM e GROUP BY g HAVING max(ts) > {now}",
    "joined": "SELECT n.name, e.id FROM names AS n LEFT JOIN e ON e.g = n.g AND e.d = {today}",
    "above": "SELECT g, count(*) AS n FROM week GROUP BY g",
}
SHOWN = "SELECT id, datediff({today}, d) AS age FROM e WHERE d IS NOT NULL"
SEEDS = range(20) if os.environ.get("VIEWKEEP_LONG") else (1, 2)


def moment(rng: random.Random) -> datetime | None:
    """A moment near the start, often just where a window begins or ends."""
    if not rng.randrange(8):
        return None
    return START + timedelta(days=rng.randint(-9, 9), hours=rng.choice([0, 0, 12, -12, 5]))


def event(rng: random.Random, number: int) -> tuple[Any, ...]:
    ts = moment(rng)
    return number, ts, ts.date() if ts and rng.randrange(6) else None, rng.choice([1, 2, 3, None])


def lake(tmp_path: Path, names: tuple[str, ...], spark: Any = None) -> Keeper:
    """Events, and views that read the clock, at the start."""
    rng = random.Random(0)
    keeper = Keeper(tmp_path / "lake", spark, durable=False)
    columns = {"id": "int", "ts": "timestamp", "d": "date", "g": "int"}
    keeper.create_table("e", columns, ["id"], rows=[event(rng, n) for n in range(20)])
    named = [(1, "x"), (2, "y"), (3, "z")]
    keeper.create_table("names", {"g": "int", "name": "string"}, ["g"], rows=named)
    for name in names:
        keeper.create_view(name, sql(name), policy="strict", as_of=START)
    return keeper


def sql(name: str) -> str:
    return VIEWS[name].format(today="current_date()", now="current_timestamp()")


def check(keeper: Keeper, at: datetime) -> None:
    """Every view is what DuckDB answers where the moment is a literal."""
    today, now = f"DATE '{at.date()}'", f"TIMESTAMPTZ '{at.isoformat()}'"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in ("e", "names"):
            connection.register(name, DeltaTable(location(keeper, name)).to_pyarrow_dataset())
        for name in keeper.views:
            text = to_duckdb(VIEWS[name].format(today=today, now=now))
            connection.execute(f'CREATE VIEW "{name}" AS {text}')
            expected = Counter(connection.execute(f'SELECT * FROM "{name}"').fetchall())
            expect(f"{name} at {at}", plain(rows(keeper, name)), plain(expected))


def change(rng: random.Random, keeper: Keeper, next_id: int) -> None:
    """Events come, go and are moved to other times."""
    there = [row[0] for row in rows(keeper, "e")]
    picked = rng.sample(there, 3)
    changed = [dict(zip(("id", "ts", "d", "g"), event(rng, n), strict=True)) for n in picked[:2]]
    inserts = [event(rng, next_id + n) for n in range(3)]
    keeper.apply("e", inserts=inserts, updates=changed, deletes=[(picked[2],)])


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_move_with_the_clock_and_with_their_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng, at = random.Random(seed), START
    if seed % 2:
        monkeypatch.setattr(few_rows, "MOST_ROWS", -1)
    keeper = lake(tmp_path, tuple(VIEWS))
    check(keeper, at)
    for step in range(4):
        at += timedelta(hours=rng.choice([0, 1, 12, 24, 60, -36]))
        if step % 2:
            change(rng, keeper, 100 * (step + 1))
        for report in keeper.refresh(as_of=at):
            assert report.strategy in ("id", "none"), (seed, report)
        check(keeper, at)
    assert all(keeper.verify(name).ok for name in VIEWS)


def test_windows_move_on_spark(tmp_path: Path, spark: Any) -> None:
    keeper = lake(tmp_path, ("week", "counts", "silent"), spark)
    at = START + timedelta(days=2)
    change(random.Random(5), keeper, 100)
    for report in keeper.refresh(as_of=at, backend="spark"):
        assert report.strategy == "id", report
    check(keeper, at)


def test_a_day_that_is_the_same_changes_nothing(tmp_path: Path) -> None:
    """Only what a view reads of the clock matters: not the hour, to a view of days."""
    keeper = lake(tmp_path, ("week", "hours"))
    done = {each.view: each for each in keeper.refresh(as_of=START + timedelta(hours=3))}
    assert (done["week"].strategy, done["hours"].strategy) == ("none", "id")
    assert done["hours"].changes == {"#clock": 1}


def test_the_moment_is_in_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh that fails half-way leaves views at different moments; the next one brings all to
    its own, from where each of them is."""
    keeper = lake(tmp_path, ("week", "counts", "hours"))
    commit, later = LakeTable.commit, START + timedelta(days=3)

    def fails(self: LakeTable, *given: Any, **named: Any) -> int:
        if self.uri.endswith("counts"):
            raise StorageError("the disk is full")
        return commit(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(LakeTable, "commit", fails)
        with pytest.raises(ViewkeepError, match="the disk is full"):
            keeper.refresh(as_of=later)
    again = Keeper(tmp_path / "lake", durable=False)
    assert all(again.verify(name).ok for name in again.views)
    before = version(again, "week")
    again.refresh(as_of=later.isoformat())
    check(again, later)
    assert version(again, "week") == before
    again.refresh(as_of=START.date())
    check(again, datetime(START.year, START.month, START.day, tzinfo=UTC))


def test_without_as_of_the_clock_is_now(tmp_path: Path) -> None:
    keeper = lake(tmp_path, ())
    keeper.create_view("past", "SELECT id FROM e WHERE ts < now()")
    keeper.create_view("today", "SELECT DISTINCT current_date AS day FROM names")
    today = {datetime.now(UTC).date()}
    keeper.refresh()
    assert rows(keeper, "past") == rows_before_now(keeper)
    today.add(datetime.now(UTC).date())
    assert {row[0] for row in rows(keeper, "today")} <= today


def rows_before_now(keeper: Keeper) -> Counter[tuple[int]]:
    table = DeltaTable(location(keeper, "e")).to_pyarrow_table().to_pylist()
    return Counter((r["id"],) for r in table if r["ts"] and r["ts"] < datetime.now(UTC))


def test_values_of_the_clock_are_computed_anew_at_each_refresh(tmp_path: Path) -> None:
    keeper = lake(tmp_path, ())
    text = SHOWN.format(today="curdate()")
    report = keeper.create_view("shown", text, as_of=START)
    assert report.strategy == "recompute"
    assert "all its rows change with the clock" in report.reason
    assert "It is computed anew at each refresh." in keeper.explain("shown")
    before = rows(keeper, "shown")
    [report] = keeper.refresh(as_of=START + timedelta(days=1))
    assert report.strategy == "recompute"
    assert rows(keeper, "shown") == Counter((i, age + 1) for i, age in before.elements())
    assert keeper.verify("shown").ok
    [report] = keeper.refresh(as_of=START + timedelta(days=1, hours=1))
    assert report.strategy == "none"
    with pytest.raises(ViewkeepError, match="all its rows change with the clock"):
        keeper.create_view("strict", text, policy="strict")
    with pytest.raises(ViewkeepError, match="recursive-fixed brings in changes of tables"):
        keeper.create_view("r", sql("week"), strategy="recursive-fixed")


@pytest.mark.parametrize("as_of", ["yesterday", 7, "2026-13-01"])
def test_moments_that_are_none_are_refused(tmp_path: Path, as_of: Any) -> None:
    with pytest.raises(ViewkeepError, match='write a moment as in "2026-05-01"'):
        lake(tmp_path, ()).refresh(as_of=as_of)


def test_dates_are_moments() -> None:
    from viewkeep.query.clock import clock_of, clock_row

    assert clock_row(clock_of(date(2026, 5, 1)))[1] == datetime(2026, 5, 1, tzinfo=UTC)
