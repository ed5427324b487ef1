"""Names that Delta tables do not allow may stand inside a view: of tables, subqueries, columns."""

from pathlib import Path

import pytest

from tests.keeper.lakes import check_verified
from viewkeep import Keeper
from viewkeep.errors import SchemaError

VIEWS = {
    "aliases": "SELECT `x=y`.b, count(DISTINCT `x=y`.c) AS n, max(`a, b`.c) AS m "
    "FROM t AS `x=y` JOIN u AS `a, b` ON `a, b`.b = `x=y`.b GROUP BY `x=y`.b",
    "hidden IDs": "SELECT `x=y`.b FROM t AS `x=y`",
    "columns": "SELECT u.c, max(`the top`) AS m FROM u JOIN (SELECT DISTINCT b AS `the b`, "
    "max(c) AS `the top` FROM t GROUP BY b) AS s ON u.b = s.`the b` GROUP BY u.c",
    "percent": "SELECT `100%`.b, count(DISTINCT `100%`.c) AS n FROM t AS `100%` JOIN u "
    "ON u.b = `100%`.b GROUP BY `100%`.b",
    "NOT IN of values that may be NULL": "SELECT a, CASE WHEN b NOT IN (SELECT c FROM u) THEN 1 "
    "ELSE 0 END AS absent FROM t",
    "NOT IN beside OR": "SELECT a FROM t WHERE c < 2 OR b NOT IN (SELECT c FROM u)",
}


@pytest.mark.parametrize("sql", VIEWS.values(), ids=VIEWS.keys())
def test_views_with_names_that_no_table_may_have(tmp_path: Path, sql: str) -> None:
    keeper = Keeper(tmp_path)
    for name in ("t", "u"):
        keeper.create_table(name, {"a": "int", "b": "int", "c": "int"}, ["a"], rows=[(1, 2, 3)])
    keeper.create_view("v", sql)
    for step in range(3):
        keeper.apply("t", inserts=[(10 + step, 2 + step % 2, step)])
        keeper.apply("u", inserts=[(10 + step, 2, None if step == 1 else step)])
        assert [each.error for each in keeper.refresh()] == [""]
        check_verified(keeper)
    keeper.apply("t", deletes=[(10,)])
    keeper.apply("u", updates=[{"a": 11, "c": 3}], deletes=[(1,)])
    assert [each.strategy for each in keeper.refresh()] == ["id"]
    check_verified(keeper)


def test_columns_of_the_view_itself_are_refused(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", {"a": "int"}, ["a"])
    with pytest.raises(SchemaError, match="give it another name"):
        keeper.create_view("v", "SELECT a AS `the a` FROM t")
