"""Every view, kept by scripts through many batches, equals the view computed anew."""

from random import Random

import duckdb
import pytest

from tests.diffs.harness import KeptView, PlayedView, keep_through_batches
from tests.diffs.random_tables import random_database
from tests.diffs.views import TABLES, VIEWS
from viewkeep.sql.parse import parse_view

BATCHES = 20


@pytest.mark.slow
@pytest.mark.parametrize("tuple_based", [False, True], ids=["id", "tuple"])
@pytest.mark.parametrize("name", VIEWS)
def test_every_batch(name: str, tuple_based: bool) -> None:
    """Tables start empty under one view of three."""
    seed = list(VIEWS).index(name)
    database = random_database(TABLES, Random(seed), rows=0 if seed % 3 == 0 else 6)
    view = PlayedView(parse_view(VIEWS[name], TABLES), TABLES, database, tuple_based)
    keep_through_batches(view, seed, BATCHES)


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_in_duckdb(name: str) -> None:
    """The executor, the text of all queries, and DuckDB's own answer to the view."""
    seed = list(VIEWS).index(name)
    database = random_database(TABLES, Random(seed), rows=6)
    with duckdb.connect() as connection:
        view = KeptView(VIEWS[name], TABLES, database, seed % 2 == 0, connection)
        keep_through_batches(view, seed, batches=1)
