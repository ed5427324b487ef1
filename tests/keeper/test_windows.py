"""Views with windows over a lake: ties are decided in the same way by refreshes and by verify."""

from pathlib import Path

from viewkeep import Keeper

VIEWS = {
    "ranked": "select id, a, row_number() over (partition by a order by b desc) n from t",
    "best": "select id, a, b from t qualify rank() over (partition by a order by b) = 1",
    "top": "select a, b from t order by b desc limit 7",
    "share": "select a, sum(b) x, sum(sum(b)) over () y from t group by a",
}


def test_views_with_windows_equal_their_queries_after_every_refresh(tmp_path: Path) -> None:
    lake = Keeper(tmp_path)
    rows = [{"id": i, "a": i % 7, "b": i % 5} for i in range(60)]
    lake.create_table("t", "id INT, a INT, b INT", key=["id"], rows=rows)
    for name, sql in VIEWS.items():
        lake.create_view(name, sql)
    for number in range(2):
        lake.apply(
            "t",
            inserts=[{"id": 100 + number, "a": 3, "b": 4}],
            updates=[{"id": 20 + number, "a": 1, "b": 4}],
            deletes=[{"id": 30 + number}],
        )
        for name in VIEWS:
            [report] = lake.refresh(name)
            assert report.strategy == "id"
            assert lake.verify(name).ok, name


def test_first_rows_follow_more_deletes_than_their_reserve_has_rows(tmp_path: Path) -> None:
    lake = Keeper(tmp_path)
    rows = [{"id": i, "b": i // 3} for i in range(60)]
    lake.create_table("t", "id INT, b INT", key=["id"], rows=rows)
    lake.create_view("top", "select id from t order by b, id limit 3 offset 1")
    for deleted in (range(7), range(7, 19), range(19, 36), [50]):
        lake.apply("t", deletes=[{"id": i} for i in deleted])
        [report] = lake.refresh("top")
        assert report.strategy == "id"
        first = [i for i in range(deleted[-1] + 1, 60) if deleted != [50]] or range(36, 60)
        assert sorted(lake.read("top")["id"].to_pylist()) == list(first[1:4])
        assert lake.verify("top").ok
