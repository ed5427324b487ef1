"""Joins that compare one column several times, over relations whose rows are looked up by keys."""

from pathlib import Path
from random import Random

import pytest

import viewkeep as vk
from viewkeep.execute import few_rows

CONDITIONS = {
    "said twice": "SELECT r.id, s.id AS sid, s.z FROM r, s WHERE r.x = s.y AND s.y = r.x",
    "with two columns": "SELECT r.id, s.id AS sid, s.z FROM r JOIN s ON r.x = s.y AND r.x = s.z",
    "with two, one of them NULL": (
        "SELECT r.id, s.id AS sid FROM r JOIN s ON r.x <=> s.y AND r.x <=> s.z"
    ),
    "under two names": """SELECT s.id, q.id AS rid FROM s
        JOIN (SELECT id, x AS p, x AS q FROM r) q ON s.y = q.p AND s.z = q.q""",
    "in a subquery": """SELECT s.id FROM s
        WHERE EXISTS (SELECT 1 FROM r WHERE r.x = s.y AND r.x = s.z)""",
    "in its complement": """SELECT s.id FROM s
        WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.x = s.y AND r.x = s.z)""",
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_one_column_twice(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_rows, "ALL_ROWS", -1)
    monkeypatch.setattr(few_rows, "WHOLE_ROWS", 0)
    keeper, rng = vk.Keeper(tmp_path, durable=False), Random(name)
    keeper.create_table("r", vk.Table({"id": "int", "x": "int"}, key=["id"]))
    keeper.create_table("s", vk.Table({"id": "int", "y": "int", "z": "int"}, key=["id"]))

    def value() -> int | None:
        return rng.choice((None, 1, 2, 3))

    def change(first: int) -> None:
        keys = range(first, first + 6)
        keeper.apply("r", inserts=[(key, value()) for key in keys])
        keeper.apply("s", inserts=[(key, value(), value()) for key in keys])

    change(0)
    keeper.create_view("v", CONDITIONS[name], policy="incremental")
    for number in range(1, 4):
        change(10 * number)
        keeper.apply("s", updates=[{"id": 1, "y": value(), "z": value()}])
        keeper.apply("r", deletes=[(10 * number - 10,)])
        [report] = keeper.refresh("v")
        assert not report.from_scratch
        assert keeper.verify("v")
