"""A process may die at any write of `apply`, `refresh` or a definition: nothing is lost or doubled.

After each death another keeper finds every table as it was before or after the change that died,
refreshes, and every view is what DuckDB computes from the same files.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from tests.diffs.random_tables import Database, apply_batches, random_batch, random_database
from tests.keeper import crashing
from tests.keeper.faults import TABLES, Fault, apply, chosen, create, fault
from tests.keeper.lakes import as_bag, check, check_verified, rows, versions
from tests.keeper.victim import next_batch
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute.spark.driver import scanned
from viewkeep.lake.views import caches
from viewkeep.refresh import write_changes
from viewkeep.tables import feed

BACKENDS = ("duckdb", "spark")

LONG = bool(os.environ.get("VIEWKEEP_LONG"))


class Victim:
    """A lake whose users die, and a model of its tables."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark, self.place, self.rng = spark, place, Random(5)
        self.model: Database = random_database(TABLES, self.rng, 12)
        create(self.keeper, self.model)

    @property
    def keeper(self) -> Keeper:
        """A new process knows nothing of those before it."""
        return Keeper(self.place, self.spark)

    def change(self) -> None:
        """A change of some tables that nobody dies of."""
        for batch in random_batch(self.model, TABLES, self.rng, 4).values():
            apply(self.keeper, batch)
            self.model = apply_batches(self.model, {batch.name: batch})

    def recover(self) -> None:
        """The next process refreshes, and all is right."""
        keeper = self.keeper
        keeper.refresh()
        for name in TABLES:
            assert rows(keeper, name) == as_bag(self.model[name])
        check(keeper)

    def points(self, work: Any) -> int:
        """At how many places some work writes."""
        with fault(0) as counted:
            work()
        return counted.calls


@pytest.fixture
def victim(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Victim:
    monkeypatch.setattr(caches, "OVERLAY_ROWS", 8)
    monkeypatch.setattr(caches, "OVERLAY_SHARE", 0)
    monkeypatch.setattr(write_changes, "SMALL_ROWS", 8)
    return Victim(spark, tmp_path / "lake")


@pytest.mark.slow
def test_refresh_dies_at_every_write(victim: Victim) -> None:
    """At any of its writes, before and after, again and again."""
    places: set[str] = set()
    deaths = 0
    while deaths < (100 if LONG else 40):
        victim.change()
        at, after = victim.rng.randint(1, 12), victim.rng.random() < 0.5
        with fault(at, after) as died:
            victim.keeper.refresh()
        deaths += died.dead
        places |= {f"{died.place} {'after' if after else 'before'}"} if died.dead else set()
        if victim.rng.random() < 0.3:  # and the next one dies as well, or finds other changes
            victim.change()
            with fault(victim.rng.randint(1, 6)) as again:
                victim.keeper.refresh()
            deaths += again.dead
        victim.recover()
    check_verified(victim.keeper)
    assert places >= {"_write before", "_write after", "write before", "write after"}


@pytest.mark.slow
def test_apply_dies_at_every_write(victim: Victim, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change happened wholly or not at all; changes stand in files of their own."""
    monkeypatch.setattr(feed, "INLINE_BYTES", 0)
    happened = []
    for number in range(160):
        batch = chosen(random_batch(victim.model, TABLES, victim.rng, 6), victim.rng)
        with fault(1 + number % 3, after=number % 2 == 0) as died:
            apply(victim.keeper, batch)
        assert died.dead
        after = batch.apply(victim.model[batch.name])
        found = rows(victim.keeper, batch.name)
        assert found in (as_bag(victim.model[batch.name]), as_bag(after)), died
        happened.append(found == as_bag(after))
        if not happened[-1]:
            apply(victim.keeper, batch)
        victim.model[batch.name] = after
        if number % 20 == 19:
            victim.recover()
    assert 0 < sum(happened) < len(happened)


def test_definitions_die_at_every_write(victim: Victim) -> None:
    """A view or table is there or not, and can be made, replaced and dropped by the next one."""
    sql = "SELECT name, sum(price) AS s, avg(price) AS mean FROM parts GROUP BY name"
    other = "SELECT pid, name FROM parts WHERE price > 2"

    def replace() -> None:
        victim.keeper.create_view("extra", other, replace=True)

    steps = {
        "create": (lambda: victim.keeper.create_view("extra", sql), _made_again(victim, sql)),
        "replace": (replace, replace),
        "drop": (lambda: victim.keeper.drop_view("extra"), lambda: None),
    }
    for after, at in product([False, True], range(1, 6 if not LONG else 9)):
        for work, finish in steps.values():
            with fault(at, after) as died:
                work()
            if "extra" in victim.keeper.views or died.dead:
                finish()
            victim.recover()
        if "extra" in victim.keeper.views:
            victim.keeper.drop_view("extra")


def _made_again(victim: Victim, sql: str) -> Any:
    def finish() -> None:
        keeper = victim.keeper
        if "extra" in keeper.views and not keeper.status("extra")[0].problem:
            return
        keeper.create_view("extra", sql)

    return finish


def test_spark_fails_in_the_middle(
    victim: Victim, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No death: the failure is told, and the next refresh goes on."""
    if engine != "spark":
        pytest.skip("Spark does nothing here")
    monkeypatch.setattr(scanned, "DRIVER_BYTES", 0)
    failures = []
    for nth in range(1, 6):
        victim.change()
        before = versions(victim.keeper)
        with monkeypatch.context() as patch:
            fails = _failing_spark(patch, nth)
            error = _refreshed(victim.keeper)
        assert (fails.calls >= nth) == ("UNSUPPORTED_OPERATION" in error)
        failures.append(error)
        assert all(now >= before[name] for name, now in versions(victim.keeper).items())
        victim.recover()
    assert failures[0]


def _failing_spark(patch: pytest.MonkeyPatch, nth: int) -> Fault:
    fails = Fault(nth)

    def failing(method: Any) -> Any:
        def called(*given: Any) -> Any:
            fails.calls += 1
            if fails.calls >= fails.at:  # Spark is asked again before it is given up
                raise PySparkRuntimeError(
                    errorClass="UNSUPPORTED_OPERATION", messageParameters={"operation": "any"}
                )
            return method(*given)

        return called

    for name in ("toArrow", "collect"):
        patch.setattr(DataFrame, name, failing(getattr(DataFrame, name)))
    return fails


def _refreshed(keeper: Keeper) -> str:
    """What a refresh had to complain of."""
    try:
        keeper.refresh()
    except ViewkeepError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8 if LONG else 4))
