"""What happened to tables and views, version by version: replayed, it gives their rows."""

import os
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.diffs.random_tables import apply_batches, random_batch, random_database
from tests.diffs.views import TABLES, VIEWS
from tests.keeper.faults import apply
from tests.keeper.lakes import check_replayed, delta_rows, replayed, rows
from viewkeep import Keeper, ViewkeepError
from viewkeep.execute.errors import NeedsSparkError

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
ROUNDS = 6 if LONG else 3
EVERY = 1 if LONG else 6
"""The views of the suite that are replayed: each, or one of so many."""


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    """Parts, and views over them: with a group as key, without a key of SQL, always anew."""
    keeper = Keeper(tmp_path / "lake", durable=False)
    first = [(1, 10), (2, 20), (3, 30)]
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=first)
    keeper.create_view("groups", "SELECT price % 20 AS g, avg(price) AS a FROM parts GROUP BY 1")
    keeper.create_view("prices", "SELECT price FROM parts WHERE price > 10")
    keeper.create_view("anew", "SELECT pid, price FROM parts", policy="full")
    return keeper


def told(keeper: Keeper, name: str, since: int) -> list[tuple[object, ...]]:
    """Changes as tuples: operation, version, and the rows before and after."""
    changes = keeper.changes(name, since).to_pylist()
    return [
        (each["operation"], each["version"], *(each[s] and tuple(each[s].values()) for s in STATES))
        for each in changes
    ]


STATES = ("before", "after")


def test_changes_are_told_by_version(keeper: Keeper) -> None:
    keeper.apply("parts", updates=[{"pid": 1, "price": 30}], inserts=[(4, 40)])
    keeper.refresh()
    keeper.apply("parts", deletes=[(2,)])
    keeper.refresh()
    assert told(keeper, "parts", 0) == [
        ("update", 1, (1, 10), (1, 30)),
        ("insert", 1, None, (4, 40)),
        ("delete", 2, (2, 20), None),
    ]
    assert told(keeper, "groups", 1) == [("update", 2, (0, 30.0), (0, 40.0))]
    assert told(keeper, "anew", 1) == [("delete", 2, (2, 20), None)], "told as a difference"
    assert told(keeper, "parts", 2) == []
    assert keeper.version("parts") == 2
    assert keeper.changes("parts", since=0, until=1).num_rows == 2
    check_replayed(keeper)


def test_what_sql_does_not_see_is_not_told(keeper: Keeper) -> None:
    """The mean stays, while the hidden sum and count behind it change; so does the ID of a row."""
    keeper.apply("parts", inserts=[(5, 20)])
    keeper.refresh()
    assert told(keeper, "groups", 0) == []
    assert told(keeper, "prices", 0) == [("insert", 1, None, (20,))]
    assert keeper.changes("prices").schema.field("after").type.num_fields == 1


@pytest.mark.parametrize("since", [-2, 7])
def test_versions_that_are_none(keeper: Keeper, since: int) -> None:
    with pytest.raises(ViewkeepError, match=rf'"parts" has no version {since}; the newest is 0'):
        keeper.changes("parts", since)
    with pytest.raises(ViewkeepError, match='there is no table or view "'):
        keeper.changes("part")


def test_files_that_are_gone(keeper: Keeper) -> None:
    """What stands in the log can be told; a difference needs the files of both versions."""
    for price in (11, 12):
        keeper.apply("parts", updates=[{"pid": 1, "price": price}])
        keeper.refresh()
    keeper.vacuum(hours=0, force=True)
    place = Path(keeper._lake.uri) / "anew"
    current = set(DeltaTable(place).file_uris())
    for file in place.rglob("*.parquet"):
        if str(file) not in current:
            file.unlink()  # as a vacuum of another engine would, later
    fresh = Keeper(keeper._lake.uri)
    with pytest.raises(ViewkeepError, match=r'version 2 .*gone.*changes\("anew", since=2\)'):
        fresh.changes("anew")
    assert told(fresh, "parts", 0)[-1] == ("update", 2, (1, 11), (1, 12))
    with pytest.raises(ViewkeepError, match=r'"parts": what version 0 changed cannot be told'):
        fresh.changes("parts")


def test_a_view_with_other_columns_begins_anew(keeper: Keeper) -> None:
    keeper.create_view("prices", "SELECT price + 1 AS price FROM parts", replace=True)
    check_replayed(keeper, ["prices"])  # the same column
    keeper.create_view("prices", "SELECT pid, price FROM parts", replace=True)
    with pytest.raises(ViewkeepError, match="has other columns") as error:
        keeper.changes("prices")
    begun = int(str(error.value).partition("since=")[2].partition(")")[0])
    start = delta_rows(Path(keeper._lake.uri) / "prices", begun)
    keeper.apply("parts", updates=[{"pid": 3, "price": 5}])
    keeper.refresh()
    assert replayed(keeper, "prices", begun, start) == rows(keeper, "prices")


def test_tables_of_other_writers(tmp_path: Path) -> None:
    """By key from a change data feed and without; without a key, copies of rows are counted."""
    keeper, place = Keeper(tmp_path / "lake", durable=False), tmp_path / "t"
    first = pa.table({"id": pa.array([1, 2], pa.int32()), "n": pa.array([5, 5], pa.int32())})
    for name, key, feed in (("fed", ["id"], "true"), ("keyed", ["id"], "false"), ("bag", [], "")):
        configuration = {"delta.enableChangeDataFeed": feed} if feed else None
        write_deltalake(place / name, first, configuration=configuration)
        keeper.register_table(name, place / name, key)
        DeltaTable(place / name).update({"n": "6"}, predicate="id = 1")
        write_deltalake(place / name, first.slice(1), mode="overwrite")
        DeltaTable(place / name).optimize.compact()
        check_replayed(keeper, [name])
    update = ("update", 1, (1, 5), (1, 6))
    assert (
        told(keeper, "fed", 0) == told(keeper, "keyed", 0) == [update, ("delete", 2, (1, 6), None)]
    )
    assert told(keeper, "bag", 0)[:2] == [("delete", 1, (1, 5), None), ("insert", 1, None, (1, 6))]
    write_deltalake(place / "bag", first.slice(1), mode="append")
    assert replayed(keeper, "bag") == Counter({(2, 5): 2})


def test_views_of_the_suite(tmp_path: Path) -> None:
    rng = Random(11)
    model = random_database(TABLES, rng, 8)
    keeper = Keeper(tmp_path, durable=False)
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(model[name].values()))
    created = 0
    for number, sql in enumerate(list(VIEWS.values())[rng.randrange(EVERY) :: EVERY]):
        try:
            keeper.create_view(f"v{number}", sql, policy=("auto", "incremental")[number % 2])
            created += 1
        except NeedsSparkError:
            continue
    assert created > 100 / EVERY
    for _ in range(ROUNDS):
        for batch in random_batch(model, TABLES, rng, 3).values():
            apply(keeper, batch)
            model = apply_batches(model, {batch.name: batch})
        keeper.refresh()
    check_replayed(keeper)


def test_a_lake_with_spark_gives_frames(spark: SparkSession, keeper: Keeper) -> None:
    keeper.apply("parts", updates=[{"pid": 1, "price": 30}], inserts=[(4, 40)])
    frame = Keeper(keeper._lake.uri, spark).changes("parts", since=0)
    found = [
        (r.operation, r.version, r.before and tuple(r.before), tuple(r.after))
        for r in frame.collect()
    ]
    assert found == [("update", 1, (1, 10), (1, 30)), ("insert", 1, None, (4, 40))]
