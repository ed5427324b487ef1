"""Which strategy `auto` takes, why, and that the view is right by whichever it is."""

import random

import pytest

import viewkeep as vk
from viewkeep import Keeper
from viewkeep.diffs.costs.sizes import Size, Spread
from viewkeep.errors import ArgumentError
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.refresh import choose_strategy, costs, plan, strategy_costs

STAR = "SELECT r.y, sum(r.a * s.a) AS x FROM r JOIN s ON r.y = s.y JOIN t ON s.y = t.y GROUP BY r.y"
TRIANGLES = """SELECT count(*) AS n FROM e a JOIN e b ON a.dst = b.src
    JOIN e c ON b.dst = c.src AND c.dst = a.src"""
LOOSE = "SELECT r.y, sum(r.a) AS x FROM r JOIN s ON r.id = s.id GROUP BY r.y"


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate for tables of any size."""
    monkeypatch.setattr(strategy_costs, "SMALL", 0)
    monkeypatch.setattr(choose_strategy, "WORTH", 0)


def star_lake(path: str, rows: int, values: int) -> Keeper:
    keeper, rng = Keeper(path, durable=False), random.Random(3)
    for name in "rst":
        content = [(i, rng.randrange(values), rng.randrange(9)) for i in range(rows)]
        columns = vk.Table({"id": "int", "y": "int", "a": "int"}, key=["id"])
        keeper.create_table(name, columns)
        keeper.apply(name, inserts=content)
    return keeper


def hub_lake(path: str, edges: int) -> Keeper:
    keeper, rng = Keeper(path, durable=False), random.Random(4)
    keeper.create_table("e", vk.Table({"id": "int", "src": "int", "dst": "int"}, key=["id"]))
    pairs = [(rng.randrange(1, 2000), rng.randrange(1, 2000)) for _ in range(edges)]
    hubs = [
        (0, y) if i % 3 == 0 else (x, 0) if i % 3 == 1 else (x, y) for i, (x, y) in enumerate(pairs)
    ]
    keeper.apply("e", inserts=[(i, *pair) for i, pair in enumerate(hubs)])
    return keeper


def test_many_to_many_sums_get_a_view_tree(tmp_path) -> None:
    keeper = star_lake(str(tmp_path), rows=1500, values=15)
    report = keeper.create_view("v", STAR)
    assert report.strategy == "viewtree"
    assert "faster than by IDs: id " in keeper.explain("v")
    for number in range(3):
        keeper.apply("s", inserts=[(5000 + number, number, 7)], deletes=[(number,)])
        assert keeper.refresh("v")[0].strategy == "viewtree"
        assert keeper.verify("v")


def test_a_preview_tells_the_strategy_that_a_view_would_get(tmp_path) -> None:
    keeper, views = star_lake(str(tmp_path), rows=1500, values=15), {"v": (STAR, ViewOptions())}
    [preview] = keeper.preview(views, {})
    assert (preview.change, preview.strategy) == ("new", "viewtree")
    assert "expected to be faster than by IDs" in preview.reason
    assert ("class", "q-hierarchical") in preview.theory
    keeper.create_view("v", STAR)
    [preview] = keeper.preview(views, {})
    assert (preview.change, preview.strategy) == ("same", "viewtree")
    other = {"u": vk.Table({"id": "int", "y": "int"}, key=["id"])}
    [preview] = keeper.preview(
        {"w": (STAR.replace(" t ", " u ").replace("t.y", "u.y"), ViewOptions())}, other
    )
    assert preview.strategy == "id", "nothing is known of a table that is not there"


def test_few_partners_stay_with_ids(tmp_path) -> None:
    keeper = star_lake(str(tmp_path), rows=600, values=600)
    assert keeper.create_view("v", LOOSE).strategy == "id"
    [(table, count, seconds), *others] = keeper._view("v").definition.expected
    assert (table, count, len(others)) == ("r", 1, 1), "what refreshes will be compared with"
    assert 0 < seconds < 1


def test_triangles_of_a_hub_get_heavy_and_light_parts(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions of edges, of which a third lead from one vertex: few are stored."""
    hub, edges = Spread(1e6, 0.11), 5e6
    size = Size(edges, {"src": hub, "dst": hub}, frozenset([frozenset(["id"])]))
    monkeypatch.setattr(strategy_costs, "_table_sizes", lambda view: {"e": size})
    keeper = hub_lake(str(tmp_path), edges=600)
    assert keeper.create_view("v", TRIANGLES).strategy == "epsilon"
    keeper.apply("e", inserts=[(90000, 0, 7), (90001, 7, 0)])
    keeper.refresh("v")
    assert keeper.verify("v")


def test_the_choice_outlives_the_process_and_a_change_below(tmp_path) -> None:
    keeper = star_lake(str(tmp_path), rows=1500, values=15)
    keeper.create_view("v", STAR)
    keeper.create_view("above", "SELECT y, x FROM v WHERE y < 10")
    again = Keeper(str(tmp_path), durable=False)
    again.apply("r", inserts=[(9000, 1, 1)])
    reports = {each.view: each for each in again.refresh()}
    assert reports["v"].strategy == "viewtree"
    assert not reports["v"].from_scratch
    assert again.verify("v")
    assert again.verify("above")
    again.create_view("above", "SELECT y, x + 1 AS x FROM v", replace=True)
    assert again.verify("above")


