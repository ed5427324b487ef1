"""What is known of the data changes how a query is maintained, never what it returns."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import (
    INSERTS,
    VALUES,
    WAYS,
    Database,
    Replica,
    assert_equals_recomputation,
    given_values,
    streams,
)
from tests.strategies import guarded_fds, queries, static_relations
from viewkeep.query.constraints import FunctionalDependency

ids = {"ids": lambda way: "-".join(way.values())}
SIMPLE = {"aggregates": False, "conditions": False}


some_ways = st.lists(st.sampled_from(WAYS), min_size=3, max_size=3)


def determined(values):
    """The one value that goes with others in all generated data."""
    return sum(values) % len(VALUES)


def rows_with_fds(query, fds):
    """Whether a row of a relation satisfies the dependencies, in whichever atom it is used."""
    parsed = [FunctionalDependency.parse(fd) for fd in fds]

    def admits(relation, row):
        for atom in query.atoms:
            binding = dict(zip(atom.variables, row, strict=False))
            for fd in parsed if atom.relation == relation else ():
                value = determined(binding.get(v, 0) for v in fd.determinant)
                inside = set(fd.determinant) <= atom.schema
                if inside and any(binding.get(v, value) != value for v in fd.dependent):
                    return False
        return True

    return admits


def check_stream(query, stream, inputs=None, way=WAYS[0], loaded=None, **known):
    """One stream on top of loaded data, compared after every update."""
    live, database = vk.maintain(query, **way, **known), Database()
    if loaded:
        live.load(loaded.rows())
        database.apply((r, row, n) for r, rows in loaded.items() for row, n in rows.items())
        assert_equals_recomputation(live, query, database, inputs)
    for update in stream:
        live.update(*update)
        assert_equals_recomputation(live, query, database.apply([update]), inputs)
    return live


@given(query=queries(max_atoms=4, **SIMPLE), data=st.data())
@settings(max_examples=50)
def test_functional_dependencies(query, data):
    fds = data.draw(guarded_fds(query))
    stream = data.draw(streams(query, admits=rows_with_fds(query, fds)))
    inputs = data.draw(given_values(query))
    for way in data.draw(some_ways):
        check_stream(query, stream, inputs, way, fds=fds)


@pytest.mark.parametrize("way", WAYS, **ids)
@pytest.mark.parametrize(
    ("text", "fds"),
    [
        ("Q(z, y, x, w) = R(x, w) * S(x, y) * T(y, z)", ["x -> y", "y -> z"]),  # example 4.12
        ("Q(z, w) = R(x, w) * S(x, y) * T(y, z)", ["x -> y", "y -> z"]),
        ("Q(x) = R(x, y) * S(y, z)", ["x -> y"]),  # y is bound, and above the output x
        ("Q(x; sum(z)) = R(x, y) * S(y, z)", ["x -> y"]),
        ("Q(a) = R(a, b) * S(b, c) * T(c, a)", ["a -> b", "b -> c", "c -> a"]),
    ],
)
def test_functional_dependencies_of_the_paper(way, text, fds):
    query = vk.parse(text)
    admits = rows_with_fds(query, fds)
    rows = [
        (atom.relation, row)
        for atom in query.atoms
        for row in product(VALUES, VALUES)
        if admits(atom.relation, row)
    ]
    check_stream(query, [(*each, m) for m in (1, 2, -3) for each in rows], None, way, fds=fds)


@given(query=queries(max_atoms=4, self_joins=False, **SIMPLE), data=st.data())
@settings(max_examples=40)
def test_keys_and_degrees(query, data):
    """In every relation the first columns determine the last one, or leave it two values."""
    wide = [atom for atom in query.atoms if len(atom.schema) == len(atom.variables) > 1]
    bound = data.draw(st.sampled_from([1, 2]))
    keys = [", ".join(f"{a.relation}.{v}" for v in a.variables[:-1]) for a in wide]
    degrees = [
        f"{a.relation}: {', '.join(a.variables[:-1])} -> {a.variables[-1]} <= {bound}" for a in wide
    ]
    known = {"keys": keys} if bound == 1 else {"degrees": degrees}
    constrained = {a.relation for a in wide}

    def admits(relation, row):
        value = determined(row[:-1])
        near = [(value + i) % len(VALUES) for i in range(bound)]
        return relation not in constrained or row[-1] in near

    stream, inputs = data.draw(streams(query, admits=admits)), data.draw(given_values(query))
    for way in data.draw(some_ways):
        check_stream(query, stream, inputs, way, **known)


# --- static and dynamic ---------------------------------------------------------------------------


@given(query=queries(max_atoms=4), data=st.data())
@settings(max_examples=40)
def test_static_relations_are_loaded_and_the_others_updated(query, data):
    static = data.draw(static_relations(query))
    loaded = Database().apply(data.draw(streams(query, INSERTS)))
    dynamic = tuple(r for r in query.relations if r not in static)
    stream = data.draw(streams(query, relations=dynamic))
    inputs = data.draw(given_values(query))
    for way in data.draw(some_ways):
        check_stream(query, stream, inputs, way, loaded, static=static)


STATIC_EXAMPLES = [  # example 4.14
    ("Q(a, b, c) = R(a, d) * S(a, b) * T(b, c)", ["T"], "O(N)", "O(1)"),
    ("Q(a, c, d) = R(a, d) * S(a, b) * T(b, c) * U(d)", ["S", "T"], "O(N^2)", "O(1)"),
    ("Q(a, b) = R(a) * S(a, b) * T(b)", ["S"], "O(N)", "O(N)"),
]


@pytest.mark.parametrize("way", WAYS, **ids)
@pytest.mark.parametrize(("text", "static", "preprocessing", "update"), STATIC_EXAMPLES)
def test_static_relations_of_the_paper(way, text, static, preprocessing, update):
    query = vk.parse(text)
    everything = [
        (atom.relation, row)
        for atom in query.atoms
        for row in product(VALUES, repeat=len(atom.variables))
    ]
    loaded = Database().apply((r, row, 1) for r, row in everything[::2])
    stream = [(*each, m) for m in (1, -1, -1) for each in everything if each[0] not in static]
    live = check_stream(query, stream, None, way, loaded, static=static)
    analysis = live.analysis
    assert f"preprocessing {preprocessing}, update {update}" in str(analysis.bounds)


def test_the_quadratic_join_of_static_relations_is_built_once():
    text, static = "Q(a, c, d) = R(a, d) * S(a, b) * T(b, c) * U(d)", ["S", "T"]
    live = vk.maintain(text, static=static)
    live.load({"S": [(a, 0) for a in range(30)], "T": [(0, c) for c in range(30)]})
    assert max(live.sizes().values()) == 30 * 30
    before = live.steps
    live.update("R", (1, 1))
    live.update("U", (1,))
    assert live.steps - before < 20
    assert sum(1 for _ in live.enumerate()) == 30


def test_exponential_preprocessing_is_declined_and_the_program_says_so():
    live = vk.maintain("Q(a, b) = R(a) * S(a, b) * T(b)", static=["S"])
    assert any("exponential preprocessing, declined" in note for note in live.program.notes)
    assert "exponential preprocessing, declined" in live.analysis.why["tractable_with_static"]
    assert live.program.strategy == "viewtree"


@pytest.mark.parametrize("way", WAYS, **ids)
def test_rows_of_static_relations_may_be_loaded_after_others(way):
    query = vk.parse("Q(a, c) = R(a, b) * S(b, c)")
    live = vk.maintain(query, static=["S"], **way)
    live.update("R", (1, 2))
    replica = Replica(live)
    live.load({"S": [(2, 3)], "R": [(0, 2)]})
    live.load({"S": [(2, 3), (2, 4)]})
    live.update("R", (1, 2), -1)
    database = Database(R={(0, 2): 1}, S={(2, 3): 2, (2, 4): 1})
    assert_equals_recomputation(live, query, database)
    assert replica.content == dict(live.enumerate())


# --- insert-only, foreign keys, access patterns ---------------------------------------------------


@given(query=queries(max_atoms=5, **SIMPLE), data=st.data())
@settings(max_examples=40)
def test_insert_only_streams(query, data):
    stream, inputs = data.draw(streams(query, INSERTS)), data.draw(given_values(query))
    for way in data.draw(some_ways):
        check_stream(query, stream, inputs, way, insert_only=True)


@pytest.mark.parametrize("way", WAYS, **ids)
@pytest.mark.parametrize(
    "text",
    [
        "Q(t, m, c) = T(m, t) * M(m, i, r) * C(i, c)",
        "Q(t; sum(r), count()) = T(m, t) * M(m, i, r) * C(i, c)",
        "Q(i) = T(m, t) * M(m, i, r) * C(i, c)",
    ],
)
def test_foreign_keys_with_batches_in_any_order(way, text):
    """Example 4.13: companies and titles may come after the rows that refer to them, and go
    before them; every batch as a whole leads to a consistent database."""
    query = vk.parse(text)
    keys = ["M.m -> T.m", "M.i -> C.i"]
    movies = [("M", (m, i, m + i), 1) for m in range(3) for i in range(3) if (m, i) != (1, 1)]
    titles = [("T", (m, 10 * m), 1) for m in range(3)]
    companies = [("C", (i, i % 2), 1) for i in range(3)]
    arriving = [*movies, *titles, *companies]
    leaving = [(r, row, -1) for r, row, _ in (*companies[:1], *titles[1:], *movies)]
    remaining = [m for m in movies if m[1][0] == 0 and m[1][1] != 0]
    returning = [*remaining, *titles[2:]]
    check_stream(query, [*arriving, *leaving, *returning], None, way, foreign_keys=keys)


@pytest.mark.parametrize("way", WAYS, **ids)
@pytest.mark.parametrize(
    "text",
    [
        "Q(| a, b, c) = E(a, b) * E(b, c) * E(c, a)",  # triangle detection
        "Q(c | a, b) = E(a, b) * E(b, c) * E(c, a)",  # triangles at an edge
        "Q(a | b) = S(a, b) * T(b)",
        "Q(a | b; sum(c)) = S(a, b, c) * T(b)",
        "Q(b, c | a, d) = R(a, b) * S(a, c) * T(d) * U(d, a)",
    ],
)
def test_access_patterns_answer_for_every_given_input(way, text):
    query = vk.parse(text)
    live, database = vk.maintain(query, **way), Database()
    arity = {atom.relation: len(atom.variables) for atom in query.atoms}
    everything = [(r, row) for r, n in arity.items() for row in product(VALUES, repeat=n)]
    stream = [(*each, m) for step, m in ((2, 1), (3, 2), (4, -1)) for each in everything[::step]]
    for relation, row, multiplicity in stream:
        live.update(relation, row, multiplicity)
        database.apply([(relation, row, multiplicity)])
    for values in product((*VALUES, 7), repeat=len(query.inputs)):
        check_inputs = dict(zip(query.inputs, values, strict=True))
        assert_equals_recomputation(live, query, database, check_inputs)
