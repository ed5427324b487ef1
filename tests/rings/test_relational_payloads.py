"""Relations as payloads: listed, factorized, and what each costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeep.errors import SchemaError
from viewkeep.rings import FACTORIZED, RELATIONAL, Relation

pairs = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 3)), st.integers(-2, 2), max_size=8
)


def result_in_payload(ring, r_entries, s_entries):
    """Q(y, x, z) = R(y, x) * S(y, z) with all free variables moved into the payload."""
    lifts = {column: ring.lift(column) for column in "xyz"}
    r = Relation(("y", "x"), ring)
    s = Relation(("y", "z"), ring)
    for relation, entries in ((r, r_entries), (s, s_entries)):
        for row, n in entries.items():
            relation.add(row, ring.from_integer(n))
    by_y = r.marginalise("x", lifts) * s.marginalise("z", lifts)
    return by_y.marginalise("y", lifts).lookup(())


@given(pairs, pairs)
def test_listed_payload_equals_factorized_payload_equals_the_join(r_entries, s_entries):
    join = Relation.from_mapping(("y", "x"), r_entries) * Relation.from_mapping(
        ("y", "z"), s_entries
    )
    for ring in (RELATIONAL, FACTORIZED):
        payload = result_in_payload(ring, r_entries, s_entries)
        assert ring.to_relation(payload, ("y", "x", "z")) == join


def test_a_factorized_product_stays_linear_where_the_listing_is_quadratic():
    n = 50
    r, s = {(0, x): 1 for x in range(n)}, {(0, z): 1 for z in range(n)}
    factorized = result_in_payload(FACTORIZED, r, s)
    assert factorized.size() <= 2 * n + 10
    assert len(result_in_payload(RELATIONAL, r, s)) == n * n == len(factorized.expand())


def test_zero_is_found_without_expanding_when_deletes_meet_their_inserts(monkeypatch):
    a, b = FACTORIZED.lift("a"), FACTORIZED.lift("b")
    union = FACTORIZED.add(a(1), a(2))
    product = FACTORIZED.multiply(union, b(3))
    monkeypatch.setattr(type(product), "expand", None)
    assert not FACTORIZED.is_zero(product)
    assert FACTORIZED.is_zero(FACTORIZED.add(product, FACTORIZED.negate(product)))


def test_expressions_that_look_different_cancel_when_they_are_the_same_relation():
    a1, a2, b = FACTORIZED.lift("a")(1), FACTORIZED.lift("a")(2), FACTORIZED.lift("b")(3)
    factored = FACTORIZED.multiply(FACTORIZED.add(a1, a2), b)
    listed = FACTORIZED.add(FACTORIZED.multiply(a1, b), FACTORIZED.multiply(a2, b))
    assert factored != listed
    assert FACTORIZED.equal(factored, listed)
    view = Relation((), FACTORIZED)
    view.add((), factored)
    view.add((), FACTORIZED.negate(listed))
    assert len(view) == 0


@pytest.mark.parametrize("ring", [RELATIONAL, FACTORIZED])
def test_payloads_that_disagree_on_a_shared_column_join_to_zero(ring):
    a = ring.lift("a")
    assert ring.is_zero(ring.multiply(a(1), a(2)))
    assert ring.equal(ring.multiply(a(1), a(1)), a(1))


def test_a_payload_with_other_columns_than_asked_for_is_named():
    payload = RELATIONAL.lift("a")(1)
    with pytest.raises(SchemaError, match=r"over \(a\), not over \(b\)"):
        RELATIONAL.to_relation(payload, ("b",))


def test_a_factorization_reads_as_an_expression():
    a, b = FACTORIZED.lift("a"), FACTORIZED.lift("b")
    twice = FACTORIZED.from_integer(2)
    element = FACTORIZED.add(FACTORIZED.multiply(twice, a(1)), FACTORIZED.multiply(a(2), b(5)))
    assert str(element) == "2 * a=1 + a=2 * b=5"
    assert str(FACTORIZED.zero) == "0"


def test_a_minus_inside_a_factor_cancels_a_plus_outside():
    a, b = FACTORIZED.lift("a"), FACTORIZED.lift("b")
    union, other = FACTORIZED.add(a(1), a(2)), FACTORIZED.add(b(1), b(2))
    negative = FACTORIZED.multiply(FACTORIZED.negate(union), other)
    assert FACTORIZED.is_zero(FACTORIZED.add(negative, FACTORIZED.multiply(union, other)))
