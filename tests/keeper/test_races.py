"""Several processes at once: no view is ever wrong, and no change is lost.

Every version of every view is compared with its query over the versions of the tables that the
view's state names, whoever made it and whoever lost.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Barrier, Thread

import duckdb
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.diffs.harness import expect, plain
from tests.diffs.random_tables import Database, apply_batches, random_batch, random_database
from tests.keeper import crashing
from tests.keeper.faults import TABLES, apply, create
from tests.keeper.lakes import as_bag, check, delta_rows, location, rows, versions
from tests.transpile import to_duckdb
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake import ViewState
from viewkeep.lake.views.stored_view import STATE

ROUNDS = 30 if os.environ.get("VIEWKEEP_LONG") else 6


class Contested:
    """A lake with many users, and a model of its tables."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark, self.place, self.rng = spark, place, Random(9)
        self.model: Database = random_database(TABLES, self.rng, 12)
        self.keeper = Keeper(place, spark)
        create(self.keeper, self.model)

    def change(self) -> None:
        for batch in random_batch(self.model, TABLES, self.rng, 4).values():
            apply(self.keeper, batch)
            self.model = apply_batches(self.model, {batch.name: batch})

    def check(self) -> None:
        """All views are right, and reflect the same and the newest versions."""
        for name in TABLES:
            assert rows(self.keeper, name) == as_bag(self.model[name])
        check(self.keeper)
        newest = versions(self.keeper)
        for name in self.keeper.views:
            pinned = self.keeper._view(name).stored().state.tables
            assert pinned == {table: newest[table] for table in TABLES}, name

    def check_history(self) -> None:
        """Every version of every view is explained by versions of the tables."""
        for name, sql in self.keeper.views.items():
            for commit in self.keeper._lake.at(location(self.keeper, name)).log(-1):
                assert commit.notes is not None
                state = ViewState.from_notes(commit.notes[STATE])
                found = delta_rows(location(self.keeper, name), commit.version)
                expect(f"{name} {commit.version}", plain(found), plain(self._at(sql, state)))

    def _at(self, sql: str, state: ViewState) -> "Counter[tuple[object, ...]]":
        with duckdb.connect() as connection:
            for name, version in state.tables.items():
                table = DeltaTable(self.place / name, version=version)
                connection.register(name, table.to_pyarrow_dataset())
            for name, version in state.inputs.items():
                if name not in state.tables:
                    table = DeltaTable(self.place / name, version=version)
                    connection.register(name, table.to_pyarrow_dataset())
            return Counter(connection.execute(to_duckdb(sql)).fetchall())


@pytest.fixture
def contested(spark: SparkSession, tmp_path: Path) -> Contested:
    return Contested(spark, tmp_path / "lake")


def at_once(*works: Callable[[], object]) -> None:
    """Run works in threads that start together; the first error of any is raised."""
    barrier, errors = Barrier(len(works)), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        try:
            barrier.wait(60)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.slow
def test_two_refreshers(contested: Contested) -> None:
    """Both look at the same changes; in some rounds more changes come while they work."""
    keepers = [Keeper(contested.place, contested.spark) for _ in range(2)]
    for number in range(ROUNDS):
        contested.change()
        works: list[Callable[[], object]] = [keeper.refresh for keeper in keepers]
        at_once(*works, *([contested.change] if number % 3 == 2 else []))
        if number % 3 == 2:
            at_once(*works)
        contested.check()
    contested.check_history()


@pytest.mark.slow
def test_two_processes_refresh(contested: Contested, tmp_path: Path) -> None:
    """They refresh all the time, while a third process changes the tables."""
    stop = tmp_path / "stop"
    command = [sys.executable, "-m", "tests.keeper.refreshing", str(contested.place), str(stop)]
    environment = os.environ | crashing.to_attach(contested.spark)
    children = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for _ in range(ROUNDS):
            contested.change()
    finally:
        stop.touch()
        said = [child.communicate(timeout=300)[0] for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert sum(map(int, said)) > 0
    contested.keeper.refresh()
    contested.check()
    contested.check_history()


def test_a_view_is_replaced_while_it_is_refreshed(contested: Contested) -> None:
    """Whoever is first, the new definition is there in the end."""
    other = Keeper(contested.place, contested.spark)
    texts = ["SELECT pid, price, name FROM parts WHERE price > 0", "SELECT did, pid FROM uses"]
    for text in texts:
        contested.change()
        at_once(
            contested.keeper.refresh,
            lambda text=text: other.create_view("pairs", text, replace=True),  # type: ignore[misc]
        )
        contested.keeper.refresh()
        assert contested.keeper.views["pairs"] == text
        check(contested.keeper)


@pytest.mark.parametrize("number", range(3))
def test_one_of_two_defines(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """Two processes make the same lake, table and view: each is there once."""
    keepers: list[Keeper] = []
    at_once(*[lambda: keepers.append(Keeper(tmp_path, spark))] * 2)
    table = {"pid": "int", "by": "int"}
    refusals = refused(
        lambda: keepers[0].create_table("parts", table, ["pid"], rows=[(1, 0)]),
        lambda: keepers[1].create_table("parts", table, ["pid"], rows=[(1, 1)]),
    )
    assert len(refusals) == 1, refusals
    refusals = refused(
        lambda: keepers[0].create_view("seen", "SELECT pid, by FROM parts"),
        lambda: keepers[1].create_view("seen", "SELECT by, pid FROM parts"),
    )
    assert len(refusals) == 1, refusals
    for keeper in keepers:
        keeper.refresh()
        check(keeper)
    assert len(DeltaTable(tmp_path / "parts").file_uris()) == 1


def refused(*works: Callable[[], object]) -> list[str]:
    """Run works at once; what those that were refused were told."""
    said: list[str] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except ViewkeepError as error:
            said.append(str(error))

    at_once(*(lambda work=work: run(work) for work in works))  # type: ignore[misc]
    return said
