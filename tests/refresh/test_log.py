"""What the library logs while it works, which terminals show as progress."""

import logging
from pathlib import Path

import pytest

import viewkeep as vk


def test_each_view_of_a_refresh_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keeper = vk.Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("t", {"a": "int"}, key=["a"], rows=[(1,)])
    keeper.create_view("v", "SELECT a FROM t")
    keeper.create_view("w", "SELECT a + 1 AS b FROM v")
    keeper.apply("t", inserts=[(2,)])
    with caplog.at_level(logging.INFO, logger="viewkeep"):
        keeper.refresh()
    lines = [each.getMessage() for each in caplog.records]
    assert "refreshing v (1 of 2) ..." in lines
    assert "refreshing w (2 of 2) ..." in lines
    assert [line.partition(",")[0] for line in lines if " of " not in line] == ["v: id", "w: id"]
