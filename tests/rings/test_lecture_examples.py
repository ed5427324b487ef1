"""The worked examples of ivm_lecture part 1 and recent_increments_in_ivm, Figure 2."""

import random

import pytest

from viewkeep.rings import INTEGERS, REALS, Relation, value_lift


def factor(schema, entries, ring=INTEGERS):
    return Relation.from_mapping(tuple(schema), entries, ring)


def test_employee_update_replaces_steve_and_removes_joe():
    staff = Relation.from_mapping(
        ("employee", "age"), {("Elise", 35): 2, ("Steve", 40): 1, ("Joe", 30): 2}
    )
    update = Relation.from_mapping(
        ("employee", "age"),
        {("Steve", 40): -1, ("Steve", 38): 1, ("Joe", 30): -2, ("Mary", 33): 2},
    )
    assert str(staff + update).splitlines()[0].split() == ["employee", "age", "->", "#"]
    assert dict((staff + update).items()) == {
        ("Elise", 35): 2,
        ("Steve", 38): 1,
        ("Mary", 33): 2,
    }
    assert staff + update == update + staff


def test_operations_on_factors():
    r1, r2, s1, s2, t1, t2 = 2, 3, 5, 7, 11, 13
    r = factor("AB", {("a1", "b1"): r1, ("a2", "b1"): r2})
    s = factor("AB", {("a2", "b1"): s1, ("a3", "b2"): s2})
    t = factor("BC", {("b1", "c1"): t1, ("b2", "c2"): t2})

    v = r + s
    assert v == factor("AB", {("a1", "b1"): r1, ("a2", "b1"): r2 + s1, ("a3", "b2"): s2})
    w = v * t
    assert w == factor(
        "ABC",
        {
            ("a1", "b1", "c1"): r1 * t1,
            ("a2", "b1", "c1"): (r2 + s1) * t1,
            ("a3", "b2", "c2"): s2 * t2,
        },
    )
    u = w.marginalise("A")
    assert u == factor("BC", {("b1", "c1"): r1 * t1 + (r2 + s1) * t1, ("b2", "c2"): s2 * t2})


def test_triangle_count_goes_from_19_to_13_by_its_delta_query():
    r = factor("AB", {("a1", "b1"): 2, ("a2", "b1"): 3})
    s = factor("BC", {("b1", "c1"): 2, ("b1", "c2"): 1})
    t = factor("CA", {("c1", "a1"): 1, ("c2", "a1"): 3, ("c2", "a2"): 3})
    assert r * s * t == factor(
        "ABC", {("a1", "b1", "c1"): 4, ("a1", "b1", "c2"): 6, ("a2", "b1", "c2"): 9}
    )
    q = (r * s * t).marginalise(tuple("ABC"))
    assert q.lookup(()) == 19

    delta_r = factor("AB", {("a2", "b1"): -2})
    delta_join = delta_r * s * t
    assert delta_join == factor("ABC", {("a2", "b1", "c2"): -6})
    q.update(delta_join.marginalise(tuple("ABC")))
    r.update(delta_r)
    assert q.lookup(()) == 13 == (r * s * t).marginalise(tuple("ABC")).lookup(())


@pytest.fixture
def database():
    """Rows of R(a, b), S(a, c, e) and T(c, d)."""
    seeded = random.Random(7)
    return [
        [tuple(seeded.randrange(6) for _ in range(arity)) for _ in range(30)] for arity in (2, 3, 2)
    ]


def joined(rows_r, rows_s, rows_t):
    """(a, b, c, d, e) for every combination that agrees."""
    return [
        (a, b, c, d, e)
        for a, b in rows_r
        for a2, c, e in rows_s
        for c2, d in rows_t
        if (a, c) == (a2, c2)
    ]


def test_count_by_marginalising_past_joins_equals_the_naive_count(database):
    r = Relation.from_rows(tuple("ab"), database[0])
    s = Relation.from_rows(tuple("ace"), database[1])
    t = Relation.from_rows(tuple("cd"), database[2])
    v1 = r.marginalise("b")
    v2 = s.marginalise("e")
    v3 = t.marginalise("d")
    v4 = (v2 * v3).marginalise("c")
    count = (v1 * v4).marginalise("a").lookup(())
    assert count == len(joined(*database)) > 0


def test_sum_of_products_needs_only_two_lifts(database):
    r = Relation.from_rows(tuple("ab"), database[0], REALS)
    s = Relation.from_rows(tuple("ace"), database[1], REALS)
    t = Relation.from_rows(tuple("cd"), database[2], REALS)
    lifts = {"c": value_lift(REALS), "d": value_lift(REALS)}
    v1 = r.marginalise("b", lifts)
    v2 = s.marginalise("e", lifts)
    v3 = t.marginalise("d", lifts)
    v4 = (v2 * v3).marginalise("c", lifts)
    total = (v1 * v4).marginalise("a", lifts).lookup(())
    assert total == sum(c * d for _, _, c, d, _ in joined(*database)) > 0
