"""Step counts on growing adversarial data grow as theory says (docs/bounds.md)."""

from dataclasses import replace

import pytest

import viewkeep as vk
from bench._cases import CASES, CHAIN, Case
from bench.bounds import exponent, measure

SIZES = (60, 240)
MARGIN = 0.25


def label(case: Case) -> str:
    return f"{case.title} {case.strategy}"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=label)
def test_exponents_are_as_predicted(case: Case) -> None:
    for line in measure(case, SIZES):
        assert line.update == pytest.approx(line.predicted_update, abs=MARGIN), line.relation
        assert line.delay == pytest.approx(line.predicted_delay, abs=MARGIN)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.strategy == "auto"], ids=lambda case: case.title
)
def test_predictions_are_those_of_the_analysis(case: Case) -> None:
    bounds = vk.analyze(case.query, **case.options).bounds
    assert bounds.update == max(case.updates.values())
    assert bounds.delay == case.delay
    assert bounds.amortized == case.amortized
    assert (bounds.preprocessing > 1) == case.quadratic


@pytest.mark.slow
def test_without_its_dependencies_the_chain_is_linear() -> None:
    """The data is adversarial: what the constraint forbids costs a step per row."""
    chain = next(case for case in CASES if case.query == CHAIN)
    free = replace(chain, strategy="viewtree", options={}, limits=())
    assert max(line.update for line in measure(free, SIZES)) > 1 - MARGIN


def test_exponents_are_slopes() -> None:
    assert exponent([10, 20, 40], [7, 7, 7]) == 0
    assert exponent([10, 20, 40], [30, 60, 120]) == pytest.approx(1)
    assert exponent([10, 20, 40], [100, 400, 1600]) == pytest.approx(2)
    assert exponent([10, 20, 40], [9, 6, 3]) == 0
