"""What a change to each table costs, and what would help."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.strategies import queries
from viewkeep.analysis import analyze_query
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.report.query.costs import update_costs
from viewkeep.report.query.hints import hints


def test_the_costly_table_is_named_with_what_it_leaves_open() -> None:
    costs = update_costs(vk.analyze("Q(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)"))
    assert [(cost.atom, cost.exponent) for cost in costs] == [
        ("R(a, b)", 0),
        ("S(b, c)", 0),
        ("T(c, d)", 1),
    ]
    assert str(costs[2]) == "one row fixes c but meets every b joined with it"


def test_static_tables_cost_nothing() -> None:
    costs = update_costs(vk.analyze("Q(a, b) = R(a, d) * S(a, b) * T(b, c)", static=["T"]))
    assert [cost.exponent for cost in costs] == [0, 0, None]


@settings(max_examples=60, deadline=None)
@given(queries(), st.data())
def test_the_dearest_table_is_the_update_bound_of_a_view_tree(
    query: ConjunctiveQuery, data: st.DataObject
) -> None:
    static = data.draw(st.sets(st.sampled_from(query.relations)))
    analysis = vk.analyze(query, static=static)
    if analysis.route.order is not None:
        worst = max(cost.exponent or Fraction(0) for cost in update_costs(analysis))
        assert worst == analysis.bounds.update


def test_hints_of_the_trade_off_query() -> None:
    found = {hint.kind: hint for hint in hints(vk.analyze("Q(a) = R(a, b) * S(b)"))}
    assert {kind: hint.changes for kind, hint in found.items()} == {
        "static": ("S",),
        "output": ("b",),
        "fd": ("a -> b", "b -> a"),
    }
    assert str(found["static"]) == "if S never changes (static): update O(1), delay O(1)"


def test_inserts_only_help_an_acyclic_join() -> None:
    found = hints(vk.analyze("Q(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)"))
    assert [str(hint) for hint in found if hint.kind == "insert_only"] == [
        "if rows are only inserted: update O(1) amortized, delay O(1)"
    ]


def test_keys_that_help_only_together() -> None:
    query = "Spent(area; sum(price)) = Customer(c, area) * Order(o, c) * Line(o, price)"
    [hint] = hints(vk.analyze(query))
    assert str(hint) == "if Customer.c and Order.o are keys: update O(1), delay O(1)"
    assert vk.analyze(query, keys=hint.changes).bounds == hint.bounds
    for key in hint.changes:
        assert not vk.analyze(query, keys=[key]).bounds.constant


def test_keys_that_are_known_are_not_asked_for() -> None:
    query = "Spent(area; sum(price)) = Customer(c, area) * Order(o, c) * Line(o, price)"
    assert "Order.o" not in str(hints(vk.analyze(query, keys=["Order.o"])))


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("Q(a, b, c) = R(a, b) * S(b, c)", {}),
        ("Q(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)", {"insert_only": True}),
        ("Q(a) = R(a, b) * S(b)", {"fds": ["b -> a"]}),
    ],
)
def test_constant_queries_need_no_hints(query: str, options: dict[str, object]) -> None:
    assert hints(vk.analyze(query, **options)) == ()  # type: ignore[call-overload]


@settings(max_examples=25, deadline=None)
@given(queries(max_atoms=4))
def test_following_a_static_hint_gives_what_it_promises(query: ConjunctiveQuery) -> None:
    analysis = analyze_query(query)
    for hint in hints(analysis):
        if hint.kind == "key":
            assert vk.analyze(query, keys=hint.changes).bounds == hint.bounds
        for change in hint.changes if hint.kind in ("static", "fd") else ():
            option = {"static": [change]} if hint.kind == "static" else {"fds": [change]}
            better = vk.analyze(query, **option).bounds  # type: ignore[call-overload]
            assert better == hint.bounds
