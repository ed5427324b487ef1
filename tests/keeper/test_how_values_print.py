"""What a Keeper and its reports show of themselves: a line that a person reads."""

from pathlib import Path

from viewkeep import Keeper


def test_reports_are_lines(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "a lake")
    assert repr(keeper) == f"Keeper({str(tmp_path / 'a lake')!r})"
    keeper.create_table("t", {"id": "int", "n": "int"}, ["id"], rows=[(1, 5), (2, 6)])
    keeper.create_view("v", "SELECT n, count(*) AS c FROM t GROUP BY n")
    keeper.apply("t", inserts=[(3, 6), (4, 7)])
    [stage] = keeper.plan()
    assert str(stage).startswith("v: incremental (id); by duckdb; changes: 2 of t")
    [report] = keeper.refresh()
    assert str(report).startswith("v: 2 of 3 rows changed by id; changes: 2 of t; 0.")
    assert str(keeper.verify("v")) == "v: 3 rows, as its query gives"
    [report] = keeper.refresh()
    assert str(report) == "v: 3 rows; nothing to do"
    [status] = keeper.status()
    assert all(len(repr(each)) < 300 for each in (stage, report, status))
