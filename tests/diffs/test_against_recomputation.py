"""Every view, kept by scripts through many batches, equals the view computed anew."""

from random import Random

import duckdb
import pytest

from tests.diffs.harness import keep_through_batches
from tests.diffs.in_duckdb import KeptInDuckdb, tables_of
from tests.diffs.random_tables import random_database
from tests.diffs.views import TABLES, VIEWS
from tests.transpile import to_duckdb
from viewkeep.sql.parse import parse_view

BATCHES = 20


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_every_batch(name: str) -> None:
    """By ID-based and by tuple-based scripts; tables start empty under one view of three."""
    seed = list(VIEWS).index(name)
    node = parse_view(VIEWS[name], TABLES)
    tables = tables_of(node, TABLES)
    database = random_database(tables, Random(seed), rows=0 if seed % 3 == 0 else 6)
    with duckdb.connect() as connection:
        view = KeptInDuckdb(node, tables, database, connection, to_duckdb(VIEWS[name]))
        keep_through_batches(view, seed, BATCHES, composed=20)
