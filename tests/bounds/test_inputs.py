"""Given inputs where no view tree is cheap: what is kept is linear, an update takes constant time,
and reading takes the time of a join of what meets the inputs."""

import pytest

import viewkeep as vk

SIZES = (200, 800)


def star(size: int) -> list[tuple[int, int]]:
    """A hub that is joined to everything: views over pairs of values are quadratic here."""
    return [(i, 0) for i in range(1, size)] + [(0, i) for i in range(size)]


@pytest.mark.parametrize(
    "text",
    [
        "Q(c | a, b) = E(a, b) * E(b, c) * E(c, a)",
        "Q(c | a) = E(a, b) * E(b, c)",
        "Q(b, c | a) = E(a, b) * E(b, c) * E(c, a)",
        "Q(b | a; sum(c)) = E(a, b) * E(b, c) * E(c, a)",
    ],
)
def test_nothing_quadratic_is_kept_for_inputs(text):
    bounds = vk.analyze(text).bounds
    assert (bounds.preprocessing, bounds.update, bounds.delay, bounds.space) == (1, 0, 1, 1)
    costs = []
    for size in SIZES:
        live = vk.maintain(text, engine="reference")
        live.load({"E": star(size)})
        assert sum(live.sizes().values()) <= 16 * size
        before = live.steps
        live.update("E", (0, 0), -1)
        live.update("E", (0, 0))
        update = (live.steps - before) / 2
        before = live.steps
        rows = list(live.enumerate(given=dict.fromkeys(live.query.inputs, 0)))
        assert len(rows) >= size
        costs.append((update, (live.steps - before) / size))
    (small, small_reading), (large, large_reading) = costs
    assert large <= small + 2
    assert large_reading <= 1.3 * small_reading


def test_views_are_kept_where_they_are_cheap_or_the_join_is_dear():
    """A path of three edges: to cover b, c and d takes two."""
    assert vk.analyze("Q(d | a) = E(a, b) * E(b, c) * E(c, d)").strategy == "viewtree"
    assert vk.analyze("Q(| a, b, c) = E(a, b) * E(b, c) * E(c, a)").strategy == "viewtree"
