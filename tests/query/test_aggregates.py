"""Aggregates as sums of products of lifts."""

from collections.abc import Callable
from math import prod
from operator import add, mul, neg, sub

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import polynomials
from viewkeep.errors import QueryError
from viewkeep.query.aggregates import Aggregate, Term
from viewkeep.query.expressions import Call, Column, Expression, Literal, columns_of
from viewkeep.query.notation.parse import parse

OPERATORS: dict[str, Callable[..., int]] = {"+": add, "-": sub, "*": mul, "negate": neg}


def evaluate(expression: Expression, row: dict[str, int]) -> int:
    """The value of a polynomial in one row."""
    match expression:
        case Column(name):
            return row[name]
        case Literal(int() as value):
            return value
        case Call(function, arguments):
            return OPERATORS[function](*(evaluate(a, row) for a in arguments))
    raise AssertionError(f"not a polynomial: {expression}")


def terms_of(text: str) -> list[tuple[list[str], list[str]]]:
    """The terms of an aggregate over a, b, c, d, as text: (constants, lifts) each."""
    (aggregate,) = parse(f"Q(; {text}) = R(a, b, c, d)").aggregates
    return [(list(map(str, t.constants)), list(map(str, t.lifts))) for t in aggregate.terms]


def test_a_count_is_the_empty_product() -> None:
    assert Aggregate("count").terms == (Term((), ()),)


def test_a_product_of_variables_is_one_term_with_a_lift_each() -> None:
    """SUM(C * D) of ivm_lecture, part 1."""
    assert terms_of("sum(c * d)") == [([], ["c", "d"])]


def test_a_function_of_one_variable_is_one_lift() -> None:
    """Revenue in TPC-H: the discounted price needs no second term."""
    assert terms_of("sum(a * (1 - b))") == [([], ["a", "1 - b"])]


def test_a_sum_of_products_is_a_term_each() -> None:
    assert terms_of("sum(a + b * c)") == [([], ["a"]), ([], ["b", "c"])]


def test_products_distribute_over_sums_of_different_variables() -> None:
    assert terms_of("sum((a + b) * (c + d))") == [
        ([], ["a", "c"]),
        ([], ["a", "d"]),
        ([], ["b", "c"]),
        ([], ["b", "d"]),
    ]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("sum(a - b)", [([], ["a"]), (["-1"], ["b"])]),
        ("sum(-(a - b))", [(["-1"], ["a"]), (["-1", "-1"], ["b"])]),
        ("sum(a - (b - c))", [([], ["a"]), (["-1"], ["b"]), (["-1", "-1"], ["c"])]),
        ("sum(2 * (a * b))", [(["2"], ["a", "b"])]),
        ("sum(2 * 3)", [(["2 * 3"], [])]),
    ],
)
def test_signs_and_constants_are_kept_apart_from_the_lifts(
    text: str, terms: list[tuple[list[str], list[str]]]
) -> None:
    assert terms_of(text) == terms


def test_an_average_is_lifted_like_the_sum_it_divides() -> None:
    assert terms_of("avg(a * b + c)") == terms_of("sum(a * b + c)")


@pytest.mark.parametrize("function", ["min", "max"])
def test_extremes_do_not_distribute(function: str) -> None:
    assert terms_of(f"{function}(a + b)") == [([], ["a + b"])]


def test_what_is_no_sum_or_product_stays_whole() -> None:
    assert terms_of("sum(c * (a / b))") == [([], ["c", "a / b"])]


@given(
    polynomials(("a", "b", "c")),
    st.fixed_dictionaries({name: st.integers(-5, 5) for name in "abc"}),
)
def test_the_terms_add_up_to_the_argument(argument: Expression, row: dict[str, int]) -> None:
    terms = Aggregate("sum", argument).terms
    total = sum(prod(evaluate(f, row) for f in (*t.constants, *t.lifts)) for t in terms)
    assert total == evaluate(argument, row)


@given(polynomials(("a", "b", "c")))
def test_every_lift_of_a_polynomial_reads_exactly_one_variable(argument: Expression) -> None:
    for term in Aggregate("sum", argument).terms:
        assert [len(columns_of(lift)) for lift in term.lifts] == [1] * len(term.lifts)
        assert not any(columns_of(constant) for constant in term.constants)


def test_an_unknown_aggregate_is_refused() -> None:
    with pytest.raises(QueryError, match=r"unknown aggregate median\(\); there are sum, count"):
        Aggregate("median", Column("a"))


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(QueryError, match=r"sum\(\) takes one argument"):
        Aggregate("sum")
