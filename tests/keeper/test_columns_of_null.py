"""A bare NULL has no type: columns of tables and views need one, and views compute with it."""

from pathlib import Path

import pytest

from viewkeep import Keeper, ViewkeepError


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake")
    keeper.create_table("t", {"id": "int"}, key=["id"], rows=[(1,), (2,)])
    return keeper


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, NULL AS n FROM t",
        "SELECT id, array(NULL) AS n FROM t",
        "SELECT max(NULL) AS n FROM t",
        "SELECT NULL AS n, count(*) AS c FROM t GROUP BY 1",
        "SELECT 1 AS id, n FROM VALUES (NULL) AS q(n)",
    ],
)
def test_a_view_with_such_a_column_is_refused_and_the_lake_can_be_read(
    keeper: Keeper, tmp_path: Path, sql: str
) -> None:
    with pytest.raises(ViewkeepError, match=r'view "v", column "n".*as in CAST\(NULL AS string\)'):
        keeper.create_view("v", sql)
    again = Keeper(tmp_path / "lake")
    assert again.read("t").num_rows == 2
    again.create_view("v", "SELECT id, CAST(NULL AS string) AS n FROM t WHERE id > 1")
    assert again.read("v").to_pylist() == [{"id": 2, "n": None}]


def test_a_table_with_such_a_column_is_refused(keeper: Keeper) -> None:
    with pytest.raises(ViewkeepError, match=r'table "u", column "n" is void'):
        keeper.create_table("u", {"id": "int", "n": "void"}, key=["id"])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) AS c FROM (SELECT NULL AS n FROM t) GROUP BY n", [(2,)]),
        ("SELECT id FROM (SELECT DISTINCT id, NULL AS n FROM t)", [(2,), (3,)]),
        ("SELECT id FROM (SELECT id, NULL AS n FROM t) ORDER BY n, id LIMIT 1", [(2,)]),
        (
            "SELECT a.id, count(b.n) AS c FROM t a "
            "JOIN (SELECT id, NULL AS n FROM t) b ON a.id = b.id GROUP BY a.id",
            [(2, 0), (3, 0)],
        ),
        (
            "SELECT id FROM (SELECT id, NULL AS n FROM t INTERSECT SELECT id, NULL FROM t)",
            [(2,), (3,)],
        ),
    ],
)
def test_views_compute_with_it(keeper: Keeper, sql: str, expected: list[tuple[int, ...]]) -> None:
    """Hidden columns and caches have it too."""
    keeper.create_view("v", sql, policy="strict")
    keeper.apply("t", inserts=[(3,)], deletes=[(1,)])
    [report] = keeper.refresh()
    assert report.strategy == "id"
    rows = keeper.read("v").to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == expected
    assert keeper.verify("v").ok


def test_a_query_shows_it(keeper: Keeper) -> None:
    rows = keeper.query("SELECT id, NULL AS n FROM t ORDER BY id").to_pylist()
    assert rows == [{"id": 1, "n": None}, {"id": 2, "n": None}]
