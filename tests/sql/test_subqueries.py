"""Subqueries in expressions where Spark's answers are its own, as Spark 4.3 gave them."""

import pytest

from tests.sql.database import TABLES
from tests.sql.evaluate import evaluate
from viewkeep.errors import QueryError
from viewkeep.sql.parse import parse_view

DATA = {
    "r": [(1, 1, "x"), (2, None, "y"), (None, 2, None), (3, 2, "x")],
    "t": [(1, 0, None), (2, 1, None), (None, 5, None), (2, 5, None)],
}
ANSWERS = {
    "select a, a in (select b from t) as i from r": [True, True, False, False],
    "select a, a not in (select b from t) as i from r": [False, False, False, False],
    "select a, (a, b) in (select b, c from t) as i from r": [False, False, False, False],
    "select a, exists (select 1 from t where t.b = r.b) as i from r": [True, False, True, True],
    "select a, (select c from t where t.b = r.b and c = 0) as m from r": [0, None, None, None],
    "select a, (select distinct c from t where c = 5) as m from r": [5, 5, 5, 5],
    "select a, (select max(c) from t where t.b <=> r.b) as m from r": [0, 5, 5, 5],
}
"""What the second column is for a = 1, 2, NULL, 3."""


@pytest.mark.parametrize("sql", ANSWERS)
def test_answers_of_spark(sql: str) -> None:
    rows = evaluate(parse_view(sql, TABLES), DATA)
    assert dict(rows) == dict.fromkeys(zip([1, 2, None, 3], ANSWERS[sql], strict=True), 1)


@pytest.mark.parametrize("where", ["", " where t.b = r.b", " where t.b = r.b group by c"])
def test_more_than_one_row_is_an_error(where: str) -> None:
    node = parse_view(f"select a, (select c from t{where}) as m from r", TABLES)
    with pytest.raises(QueryError, match="more than one row"):
        evaluate(node, DATA)


def test_a_subquery_that_is_written_twice_is_joined_once() -> None:
    once = "(select max(c) from t where t.b = r.b)"
    node = parse_view(f"select a from r where {once} > 1 or {once} < 0", TABLES)
    assert str(node).count("Scan t") == 1
