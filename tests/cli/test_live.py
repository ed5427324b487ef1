"""`viewkeep live`: the rows of a view as its tables are now, and what changes in them."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.lakes import done, viewkeep
from viewkeep import Keeper


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """Two tables that have changed since their view was refreshed."""
    monkeypatch.setenv("VIEWKEEP_LAKE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    keeper = Keeper(tmp_path, durable=False)
    orders = [(1, "ann"), (2, "bob"), (3, "ann")]
    keeper.create_table("orders", {"oid": "int", "who": "string"}, ["oid"], rows=orders)
    lines = {"oid": "int", "item": "string", "price": "decimal(6,2)"}
    keeper.create_table("lines", lines, ["oid", "item"], rows=[(1, "nut", 2), (2, "nut", 3)])
    keeper.create_view(
        "bills",
        "SELECT sum(price) AS bill, who FROM orders o JOIN lines l ON o.oid = l.oid GROUP BY who",
    )
    keeper.apply("lines", inserts=[(3, "nut", 4)])
    return keeper


def test_rows_for_people_and_programs(keeper: Keeper) -> None:
    title, *lines = done("live", "bills").out.splitlines()
    assert title.split() == ["bill", "who"]
    assert sorted(line.split() for line in lines) == [["3.00", "bob"], ["6.00", "ann"]]
    document = done("live", "bills", "--json").json
    rows = sorted(document.pop("rows"), key=lambda row: str(row["who"]))
    assert document == {
        "format": 1,
        "view": "bills",
        "versions": {"orders": 0, "lines": 1},
        "more": 0,
    }
    assert rows == [{"bill": "6.00", "who": "ann"}, {"bill": "3.00", "who": "bob"}]
    assert keeper.version("bills") == 0
    assert "and 1 row more: --limit 0 shows all" in done("live", "bills", "--limit", "1").out
    keeper.apply("lines", deletes=[(1, "nut"), (2, "nut"), (3, "nut")])
    assert done("live", "bills").out == "no rows\n"


def test_what_is_no_view_or_not_conjunctive(keeper: Keeper) -> None:
    keeper.create_view("first", "SELECT oid FROM orders ORDER BY oid LIMIT 1")
    for name, problem in {"first": "not a conjunctive query", "bill": 'no view "bill"'}.items():
        answer = viewkeep("live", name)
        assert (answer.code, problem in answer.err) == (2, True), answer


def followed(patch: pytest.MonkeyPatch, options: list[str], *steps: Callable[[], Any]) -> list[str]:
    """The lines of a command that follows the view while steps happen, and is then interrupted."""
    rest = iter(steps)

    def sleep(seconds: float) -> None:
        step = next(rest, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    patch.setattr("viewkeep.cli.lake.live.time", SimpleNamespace(sleep=sleep))
    answer = viewkeep("live", "bills", "--follow", *options)
    assert answer.code == 130
    return answer.out.splitlines()


def test_followers_are_told_of_transactions_as_one(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"orders": {"inserts": [(4, "cid")]}, "lines": {"inserts": [(4, "nut", 9)]}}
    cheaper = [{"oid": 2, "item": "nut", "price": 1}]
    first, new, changed = map(
        json.loads,
        followed(
            monkeypatch,
            ["--json"],
            lambda: keeper.transaction(changes),
            lambda: keeper.apply("lines", updates=cheaper),
        ),
    )
    assert len(first["rows"]) == 2
    assert (new["before"], new["after"]) == (None, {"bill": "9.00", "who": "cid"})
    assert new["versions"] == {"orders": 1, "lines": 2}
    assert changed == {
        "versions": {"orders": 1, "lines": 3},
        "operation": "update",
        "before": {"bill": "3.00", "who": "bob"},
        "after": {"bill": "1.00", "who": "bob"},
    }


def test_followers_who_are_people(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = followed(monkeypatch, [], lambda: keeper.apply("lines", deletes=[(2, "nut")]))
    assert [line.split() for line in lines[-2:]] == [
        ["change", "bill", "who"],
        ["delete", "3.00", "bob"],
    ]
