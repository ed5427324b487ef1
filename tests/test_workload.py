"""Several queries maintained together: riders catch up with their carriers by themselves."""

from collections.abc import Iterator

import pandas
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import INSERTS, WAYS, Database, assert_equals_recomputation, streams
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.rings import MIN

# recent_increments_in_ivm, example 4.5
Q1 = vk.parse("Q1(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)")
Q2 = vk.parse("Q2(a, b, c) = R(a, b) * S(b, c)")

CHAINS = {
    "a rider and its carrier": (Q1, Q2),
    "a rider on a rider": (
        vk.parse("Q0(a, b, c, d, e) = R(a, b) * S(b, c) * T(c, d) * U(d, e)"),
        Q1,
        Q2,
    ),
    "two riders on one carrier": (
        Q2,
        Q1,
        vk.parse("Q3(a, b, c, e) = R(a, b) * S(b, c) * V(c, e)"),
    ),
    "a rider with aggregates": (
        Q2,
        vk.parse("Q4(b, c; sum(d), avg(c), min(d)) = R(a, b) * S(b, c) * T(c, d)"),
    ),
    "queries that have nothing to do with each other": (
        vk.parse("Q5(a) = R(a, b)"),
        vk.parse("Q6(; count(), min(c)) = S(b, c)"),
    ),
    "the same relation twice": (
        vk.parse("P2(a, b, c) = E(a, b) * E(b, c)"),
        vk.parse("P3(a, b, c, d) = E(a, b) * E(b, c) * E(c, d)"),
    ),
}


def everything(queries: tuple[ConjunctiveQuery, ...]) -> ConjunctiveQuery:
    """A query over all the relations, to draw updates for."""
    atoms = {atom.relation: atom for query in queries for atom in query.atoms}
    return ConjunctiveQuery("All", (), tuple(atoms.values()))


def test_the_riders_ride():
    """Else the tests below would test nothing new."""
    carriers = {
        name: {q.name: c.carriers for q in queries if (c := vk.maintain(queries)[q.name].cascade)}
        for name, queries in CHAINS.items()
    }
    assert carriers == {
        "a rider and its carrier": {"Q1": ("Q2",)},
        "a rider on a rider": {"Q0": ("Q1",), "Q1": ("Q2",)},
        "two riders on one carrier": {"Q1": ("Q2",), "Q3": ("Q2",)},
        "a rider with aggregates": {"Q4": ("Q2",)},
        "queries that have nothing to do with each other": {},
        "the same relation twice": {"P3": ("P2",)},
    }


@pytest.mark.parametrize("name", CHAINS)
@given(data=st.data())
@settings(max_examples=15)
def test_all_queries_are_right_in_whichever_order_they_are_read(name, data):
    queries = CHAINS[name]
    work, database = vk.maintain(list(queries), **data.draw(st.sampled_from(WAYS))), Database()
    for update in data.draw(streams(everything(queries))):
        work.update(*update)
        database.apply([update])
        for query in data.draw(st.permutations(queries)):
            if data.draw(st.booleans()):
                assert_equals_recomputation(work[query.name], query, database)
    for query in queries:
        assert_equals_recomputation(work[query.name], query, database)


@pytest.mark.parametrize("name", CHAINS)
@given(data=st.data())
@settings(max_examples=10)
def test_loads_and_batches_reach_all_queries(name, data):
    queries = CHAINS[name]
    work = vk.maintain(list(queries))
    loads = [Database().apply(data.draw(streams(everything(queries), (1, 2)))) for _ in range(2)]
    database = Database()
    for part in loads:
        work.load(part.rows())
        for relation, content in part.items():
            database.apply((relation, row, count) for row, count in content.items())
    for query in queries:
        assert_equals_recomputation(work[query.name], query, database)
    for relation, row, count in data.draw(streams(everything(queries))):
        work.update_batch(relation, iter([row, row]), iter([count, 1]))
        database.apply([(relation, row, count + 1)])
    for query in queries:
        assert_equals_recomputation(work[query.name], query, database)


@given(data=st.data())
@settings(max_examples=20)
def test_riders_over_semirings_where_nothing_is_deleted(data):
    extremes = vk.parse("Q4(c; min(d), max(a)) = R(a, b) * S(b, c) * T(c, d)")
    work, database = vk.maintain([Q2, extremes], insert_only=True), Database()
    assert work["Q4"].cascade is not None
    for update in data.draw(streams(extremes, INSERTS)):
        work.update(*update)
        database.apply([update])
        assert_equals_recomputation(work["Q4"], extremes, database)