def test_kill_9(victim: Victim, seed: int, tmp_path: Path) -> None:
    """A real process, killed at one of its writes or at any moment, after some good rounds."""
    rng, log = Random(seed), tmp_path / "log"
    at, after = (rng.randint(1, 40), rng.choice(["before", "after"])) if seed % 2 else (0, "")
    first = 1000 * seed
    given = [str(victim.place), str(log), str(seed), str(first), str(at), after]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.keeper.crashing", *given],
        env=os.environ | crashing.to_attach(victim.spark),
        start_new_session=True,
    ) as child:
        if not at:
            _wait_for(log, child, f"fresh {first}")
            time.sleep(rng.random())
            child.kill()
        assert child.wait(300) == -signal.SIGKILL
    _check_survived(victim, log, seed, first)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 103 if LONG else 101))
def test_kill_9_of_python_and_its_java(victim: Victim, seed: int, tmp_path: Path) -> None:
    """A process with a Spark of its own: both end at the same moment, whatever they write."""
    rng, log, first = Random(seed), tmp_path / "log", 1000 * seed
    given = [str(victim.place), str(log), str(seed), str(first), "0", ""]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.keeper.crashing", *given], start_new_session=True
    ) as child:
        try:
            _wait_for(log, child, f"fresh {first}")
            assert b"java" in b"".join(map(_command, _members(child.pid)))
            time.sleep(rng.random())
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        assert child.wait(60) == -signal.SIGKILL
    until = time.time() + 60
    while _members(child.pid) and time.time() < until:
        time.sleep(0.05)
    assert not _members(child.pid)
    _check_survived(victim, log, seed, first)


def _members(group: int) -> list[int]:
    """The processes of a group that live."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, member = each.read_text().rpartition(")")[2].split()[:3]
            found += [int(each.parent.name)] if int(member) == group and state != "Z" else []
    return found


def _command(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


def _check_survived(victim: Victim, log: Path, seed: int, first: int) -> None:
    """Every change that was acknowledged is there, the last one perhaps, and all goes on."""
    said = log.read_text().split("\n")
    done = [int(line.split()[1]) for line in said if line.startswith("end")]
    for number in range(first, first + len(done)):
        _follow(victim, seed, number)
    begun = [line for line in said if line.startswith("begin")]
    found = crashing.read_model(victim.place)
    if len(begun) > len(done) and found != victim.model:  # the last change had happened
        _follow(victim, seed, first + len(done))
    assert found == victim.model
    victim.recover()
    check_verified(victim.keeper)


def _follow(victim: Victim, seed: int, number: int) -> None:
    batch = next_batch(victim.model, seed, number)
    victim.model = apply_batches(victim.model, {batch.name: batch})


def _wait_for(log: Path, child: "subprocess.Popen[bytes]", line: str) -> None:
    until = time.time() + 300
    while not log.exists() or line not in log.read_text().split("\n"):
        assert child.poll() is None, "it died by itself"
        assert time.time() < until, "it does nothing"
        time.sleep(0.05)
