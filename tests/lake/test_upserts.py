"""Rows that are inserted or stand for those that have their keys."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from viewkeep import Keeper
from viewkeep.errors import ViewkeepError

Row = dict[str, Any]


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake")
    rows = [(1, "a", 10, None), (2, "b", 20, "x"), (2, "c", None, "y")]
    columns = {"k": "int", "j": "string", "n": "int", "s": "string"}
    keeper.create_table("t", columns, key=["k", "j"], rows=rows)
    keeper.create_view("sums", "SELECT k, sum(n) AS total, count(*) AS rows FROM t GROUP BY k")
    return keeper


def stored(keeper: Keeper) -> dict[tuple[int, str], Row]:
    return {(row["k"], row["j"]): row for row in keeper.read("t").to_pylist()}


def assert_verified(keeper: Keeper) -> None:
    found = keeper.verify("sums")
    assert (found.missing_rows, found.extra_rows) == (0, 0)


def test_new_rows_and_others_in_the_place_of_old_ones(keeper: Keeper) -> None:
    version = keeper.apply("t", upserts=[(1, "a", 11, None), (7, "a", 70, "new")])
    assert stored(keeper)[1, "a"] == {"k": 1, "j": "a", "n": 11, "s": None}
    assert stored(keeper)[7, "a"]["n"] == 70
    [report] = keeper.refresh()
    assert (report.strategy, dict(report.changes)) == ("id", {"t": 2})
    changes = keeper.changes("t", since=version - 1).to_pylist()
    assert sorted(each["operation"] for each in changes) == ["insert", "update"]


def test_rows_that_are_there_already_change_nothing(keeper: Keeper) -> None:
    version = keeper.apply("t", inserts=[(5, "e", 5, None)])
    assert keeper.apply("t", upserts=[(1, "a", 10, None), (5, "e", 5, None)]) == version


def test_beside_other_changes_and_in_a_transaction(keeper: Keeper) -> None:
    keeper.apply(
        "t",
        inserts=[(3, "a", 30, None)],
        updates=[{"k": 1, "j": "a", "n": 12}],
        deletes=[(2, "b")],
        upserts=[(2, "c", 22, "y"), (4, "a", 40, None)],
    )
    assert {key: row["n"] for key, row in stored(keeper).items()} == {
        (1, "a"): 12,
        (2, "c"): 22,
        (3, "a"): 30,
        (4, "a"): 40,
    }
    keeper.transaction({"t": {"upserts": [(4, "a", 41, None), (9, "z", 9, None)]}})
    assert stored(keeper)[4, "a"]["n"] == 41
    keeper.refresh()
    assert_verified(keeper)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"upserts": [(1, "a", 1, None)] * 2}, "the upserts name this key twice"),
        (
            {"upserts": [(1, "a", 1, None)], "deletes": [(1, "a")]},
            "the upserts and the deletes name this key",
        ),
        (
            {"upserts": [(8, "a", 1, None)], "inserts": [(8, "a", 2, None)]},
            "the upserts and the inserts name this key",
        ),
        ({"upserts": [{"k": 1, "j": "a", "n": 1}]}, "no column s"),
        ({"upserts": [(None, "a", 1, None)]}, "key"),
        ({"upserts": [(1, "a", "many", None)]}, 'column "n"'),
    ],
)
def test_misfits_change_nothing(keeper: Keeper, changes: dict[str, Any], problem: str) -> None:
    before = stored(keeper)
    with pytest.raises(ViewkeepError, match=problem):
        keeper.apply("t", **changes)
    assert stored(keeper) == before


def test_random_changes(keeper: Keeper) -> None:
    rng, model = Random(5), stored(keeper)
    keys = [(k, j) for k in range(6) for j in "abc"]

    def row(key: tuple[int, str]) -> Row:
        return {"k": key[0], "j": key[1], "n": rng.choice([None, 1, 2]), "s": rng.choice("xy")}

    for _ in range(12):
        upserted = rng.sample(keys, rng.randint(0, 6))
        others = [key for key in keys if key not in upserted]
        deletes = [key for key in others if key in model and rng.random() < 0.2]
        inserts = [key for key in others if key not in model and rng.random() < 0.2]
        new = {key: row(key) for key in [*upserted, *inserts]}
        keeper.apply(
            "t",
            inserts=[new[key] for key in inserts],
            deletes=deletes,
            upserts=[new[key] for key in upserted],
        )
        model = {key: each for key, each in model.items() if key not in deletes} | new
        assert stored(keeper) == model
        keeper.refresh()
        assert_verified(keeper)
