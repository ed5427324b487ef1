"""Random queries, types, engines and histories against the oracle of `bench.fuzz`."""

from collections import Counter

import pytest

from bench.fuzz import run_case
from tests.engine.engines import LONG


@pytest.mark.parametrize("seed", range(400 if LONG else 5))
def test_a_random_history_is_that_of_the_oracle(seed, monkeypatch):
    monkeypatch.setenv("VIEWKEEP_OPTIMIZE", "0")
    done: Counter[str] = Counter()
    run_case(seed, 40 if LONG else 12, done)
    assert done["cases"] == 1
