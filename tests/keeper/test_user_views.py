"""Views as people write them, in one lake without Spark, through rounds of random changes: after
each refresh every view is what DuckDB answers to its text, and none is computed as a whole."""

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.diffs.random_tables import apply_batches, random_batch, random_database
from tests.diffs.views import TABLES
from tests.keeper.lakes import check
from tests.keeper.user_views import USER_VIEWS
from viewkeep import Keeper, Table
from viewkeep.changes import ChangeBatch
from viewkeep.sources.play import batch_changes

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
ROUNDS = 12 if LONG else 2
SEEDS = range(4 if LONG else 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_views_as_people_write_them(tmp_path: Path, seed: int) -> None:
    """Every column changes, and so do keys; groups come, go and become empty."""
    rng, tables = Random(seed), _tables(with_foreign_keys=bool(seed % 2))
    database = random_database(tables, rng, rows=14, foreign_keys=bool(seed % 2))
    keeper = Keeper(tmp_path / "lake")
    for name, table in tables.items():
        keeper.create_table(name, table, rows=list(database[name].values()))
    for name, sql in USER_VIEWS.items():
        keeper.create_view(name, sql, policy="incremental")
    assert [each.name for each in keeper.status() if each.strategy == "recompute"] == []
    check(keeper)
    for number in range(ROUNDS):
        size = 1 + 8 * (number % 3)
        batches = random_batch(database, tables, rng, size, foreign_keys=bool(seed % 2))
        keeper.transaction({name: _user_changes(each) for name, each in batches.items()})
        database = apply_batches(database, batches)
        keeper.refresh()
        check(keeper)


def _tables(with_foreign_keys: bool) -> dict[str, Table]:
    if with_foreign_keys:
        return TABLES
    return {
        name: Table({field.name: field for field in table.columns}, key=table.key)
        for name, table in TABLES.items()
    }


def _user_changes(batch: ChangeBatch) -> dict[str, Any]:
    changes = batch_changes(batch)
    return {"inserts": changes.inserts, "updates": changes.updates, "deletes": changes.deletes}
