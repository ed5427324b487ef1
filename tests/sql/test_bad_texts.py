"""Malformed and unsupported texts by a grammar of mistakes: each is one error, at its place."""

from itertools import product

import pytest

from tests.sql.other_texts import NESTED, OTHER_FAMILIES
from viewkeep.errors import ParseError
from viewkeep.query.tables import Table
from viewkeep.sql.parse import parse_view

TABLES = {
    "r": Table({"a": "int", "b": "string", "d": "date"}, key=["a"]),
    "s": Table({"a": "int", "c": "decimal(10, 2)"}, key=["a"]),
}
QUERIES = (
    "SELECT {} AS v FROM r",
    "SELECT r.a\nFROM r\nWHERE {} IS NOT NULL",
    "SELECT max({}) AS v FROM r",
    "WITH t AS (\n  SELECT {} AS v FROM r\n) SELECT v FROM t",
    "SELECT s.a FROM s WHERE s.a IN (SELECT {} FROM r)",
    "SELECT b AS v FROM r UNION ALL SELECT {} FROM r",
    "SELECT r.a FROM r JOIN s ON r.a = s.a AND {} = 1",
)
AT_ITS_PLACE = (
    "nope",
    "x.b",
    "r.nope",
    "rr.b",
    "lenght(b)",
    "foo(a)",
    "rand()",
    "uuid()",
    "current_user()",
    "monotonically_increasing_id()",
    "input_file_name()",
    "length()",
    "length(b, b, b)",
    "b + DATE '2020-01-01'",
    "upper(b, b)",
    "CAST(b AS whatever)",
    "CAST(b AS decimal(50, 2))",
    "CASE WHEN b THEN 1 END",
    "CASE WHEN a = 1 THEN nope END",
    "CAST('2020-13-45' AS date)",
    "sum(sum(a))",
    "- d",
    "year(a)",
    "abs(d)",
    "b[nope]",
)
"""Expressions that read well and mean nothing: the error points into them."""
UNREADABLE = (
    "a +",
    "(a",
    "a)",
    "'abc",
    "`abc",
    "a b c",
    "a = = 1",
    "CASE WHEN a THEN",
    "CASE a END CASE",
    "CAST(a int)",
    "a BETWEEN 1",
    "a IN (",
    "f(,)",
    "a..b",
    "SELECT",
    "/* open",
)
"""What is no expression: reading stops somewhere."""
STATEMENTS = (
    "",
    "   ",
    "-- only a comment",
    ";",
    "SELEC a FROM r",
    "SELECT a FROM",
    "SELECT FROM r WHERE",
    "SELECT a FROM r WHERE",
    "SELECT a FROM r GROUP BY",
    "SELECT a FROM r LIMIT x",
    "SELECT a FROM r; SELECT a FROM r",
    "SELECT a FROM nowhere",
    "SELECT a FROM default.r",
    "SELECT a FROM parquet.`/x`",
    "SELECT a FROM r TABLESAMPLE (5 ROWS)",
    "SELECT a FROM r VERSION AS OF 3",
    "SELECT a FROM r TIMESTAMP AS OF '2020-01-01'",
    "SELECT a, b AS a FROM r",
    "SELECT a, max(b) FROM r",
    "SELECT a FROM r GROUP BY 7",
    "SELECT count(a) AS n FROM r GROUP BY 1",
    "SELECT a FROM r WHERE sum(a) > 1",
    "SELECT a FROM r, s",
    "SELECT r.a FROM r JOIN s USING (nope)",
    "SELECT a FROM r UNION ALL SELECT a, c FROM s",
    "SELECT a FROM r UNION",
    "WITH t AS SELECT a FROM r SELECT a FROM t",
    "WITH t AS (SELECT a FROM r), t AS (SELECT a FROM r) SELECT a FROM t",
    "WITH t AS (SELECT a FROM u), u AS (SELECT a FROM t) SELECT a FROM t",
    "INSERT INTO r SELECT a FROM r",
    "DELETE FROM r",
    "UPDATE r SET a = 1",
    "DROP TABLE r",
    "CREATE TABLE t (a int)",
    "MERGE INTO r USING s ON r.a = s.a WHEN MATCHED THEN DELETE",
    "SHOW TABLES",
    "USE x",
    "SET a = 1",
    "EXPLAIN SELECT a FROM r",
    "SELECT TRANSFORM(a) USING 'cat' AS (x) FROM r",
    "SELECT a FROM r WHERE a = :p",
    "hello",
    "\x00",
    "💥",
)
PLACED = [(query, part) for query, part in product(QUERIES, AT_ITS_PLACE)]
TEXTS = [q.format(part) for q, part in product(QUERIES, UNREADABLE)] + list(STATEMENTS)


