"""`maintain` runs the epsilon that `explain` calls the best, unless another one is given."""

import pytest
from hypothesis import given, settings

import viewkeep as vk
from tests.strategies import queries
from viewkeep.plan.choose import plan


def star(leaves: int) -> str:
    """Delta rank leaves - 1: update N^(rank eps), delay N^(1 - eps)."""
    head = ", ".join(f"x{i}" for i in range(leaves))
    return f"Q({head}) = " + " * ".join(f"R{i}(y, x{i})" for i in range(leaves))


@pytest.mark.parametrize("leaves", [2, 3, 4, 5])
def test_stars_run_where_update_and_delay_meet(leaves):
    live, analysis = vk.maintain(star(leaves)), vk.analyze(star(leaves))
    best = analysis.bounds.best_epsilon
    assert best is not None
    assert best.denominator == leaves
    assert {split.thresholds for split in live.program.splits} == {(float(best),)}


def test_a_named_epsilon_is_run():
    text = star(3)
    given_one = vk.maintain(text, epsilon=0.5).program
    assert {split.thresholds for split in given_one.splits} == {(0.5,)}
    named = vk.maintain("Q() = R(a, b) * S(b, c) * T(c, a)", epsilon={"R": 0.25}).program
    assert sorted(split.thresholds for split in named.splits) == [(0.25,), (0.5,), (0.5,)]


@settings(max_examples=60, deadline=None)
@given(queries())
def test_what_is_advertised_is_what_runs(query):
    analysis = vk.analyze(query)
    best = analysis.bounds.best_epsilon
    if analysis.strategy == "epsilon" and best is not None:
        single = [s.thresholds for s in plan(query).splits if len(s.thresholds) == 1]
        assert all(each == (float(best),) for each in single)
