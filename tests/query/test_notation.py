"""Reading and printing the query notation."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.strategies import expressions, identifiers, queries
from viewkeep.errors import ParseError
from viewkeep.query.aggregates import Aggregate
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.expressions import Call, Cast, Column, Literal, literal
from viewkeep.query.notation.parse import parse, parse_many
from viewkeep.query.types.data_types import DECIMAL

# Forms ---------------------------------------------------------------------------------------


def test_a_join_with_a_variable_summed_away() -> None:
    query = parse("Q(a, c) = R(a, b) * S(b, c)")
    assert query == ConjunctiveQuery(
        "Q", ("a", "c"), (Atom("R", ("a", "b")), Atom("S", ("b", "c")))
    )
    assert query.bound == ("b",)


@pytest.mark.parametrize("head", ["Q()", "Q"])
def test_a_scalar(head: str) -> None:
    query = parse(f"{head} = R(a, b) * S(b, c) * T(c, a)")
    assert query.free == ()
    assert str(query) == "Q() = R(a, b) * S(b, c) * T(c, a)"


def test_an_access_pattern() -> None:
    query = parse("Q(c | a, b) = E(a, b) * E(b, c) * E(c, a)")
    assert (query.outputs, query.inputs) == (("c",), ("a", "b"))
    assert query.has_self_joins


@pytest.mark.parametrize("head", ["Q(| a, b, c)", "Q(· | a, b, c)"])
def test_an_access_pattern_without_outputs(head: str) -> None:
    query = parse(f"{head} = E(a, b) * E(b, c) * E(c, a)")
    assert (query.outputs, query.inputs) == ((), ("a", "b", "c"))
    assert str(query).startswith("Q(| a, b, c) = ")


def test_aggregates_after_a_semicolon() -> None:
    query = parse("Q(a; sum(c * d), count()) = R(a, b) * S(a, c, e) * T(c, d)")
    product = Call("*", (Column("c"), Column("d")))
    assert query.aggregates == (Aggregate("sum", product), Aggregate("count"))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Q(; count(*)) = R(a)", "Q(; count()) = R(a)"),
        ("Q(| a; max(b)) = R(a, b)", "Q(| a; max(b)) = R(a, b)"),
        ("Q(a; AVG(b), Min(b)) = R(a, b)", "Q(a; avg(b), min(b)) = R(a, b)"),
    ],
)
def test_aggregates_of_every_head(text: str, printed: str) -> None:
    assert str(parse(text)) == printed


def test_conditions_in_brackets() -> None:
    query = parse("Q(a) = R(a, b) * [b > 3 AND a <> 'x'] * S(b)")
    assert query.atoms == (Atom("R", ("a", "b")), Atom("S", ("b",)))
    assert [str(condition) for condition in query.conditions] == ["b > 3 and a <> 'x'"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("1.50", Decimal("1.50")),
        ("1e3", 1000.0),
        ("'it''s'", "it's"),
        ("true", True),
        ("NULL", None),
        ("date '2024-02-29'", date(2024, 2, 29)),
        ("DATE '2024-02-29'", date(2024, 2, 29)),
        ("x '00ff'", b"\x00\xff"),
        ("decimal '7'", Decimal(7)),
    ],
)
def test_literals(text: str, value: object) -> None:
    (condition,) = parse(f"Q() = R(a) * [a = {text}]").conditions
    assert isinstance(condition, Call)
    right = condition.arguments[1]
    assert isinstance(right, Literal)
    assert right.value == value
    assert type(right.value) is type(value)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a - b - c > 0", "((a - b) - c) > 0"),
        ("a + b * c > 0", "(a + (b * c)) > 0"),
        ("a = 1 or b = 2 and not c = 3", "(a = 1) or ((b = 2) and (not (c = 3)))"),
        ("-a * b < 0", "((-a) * b) < 0"),
        ("a != 1", "a <> 1"),
        ("Abs(a) = 1", "abs(a) = 1"),
    ],
)
def test_operators_bind_as_in_sql(text: str, meaning: str) -> None:
    assert parse(f"Q() = R(a, b, c) * [{text}]") == parse(f"Q() = R(a, b, c) * [{meaning}]")


def test_a_minus_before_brackets_is_a_negation_and_not_a_negative_number() -> None:
    (argument,) = (a.argument for a in parse("Q(; sum(-(3) * a)) = R(a)").aggregates)
    assert argument == Call("*", (Call("negate", (literal(3),)), Column("a")))


def test_casts() -> None:
    (argument,) = (
        a.argument for a in parse("Q(; sum(cast(a as DECIMAL(10,2)))) = R(a)").aggregates
    )
    assert argument == Cast(Column("a"), DECIMAL(10, 2))


def test_quoted_names_may_hold_anything() -> None:
    query = parse("`my query`(`order date`) = `db.orders`(`order date`, `and`, `a``b`)")
    assert query.name == "my query"
    assert query.atoms == (Atom("db.orders", ("order date", "and", "a`b")),)


@pytest.mark.parametrize("name", ["a·b", "cafe\u0301", "order date", "And", "1st", "R'", "`", "#"])
def test_a_name_that_would_not_read_back_is_quoted(name: str) -> None:
    """The first two are identifiers in Python, but not words in the notation."""
    query = ConjunctiveQuery("Q", (name,), (Atom("R", (name, "b")),))
    assert str(query).startswith("Q(`")
    assert parse(str(query)) == query


def test_names_may_end_in_primes_before_a_bracket() -> None:
    """As in the reduct R'(x, y) of R(x)."""
    query = parse("Q'(x) = R''(x, y) * `S 1`'(y)")
    assert [query.name, *query.relations] == ["Q'", "R''", "S 1'"]
    assert str(query) == "Q'(x) = R''(x, y) * `S 1`'(y)"