def test_what_is_asked_for_is_done(tmp_path) -> None:
    keeper = star_lake(str(tmp_path), rows=1500, values=15)
    assert keeper.create_view("v", STAR, strategy="id").strategy == "id"
    assert 'viewtree would be faster after changes like the last ones: strategy="viewtree"' in (
        keeper.explain("v")
    )


def test_the_next_definition_follows_the_data(tmp_path) -> None:
    """A view that was created while its tables were nearly empty is kept by IDs until it is
    created again."""
    keeper = star_lake(str(tmp_path), rows=2, values=20)
    assert keeper.create_view("v", STAR).strategy == "id"
    rng = random.Random(5)
    for name in "rst":
        rows = [(i, rng.randrange(15), 1) for i in range(100, 1600)]
        keeper.apply(name, inserts=rows)
    keeper.refresh("v")
    assert "viewtree would be faster" in keeper.explain("v")
    assert keeper.create_view("v", STAR, replace=True).strategy == "viewtree"
    assert keeper.verify("v")


def test_parts_that_overflow_leave_it_to_ids(tmp_path) -> None:
    """The sum of a part of the join is beyond bigint; no row of the join is."""
    keeper = star_lake(str(tmp_path), rows=1500, values=15)
    keeper.create_table("big", vk.Table({"id": "int", "y": "int", "a": "bigint"}, key=["id"]))
    far = [(i, 99, 2**62) for i in range(4)]
    keeper.apply("big", inserts=[*((i, i % 15, 1) for i in range(10, 1500)), *far])
    sql = STAR.replace("FROM r", "FROM big AS r")
    assert keeper.create_view("v", sql).strategy == "id"
    assert keeper.verify("v")
    assert list(keeper.views) == ["v"]


@pytest.mark.parametrize("policy", ["strict", "incremental"])
def test_views_that_are_never_computed_anew_stay_with_ids(tmp_path, policy: str) -> None:
    """Rows that come later may overflow a part of the join, and nothing would help then."""
    keeper = star_lake(str(tmp_path), rows=1500, values=15)
    keeper.create_table("big", vk.Table({"id": "int", "y": "int", "a": "bigint"}, key=["id"]))
    keeper.apply("big", inserts=[(i, i % 15, 1) for i in range(10, 1500)])
    keeper.create_view("v", STAR.replace("FROM r", "FROM big AS r"), policy=policy)
    keeper.apply("big", inserts=[(i, 99, 2**62) for i in range(4)])
    assert keeper.refresh("v")[0].strategy == "id"
    assert keeper.verify("v")


def test_a_lost_file_does_not_stop_explain(tmp_path) -> None:
    keeper = star_lake(str(tmp_path), rows=1500, values=15)
    keeper.create_view("v", STAR)
    for file in (tmp_path / "r").glob("*.parquet"):
        file.unlink()
    text = Keeper(str(tmp_path), durable=False).explain("v")
    assert "  strategy  viewtree" in text
    assert "  expected  " not in text


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"x": 0.1}, 'does not read "x"'),
        ({"r": 2}, "expected a part from 0 to 1"),
        ({"r": "much"}, "shares="),
    ],
)
def test_bad_shares(tmp_path, shares, message) -> None:
    keeper = star_lake(str(tmp_path), rows=10, values=3)
    with pytest.raises(ArgumentError, match=message):
        keeper.create_view("v", STAR, shares=shares)
    assert keeper.views == {}


def test_expected_changes_decide(tmp_path) -> None:
    """A table that never changes needs nothing that makes its changes cheap."""
    keeper = star_lake(str(tmp_path), rows=1500, values=15)
    keeper.create_view("v", STAR, shares={"r": 0, "s": 0, "t": 0})
    assert keeper.explain("v").splitlines()[1].startswith("  strategy  id")


def test_the_history_tells_what_was_expected(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "SMALL", 0)
    monkeypatch.setattr(plan, "FALLS_BACK", True)
    keeper = star_lake(str(tmp_path), rows=50, values=15)
    keeper.create_view("v", LOOSE)
    for changed in range(2):
        keeper.apply("s", deletes=[(changed,)])
        keeper.refresh("v")
    *refreshes, first = keeper.history("v")
    assert first.expected_seconds is None
    for each in refreshes:
        assert each.expected.keys() == {"incremental", "recompute"}
        assert 0 < each.expected_seconds < 10


def test_a_view_that_is_computed_anew_faster_begins_without_caches(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has IDs all the same, so that views above it can be kept; caches come once they pay."""
    keeper = star_lake(str(tmp_path), rows=60, values=30)
    sql = LOOSE.replace("r.a", "r.a * s.a")
    report = keeper.create_view("v", sql, shares={"r": 0.5, "s": 0.5})
    assert report.strategy == "id"
    assert "recompute is expected to be faster than by IDs: id " in keeper.explain("v")
    assert keeper._view("v").has_caches
    assert keeper._view("v").stored().state.caches == {}
    keeper.create_view("above", "SELECT y, x FROM v WHERE y < 10")
    assert Keeper(str(tmp_path), durable=False).views == keeper.views
    for number in range(3):
        keeper.apply("s", deletes=[(number,)])
        keeper.refresh()
        assert keeper.verify("v")
        assert keeper.verify("above")
    assert keeper._view("v").stored().state.caches, "over few rows they are written at once"
    assert not keeper.refresh("v")[0].from_scratch
