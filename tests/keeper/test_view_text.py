"""Another text of a view's query is stored, and nothing of the view is computed."""

from pathlib import Path

import pytest

import viewkeep as vk

SQL = "SELECT u.did, sum(p.price) AS cost FROM uses u JOIN parts p ON p.pid = u.pid GROUP BY u.did"
OTHER = "SELECT x.did, sum(y.price) AS cost FROM uses x, parts y WHERE y.pid = x.pid GROUP BY x.did"


@pytest.fixture
def keeper(tmp_path: Path) -> vk.Keeper:
    keeper = vk.Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, key=["pid"], rows=[(1, 10)])
    keeper.create_table("uses", {"did": "int", "pid": "int"}, key=["did", "pid"], rows=[(7, 1)])
    keeper.create_view("cost", SQL)
    keeper.create_view("dear", "SELECT did FROM cost WHERE cost > 5")
    return keeper


def test_the_newest_text_is_told_and_the_rows_stay(keeper: vk.Keeper) -> None:
    before = keeper.version("cost"), keeper.version("dear")
    keeper.set_text("cost", OTHER)
    assert keeper.views["cost"] == OTHER
    assert next(each for each in keeper.describe_views() if each.name == "cost").sql == OTHER
    assert [each.strategy for each in keeper.refresh()] == ["none", "none"]
    assert (keeper.version("cost"), keeper.version("dear")) == before
    keeper.set_text("cost", SQL)
    assert keeper.views["cost"] == SQL


def test_views_are_maintained_and_repaired_as_before(keeper: vk.Keeper) -> None:
    keeper.set_text("cost", f"-- by device\n{OTHER}")
    keeper.apply("parts", updates=[{"pid": 1, "price": 3}])
    assert [each.rows_changed for each in keeper.refresh()] == [1, 1]
    keeper.repair("cost")
    assert keeper.views["cost"] == f"-- by device\n{OTHER}"
    assert all(keeper.verify(name).ok for name in keeper.views)


def test_a_view_that_is_defined_anew_with_what_it_reads_keeps_its_newest_text(
    keeper: vk.Keeper,
) -> None:
    text = "SELECT did /* only */ FROM cost WHERE cost > 5"
    keeper.set_text("dear", text)
    keeper.create_view("cost", SQL.replace("sum(p.price)", "avg(p.price)"), replace=True)
    keeper.refresh()
    assert keeper.views["dear"] == text
    assert keeper.verify("dear").ok


@pytest.mark.parametrize(
    ("name", "sql", "problem"),
    [
        ("cost", SQL.replace("sum", "max"), "another query than its own, not another text of it"),
        ("cost", SQL.replace("AS cost", "AS price"), "another query than its own"),
        ("cost", "SELECT did FROM nothing", "nothing"),
        ("cots", SQL, 'did you mean "cost"'),
        ("cost", f"CREATE VIEW dear AS {SQL}", "give both the same name"),
    ],
)
def test_another_query_is_refused(keeper: vk.Keeper, name: str, sql: str, problem: str) -> None:
    with pytest.raises(vk.ViewkeepError, match=problem):
        keeper.set_text(name, sql)
    assert keeper.views["cost"] == SQL
