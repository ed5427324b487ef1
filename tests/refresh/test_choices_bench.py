"""The benchmark of choices: what it measures, and what it says of the figures."""

from bench import choices
from bench._choice_views import VIEWS
from bench.choices import Case, Figure

SHARES, SIZES = (0.0001, 0.01, 0.1), (200_000, 1_000_000)
INSERT, UPDATE = ("r", "insert", 0.01), ("r", "update", 0.1)
CASES = [
    Case("star", 1000, INSERT, {"id": 2.0, "viewtree": 0.5}, Figure(0.6, "viewtree")),
    Case("star", 1000, UPDATE, {"id": 1.0, "viewtree": 1.15}, Figure(1.1, "viewtree")),
    Case("pairs", 1000, UPDATE, {"id": 1.0, "recompute": 0.5}, Figure(0.4, "id")),
    Case("pairs", 1000, INSERT, {"recompute": 0.5}, Figure(0.9, "id")),
]


def test_there_are_enough_cases() -> None:
    places = [choices.places(view, SHARES) for view in VIEWS]
    assert len(SIZES) * sum(map(len, places)) >= 60
    kinds = {kind for view in places for _, kind, _ in view}
    assert kinds == {"insert", "update", "delete"}
    for view in VIEWS:
        assert {table for table, _ in view.changes} <= view.tables.keys()


def test_choices_are_judged_by_the_strategies_themselves() -> None:
    assert [each.is_right for each in CASES] == [True, True, False, False]
    assert CASES[3].ratio == 1.8, "the strategy was left out, what it took is known"
    lines = list(choices.summary(CASES))
    assert lines[0].startswith("In 2 of 4 cases (50%) ")
    assert "`viewtree` is the fastest in 1 of 4 cases: star (1)." in lines
    assert "`epsilon` is the fastest in 0 of 4 cases: nowhere." in lines


def test_the_page_has_a_row_for_each_case() -> None:
    page = choices.page(CASES, rounds=3)
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| 1,000 ")]
    assert len(rows) == len(CASES)
    assert {len(row) for row in rows} == {len(choices.COLUMNS)}
    assert rows[1][-1] == "1.15 |"
