"""Common tables become subqueries only where every name still means the same."""

import pytest
from sqlglot import parse_one

from viewkeep.sql.blocks.inline_tables import inline_common_tables

INLINED = {
    "WITH t AS (SELECT b FROM t) SELECT b FROM t": "SELECT b FROM (SELECT b FROM t) AS t",
    "WITH c(z) AS (SELECT b FROM t) SELECT x.z, y.w FROM C AS x, c AS y(w)": (
        "SELECT x.z, y.w FROM (SELECT b FROM t) AS x(z), (SELECT b FROM t) AS y(w)"
    ),
    "WITH c AS (SELECT b FROM t), d AS (SELECT b FROM c) SELECT b FROM d": (
        "SELECT b FROM (SELECT b FROM (SELECT b FROM t) AS c) AS d"
    ),
    "WITH c AS (SELECT b FROM t) SELECT b FROM c, (WITH c AS (SELECT 1) SELECT * FROM c) AS d": (
        "SELECT b FROM (SELECT b FROM t) AS c, (WITH c AS (SELECT 1) SELECT * FROM c) AS d"
    ),
}
KEPT = {
    "nothing reads it": "WITH c AS (SELECT rand()) SELECT b FROM t",
    "another table has the name there": (
        "WITH c AS (SELECT b FROM t) SELECT b FROM (WITH t AS (SELECT 1 AS b) SELECT b FROM c, t)"
    ),
    "other columns are in sight there": (
        "WITH c AS (SELECT r.a FROM t) SELECT 1 FROM u AS r WHERE EXISTS (SELECT 1 FROM c)"
    ),
    "columns beside it are in sight there": (
        "WITH c AS (SELECT r.a FROM t) SELECT 1 FROM u AS r, LATERAL (SELECT a FROM c) AS x"
    ),
    "it is defined later": "WITH c AS (SELECT b FROM d), d AS (SELECT b FROM t) SELECT b FROM c, d",
}


@pytest.mark.parametrize("sql", INLINED)
def test_tables_in_from(sql: str) -> None:
    inlined = inline_common_tables(parse_one(sql))
    assert inlined is not None
    assert inlined.sql() == INLINED[sql]


@pytest.mark.parametrize("reason", KEPT)
def test_tables_that_stay(reason: str) -> None:
    assert inline_common_tables(parse_one(KEPT[reason])) is None
