"""Floats that are summed and multiplied without rounding, and rounded once when they are read."""

import pickle
from fractions import Fraction
from math import fsum, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeep.errors import RingError
from viewkeep.rings.exact_float import ExactFloat
from viewkeep.rings.numbers import NUMBERS

finite = st.floats(allow_nan=False, allow_infinity=False)


def fraction(number: ExactFloat) -> Fraction:
    return Fraction(number.mantissa) * Fraction(2) ** number.exponent


@given(finite, finite, st.integers())
def test_sums_and_products_equal_those_of_fractions(a, b, n):
    x, y = ExactFloat.of(a), ExactFloat.of(b)
    assert fraction(x) == Fraction(a)
    assert fraction(x + y) == Fraction(a) + Fraction(b)
    assert fraction(x * y) == Fraction(a) * Fraction(b)
    assert fraction(n + x) == fraction(x + n) == Fraction(a) + n
    assert fraction(n * x) == fraction(x * n) == Fraction(a) * n
    assert fraction(-x) == -Fraction(a)


@given(st.lists(st.floats(-1e300, 1e300), max_size=8))
def test_a_sum_is_rounded_once(values):
    total = sum(map(ExactFloat.of, values), ExactFloat(0))
    assert float(total) == fsum(values)


@given(st.lists(finite, max_size=8), st.randoms())
def test_what_is_taken_out_in_any_order_leaves_nothing(values, random):
    total = NUMBERS.zero
    for value in values:
        total = NUMBERS.add(total, NUMBERS.from_value(value))
    for value in random.sample(values, len(values)):
        total = NUMBERS.add(total, NUMBERS.negate(NUMBERS.from_value(value)))
    assert NUMBERS.is_zero(total)


@given(finite, finite)
def test_equal_numbers_are_equal_however_they_are_written(a, b):
    x, y = ExactFloat.of(a), ExactFloat.of(b)
    assert (x == y) == (a == b)
    longer = ExactFloat(x.mantissa << 3, x.exponent - 3)
    assert longer == x
    assert hash(longer) == hash(x)
    assert pickle.loads(pickle.dumps(x)) == x


def test_integers_compare_as_numbers_and_other_things_do_not():
    assert ExactFloat.of(2.0) == 2
    assert ExactFloat.of(2.5) != 2
    assert ExactFloat.of(2.5) != "2.5"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_beyond_the_largest_float_is_infinite(sign):
    large = ExactFloat.of(sign * 1.7e308)
    assert float(large + large) == sign * inf
    assert float(large + large + -large) == sign * 1.7e308


def test_floats_do_not_go_with_fractions():
    with pytest.raises(RingError, match="cannot combine float with Fraction"):
        NUMBERS.add(NUMBERS.from_value(0.5), NUMBERS.from_value(Fraction(1, 3)))
    with pytest.raises(RingError, match="cannot combine Fraction with float"):
        NUMBERS.multiply(NUMBERS.from_value(Fraction(1, 3)), NUMBERS.from_value(0.5))
