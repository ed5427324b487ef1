"""Generated views kept by scripts through generated histories, in Python and in DuckDB."""

from collections.abc import Iterable
from functools import partial

import pytest

from tests.generated.cases import LONG, random_case
from tests.generated.runners import Runner, play, run_in_duckdb
from tests.generated.shrink import failure_of, shrink

BLOCK = 25 if LONG else 8
"""Cases of one test; a block of seeds that fails is told by its first failure."""
PLAYED = 56 if LONG else 2
TUPLES = IN_DUCKDB = 8 if LONG else 1


def check(run: Runner, seeds: Iterable[int], steps: int = 4) -> None:
    """All cases hold, or the first that does not is told in its smallest form."""
    for seed in seeds:
        case = random_case(seed, steps)
        if failure_of(case, run) is not None:
            small, failure = shrink(case, run)
            raise AssertionError(f"{small}\n{type(failure).__name__}: {failure}") from failure


def block(number: int, start: int = 0) -> range:
    """The seeds of a block."""
    return range(start + number * BLOCK, start + (number + 1) * BLOCK)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PLAYED))
def test_views_equal_themselves_computed_anew(number: int) -> None:
    check(play, block(number))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(TUPLES))
def test_tuple_based_scripts(number: int) -> None:
    check(partial(play, tuple_based=True), block(number, 100_000))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(IN_DUCKDB))
def test_scripts_in_duckdb(number: int) -> None:
    check(run_in_duckdb, block(number, 200_000), steps=2)
