"""Promise 1: after every update, whatever the query and the strategy, the result is the query
run from scratch."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import (
    ANY,
    INSERTS,
    VALUES,
    WAYS,
    Database,
    assert_equals_recomputation,
    given_values,
    streams,
)
from tests.strategies import aggregates_over, queries
from viewkeep.query.conjunctive import ConjunctiveQuery


def ways_of(query: ConjunctiveQuery, **known):
    """All ways, and those with heavy and light parts where the query has them."""
    yield from WAYS
    try:
        vk.maintain(query, strategy="epsilon", **known)
    except vk.QueryError:
        return
    yield {"strategy": "epsilon", "check": True}
    yield {"strategy": "epsilon", "mode": "lazy", "epsilon": 0.25}


def run_everywhere(
    data: st.DataObject, query: ConjunctiveQuery, multiplicities=ANY, values=VALUES, **known
):
    """One stream through every way of maintenance, compared after every update."""
    stream = data.draw(streams(query, multiplicities, values=values))
    check_inputs = [data.draw(given_values(query)) for _ in stream]
    for way in ways_of(query, **known):
        live, database = vk.maintain(query, **way, **known), Database()
        assert_equals_recomputation(live, query, database, dict.fromkeys(query.inputs, 0))
        for (relation, row, multiplicity), inputs in zip(stream, check_inputs, strict=True):
            live.update(relation, row, multiplicity)
            database.apply([(relation, row, multiplicity)])
            assert_equals_recomputation(live, query, database, inputs)


@given(query=queries(inputs=False, aggregates=False), data=st.data())
@settings(max_examples=50)
def test_counts_of_any_join(query, data):
    run_everywhere(data, query)


@given(query=queries(max_atoms=3, aggregates=False), data=st.data())
@settings(max_examples=40)
def test_access_patterns(query, data):
    run_everywhere(data, query)


@given(query=queries(max_atoms=3, aggregates=False, conditions=False), data=st.data())
@settings(max_examples=30)
def test_aggregates_also_while_deletes_are_ahead_of_inserts(query, data):
    aggregate = st.lists(aggregates_over(list(query.atoms)), min_size=1, max_size=3)
    run_everywhere(data, replace(query, aggregates=tuple(data.draw(aggregate))))


@given(query=queries(max_atoms=3, aggregates=False, conditions=False), data=st.data())
@settings(max_examples=25)
def test_aggregates_by_semirings_where_nothing_is_deleted(query, data):
    aggregate = st.lists(aggregates_over(list(query.atoms)), min_size=1, max_size=3)
    query = replace(query, aggregates=tuple(data.draw(aggregate)))
    run_everywhere(data, query, INSERTS, insert_only=True)


@pytest.mark.parametrize("insert_only", [False, True])
@given(query=queries(max_atoms=3, aggregates=False, inputs=False), data=st.data())
@settings(max_examples=20)
def test_nulls_do_not_take_part_in_aggregates(insert_only, query, data):
    aggregate = st.lists(aggregates_over(list(query.atoms)), min_size=1, max_size=3)
    query = replace(query, aggregates=tuple(data.draw(aggregate)))
    counts = INSERTS if insert_only else ANY
    run_everywhere(data, query, counts, (None, 0, 2), insert_only=insert_only)


@given(query=queries(max_atoms=4, inputs=False), data=st.data())
@settings(max_examples=25)
def test_self_joins(query, data):
    """All atoms with the same number of columns are over the same relation."""
    atoms = tuple(vk.Atom(f"R{len(a.variables)}", a.variables) for a in query.atoms)
    run_everywhere(data, replace(query, atoms=atoms))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
@pytest.mark.parametrize(
    "text",
    [
        "Q() = R()",
        "Q() = R() * R()",
        "Q(a, b) = R(a) * S(b) * T()",
        "Q(a) = R(a, a) * R(a, b) * [a <> b]",
        "Q(b, a) = R(a, b) * S(b)",
        "Q(c, b, a) = R(a, b) * S(b, c) * T(c, a)",
        "Q(d, a) = R(a, b) * S(b, c) * T(c, d)",
        "Q(| a, b, c) = E(a, b) * E(b, c) * E(c, a)",
        "Q(c | a) = E(a, b) * E(b, c) * F(c, a)",
        "Q(; sum(a), avg(b), min(a), max(b), count()) = R(a, b) * S(b)",
        "Q(a; sum(2 * a * b - c * b + 1)) = R(a, b) * S(b, c)",
    ],
)
def test_shapes_that_are_easy_to_get_wrong(way, text):
    """No variables, products, loops in one atom, heads in another order than the atoms."""
    query = vk.parse(text)
    live, database = vk.maintain(query, **way), Database()
    arity = {atom.relation: len(atom.variables) for atom in query.atoms}
    rows = [
        (relation, tuple((5 * i + i * j) % 3 for j in range(columns)))
        for i in range(6)
        for relation, columns in arity.items()
    ]
    changes = [(r, row, m) for m in (1, 2, -1, -2) for r, row in rows]
    for relation, row, multiplicity in changes:
        live.update(relation, row, multiplicity)
        database.apply([(relation, row, multiplicity)])
        assert_equals_recomputation(live, query, database, dict.fromkeys(query.inputs, 1))
    assert all(size == 0 for size in live.sizes().values()), "something stays of what is deleted"


def test_lazy_results_are_right_whenever_they_are_read():
    query = vk.parse("Q(a, c) = R(a, b) * S(b, c)")
    live, database = vk.maintain(query, mode="lazy"), Database()
    for step in range(40):
        update = ("RS"[step % 2], (step % 3, step % 5), 1 if step % 4 else -1)
        live.update(*update)
        database.apply([update])
        if step % 7 == 0:
            assert_equals_recomputation(live, query, database)
