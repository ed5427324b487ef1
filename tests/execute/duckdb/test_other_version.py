"""A script that reads a table before and after its changes looks keys up in one version."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pytest

from viewkeep import Keeper
from viewkeep.execute import few_rows
from viewkeep.execute.duckdb.key_look_ups import KeyLookUps

ROWS = 60
SQL = "SELECT id, g, x, row_number() OVER (PARTITION BY g ORDER BY x, id) AS place FROM t"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The relations that were looked up, all of which are large."""
    monkeypatch.setattr(few_rows, "ALL_ROWS", -1)
    monkeypatch.setattr(few_rows, "WHOLE_ROWS", 0)
    sources: list[Any] = []
    look_up = KeyLookUps.look_up

    def noted(self: KeyLookUps, source: Any, *about: Any) -> pa.Table:
        sources.append(source)
        return look_up(self, source, *about)

    monkeypatch.setattr(KeyLookUps, "look_up", noted)
    return sources


def some_rows(random: Random, keys: list[int]) -> pa.Table:
    """Rows in few partitions, one of which is NULL, with a column that no view reads."""
    columns = {
        "id": keys,
        "g": [random.choice([None, 1.5, float("nan"), -0.0, 0.0]) for _ in keys],
        "x": [random.choice([None, 1, 2, 3]) for _ in keys],
        "note": [f"note {random.randrange(9)}" for _ in keys],
    }
    types = [("id", pa.int64()), ("g", pa.float64()), ("x", pa.int32()), ("note", pa.string())]
    return pa.table(columns, schema=pa.schema(types))


@pytest.mark.parametrize("seed", [1, 2])
def test_one_version_is_looked_up(tmp_path: Path, asked: list[Any], seed: int) -> None:
    random = Random(seed)
    keeper = Keeper(tmp_path)
    keeper.create_table("t", some_rows(random, list(range(ROWS))), key=["id"])
    keeper.create_view("v", SQL, policy="incremental")
    for batch in range(4):
        asked.clear()
        chosen = random.sample(range(0, ROWS, 4), 8)
        new = list(range(ROWS + 10 * batch + 4 * seed, ROWS + 10 * batch + 4 * seed + 3))
        keeper.apply("t", inserts=some_rows(random, new), updates=some_rows(random, chosen[:5]))
        keeper.apply("t", deletes=pa.table({"id": chosen[5:]}))
        keeper.apply("t", inserts=some_rows(random, chosen[5:]))
        [report] = keeper.refresh()
        assert report.strategy == "id"
        assert [each for each in asked if each != "view"] == [("t", "pre")]
        assert asked.count("view") == 1, "whatever kinds of diffs change it"
        found = keeper.verify("v")
        assert (found.missing_rows, found.extra_rows) == (0, 0)
