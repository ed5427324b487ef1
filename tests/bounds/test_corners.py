"""The corners of the survey's figure 4, by steps (docs/bounds.md)."""

import pytest

import viewkeep as vk
from bench.corners import CORNERS, DEPENDENCY, OTHERS, QUERY, Cost, Shop, costs

SMALL = Shop(places=3, zips=6, days=8, products=10, batch=20)


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Cost]]:
    return costs((*CORNERS, *OTHERS), SMALL)


def test_the_query_is_q_hierarchical_under_its_dependency() -> None:
    assert not vk.analyze(QUERY).bounds.constant
    assert vk.analyze(QUERY, fds=[DEPENDENCY]).verdicts["reduct_q_hierarchical"].holds


@pytest.mark.parametrize("often", ["few", "some", "many"])
def test_eager_fact_wins_where_the_output_is_read(
    found: dict[str, dict[str, Cost]], often: str
) -> None:
    steps = {name: row[often].steps for name, row in found.items()}
    assert all(steps["eager-fact"] < steps[name] for name in steps if name != "eager-fact")


def test_lazy_list_wins_where_nothing_is_read(found: dict[str, dict[str, Cost]]) -> None:
    """It ties with the other lazy ways: none of them touches a view before it is read."""
    steps = {name: row["none"].steps for name, row in found.items()}
    assert steps["lazy-list"] == min(steps.values())
    assert steps["lazy-list"] < min(steps["eager-list"], steps["eager-fact"]) / 2


def test_every_corner_has_the_same_output() -> None:
    outputs = []
    for corner in (*CORNERS, *OTHERS):
        live = corner.maintain()
        for batch in SMALL.batches():
            for relation, row in batch:
                live.update(relation, row)
        outputs.append(dict(live.enumerate()))
    assert all(output == outputs[0] for output in outputs)
    assert len(outputs[0]) == 3 * 6 * 8 * 10
