"""Runs cases in a lake: many views refreshed together by the keeper, and compared at every step.

Rows of views are read by deltalake and the oracle is DuckDB over rows in memory, so that Spark
works for the keeper alone; `spark_answers` asks Spark as well.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any, Literal

from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.diffs.harness import Bag, expect, plain
from tests.diffs.random_tables import Database, as_arrow
from tests.generated.cases import Case, random_view
from tests.generated.histories import random_history
from tests.generated.runners import recomputed
from tests.generated.tables import KEYLESS, TABLES
from tests.generated.writer import Query
from tests.keeper.lakes import check_replayed, rows
from viewkeep import Keeper, ViewkeepError
from viewkeep.changes import ChangeBatch
from viewkeep.execute.errors import NeedsSparkError
from viewkeep.execute.spark.driver.collect import collect
from viewkeep.refresh.all_views import RefreshError
from viewkeep.tables.arrow_rows import to_rows

LIMIT = 100_000


def random_lake(seed: int, views: int, steps: int) -> Case:
    """Several views, some of them on others, with one history for all."""
    rng = Random(seed)
    drawn: dict[str, Query] = {}
    for number in range(views):
        lower = rng.sample(list(drawn), 1) if drawn and rng.random() < 0.25 else []
        below = tuple((name, drawn[name].columns) for name in lower)
        drawn[f"v{number}"] = random_view(rng, below)
    views_ = tuple((name, query.sql) for name, query in drawn.items())
    return Case(views_, random_history(TABLES, rng, steps), seed)


class GeneratedLake:
    """The lake of a case; `failures` tells of views that went wrong, and the others go on."""

    def __init__(self, spark: SparkSession | None, place: Path, case: Case) -> None:
        self.spark, self.case = spark, case
        self.failures: dict[str, Exception] = {}
        self.keeper, self._place = Keeper(place, spark), place
        for name, table in TABLES.items():
            if name in KEYLESS:
                self._write_bag(name, case.history.states[0], "overwrite")
                self.keeper.register_table(name, self._bag(name))
            else:
                first = list(case.history.states[0][name].values())
                self.keeper.create_table(name, table, rows=first)
        for name, sql in case.views:
            self._create(name, sql)

    def _bag(self, name: str) -> Path:
        return self._place.parent / f"{self._place.name}_{name}"

    def _write_bag(self, name: str, rows: Database, mode: Literal["append", "overwrite"]) -> None:
        """A table without the column that tells its rows apart."""
        table = as_arrow(TABLES[name], rows[name].values()).drop_columns([KEYLESS[name]])
        write_deltalake(self._bag(name), table, mode=mode)

    def _create(self, name: str, sql: str) -> None:
        if set(self.failures) & set(sql.split()):
            return  # it reads a view that is not there
        try:
            self.keeper.create_view(name, sql, policy="incremental")
        except NeedsSparkError:
            raise
        except Exception as error:
            self._failed(name, error, 0)

    def _failed(self, name: str, error: Exception, number: int) -> None:
        error.add_note(f"view {name}, refresh {number}")
        self.failures.setdefault(name, error)

    @property
    def sound(self) -> list[str]:
        """The views that have not failed, and read none that has."""
        found: list[str] = []
        names = [name for name, _ in self.case.views]
        for name, sql in self.case.views:
            lower = set(names) & set(sql.split())
            if name not in self.failures and lower <= set(found):
                found.append(name)
        return found

    def advance(self, number: int) -> None:
        """Apply the changes that lead to a state, and refresh."""
        for name, batch in self.case.history.batches(number).items():
            if batch.is_empty:
                continue
            if name in KEYLESS:
                self._change_bag(name, batch, self.case.history.states[number])
            else:
                self._apply(name, batch)
        try:
            self.keeper.refresh()
        except RefreshError as error:
            for report in error.reports:
                if report.error and report.view in self.sound:
                    self._failed(report.view, ViewkeepError(report.error), number)

    def _change_bag(self, name: str, batch: ChangeBatch, after: Database) -> None:
        """Rows are appended where none goes; else all files are written anew."""
        if batch.deletes or batch.updates:
            self._write_bag(name, after, "overwrite")
        else:
            self._write_bag(name, {name: dict(enumerate(batch.inserts))}, "append")

    def _apply(self, name: str, batch: ChangeBatch) -> None:
        names, key = TABLES[name].names, TABLES[name].key
        deletes = [tuple(row[names.index(column)] for column in key) for row in batch.deletes]
        updates = [dict(zip(names, new, strict=True)) for _, new in batch.updates]
        self.keeper.apply(name, list(batch.inserts), updates, deletes)

    def check(self, number: int, with_spark: bool = False) -> None:
        """Compare every view with what DuckDB, and if asked Spark, answers at a state."""
        oracles = {"DuckDB": recomputed(self.case, number)}
        if with_spark and self.spark is not None:
            oracles["Spark"] = spark_answers(self.spark, self.case, number)
        for name in self.sound:
            found = plain(rows(self.keeper, name))
            for oracle, answers in oracles.items():
                try:
                    expect(f"to {oracle}", found, plain(answers[name]))
                except AssertionError as error:
                    self._failed(name, error, number)

    def check_changes(self) -> None:
        """Compare every view with its changes, replayed on an empty table."""
        for name in self.sound:
            try:
                check_replayed(self.keeper, [name])
            except (AssertionError, ViewkeepError) as error:
                self._failed(name, error, len(self.case.history.states) - 1)


def failures_in_lake(
    spark: SparkSession | None, case: Case, place: Path, with_spark: bool = False
) -> dict[str, Exception]:
    """The views of a case that fail on its way from its first state to its last."""
    lake = GeneratedLake(spark, place, case)
    lake.check(0)
    last = len(case.history.states) - 1
    for number in range(1, last + 1):
        lake.advance(number)
        lake.check(number, with_spark and number == last)
    lake.check_changes()
    return lake.failures


def alone(spark: SparkSession, case: Case, folder: Path) -> None:
    """A case in a lake of its own, as the shrinker wants it."""
    recomputed(case, 0)
    for failure in failures_in_lake(spark, case, Path(mkdtemp(dir=folder)) / "lake").values():
        raise failure


def concerning(case: Case, name: str) -> Case:
    """The case without the views that a view does not read."""
    views = dict(case.views)
    needed, found = [name], dict[str, str]()
    while needed:
        each = needed.pop()
        found[each] = views[each]
        needed += [n for n in views if n not in found and n in views[each].split()]
    return replace(case, views=tuple((n, sql) for n, sql in case.views if n in found))


def spark_answers(spark: SparkSession, case: Case, number: int) -> Mapping[str, Bag]:
    """What Spark answers to the views of a case at a state, in one job."""
    state: Database = case.history.states[number]
    for name, table in TABLES.items():
        frame = spark.createDataFrame(as_arrow(table, state[name].values()))
        frame.createOrReplaceTempView(name)
    frames: dict[str, Any] = {}
    for name, sql in case.views:
        frames[name] = spark.sql(sql)
        frames[name].createOrReplaceTempView(name)
    found = collect(frames, LIMIT)
    return {name: Counter(to_rows(found[name])) for name in frames}
