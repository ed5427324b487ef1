"""Relations by example: the operations, their laws, and what they refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeep.errors import RingError, SchemaError
from viewkeep.rings import INTEGERS, MAX, REALS, Relation, Ring, value_lift


def relations(*schema, ring=INTEGERS):
    rows = st.tuples(*[st.integers(0, 2)] * len(schema))
    payloads = st.dictionaries(rows, st.integers(-3, 3), max_size=6)
    return payloads.map(lambda entries: Relation.from_mapping(schema, entries, ring))


@given(relations("a", "b"), relations("b", "c"))
def test_join_commutes_up_to_the_order_of_columns(r, s):
    assert r * s == s * r


@given(relations("a", "b"), relations("b", "c"), relations("c", "a"))
def test_join_is_associative_also_around_a_cycle(r, s, t):
    assert (r * s) * t == r * (s * t)


@given(relations("a", "b"), relations("a", "b"), relations("b", "c"))
def test_join_distributes_over_union(r1, r2, s):
    assert (r1 + r2) * s == r1 * s + r2 * s


@given(relations("a", "b"), relations("b", "a"))
def test_union_commutes_and_a_subtracted_relation_is_gone(r, s):
    assert r + s == s + r
    assert (r + s) - s == r
    assert len(r - r) == 0


@given(relations("a", "b"), relations("a", "b"))
def test_marginalisation_commutes_with_union(r, s):
    lifts = {"b": value_lift(INTEGERS)}
    assert (r + s).marginalise("b", lifts) == r.marginalise("b", lifts) + s.marginalise("b", lifts)


@given(relations("a", "b", "c"))
def test_the_order_of_marginalising_two_variables_is_irrelevant(r):
    lifts = {"a": value_lift(INTEGERS), "b": lambda b: b + 5}
    assert r.marginalise("a", lifts).marginalise("b", lifts) == r.marginalise(("b", "a"), lifts)


@given(relations("a", "b"), relations("b", "c"))
def test_marginalisation_moves_past_a_join_that_lacks_the_variable(r, s):
    assert (r * s).marginalise("a") == r.marginalise("a") * s


@given(relations("a", "b"), relations("b", "c"), st.booleans(), st.booleans())
def test_a_join_gives_the_same_with_and_without_indexes(r, s, index_left, index_right):
    expected = {(a, b, c): m * n for (a, b), m in r.items() for (b2, c), n in s.items() if b == b2}
    if index_left:
        r.index_on(("b",))
    if index_right:
        s.index_on(("b",))
    assert r * s == Relation.from_mapping(("a", "b", "c"), expected)


def test_a_join_with_nothing_shared_is_the_product_and_a_scalar_scales():
    edges = Relation.from_rows(("a",), [(1,), (2,)])
    three = Relation.from_mapping((), {(): 3})
    assert dict((three * edges).items()) == {(1,): 3, (2,): 3}
    assert len(edges * edges.rename({"a": "b"})) == 4


def test_project_sums_rows_that_coincide_and_drops_those_that_cancel():
    r = Relation.from_mapping(("a", "b"), {(1, 1): 2, (1, 2): -2, (2, 1): 1})
    assert dict(r.project(("a",)).items()) == {(2,): 1}
    assert list(r.project(("b", "a"))) == [(1, 1), (2, 1), (1, 2)]


def test_equality_ignores_the_order_of_columns_but_not_their_names_or_the_ring():
    r = Relation.from_mapping(("a", "b"), {(1, 2): 1})
    assert r == Relation.from_mapping(("b", "a"), {(2, 1): 1})
    assert r != Relation.from_mapping(("b", "a"), {(1, 2): 1})
    assert r != r.rename({"b": "c"})
    assert r != Relation.from_mapping(("a", "b"), {(1, 2): 1.0}, REALS)
    assert r != r.project(("a",))


def test_equality_of_reals_forgives_the_rest_that_rounding_leaves():
    r = Relation((), REALS)
    for payload in (0.1, 0.2, -0.3):
        r.add((), payload)
    assert len(r) == 1
    assert r == Relation((), REALS)


def test_changing_the_size_during_enumeration_raises_as_for_a_dict():
    r = Relation.from_rows(("a",), [(1,), (2,), (3,)])
    index = r.index_on(())
    for enumeration in (r.items(), index.matches(())):
        next(enumeration)
        r.add((9,), 1)
        with pytest.raises(RuntimeError, match="changed size"):
            next(enumeration)
        r.add((9,), -1)


def test_changing_a_payload_during_enumeration_is_allowed():
    r = Relation.from_rows(("a",), [(1,), (2,)])
    for row, payload in r.items():
        r.add(row, payload)
    assert dict(r.items()) == {(1,): 2, (2,): 2}


@pytest.mark.parametrize(
    "row", [(1,), (1, 2, 3), (1, [2]), [1, 2], "ab", 5], ids=lambda row: repr(row)
)
def test_a_row_that_does_not_fit_is_refused_everywhere_and_nothing_changes(row):
    r = Relation.from_rows(("a", "b"), [(1, 2)])
    for use in (lambda: r.add(row, 1), lambda: r.add(row, 0), lambda: r.lookup(row)):
        with pytest.raises(SchemaError, match="row"):
            use()
    assert dict(r.items()) == {(1, 2): 1}


def test_rows_given_as_text_are_refused_rather_than_split_into_letters():
    with pytest.raises(SchemaError, match="is text"):
        Relation.from_rows(("a", "b"), ["xy"])


def test_an_unknown_column_is_named_with_a_suggestion():
    r = Relation(("pid", "price"))
    for use in (
        lambda: r.marginalise("prize"),
        lambda: r.project(("prize",)),
        lambda: r.index_on(("prize",)),
        lambda: r.rename({"prize": "cost"}),
    ):
        with pytest.raises(SchemaError, match=r'no column "prize" in \(pid, price\).*"price"'):
            use()


def test_a_schema_names_each_column_once():
    for make in (
        lambda: Relation(("a", "a")),
        lambda: Relation("ab"),
        lambda: Relation(("a", "b")).rename({"a": "b"}),
        lambda: Relation(("a", "b")).index_on(("a", "a")),
    ):
        with pytest.raises(SchemaError):
            make()


def test_an_index_refuses_a_key_of_the_wrong_length():
    index = Relation.from_rows(("a", "b"), [(1, 2)]).index_on(("a",))
    for use in (lambda: list(index.matches((1, 2))), lambda: 1 in index):
        with pytest.raises(SchemaError, match=r"index on \(a\)"):
            use()


def test_relations_over_different_rings_or_columns_are_not_combined():
    r, s = Relation.from_rows(("a",), [(1,)]), Relation.from_rows(("a",), [(1,)], REALS)
    for combine in (lambda: r + s, lambda: r * s, lambda: r.update(s)):
        with pytest.raises(RingError, match="integers with one over the reals"):
            combine()
    with pytest.raises(SchemaError, match=r"over \(b\) to one over \(a\)"):
        r.update(Relation(("b",)))
    assert dict(r.items()) == {(1,): 1}


def test_an_update_that_the_ring_refuses_halfway_changes_nothing():
    r = Relation.from_mapping(("a",), {(1,): 5, (2,): 5}, MAX)
    with pytest.raises(RingError, match="cannot order"):
        r.update(Relation.from_mapping(("a",), {(1,): 9, (2,): "text"}, MAX))
    assert dict(r.items()) == {(1,): 5, (2,): 5}


def test_a_long_relation_is_shown_in_part():
    assert str(Relation.from_rows(("a",), ((a,) for a in range(30)))).endswith("... and 10 more")


def test_an_index_forgets_a_key_with_its_last_row():
    r = Relation.from_rows(("a", "b"), [(1, 2), (1, 3), (4, 5)])
    index = r.index_on(("a",))
    r.add((1, 2), -1)
    assert (1,) in index
    r.add((1, 3), -1)
    assert (1,) not in index
    assert len(index) == 1


def test_a_ring_that_forgets_negate_is_told_so():
    class Forgetful(Ring[int]):
        name, zero, one = "forgetful numbers", 0, 1

        def add(self, left: int, right: int) -> int:
            return left + right

        def multiply(self, left: int, right: int) -> int:
            return left * right

    with pytest.raises(RingError, match="Forgetful must define negate"):
        Forgetful().from_integer(-1)
