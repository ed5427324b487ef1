"""Values at the edges of their types: a view that cannot hold them says so, in plain words."""

from datetime import date
from pathlib import Path

import pytest

import viewkeep as vk

LAST_DAY = date.max
BEYOND = r'column "next" has a date before the year 1 or after 9999'


@pytest.fixture
def keeper(tmp_path: Path) -> vk.Keeper:
    """A lake with a table of days and numbers."""
    keeper = vk.Keeper(tmp_path, durable=False)
    columns = {"id": "int", "day": "date", "number": "bigint"}
    keeper.create_table("t", columns, key=["id"], rows=[(1, date(2026, 1, 1), 1)])
    return keeper


@pytest.mark.parametrize("policy", ["auto", "incremental"])
def test_dates_beyond_the_calendar_are_errors_of_the_view(keeper: vk.Keeper, policy: str) -> None:
    sql = "SELECT id, day + INTERVAL 1 DAY AS next FROM t"
    keeper.create_view("days", sql, policy=policy)
    keeper.create_view("rows", "SELECT count(*) AS n FROM t")
    keeper.apply("t", inserts=[(2, LAST_DAY, 2)])
    with pytest.raises(vk.RefreshError, match=BEYOND) as raised:
        keeper.refresh()
    assert "unexpected" not in str(raised.value)
    assert keeper.read("rows").to_pylist() == [{"n": 2}]
    keeper.apply("t", deletes=[(2,)])
    keeper.refresh()
    assert keeper.read("days").to_pylist() == [{"id": 1, "next": date(2026, 1, 2)}]


def test_a_view_of_dates_beyond_the_calendar_is_not_made(keeper: vk.Keeper) -> None:
    keeper.apply("t", inserts=[(2, LAST_DAY, 2)])
    with pytest.raises(vk.ViewkeepError, match=BEYOND):
        keeper.create_view("days", "SELECT id, day + INTERVAL 1 DAY AS next FROM t")
    assert not keeper.views


def test_errors_of_an_engine_leave_out_what_it_ran(keeper: vk.Keeper) -> None:
    keeper.create_view("small", "SELECT id, CAST(number AS int) AS n FROM t", policy="incremental")
    keeper.apply("t", inserts=[(2, None, 2**63 - 1)])
    with pytest.raises(vk.RefreshError, match=r'view "small": .*out of range') as raised:
        keeper.refresh()
    assert "LINE 1" not in str(raised.value)
    assert "CAST(" not in str(raised.value)
