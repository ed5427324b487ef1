"""Tables with versions, and the random tables that other tests use."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.changes.memory_table import MemoryTable, difference
from tests.diffs.diff_columns import update_columns
from tests.diffs.random_tables import (
    KINDS,
    Database,
    apply_batches,
    as_arrow,
    diff_as_arrow,
    random_batch,
    random_database,
)
from viewkeep.changes import ChangeError, RowFormat
from viewkeep.query.tables import Table

TABLES = {
    "links": Table(
        {"did": "int", "pid": "int", "note": "string"},
        key=["did", "pid"],
        foreign_keys=["did -> devices.did", "pid -> parts.pid"],
    ),
    "parts": Table(
        {"pid": "int", "price": "decimal(10,2) not null", "weight": "double", "part_of": "int"},
        key=["pid"],
        foreign_keys=["part_of -> parts.pid"],
    ),
    "devices": Table(
        {"did": "bigint", "made": "date", "sold": "boolean", "seen": "timestamp", "b": "binary"},
        key=["did"],
    ),
    "kinds": Table({"kind": "tinyint", "f": "float", "s": "smallint"}, key=["kind"], static=True),
}
PARTS = ("inserts", "deletes", "updates")
SEEDS = st.integers(0, 10**6)


def test_versions_of_a_table() -> None:
    table = MemoryTable("t", Table({"k": "int", "v": "int"}, key=["k"]), [(1, 1), {"v": 2, "k": 2}])
    source = table
    assert list(source.versions) == [0]
    assert table.apply(deletes=[(1,)], inserts=[(1, 5), (3, 3)], updates={(2,): {"v": 7}}) == 1
    assert table.apply(deletes=[(3,)]) == 2
    assert source.changes(0, 1).updates == (((1, 1), (1, 5)), ((2, 2), (2, 7)))
    assert source.changes(0, 2).size == 2
    assert source.changes(1, 1).is_empty
    assert [len(source.rows(version)) for version in source.versions] == [2, 3, 2]
    assert table.get((2,)) == (2, 7)


def test_rows_of_a_version_do_not_change_later() -> None:
    table = MemoryTable("t", Table({"k": "int"}, key=["k"]))
    newest = table.rows(0)
    table.apply(inserts=[(1,)])
    assert newest == {}
    table.rows(1).clear()
    assert table.rows(1) == {(1,): (1,)}


def test_versions_that_are_not_there_are_refused() -> None:
    table = MemoryTable("t", Table({"k": "int"}, key=["k"]))
    for key in range(3):
        table.apply(inserts=[(key,)])
    table.forget(before=2)
    assert (table.versions, table.version) == (range(2, 4), 3)
    assert table.changes(2, 3).inserts == ((2,),)
    for refused in (lambda: table.rows(1), lambda: table.changes(2, 4), lambda: table.forget(9)):
        with pytest.raises(ChangeError, match=r'table "t" has no version \d; there are 2 to 3'):
            refused()
    with pytest.raises(ChangeError, match="version 3 is later than 2"):
        table.changes(3, 2)


def test_two_rows_of_one_key_are_refused() -> None:
    table = Table({"k": "int", "v": "int"}, key=["k"])
    with pytest.raises(ChangeError, match=r'table "t", key \(k = 1\): two rows have this key'):
        difference("t", table, [], [(1, 1), (1, 2)])


@given(SEEDS)
def test_changes_between_versions_are_the_difference_of_their_rows(seed: int) -> None:
    rng, parts = Random(seed), {"parts": TABLES["parts"]}
    database = random_database(parts, rng, rows=5)
    table = MemoryTable("parts", parts["parts"], database["parts"].values())
    states = [database]
    for _ in range(4):
        batch = random_batch(states[-1], parts, rng, size=4)["parts"]
        assert table.version == len(states) - 1
        table.apply(
            batch.inserts,
            {
                row.old[:1]: dict(zip(table.table.names, row.new, strict=True))
                for row in batch.updates
            },
            [row[:1] for row in batch.deletes],
        )
        states.append(apply_batches(states[-1], {"parts": batch}))
    for since in table.versions:
        assert table.rows(since) == states[since]["parts"]
        for until in range(since, table.version + 1):
            old, new = states[since]["parts"], states[until]["parts"]
            assert table.changes(since, until).apply(old) == new
            assert table.changes(since, until).size == sum(
                old.get(key) != new.get(key) for key in {*old, *new}
            )


@given(SEEDS, st.booleans(), st.sets(st.sampled_from(KINDS)))
@settings(max_examples=60)
def test_random_tables_keep_what_is_declared(seed: int, foreign_keys: bool, kinds: Any) -> None:
    rng = Random(seed)
    database = random_database(TABLES, rng, rows=12, foreign_keys=foreign_keys)
    batches = random_batch(database, TABLES, rng, 9, kinds, foreign_keys=foreign_keys)
    after = apply_batches(database, batches)
    for state in (database, after):
        for name, table in TABLES.items():
            assert RowFormat(name, table).keyed(state[name].values()) == state[name]
        if foreign_keys:
            assert_references_hold(state)
    for batch in batches.values():
        used = {"insert": batch.inserts, "delete": batch.deletes, "update": batch.updates}
        assert {kind for kind, part in used.items() if part} <= kinds
    assert batches["kinds"].is_empty


def assert_references_hold(state: Database) -> None:
    for name, table in TABLES.items():
        for reference in table.foreign_keys:
            place = table.names.index(reference.columns[0])
            values = {row[place] for row in state[name].values()} - {None}
            assert {(value,) for value in values} <= set(state[reference.table])


def test_random_tables_are_full_skewed_and_change_in_every_way() -> None:
    rng = Random(1)
    database = random_database(TABLES, rng, rows=40, foreign_keys=True)
    assert {name: len(rows) for name, rows in database.items()} == dict.fromkeys(TABLES, 40)
    prices = [row[1] for row in database["parts"].values()]
    assert prices.count(min(prices)) > prices.count(max(prices))
    batches = random_batch(database, TABLES, rng, size=60, foreign_keys=True)
    assert sum(batch.size for batch in batches.values()) == 60
    assert all(any(getattr(b, part) for b in batches.values()) for part in PARTS)
    values = [pair for b in batches.values() for u in b.updates for pair in zip(*u, strict=True)]
    assert any(new is None and old is not None for old, new in values)
    assert any(old is None and new is not None for old, new in values)


def test_random_tables_as_arrow() -> None:
    rng = Random(2)
    database = random_database(TABLES, rng, rows=20)
    for name, table in TABLES.items():
        arrow = as_arrow(table, database[name].values())
        assert [tuple(row.values()) for row in arrow.to_pylist()] == list(database[name].values())
    batch = random_batch(database, TABLES, rng, size=40)["parts"]
    columns = update_columns(TABLES["parts"], batch.updates)
    arrow = diff_as_arrow(TABLES["parts"], columns, ["pid", "price#pre", "weight#post"])
    assert [str(kind) for kind in arrow.schema.types] == ["int32", "decimal128(10, 2)", "double"]
    assert arrow["price#pre"].to_pylist() == [old[1] for old, _ in batch.updates]
    assert diff_as_arrow(TABLES["parts"], update_columns(TABLES["parts"], [])).num_rows == 0