def test_several_queries_in_one_text_with_comments() -> None:
    text = """
    # two queries
    Q1(a) = R(a, b)   -- the first; has no end sign
    Q2(b) = R(a, b) * # may go on
            S(b);;
    """
    assert [str(query) for query in parse_many(text)] == [
        "Q1(a) = R(a, b)",
        "Q2(b) = R(a, b) * S(b)",
    ]
    assert parse_many("# nothing") == ()


def test_relations_of_the_schema_are_accepted() -> None:
    assert parse("Q(a) = R(a, b) * S(b)", schema={"R": 2, "S": 1}).relations == ("R", "S")


# Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("Q(a) = R(a) $ S(a)", 13, 'unexpected character "$"'),
        ("Q(a) = R(a) * [a = 'x]", 20, "the quote ' is never closed"),
        ("Q(a) = R(a) * [a = 'it''s]", 20, "the quote ' is never closed"),
        ("Q(a) = R(`a)", 10, "the quote ` is never closed"),
        ("Q(a = R(a)", 5, 'expected "," or ")", found "="'),
        ("Q(a) = R(a, b", 14, 'expected "," or ")", found the end'),
        ("Q(a) = R(a, )", 13, 'expected a variable, found ")"'),
        ("Q(a) = R(a) * [a = 1", 21, 'expected "]" to close the condition, found the end'),
        ("Q(a; sum(b = R(a, b)", 21, 'expected "," or ")", found the end'),
        ("Q(a) R(a)", 6, 'expected "=" after the head, found "R"'),
        ("Q(a) = R(a) *", 14, "expected an atom, as in R(a, b), found the end"),
        ("Q(a) = R", 9, 'expected "(" and the variables of R, found the end'),
        ("Q(a) = R(a, 3)", 13, "write constants as conditions, R(a, b) * [b = 3]"),
        ("Q(a) = R(a, 'x')", 13, "write constants as conditions"),
        ("Q(a) = R(a) S(a)", 13, 'atoms are joined with "*", found "S"; write "*" before it'),
        ("Q(a) = R(a) [a > 3]", 13, 'atoms are joined with "*", found "["'),
        ("Q(a) :- R(a, b), S(b)", 6, 'the notation writes "=" and joins atoms with "*"'),
        ("Q(a) := R(a)", 6, 'the notation writes "="'),
        ("Q(a) = R(a), S(a)", 12, 'atoms are joined with "*"'),
        ("Q(and) = R(and)", 3, 'expected a variable, found "and"'),
        ("Q(a; summ(b)) = R(a, b)", 6, 'unknown aggregate "summ"'),
        ("Q(a; summ(b)) = R(a, b)", 6, 'did you mean "sum"?'),
        ("Q(a; sum()) = R(a)", 6, "sum() takes one argument"),
        ("Q(a; sum(a, a)) = R(a)", 6, "sum() takes one argument"),
        ("Q(a; sum(*)) = R(a)", 10, 'expected a value, found "*"'),
        ("Q(a; count(a, a)) = R(a)", 6, "count() takes one argument"),
        ("Q(a) = R(a, b) * R(a)", 18, "R(a) has 1 column, but R has 2"),
        ("Q(a, z) = R(a, b)", 6, 'head variable "z" is in no atom'),
        ("Q(a | z) = R(a, b)", 7, "unsafe head"),
        ("Q(price) = R(prise)", 3, 'did you mean "prise"?'),
        ("Q(a) = R(a) * [1 < a < 3]", 22, "comparisons do not chain: join them with and"),
        ("Q(a) = R(a) * [a = date 'soon']", 25, "'soon' is not a date"),
        ("Q(a) = R(a) * [a = cast(1 as itn)]", 30, 'unknown type "itn"; did you mean "int"?'),
        ("Q(a) = R(a) * [a = cast(1 as decimal(x, 2))]", 38, "expected a whole number"),
        ("Q(a, a) = R(a)", 1, '"a" stands 2 times in the head'),
        ("Q(a) = R(a) * [z = 1]", 1, 'condition: variable "z" is in no atom'),
        ("Q(a) = R(a) * S(b) * [a < b]", 1, "a < b needs a, b together"),
        ("3(a) = R(a)", 1, "expected the name of a query"),
        ("", 1, "expected one query, found 0"),
        ("Q(a) = R(a); P(a) = R(a)", 1, "expected one query, found 2"),
    ],
)
def test_an_error_names_the_problem_and_the_place(text: str, column: int, problem: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert problem in caught.value.problem
    assert (caught.value.line, caught.value.column) == (1, column)


def test_an_error_shows_the_line_with_a_caret_under_the_place() -> None:
    with pytest.raises(ParseError) as caught:
        parse_many("Q(a) = R(a)\n\tP(b) = S(b), T(b)\nO(c) = T(c)")
    assert str(caught.value) == (
        'atoms are joined with "*", found "," at line 2, column 13\n'
        "  \tP(b) = S(b), T(b)\n"
        "  \t           ^"
    )


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("Q(a) = Part(a) * Oders(a)", 18, 'unknown relation "Oders" (Orders, Part); did you mean'),
        ("Q(a) = Orders(a, b) * Part(a, b)", 23, "Part(a, b) has 2 columns, but Part has 1"),
    ],
)
def test_a_schema_is_checked(text: str, column: int, problem: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, schema={"Orders": 2, "Part": 1})
    assert problem in caught.value.problem
    assert caught.value.column == column


# Round trips ---------------------------------------------------------------------------------


@given(queries())
def test_a_printed_query_reads_back_as_the_same_query(query: ConjunctiveQuery) -> None:
    assert parse(str(query)) == query


@given(st.data())
def test_any_names_survive_printing_and_reading(data: DataObject) -> None:
    names = st.lists(identifiers(), min_size=3, max_size=3, unique=True).map(tuple)
    query = data.draw(queries(variables=data.draw(names), relations=data.draw(names)))
    assert parse(str(query)) == query


@given(expressions(("a", "b", "order date")))
def test_any_expression_survives_printing_and_reading(condition: Call) -> None:
    query = ConjunctiveQuery(
        "Q", (), (Atom("R", ("a", "b", "order date")),), conditions=(condition,)
    )
    assert parse(str(query)) == query


@given(st.lists(queries(), max_size=4))
def test_a_list_of_queries_reads_back_with_or_without_end_signs(
    several: list[ConjunctiveQuery],
) -> None:
    assert parse_many("\n".join(map(str, several))) == tuple(several)
    assert parse_many("; ".join(map(str, several))) == tuple(several)
