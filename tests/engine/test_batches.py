"""Updates commute: batches, single updates and any other order of them lead to the same result."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import WAYS, Database, assert_equals_recomputation, given_values, streams
from tests.strategies import queries

some_ways = st.sampled_from(WAYS)


def by_relation(stream):
    """The same updates as batches: for each relation its rows and multiplicities."""
    batches = {}
    for relation, row, multiplicity in stream:
        rows, counts = batches.setdefault(relation, ([], []))
        rows.append(row)
        counts.append(multiplicity)
    return batches


@given(query=queries(max_atoms=4), way=some_ways, data=st.data())
@settings(max_examples=60)
def test_a_batch_its_single_updates_and_their_shuffle_are_the_same(query, way, data):
    stream, inputs = data.draw(streams(query)), data.draw(given_values(query))
    shuffled = data.draw(st.permutations(stream))
    batch, singles, others = (vk.maintain(query, **way) for _ in range(3))
    batches = [(relation, *batch) for relation, batch in by_relation(stream).items()]
    if data.draw(st.booleans()):
        batch.update_batches(batches)
    else:
        for each in batches:
            batch.update_batch(*each)
    for update in stream:
        singles.update(*update)
    for update in shuffled:
        others.update(*update)
    for live in (batch, singles, others):
        assert_equals_recomputation(live, query, Database().apply(stream), inputs)


@given(query=queries(max_atoms=4), way=some_ways, data=st.data())
@settings(max_examples=60)
def test_loading_then_updating_is_updating_from_empty(query, way, data):
    inputs = data.draw(given_values(query))
    loads = [Database().apply(data.draw(streams(query, (1, 2), max_size=8))) for _ in range(2)]
    stream = data.draw(streams(query))
    live, database = vk.maintain(query, **way), Database()
    for part in loads:  # the second load finds data and adds to it
        live.load(part.rows())
        database.apply((r, row, n) for r, content in part.items() for row, n in content.items())
        assert_equals_recomputation(live, query, database, inputs)
    for update in stream:
        live.update(*update)
        database.apply([update])
        assert_equals_recomputation(live, query, database, inputs)


@pytest.mark.parametrize(
    "way", [*WAYS, {"strategy": "epsilon"}], ids=lambda way: "-".join(way.values())
)
def test_a_batch_to_a_relation_that_occurs_three_times_has_no_cross_terms_missing(way):
    live = vk.maintain("Q() = E(a, b) * E(b, c) * E(c, a)", **way)
    live.update_batch("E", [(0, 1), (1, 2), (2, 0), (0, 0)])
    assert live.value() == 3 + 1
    live.update_batch("E", [(0, 1), (0, 0), (1, 1)], [-1, 1, 2])
    assert live.value() == 2**3 + 2**3


@pytest.mark.parametrize("is_heard", [False, True])
def test_batches_to_several_relations_are_one_change_or_none(is_heard):
    """Subscribers hear of them once, and a row of the last relation that is refused undoes all."""
    live, heard = vk.maintain("Q(a; sum(c)) = R(a, b) * S(b, c)"), []
    live.load({"R": [(1, 1)], "S": [(1, 5)]})
    if is_heard:
        live.subscribe(heard.append)
    live.update_batches([("R", [(2, 2)], None), ("S", [(1, 5), (1, 6), (2, 7)], [-1, 1, 1])])
    expected = {(1,): (6,), (2,): (7,)}
    assert dict(live.enumerate()) == expected
    told = [{each.row: each.after for each in changes} for changes in heard]
    assert told == ([expected] if is_heard else [])
    for wrong in ("text", (1, 2, 3)):
        with pytest.raises(vk.ViewkeepError):
            live.update_batches([("R", [(3, 2)], None), ("S", [(2, 1), wrong], None)])
    assert dict(live.enumerate()) == expected
    assert len(heard) == is_heard


def test_rows_that_cancel_inside_a_batch_cost_nothing_more():
    live = vk.maintain("Q(a, c) = R(a, b) * S(b, c)", strategy="delta")
    live.load({"S": [(0, c) for c in range(100)]})
    before = live.steps
    live.update_batch("R", [(1, 0), (1, 0)], [1, -1])
    assert live.steps == before


def test_rows_that_cancel_before_a_lazy_result_is_read_are_never_joined():
    live = vk.maintain("Q(a, c) = R(a, b) * S(b, c)", strategy="delta", mode="lazy")
    live.load({"S": [(0, c) for c in range(100)]})
    before = live.steps
    live.update("R", (1, 0))
    live.update("R", (1, 0), -1)
    assert list(live.enumerate()) == []
    assert live.steps - before < 10


def test_rows_may_come_from_a_generator_and_as_lists():
    live = vk.maintain("Q(a, b) = R(a, b)")
    live.load({"R": ([i, i] for i in range(3))})
    live.update_batch("R", ((i, 0) for i in range(2)), (2 for _ in range(2)))
    assert dict(live.enumerate()) == Counter({(0, 0): 3, (1, 0): 2, (1, 1): 1, (2, 2): 1})


def test_an_empty_load_changes_nothing():
    live = vk.maintain("Q(a) = R(a)")
    live.load({})
    live.load({"R": []})
    assert list(live.enumerate()) == []
    live.load({"R": [(1,)]})
    assert live.lookup((1,)) == 1
