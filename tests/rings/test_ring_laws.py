"""Every ring obeys the laws of ivm_lecture part 1, "Rings", on random elements."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeep.errors import RingError
from viewkeep.rings import (
    BOOLEAN,
    DECIMALS,
    FACTORIZED,
    INTEGERS,
    MAX,
    MIN,
    MULTISETS,
    REALS,
    RELATIONAL,
    MatrixRing,
    ProductRing,
)

integers = st.integers(-50, 50)
# Multiples of 1/8 of this size are added and multiplied without rounding.
dyadics = integers.map(lambda n: n / 8)
# 60 digits: more than the default decimal context keeps.
decimals = st.builds(
    lambda n, exponent: Decimal(n).scaleb(exponent),
    st.integers(-(10**20), 10**20),
    st.integers(-20, 20),
)
optional_integers = st.none() | integers
MATRIX = MatrixRing(("x", "y"), INTEGERS)


def combinations(ring, atoms):
    """Sums, products and, where there is one, negations of atoms, up to a small depth."""
    grow = lambda smaller: st.one_of(  # noqa: E731 - a strategy in one expression
        st.builds(ring.add, smaller, smaller),
        st.builds(ring.multiply, smaller, smaller),
        st.builds(ring.negate, smaller),
    )
    return st.recursive(st.integers(-2, 2).map(ring.from_integer) | atoms, grow, max_leaves=5)


def lifted(ring, columns, values):
    return st.builds(lambda column, value: ring.lift(column)(value), columns, values)


columns, few = st.sampled_from(["a", "b", "c"]), st.integers(0, 2)
RINGS = {
    "integers": (INTEGERS, integers),
    "reals": (REALS, dyadics),
    "decimals": (DECIMALS, decimals),
    "product": (ProductRing(INTEGERS, REALS), st.tuples(integers, dyadics)),
    "matrix": (MATRIX, combinations(MATRIX, lifted(MATRIX, st.sampled_from(["x", "y"]), few))),
    "relational": (RELATIONAL, combinations(RELATIONAL, lifted(RELATIONAL, columns, few))),
    "factorized": (FACTORIZED, combinations(FACTORIZED, lifted(FACTORIZED, columns, few))),
    "multisets": (MULTISETS, combinations(MULTISETS, few.map(MULTISETS.lift))),
    "boolean": (BOOLEAN, st.booleans()),
    "min": (MIN, optional_integers),
    "max": (MAX, optional_integers),
    "product with max": (ProductRing(INTEGERS, MAX), st.tuples(integers, optional_integers)),
}
# Every law runs on every ring, so a few dozen examples each are many in sum.
few_examples = settings(max_examples=40, deadline=None)
every_ring = pytest.mark.parametrize(("ring", "elements"), RINGS.values(), ids=RINGS)


@every_ring
@few_examples
@given(data=st.data())
def test_addition_is_commutative_and_associative_with_zero(ring, elements, data):
    a, b, c = (data.draw(elements) for _ in range(3))
    assert ring.equal(ring.add(a, b), ring.add(b, a))
    assert ring.equal(ring.add(ring.add(a, b), c), ring.add(a, ring.add(b, c)))
    assert ring.equal(ring.add(a, ring.zero), a)


@every_ring
@few_examples
@given(data=st.data())
def test_multiplication_is_commutative_and_associative_with_one_and_zero(ring, elements, data):
    a, b, c = (data.draw(elements) for _ in range(3))
    assert ring.equal(ring.multiply(a, b), ring.multiply(b, a))
    assert ring.equal(ring.multiply(ring.multiply(a, b), c), ring.multiply(a, ring.multiply(b, c)))
    assert ring.equal(ring.multiply(a, ring.one), a)
    assert ring.is_zero(ring.multiply(a, ring.zero))


@every_ring
@few_examples
@given(data=st.data())
def test_multiplication_distributes_over_addition(ring, elements, data):
    a, b, c = (data.draw(elements) for _ in range(3))
    assert ring.equal(
        ring.multiply(a, ring.add(b, c)), ring.add(ring.multiply(a, b), ring.multiply(a, c))
    )


@every_ring
@few_examples
@given(data=st.data())
def test_a_negated_element_cancels_and_a_semiring_refuses_to_negate(ring, elements, data):
    a = data.draw(elements)
    if ring.subtractable:
        assert ring.is_zero(ring.add(a, ring.negate(a)))
    else:
        with pytest.raises(RingError, match="no subtraction"):
            ring.negate(a)


@every_ring
@few_examples
@given(data=st.data())
def test_is_zero_holds_for_what_equals_zero_and_nothing_else(ring, elements, data):
    a = data.draw(elements)
    assert ring.is_zero(ring.zero)
    assert not ring.is_zero(ring.one)
    assert ring.is_zero(a) == ring.equal(a, ring.zero)


@every_ring
@few_examples
@given(data=st.data())
def test_from_integer_keeps_sums_and_products_of_multiplicities(ring, elements, data):
    counts = st.integers(-9 if ring.subtractable else 0, 9)
    m, n = data.draw(counts), data.draw(counts)
    image = ring.from_integer
    assert ring.equal(image(1), ring.one)
    assert ring.equal(image(m + n), ring.add(image(m), image(n)))
    assert ring.equal(image(m * n), ring.multiply(image(m), image(n)))


@every_ring
def test_a_negative_multiplicity_is_refused_exactly_by_the_semirings(ring, elements):
    if ring.subtractable:
        assert ring.equal(ring.from_integer(-1), ring.negate(ring.one))
    else:
        with pytest.raises(RingError, match="no subtraction"):
            ring.from_integer(-1)


def test_rings_with_the_same_parameters_are_the_same_ring():
    assert ProductRing(INTEGERS, REALS) == ProductRing(INTEGERS, REALS)
    assert ProductRing(INTEGERS, REALS) != ProductRing(REALS, INTEGERS)
    assert MatrixRing(("x",)) != MatrixRing(("y",))
    assert MIN != MAX