def test_a_rider_pays_only_for_its_own_updates_until_it_is_read():
    work = vk.maintain([Q2, Q1])
    work.load({"R": [(a, 0) for a in range(50)], "T": [(c, 0) for c in range(50)]})
    before = work["Q1"].steps
    work.update_batch("S", [(0, c) for c in range(50)])
    assert work["Q1"].steps == before
    assert sum(1 for _ in work["Q2"].enumerate()) == 2500
    passed_on = work["Q1"].steps
    assert passed_on - before < 20 * 2500
    assert sum(1 for _ in work["Q1"].enumerate()) == 2500
    assert work["Q2"].maintainer.lookup((0, 0, 0)) == 1


def test_an_enumeration_that_is_given_up_tells_riders_nothing_wrong():
    work = vk.maintain([Q2, Q1])
    work.load({"R": [(1, 2), (5, 2)], "S": [(2, 3)], "T": [(3, 4)]})
    half = work["Q2"].enumerate()
    assert isinstance(half, Iterator)
    next(half)
    half.close()
    assert {row for row, _ in work["Q1"].enumerate()} == {(1, 2, 3, 4), (5, 2, 3, 4)}


def test_an_update_ends_the_enumeration_of_a_carrier():
    work = vk.maintain([Q2, Q1])
    work.load({"R": [(1, 2), (5, 2)], "S": [(2, 3)], "T": [(3, 4)]})
    half = work["Q2"].enumerate()
    next(half)
    work.update("R", (5, 2), -1)
    with pytest.raises(vk.ViewkeepError, match="changed during an enumeration"):
        list(half)
    assert [row for row, _ in work["Q1"].enumerate()] == [(1, 2, 3, 4)]


def test_an_update_below_ends_the_enumeration_of_a_carrier_that_rides_itself():
    """Else what it has enumerated, now old, would be passed on as new."""
    chain = CHAINS["a rider on a rider"]
    work, database = vk.maintain(list(chain)), Database()
    rows = [
        ("R", (0, 0), 1),
        ("R", (1, 0), 1),
        ("S", (0, 0), 1),
        ("T", (0, 0), 1),
        ("U", (0, 0), 1),
    ]
    for update in rows:
        work.update(*update)
    half = work["Q1"].enumerate()
    next(half)
    work.update("R", (1, 0), -1)
    with pytest.raises(vk.ViewkeepError, match="changed during an enumeration"):
        list(half)
    database.apply([*rows, ("R", (1, 0), -1)])
    for query in chain:
        assert_equals_recomputation(work[query.name], query, database)


def test_rows_that_a_rider_cannot_use_are_refused_although_they_come_by_its_carrier():
    summed = vk.parse("Q4(c; sum(b), sum(d)) = R(a, b) * S(b, c) * T(c, d)")
    work = vk.maintain([Q2, summed])
    assert work["Q4"].cascade is not None
    with pytest.raises(vk.QueryError, match="query Q4: b cannot be summed"):
        work.update("R", (1, "x"))
    work.load({"R": [(1, 2)], "S": [(2, 3)], "T": [(3, 4)]})
    assert list(work["Q4"].enumerate()) == [((3,), (2, 4))]


def test_an_update_at_the_bottom_reaches_a_rider_on_a_rider():
    work = vk.maintain(list(CHAINS["a rider on a rider"]))
    work.load({relation: [(0, 0)] for relation in "RSTU"})
    assert work["Q0"].lookup((0, 0, 0, 0, 0)) == 1
    work.update("R", (0, 0), 2)
    assert work["Q0"].lookup((0, 0, 0, 0, 0)) == 3
    work.update("R", (0, 0), -3)
    assert list(work["Q0"].enumerate()) == []


def test_access_patterns_in_a_workload():
    pattern = vk.parse("P(d | a) = R(a, b) * S(b, c) * T(c, d)")
    work = vk.maintain([Q2, pattern])
    work.load({"R": [(1, 2)], "S": [(2, 3)], "T": [(3, 4)]})
    assert list(work["P"].enumerate({"a": 1})) == [((4,), 1)]
    assert (work["P"].lookup((4,), {"a": 1}), work["P"].lookup((4,), {"a": 2})) == (1, 0)


