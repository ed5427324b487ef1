"""Numbers as payloads: where floats round, decimals do not, and nothing is silently wrong."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeep.errors import RingError
from viewkeep.rings import DECIMALS, INTEGERS, MAX, REALS, ProductRing, Relation

finite_decimals = st.decimals(
    min_value=-(10**40), max_value=10**40, allow_nan=False, allow_infinity=False
)


@given(finite_decimals, finite_decimals)
def test_decimal_sums_and_products_equal_those_of_fractions(a, b):
    assert Fraction(DECIMALS.add(a, b)) == Fraction(a) + Fraction(b)
    assert Fraction(DECIMALS.multiply(a, b)) == Fraction(a) * Fraction(b)


def test_decimal_negation_does_not_round_to_the_default_precision():
    long = Decimal("1." + "3" * 50)
    assert DECIMALS.negate(long).as_tuple().digits == long.as_tuple().digits


def test_decimal_results_too_long_to_be_exact_are_errors_not_roundings():
    with pytest.raises(RingError, match="more than 100000 digits"):
        DECIMALS.add(Decimal("1E+200000"), Decimal(1))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "three", None, 10**400])
def test_reals_refuse_values_that_could_never_be_removed_again(value):
    with pytest.raises(RingError):
        REALS.from_value(value)


@pytest.mark.parametrize("value", [0.5, "1.5", Decimal("NaN"), Decimal("Infinity")])
def test_decimals_refuse_values_that_are_not_exact_or_not_finite(value):
    with pytest.raises(RingError):
        DECIMALS.from_value(value)


def test_a_small_true_sum_of_reals_is_kept_although_it_is_within_tolerance_of_zero():
    sums = Relation((), REALS)
    sums.add((), 1e-12)
    assert len(sums) == 1
    assert REALS.equal(sums.lookup(()), 0.0)


def test_a_count_beside_a_sum_keeps_the_group_whose_sum_is_zero():
    groups = Relation(("did",), ProductRing(INTEGERS, REALS))
    groups.add(("d1",), (1, 2.5))
    groups.add(("d1",), (1, -2.5))
    assert groups.lookup(("d1",)) == (2, 0.0)
    groups.add(("d1",), (-2, 0.0))
    assert ("d1",) not in groups


def test_a_product_names_the_component_that_cannot_subtract():
    with pytest.raises(RingError, match="max semiring"):
        ProductRing(INTEGERS, MAX).negate((1, 5))
