"""The page of functions is made from the lists, and names every function once."""

from docs.make_functions import PAGE, SECTIONS, lines, page
from viewkeep.query.types.aggregates import AGGREGATES
from viewkeep.sql.spark_functions import (
    SPARK_AGGREGATES,
    SPARK_FUNCTIONS,
    SPARK_GENERATORS,
    SPARK_WINDOWS,
    TIME_WINDOWS,
)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`, and read what changed"


def test_every_function_has_a_line() -> None:
    every = lines()
    assert [each.name for each in every] == sorted(SPARK_FUNCTIONS)
    assert {each.kind for each in every} == set(SECTIONS)


def test_the_kinds_are_functions_of_spark_and_differ() -> None:
    kinds = (SPARK_AGGREGATES, SPARK_WINDOWS, SPARK_GENERATORS, TIME_WINDOWS)
    assert sum(map(len, kinds)) == len(frozenset[str]().union(*kinds))
    assert all(kind <= SPARK_FUNCTIONS for kind in kinds)
    assert set(AGGREGATES) <= SPARK_AGGREGATES
