"""Subscribers are told exactly how the output changes."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import INSERTS, WAYS, Database, Replica, streams
from tests.oracle import UNREADABLE, recompute
from tests.strategies import queries

ids = {"ids": lambda way: "-".join(way.values())}


@given(query=queries(max_atoms=4, inputs=False), data=st.data())
@settings(max_examples=40)
def test_the_changes_after_every_update_add_up_to_the_output(query, data):
    stream = data.draw(streams(query))
    for way in WAYS:
        live, database = vk.maintain(query, **way), Database()
        replica = Replica(live)
        for update in stream:
            live.update(*update)
            live.flush()
            assert_follows(replica, query, database.apply([update]))


@given(query=queries(max_atoms=4, inputs=False), data=st.data())
@settings(max_examples=40)
def test_the_changes_after_every_batch_add_up_to_the_output(query, data):
    batches = data.draw(
        st.lists(st.tuples(st.sampled_from(query.relations), streams(query)), max_size=4)
    )
    for way in WAYS:
        live, database = vk.maintain(query, **way), Database()
        replica = Replica(live)
        for relation, stream in batches:
            updates = [update for update in stream if update[0] == relation]
            live.update_batch(relation, [u[1] for u in updates], [u[2] for u in updates])
            live.flush()
            assert_follows(replica, query, database.apply(updates))


def assert_follows(replica, query, database):
    """The replica is the output, except for tuples that nobody can read yet."""
    expected = recompute(query, database)
    hidden = {row for row, v in expected.items() if query.aggregates and UNREADABLE in v}
    shown = {row: value for row, value in expected.items() if row not in hidden}
    assert {r: v for r, v in replica.content.items() if r not in hidden} == shown


@given(query=queries(max_atoms=3, inputs=False), data=st.data())
@settings(max_examples=20)
def test_semirings_tell_changes_too(query, data):
    stream = data.draw(streams(query, INSERTS))
    for way in WAYS:
        live, database = vk.maintain(query, insert_only=True, **way), Database()
        replica = Replica(live)
        for update in stream:
            live.update(*update)
            live.flush()
            assert_follows(replica, query, database.apply([update]))


@pytest.mark.parametrize("way", WAYS, **ids)
def test_nobody_is_told_when_the_output_stays_the_same(way):
    live = vk.maintain("Q(a) = R(a, b) * S(b)", **way)
    replica = Replica(live)
    live.update("R", (1, 2))
    live.update("S", (3,))
    live.flush()
    assert replica.calls == 0
    live.update_batch("R", [(5, 3), (5, 3)], [1, -1])
    live.flush()
    assert replica.calls == 0
    live.update("S", (4,))
    live.update_batch("R", [(5, 3), (5, 4)], [1, -1])  # two rows that cancel in the output
    live.flush()
    assert replica.calls == 0


@pytest.mark.parametrize("options", [{}, {"insert_only": True}], ids=["multiset", "semiring"])
def test_nobody_is_told_of_a_row_that_does_not_change_the_min(options):
    live = vk.maintain("Q(a; min(b)) = R(a, b)", **options)
    replica = Replica(live)
    for value, calls in ((5, 1), (7, 1), (5, 1), (3, 2)):
        live.update("R", (1, value))
        assert replica.calls == calls


def test_before_and_after_are_the_payloads():
    live, told = vk.maintain("Q(a; sum(b)) = R(a, b)"), []
    live.subscribe(told.append)
    live.update("R", (1, 5), 2)
    live.update("R", (1, 3))
    live.update_batch("R", [(1, 5), (1, 3)], [-2, -1])
    assert told == [
        [vk.OutputChange((1,), None, (10,))],
        [vk.OutputChange((1,), (10,), (13,))],
        [vk.OutputChange((1,), (13,), None)],
    ]


def test_a_lazy_maintainer_tells_when_it_is_read():
    live, told = vk.maintain("Q(a) = R(a)", mode="lazy"), []
    live.subscribe(told.append)
    live.update("R", (1,))
    live.update("R", (2,))
    assert told == []
    list(live.enumerate())
    assert [{change.row for change in changes} for changes in told] == [{(1,), (2,)}]


def test_what_a_lazy_maintainer_put_off_before_is_not_told():
    live, told = vk.maintain("Q(a) = R(a)", mode="lazy"), []
    live.update("R", (1,))
    live.subscribe(told.append)
    live.update("R", (2,))
    live.flush()
    assert told == [[vk.OutputChange((2,), None, 1)]]


def test_loading_is_told_as_one_change():
    live, told = vk.maintain("Q(a, c) = R(a, b) * S(b, c)"), []
    live.subscribe(told.append)
    live.load({"R": [(1, 2)], "S": [(2, 3), (2, 4)]})
    assert len(told) == 1
    assert {change.row for change in told[0]} == {(1, 3), (1, 4)}


def test_a_min_that_cannot_be_told_yet_is_told_when_it_can():
    live, told = vk.maintain("Q(a; min(b)) = R(a, b)"), []
    live.subscribe(told.append)
    live.update("R", (1, 7))
    live.update("R", (1, 3), -1)  # this delete has overtaken its insert
    live.update("R", (2, 9))
    live.update("R", (1, 3), 2)
    assert told == [
        [vk.OutputChange((1,), None, (7,))],
        [vk.OutputChange((2,), None, (9,))],
        [vk.OutputChange((1,), (7,), (3,))],
    ]


def test_changes_of_an_access_pattern_come_with_their_inputs():
    query = "Q(c | a) = R(a, b) * S(b, c)"
    live, told = vk.maintain(query, output="list"), []
    live.subscribe(told.append)
    live.load({"R": [(1, 2)], "S": [(2, 3)]})
    assert told == [[vk.OutputChange((3, 1), None, 1)]]
    with pytest.raises(vk.QueryError, match='output="list"'):
        vk.maintain(query, strategy="viewtree").subscribe(told.append)


def test_the_cost_of_telling_does_not_grow_with_the_output():
    def steps(size):
        live = vk.maintain("Q(y, x, z) = R(y, x) * S(y, z)")
        live.load({"R": [(0, x) for x in range(size)], "S": [(0, z) for z in range(size)]})
        live.load({"S": [(1, 1)]})
        live.subscribe(lambda changes: None)
        before = live.steps
        live.update("R", (1, 1))
        return live.steps - before

    assert steps(10) == steps(1000)


@pytest.mark.parametrize(
    "text", ["Q(a, c) = R(a, b) * S(b, c)", "Q(a; sum(c), count()) = R(a, b) * S(b, c)"]
)
def test_changes_as_arrow_batches_are_those_of_rows(text):
    choose = random.Random(text)
    live, batches = vk.maintain(text), []
    replica, token = Replica(live), live.subscribe_batches(batches.append)
    for _ in range(12):
        rows = [(choose.randrange(3), choose.randrange(3)) for _ in range(6)]
        live.update_batch(choose.choice("RS"), rows, [choose.choice((1, 1, -1)) for _ in rows])
        assert replica.content == dict(live.enumerate())
    content, width = {}, len(live.query.outputs)
    for batch in batches:
        for row in zip(*batch.to_pydict().values(), strict=True):
            payloads, half = row[width:], (len(row) - width) // 2
            before, after = payloads[:half], payloads[half:]
            assert content.get(row[:width], (None,) * half) == before
            content[row[:width]] = after
    present = {row: after for row, after in content.items() if any(v is not None for v in after)}
    expected = dict(live.enumerate())
    assert present == {r: v if live.query.aggregates else (v,) for r, v in expected.items()}
    live.unsubscribe(token)
    told = len(batches)
    live.update("R", (0, 0), 5)
    assert len(batches) == told