def error_of(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_view(text, TABLES)
    return caught.value


def check_form(error: ParseError, text: str) -> None:
    """A sentence with a place, the line, and a caret below it."""
    head, source, caret = str(error).split("\n")
    assert f"at line {error.line}, column {error.column}" in head
    assert source[2:] in text.split("\n")[error.line - 1]
    assert len(source) < 500
    assert caret.strip() == "^"
    assert 0 <= error.position <= len(text)
    for word in ("sqlglot", "Token", "Traceback", "<class", "None"):
        assert word not in head


def test_there_are_more_than_two_hundred() -> None:
    assert len({*TEXTS, *(query.format(part) for query, part in PLACED)}) > 200


@pytest.mark.parametrize("part", AT_ITS_PLACE)
def test_the_error_points_at_the_mistake(part: str) -> None:
    for query in QUERIES:
        text, start = query.format(part), query.index("{")
        error = error_of(text)
        check_form(error, text)
        assert start <= error.position <= start + len(part), (text, str(error))


@pytest.mark.parametrize("text", TEXTS)
def test_an_unreadable_text_is_one_error(text: str) -> None:
    check_form(error_of(text), text)


def test_texts_of_other_families_are_one_error_each() -> None:
    assert len(set(OTHER_FAMILIES)) > 200
    for text in OTHER_FAMILIES:
        check_form(error_of(text), text)


@pytest.mark.parametrize("text", NESTED, ids=["brackets", "cases", "sums"])
def test_a_text_that_is_nested_too_deeply_has_a_place(text: str) -> None:
    error = error_of(text)
    assert "nested too deeply" in error.problem
    assert 0 <= error.position < len(text)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("SELECT a^,, b FROM r", 8, "behind this comma"),
        ("SELECT a^, FROM r", 8, "behind this comma"),
        ("SELECT ^, a FROM r", 7, "before this comma"),
        ("SELECT r.a FROM r JOIN s ^ON", 25, "behind ON"),
        ("SELECT r.a FROM r JOIN s ^ON WHERE r.a = 1", 25, "behind ON"),
        ("SELECT r.a FROM r JOIN s ^USING ()", 25, "brackets of USING"),
        ("SELECT a FROM r GROUP BY a ^WHERE a > 1", 27, "WHERE has to stand before GROUP BY"),
        ("SELECT a FROM r ORDER BY a ^HAVING a > 1", 27, "HAVING has to stand before ORDER BY"),
    ],
)
def test_a_part_that_is_missing_is_named(text: str, place: int, problem: str) -> None:
    """Parsers pass over some of them; a join without its condition would be another view."""
    error = error_of(text.replace("^", ""))
    assert (error.position, problem in error.problem) == (place, True), str(error)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM r WHERE a > 1 UNION SELECT a FROM r GROUP BY a HAVING a > 1",
        "SELECT max(a) FILTER (WHERE a > 1) AS m FROM r GROUP BY b HAVING count(*) > 1",
        "SELECT (SELECT max(a) FROM s WHERE c > 1) AS m FROM r WHERE a > 1 ORDER BY (a)",
        "SELECT a, rank() OVER (PARTITION BY b ORDER BY a) AS k FROM r WHERE a > 1",
        "SELECT a FROM r WHERE b IS DISTINCT FROM 'x' AND a BETWEEN -1 AND 2",
        "SELECT * EXCEPT (b) FROM r",
        "SELECT a FROM r EXCEPT (SELECT a FROM s)",
    ],
)
def test_what_is_in_its_place_is_read(text: str) -> None:
    assert parse_view(text, TABLES).schema