@pytest.mark.parametrize("kind", [pyarrow.table, pandas.DataFrame], ids=["arrow", "pandas"])
def test_tables_as_rows(kind):
    work = vk.maintain([Q2, Q1])
    work.load({"R": kind({"b": [2], "a": [1]}), "S": kind({"b": [2], "c": [3]})})
    work.update_batch("T", kind({"c": [3, 3], "d": [4, 5]}), [1, 2])
    assert dict(work["Q1"].enumerate()) == {(1, 2, 3, 4): 1, (1, 2, 3, 5): 2}


def test_queries_may_be_given_as_text():
    work = vk.maintain([str(Q2), str(Q1)])
    work.load({"R": [(1, 2)], "S": [(2, 3)], "T": [(3, 4)]})
    assert work["Q1"].lookup((1, 2, 3, 4)) == 1


# --- errors ---------------------------------------------------------------------------------------


def contents(work):
    return {name: sorted(work[name].enumerate()) for name in work}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.update("R", (1,)), "does not fit R"),
        (lambda w: w.update("S", (1, float("nan"))), "equal to nothing"),
        (lambda w: w.update("Shop", (1, 2)), 'no query has a relation "Shop"'),
        (lambda w: w.update("R2", (1, 2)), 'did you mean "R"'),
        (lambda w: w.update("Q2", (1, 2, 3)), 'no query has a relation "Q2"'),
        (lambda w: w.update("R", (1, 2), 0.5), "not a whole number"),
        (lambda w: w.update_batch("R", [(8, 2), (1, 2)], [1]), "2 rows, but 1"),
        (lambda w: w.update_batch("R", "ab"), "expected rows, not str"),
        (lambda w: w.update_batch("S", [(8, 2), (1, 2, 3)]), "does not fit S"),
        (lambda w: w.load({"R": [(8, 2)], "S": [(2, 2)], "T": [(1,)]}), "does not fit T"),
        (lambda w: w.load({"R": [(8, 2)], "X": []}), 'no query has a relation "X"'),
        (lambda w: w["Q3"], 'no query "Q3" (Q2, Q1, Sum)'),
        (lambda w: w["Q1"].value(), "has outputs"),
        (lambda w: w["Q1"].lookup((1,)), "does not fit the output"),
        (lambda w: w.update_batch("T", [(3, 4), (3, "x")]), "cannot be summed"),
    ],
)
def test_what_is_wrong_is_refused_by_all_queries_or_none(change, message):
    summed = vk.parse("Sum(; sum(d)) = T(c, d)")
    work = vk.maintain([Q2, Q1, summed])
    work.load({"R": [(1, 2)], "S": [(2, 3)], "T": [(3, 4)]})
    before = contents(work)
    with pytest.raises(vk.ViewkeepError) as caught:
        change(work)
    assert message in str(caught.value)
    assert contents(work) == before


def test_riders_keep_the_constraints_of_their_queries():
    work = vk.maintain(list(CHAINS["a rider on a rider"]), static=["U"])
    assert work["Q0"].cascade is not None
    work.load({"R": [(1, 2)], "S": [(2, 3)], "T": [(3, 4)], "U": [(4, 5)]})
    with pytest.raises(vk.SchemaError, match="U is declared static"):
        work.update("U", (4, 6))
    assert [row for row, _ in work["Q0"].enumerate()] == [(1, 2, 3, 4, 5)]
    work = vk.maintain([Q2, Q1], insert_only=True)
    for relation in "RST":
        with pytest.raises(vk.SchemaError, match="inserts only"):
            work.update(relation, (1, 2), -1)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([Q1, Q1], 'two queries are called "Q1"'),
        ([vk.parse("R(a) = S(a)"), vk.parse("Q(a) = R(a)")], '"R" is the name of a query and of a'),
        (["Q(a) = R(a"], "expected"),
    ],
)
def test_names_that_clash_are_refused(queries, message):
    with pytest.raises(vk.QueryError) as caught:
        vk.maintain(queries)
    assert message in str(caught.value)


def test_workloads_are_over_counts():
    with pytest.raises(vk.QueryError, match="over counts"):
        vk.maintain([Q1, Q2], ring=MIN)
    with pytest.raises(vk.ConstraintError, match='no variable "z"'):
        vk.maintain([Q1, Q2], fds=["a -> z"])
