"""Processes that die or meet in an object store: nothing is lost, and nothing is doubled."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.diffs.random_tables import Database, apply_batches, random_database
from tests.keeper.faults import TABLES
from tests.keeper.victim import next_batch
from tests.objects.emulator import Emulator
from tests.objects.lakes import check_views, create, read_model, stored_rows
from tests.objects.worker import OWN
from viewkeep import Keeper

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
KILLS = 100 if LONG else 2
RACES = 100 if LONG else 3
MOST_WRITES = 30
"""A victim makes at most so many writes before it kills itself: several changes, and refreshes."""
VICTIM_SECONDS = 5.0
"""A victim that is killed from outside lives at most so long."""


class Victim:
    """A lake whose users die, and a model of its tables."""

    def __init__(self, emulator: Emulator, uri: str) -> None:
        self.uri, self.options = uri, emulator.options
        self.environment = os.environ | emulator.options
        self.model: Database = random_database(TABLES, Random(5), 12)
        create(self.keeper, self.model)

    @property
    def keeper(self) -> Keeper:
        """A new process knows nothing of those before it."""
        return Keeper(self.uri, storage_options=self.options)

    def run_until_killed(self, log: Path, seed: int, rng: Random) -> None:
        """A process that changes and refreshes, and dies at a write or at any moment."""
        kills_itself = seed % 2 == 0
        at = rng.randint(1, MOST_WRITES) if kills_itself else 0
        when = rng.choice(["before", "after"])
        arguments = [self.uri, str(log), str(seed), str(1000 * seed), str(at), when]
        with subprocess.Popen(
            [sys.executable, "-m", "tests.objects.worker", "changes", *arguments],
            env=self.environment,
        ) as child:
            if not kills_itself:
                _wait_for(log, child, "begin")
                time.sleep(VICTIM_SECONDS * rng.random())
                child.kill()
            assert child.wait(600) == -signal.SIGKILL

    def follow(self, log: Path, seed: int) -> bool:
        """Every change that was acknowledged is there, the last one perhaps; whether it is."""
        lines = log.read_text().split("\n")
        ended = [line for line in lines if line.startswith("end")]
        begun = [line for line in lines if line.startswith("begin")]
        for number in range(len(ended)):
            self.follow_change(seed, 1000 * seed + number)
        rows = read_model(self.uri, self.options)
        is_more = len(begun) > len(ended) and rows != self.model
        if is_more:
            self.follow_change(seed, 1000 * seed + len(ended))
        assert rows == self.model
        return is_more

    def follow_change(self, seed: int, number: int) -> None:
        """Make a change that a process has made."""
        batch = next_batch(self.model, seed, number)
        self.model = apply_batches(self.model, {batch.name: batch})


@pytest.mark.slow
def test_kills(emulator: Emulator, bucket: str, tmp_path: Path) -> None:
    """After each death the next process finds every change wholly or not at all, and goes on."""
    victim, rng = Victim(emulator, f"s3://{bucket}/lake"), Random(11)
    for seed in range(KILLS):
        log = tmp_path / f"log-{seed}"
        victim.run_until_killed(log, seed, rng)
        victim.follow(log, seed)
        keeper = victim.keeper
        keeper.refresh()
        assert read_model(victim.uri, victim.options) == victim.model
        check_views(keeper, victim.uri, victim.options)
    keeper = victim.keeper
    assert all(keeper.verify(name).ok for name in keeper.views)
    keeper.vacuum(hours=0, force=True)
    check_views(keeper, victim.uri, victim.options)


@pytest.mark.slow
def test_races(emulator: Emulator, bucket: str) -> None:
    """Two processes insert the same key, and rows of their own, and refresh, at the same time."""
    uri, options = f"s3://{bucket}/lake", emulator.options
    keeper = Keeper(uri, storage_options=options)
    keeper.create_table("parts", {"pid": "int", "who": "int", "kind": "string"}, ["pid"])
    keeper.create_view(
        "counted", "SELECT who, kind, count(*) AS n, sum(pid) AS s FROM parts GROUP BY who, kind"
    )
    keeper.create_view("kinds", "SELECT kind, sum(n) AS n FROM counted GROUP BY kind")
    command = [sys.executable, "-m", "tests.objects.worker", "race", uri]
    children = [_start_racer([*command, str(who)], emulator) for who in range(2)]
    winners: list[int] = []
    try:
        assert [_answer(child) for child in children] == ["ready", "ready"]
        for number in range(RACES):
            for child in children:
                assert child.stdin is not None
                child.stdin.write(f"{number}\n")
                child.stdin.flush()
            answers = [_answer(child) for child in children]
            assert sorted(answers) == ["inserted", "refused"], number
            winners.append(answers.index("inserted"))
    finally:
        for child in children:
            child.communicate(timeout=300)
    assert [child.returncode for child in children] == [0, 0]
    own = [(n, n % 2, "own") for n in range(2 * RACES)]
    shared = [(OWN + n, who, "shared") for n, who in enumerate(winners)]
    assert stored_rows(f"{uri}/parts", options) == Counter([*own, *shared])
    assert keeper.version("parts") == 3 * RACES, "one version for each change"
    keeper.refresh()
    check_views(keeper, uri, options)
    for name in keeper.views:
        assert keeper.verify(name).ok
        changes = keeper.changes(name).to_pylist()
        net = Counter[tuple[object, ...]]()
        for each in changes:
            for state, sign in (("before", -1), ("after", 1)):
                if each[state] is not None:
                    net[tuple(each[state].values())] += sign
        assert +net == stored_rows(f"{uri}/{name}", options)


def _start_racer(command: list[str], emulator: Emulator) -> "subprocess.Popen[str]":
    environment = os.environ | emulator.options
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _answer(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def _wait_for(log: Path, child: "subprocess.Popen[bytes]", line: str) -> None:
    until = time.monotonic() + 300
    while not log.exists() or line not in log.read_text():
        assert child.poll() is None, "it died by itself"
        assert time.monotonic() < until, "it does nothing"
        time.sleep(0.05)
