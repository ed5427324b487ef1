"""What views over tables keep and touch, by counts at small sizes (`make bounds` takes larger)."""

import os

import pytest

from bench import lake_bounds
from bench.lake_bounds import CASES, PAGE, LakeCase, measure

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
MARGIN = {"viewtree": 0.1, "tuple": 0.1, "epsilon": 0.25}
"""Above this much more than promised a bound counts as broken: few rows still tell constants."""


SHORT = [case for case in CASES if LONG or not case.title.startswith("cycles")]
"""Scripts of cycles have hundreds of statements."""


@pytest.mark.parametrize("case", SHORT, ids=lambda case: f"{case.title} by {case.strategy}")
def test_a_change_touches_as_many_rows_as_the_analysis_says(case: LakeCase) -> None:
    bound = measure(case, (64, 256))
    assert bound.update <= bound.predicted_update + MARGIN[case.strategy]
    if case.strategy != "epsilon":  # for which so few rows are not bad enough
        assert bound.update >= bound.predicted_update - 0.1, "the data is not bad enough"
    assert bound.space <= bound.predicted_space + 0.1


def test_the_page_has_the_table_of_a_run() -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = lake_bounds.table_in_page(page)
    titles = [line.split("  ")[0] for line in table.splitlines()[2:]]
    assert titles[: len(CASES)] == [each.title for each in CASES]
    assert "above" not in table
    assert lake_bounds.with_table(page, table) == page


def test_a_table_tells_what_was_promised() -> None:
    promised = [
        (each.strategy, *map(float, (b.update, b.space)))
        for each in CASES
        if (b := lake_bounds.promised_bounds(each))
    ]
    assert promised[0] == ("viewtree", 0.0, 1.0)
    adaptive = [each[1:] for each in promised if each[0] == "epsilon"]
    assert adaptive == [(0.5, 1.5), (0.5, 1.5), pytest.approx((2 / 3, 4 / 3))]
    assert {each[:2] for each in promised if each[0] == "tuple"} == {("tuple", 1.0)}
