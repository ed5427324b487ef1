"""`viewkeep changes`: for people, for programs, and for those who follow."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.lakes import done, viewkeep
from viewkeep import Keeper


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """A table and a view that has been refreshed once."""
    monkeypatch.setenv("VIEWKEEP_LAKE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    keeper = Keeper(tmp_path, durable=False)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 10), (2, 20)])
    keeper.create_view("dear", "SELECT pid, price FROM parts WHERE price > 15")
    keeper.apply("parts", updates=[{"pid": 2, "price": 21}], inserts=[(3, None)])
    keeper.refresh()
    return keeper


def test_a_line_for_each_change(keeper: Keeper) -> None:
    assert done("changes", "parts", "--since", "0").out.splitlines() == [
        "version  change  pid  price",
        "1        update  2    20 -> 21",
        "1        insert  3    NULL",
    ]
    assert done("changes", "dear", "--since", "1").out == "no changes\n"


def test_documents_for_programs(keeper: Keeper) -> None:
    found = done("changes", "dear", "--json").json
    assert found["version"] == 1
    assert found["changes"] == [
        {"version": 0, "operation": "insert", "before": None, "after": {"pid": 2, "price": 20}},
        {
            "version": 1,
            "operation": "update",
            "before": {"pid": 2, "price": 20},
            "after": {"pid": 2, "price": 21},
        },
    ]


def test_mistakes(keeper: Keeper) -> None:
    for arguments in (("part",), ("parts", "--since", "9")):
        answer = viewkeep("changes", *arguments)
        assert answer.code == 2
        assert answer.err.startswith("error: ")
    unknown = 'there is no table or view "part" in this lake (parts, dear)'
    assert unknown in viewkeep("changes", "part").err


def test_followers_are_told_what_comes(keeper: Keeper) -> None:
    command = [sys.executable, "-m", "viewkeep", "changes", "dear", "--since", "0"]
    options = ["--follow", "--every", "0.05", "--json"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        try:
            assert json.loads(follower.stdout.readline())["after"] == {"pid": 2, "price": 21}
            keeper.apply("parts", inserts=[(4, 40)])
            keeper.refresh()
            keeper.apply("parts", deletes=[(2,)])
            keeper.refresh()
            told = [json.loads(follower.stdout.readline()) for _ in range(2)]
        finally:
            follower.send_signal(signal.SIGINT)
    assert [(each["version"], each["operation"]) for each in told] == [(2, "insert"), (3, "delete")]
    assert follower.returncode == 130
