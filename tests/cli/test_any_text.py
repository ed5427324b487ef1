"""Whatever is typed, the answer is an explanation or a ViewkeepError: never another exception."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeep.errors import ViewkeepError
from viewkeep.explain import explain
from viewkeep.query.tables import Table
from viewkeep.reading import is_sql, notation_statements, sql_statements

TABLES = {"R": Table({"a": "int", "b": "int"}), "S": Table({"b": "int not null"})}
NOTATION = st.lists(
    st.sampled_from([*"QRSab()=*,|;[]<'\n#·", " ", "--", "sum(", "count()", "Q(a) = R(a, b)", "1"]),
    max_size=20,
).map("".join)
WORDS = (
    "SELECT FROM WHERE JOIN ON GROUP BY UNION ALL CREATE VIEW AS v a b R S R.b * = ( ) , ; ' -- /*"
)
SQL = st.lists(st.sampled_from([*WORDS.split(), "\n", "sum("]), max_size=16).map(" ".join)
SQL = SQL.map(lambda text: f"SELECT {text}")


@settings(max_examples=150, deadline=None)
@given(NOTATION | SQL | st.text(max_size=30))
def test_any_text_is_explained_or_refused(text: str) -> None:
    with suppress(ViewkeepError):
        assert explain(text, TABLES).outcomes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1", True),
        ("-- a\n/* b */ WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("(SELECT a FROM R)", True),
        ("CREATE VIEW v AS SELECT 1", True),
        ("Q(a) = R(a)", False),
        ("# SELECT\nQ(a) = R(a)", False),
        ("Create(a) = R(a)", False),
        ("Selected(a) = R(a)", False),
    ],
)
def test_sql_is_told_from_the_notation(text: str, expected: bool) -> None:
    assert is_sql(text) is expected


def test_semicolons_in_quotes_and_comments_do_not_end_a_statement() -> None:
    text = "SELECT ';' -- ;\n FROM R /* ; */; ; -- name: second\nSELECT `;` FROM R"
    assert [statement.name for statement in sql_statements(text)] == ["Q1", "second"]


def test_queries_over_several_lines_stay_together() -> None:
    text = "Q1(a) =\n  R(a)\n\n  * S(a)  # more\nQ2(b) = R(b) *\nS(b)\n* T(b)\nQ3(c) = R(c)"
    assert [statement.name for statement in notation_statements(text)] == ["Q1", "Q2", "Q3"]
