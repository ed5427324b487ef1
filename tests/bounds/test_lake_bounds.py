"""What views over tables keep and touch, by counts at small sizes (`make bounds` takes larger)."""

import pytest

from bench import lake_bounds
from bench.lake_bounds import CASES, LakeCase, measure

MARGIN = {"viewtree": 0.1, "tuple": 0.1, "epsilon": 0.25}
"""Above this much more than promised a bound counts as broken: few rows still tell constants."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.title} by {case.strategy}")
def test_a_change_touches_as_many_rows_as_the_analysis_says(case: LakeCase) -> None:
    bound = measure(case, (64, 256))
    assert bound.update <= bound.predicted_update + MARGIN[case.strategy]
    if case.strategy != "epsilon":  # for which so few rows are not bad enough
        assert bound.update >= bound.predicted_update - 0.1, "the data is not bad enough"
    assert bound.space <= bound.predicted_space + 0.1


def test_a_table_tells_what_was_promised() -> None:
    promised = [
        (each.strategy, *map(float, (b.update, b.space)))
        for each in CASES
        if (b := lake_bounds.promised_bounds(each))
    ]
    assert promised[0] == ("viewtree", 0.0, 1.0)
    assert {each for each in promised if each[0] == "epsilon"} == {("epsilon", 0.5, 1.5)}
    assert {each[:2] for each in promised if each[0] == "tuple"} == {("tuple", 1.0)}
