"""Changes of tables that Viewkeep owns: checked, in one commit, whatever form they come in."""

from collections import Counter
from pathlib import Path
from random import Random
from threading import Barrier, Thread
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.diffs.random_tables import random_batch, random_database
from tests.keeper.lakes import as_bag, location, rows, set_driver_bytes, version
from viewkeep import Keeper, Table

PARTS = Table({"pid": "int", "price": "int", "name": "string"}, key=["pid"])


@pytest.fixture
def keeper(spark: SparkSession, tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path, spark)
    keeper.create_table("parts", PARTS, rows=[(1, 10, "a"), (2, 20, None), (3, 30, "c")])
    return keeper


def test_one_commit_for_all_kinds(keeper: Keeper) -> None:
    made = keeper.apply(
        "parts",
        inserts=[(4, 40, "d")],
        updates=[{"pid": 1, "price": 11}],
        deletes=[(2,)],
    )
    assert made == version(keeper, "parts") == 1
    assert rows(keeper, "parts") == Counter([(1, 11, "a"), (3, 30, "c"), (4, 40, "d")])


def test_deletes_come_first_and_inserts_last(keeper: Keeper) -> None:
    """A key can be deleted and inserted in one change, and the net effect is an update."""
    keeper.apply("parts", inserts=[(2, 21, "new")], deletes=[(2,)])
    assert rows(keeper, "parts") == Counter([(1, 10, "a"), (2, 21, "new"), (3, 30, "c")])
    notes = DeltaTable(location(keeper, "parts")).history(1)[0]["viewkeep"]
    assert notes["changed_rows"] == 1


@pytest.mark.parametrize("form", ["dicts", "tuples", "arrow", "pandas", "spark"])
def test_rows_in_any_form(spark: SparkSession, keeper: Keeper, form: str) -> None:
    listed = [(4, 40, None), (5, None, "e")]
    names = list(PARTS.names)
    arrow = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in listed])
    forms: dict[str, Any] = {
        "dicts": arrow.to_pylist(),
        "tuples": listed,
        "arrow": arrow,
        "pandas": pd.DataFrame({"pid": [4, 5], "price": [40.0, None], "name": [None, "e"]}),
        "spark": spark.createDataFrame(listed, "pid int, price int, name string"),
    }
    keeper.apply("parts", inserts=forms[form])
    assert Counter(listed) <= rows(keeper, "parts")
    assert sum(rows(keeper, "parts").values()) == 5


def test_what_changes_nothing_makes_no_version(keeper: Keeper) -> None:
    assert keeper.apply("parts", updates=[{"pid": 1, "price": 10}]) == 0
    assert keeper.apply("parts", inserts=[(1, 10, "a")], deletes=[(1,)]) == 0
    assert keeper.apply("parts") == keeper.apply("parts", inserts=[], deletes=[]) == 0
    assert version(keeper, "parts") == 0


def test_nan_stays_nan(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, spark)
    nan = float("nan")
    keeper.create_table("reals", {"id": "int", "x": "double"}, ["id"], rows=[(1, nan), (2, -0.0)])
    assert keeper.apply("reals", updates=[{"id": 1, "x": nan}, {"id": 2, "x": 0.0}]) == 0
    assert keeper.apply("reals", updates=[{"id": 1, "x": None}]) == 1


def test_small_files_are_put_together(keeper: Keeper) -> None:
    for number in range(100, 140):
        keeper.apply("parts", inserts=[(number, number, "many")])
    files = DeltaTable(location(keeper, "parts")).file_uris()
    assert len(files) < 20
    assert sum(rows(keeper, "parts").values()) == 43


@pytest.mark.parametrize(
    ("backend", "driver_bytes"), [("auto", 1 << 20), ("duckdb", 0), ("spark", 0)]
)
def test_random_changes_against_a_model(
    spark: SparkSession, tmp_path: Path, backend: str, driver_bytes: int
) -> None:
    """In memory and by either engine: the same rows as a Python dict, and the same row changes."""
    table = Table(
        {"a": "int", "b": "string", "x": "double", "d": "date", "m": "decimal(8, 2)"},
        key=["a", "b"],
    )
    rng = Random(driver_bytes)
    model = random_database({"t": table}, rng, 30)
    keeper = Keeper(tmp_path, spark, backend=backend)
    set_driver_bytes(keeper, driver_bytes)
    keeper.create_table("t", table, rows=list(model["t"].values()))
    for _ in range(4 if backend == "spark" else 12):
        batch = random_batch(model, {"t": table}, rng, 8)["t"]
        model["t"] = batch.apply(model["t"])
        keeper.apply(
            "t",
            inserts=list(batch.inserts),
            updates=[dict(zip(table.names, new, strict=True)) for _, new in batch.updates],
            deletes=[tuple(old[:2]) for old in batch.deletes],
        )
        assert rows(keeper, "t") == as_bag(model["t"])


def test_two_appliers_lose_no_change(spark: SparkSession, keeper: Keeper, tmp_path: Path) -> None:
    """Each adds to the same row what it read: the sum tells whether one overwrote the other."""
    rounds, barrier = 8, Barrier(3)
    failures: list[BaseException] = []

    def insert(first: int) -> None:
        own = Keeper(tmp_path, spark)
        try:
            for number in range(rounds):
                barrier.wait(60)
                own.apply("parts", inserts=[(first + number, 0, "x")])
                own.apply("parts", updates=[{"pid": first + number, "price": first}])
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    threads = [Thread(target=insert, args=(first,)) for first in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    expected = {(first + n, first, "x") for first in (100, 200, 300) for n in range(rounds)}
    assert expected <= set(rows(keeper, "parts"))
    assert version(keeper, "parts") == 3 * rounds * 2


def test_two_updates_of_one_row_both_happen(
    keeper: Keeper, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that comes second is checked against the rows that the first one left."""
    from viewkeep.lake import apply as applying

    other = Keeper(tmp_path, spark)
    commit, seen = applying._commit_user_changes, []

    def delayed(*given: Any) -> int:
        if not seen:
            seen.append(True)
            other.apply("parts", updates=[{"pid": 1, "name": "other"}], deletes=[(3,)])
        return commit(*given)

    monkeypatch.setattr(applying, "_commit_user_changes", delayed)
    keeper.apply("parts", updates=[{"pid": 1, "price": 99}])
    assert rows(keeper, "parts") == Counter([(1, 99, "other"), (2, 20, None)])
