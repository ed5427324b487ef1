"""Minimum and maximum: by semiring while nothing is deleted, by ordered multiset otherwise."""

from collections import Counter
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeep.errors import RingError
from viewkeep.rings import MAX, MIN, OrderedMultiset, Relation, value_lift


def test_max_over_a_join_lifts_one_variable_of_any_ordered_type():
    orders = Relation.from_rows(("customer", "order"), [("c1", 1), ("c1", 2), ("c2", 3)], MAX)
    days = Relation.from_rows(
        ("order", "day"), [(1, date(2026, 1, 5)), (2, date(2026, 3, 1)), (3, date(2025, 1, 1))], MAX
    )
    latest = (orders * days).marginalise(("order", "day"), {"day": value_lift(MAX)})
    assert dict(latest.items()) == {("c1",): date(2026, 3, 1), ("c2",): date(2025, 1, 1)}


def test_a_delete_from_a_max_relation_is_refused_and_changes_nothing():
    relation = Relation.from_rows(("a",), [(1,)], MAX)
    with pytest.raises(RingError, match="insert-only updates or an ordered multiset"):
        relation.update(-relation)
    assert len(relation) == 1


@pytest.mark.parametrize(
    ("left", "right"), [("a", "b"), (date(2026, 1, 1), 3), (1.5, Decimal("0.5"))]
)
def test_multiplying_two_lifted_values_that_do_not_add_up_is_an_error(left, right):
    with pytest.raises(RingError, match="lift one variable only"):
        MAX.multiply(left, right)


@pytest.mark.parametrize(("left", "right"), [("a", 1), (float("nan"), 1.0)])
def test_values_without_an_order_are_an_error_not_a_guess(left, right):
    for ring in (MIN, MAX):
        with pytest.raises(RingError, match="cannot order"):
            ring.add(left, right)


def test_nulls_do_not_count_towards_an_extreme():
    assert MIN.add(MIN.from_value(None), MIN.from_value(4)) == 4


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(-2, 3)), max_size=60))
def test_an_ordered_multiset_agrees_with_a_sorted_counter_after_every_change(changes):
    multiset, model = OrderedMultiset(), Counter()
    for value, multiplicity in changes:
        multiset.add(value, multiplicity)
        model[value] += multiplicity
        present = sorted(v for v, n in model.items() if n)
        assert multiset.multiplicity(value) == model[value]
        assert multiset.total() == model.total()
        if any(n < 0 for n in model.values()):
            with pytest.raises(RingError, match="removed more often than inserted"):
                multiset.minimum()
        elif present:
            assert (multiset.minimum(), multiset.maximum()) == (present[0], present[-1])
        else:
            assert multiset.minimum() is None
            assert multiset.maximum() is None


class CountingInteger(int):
    """An integer that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other):
        CountingInteger.comparisons += 1
        return int(self) < int(other)


def test_an_ordered_multiset_needs_logarithmically_many_comparisons_per_change():
    n = 4096
    multiset = OrderedMultiset()
    CountingInteger.comparisons = 0
    for i in range(n):
        multiset.add(CountingInteger(i * 7919 % n))
    for i in range(n):  # from the front, so that every removal uncovers a new minimum
        assert multiset.minimum() == i
        multiset.add(CountingInteger(i), -1)
    # Two heaps, two changes per value, at most 2 log2(n) comparisons each, and the rebuilds.
    assert CountingInteger.comparisons < 2 * n * 2 * 2 * 12


@pytest.mark.parametrize("stranger", ["a", float("nan"), None])
def test_a_value_without_a_place_in_the_order_is_refused_and_nothing_changes(stranger):
    multiset = OrderedMultiset()
    multiset.add(2)
    with pytest.raises(RingError, match="cannot order"):
        multiset.add(stranger)
    assert (multiset.minimum(), multiset.maximum(), multiset.total()) == (2, 2, 1)


def test_a_minimum_that_was_removed_and_comes_back_is_the_minimum_again():
    multiset = OrderedMultiset()
    for value in range(5):
        multiset.add(value)
    for extreme in (0, 4):
        multiset.add(extreme, -1)
        multiset.add(extreme)
    assert (multiset.minimum(), multiset.maximum()) == (0, 4)
