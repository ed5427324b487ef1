"""All that a maintainer does, also with heavy and light parts."""

from itertools import islice

import pytest

import viewkeep as vk
from tests.engine.streams import Database, Replica
from tests.engine.test_adaptive import (
    COMPOSITE,
    DIRECTED,
    LISTED,
    PATH_4,
    TRIANGLE,
    count_from_scratch,
    listed_from_scratch,
    skewed_stream,
)
from viewkeep.engine.interpreter.check import Checker
from viewkeep.rings import Ring

TEXTS = [TRIANGLE, DIRECTED, COMPOSITE, PATH_4, LISTED]


def maintained(text, **options):
    return vk.maintain(text, **{"strategy": "epsilon", "check": True, **options})


def assert_right(live, database):
    if live.query.outputs:
        assert dict(live.enumerate()) == listed_from_scratch(live.query, database)
    else:
        assert live.value() == count_from_scratch(live.query, database)


def assert_invariants(live):
    """Loading and restoring are not followed by a check of their own."""
    Checker(live.program, live.payload.ring).check(live.engine)


def stream(text, length=None, seed=17):
    return list(islice(skewed_stream(vk.parse(text), seed, 14, 6), length))


@pytest.mark.parametrize("text", TEXTS)
def test_batches_are_their_single_updates(text):
    live, database = maintained(text), Database()
    changes = stream(text)
    for start in range(0, len(changes), 37):
        batch = changes[start : start + 37]
        for relation in live.query.relations:
            own = [(row, n) for name, row, n in batch if name == relation]
            live.update_batch(relation, [row for row, _ in own], [n for _, n in own])
        assert_right(live, database.apply(batch))


@pytest.mark.parametrize("text", TEXTS)
def test_loading_then_updating_is_updating_from_empty(text):
    database = Database()
    rows = {(r, row): 1 for r, row, n in stream(text, 60) if n > 0}
    loaded, updated = maintained(text), maintained(text)
    database.apply((r, row, n) for (r, row), n in rows.items())
    loaded.load(database.rows())
    assert_invariants(loaded)
    for (relation, row), n in rows.items():
        updated.update(relation, row, n)
    more = stream(text, 150, seed=3)
    for change in more:
        loaded.update(*change)
        updated.update(*change)
        database.apply([change])
    for live in (loaded, updated):
        assert_right(live, database)


@pytest.mark.parametrize("text", [TRIANGLE, LISTED])
def test_loading_twice_adds(text):
    live, database = maintained(text), Database()
    for values in (range(6), range(3, 20), range(2)):
        rows = {name: [(0, v) for v in values] + [(v, 0) for v in values] for name in "RST"}
        live.load(rows)
        database.apply((name, row, 1) for name, content in rows.items() for row in content)
        assert_right(live, database)


@pytest.mark.parametrize("text", TEXTS)
def test_lazy_results_are_right_whenever_they_are_read(text):
    live, database = maintained(text, mode="lazy"), Database()
    for number, change in enumerate(stream(text)):
        live.update(*change)
        database.apply([change])
        if number % 31 == 0:
            assert_right(live, database)
    assert live.partitions()[0].levels == {}
    assert not any(live.sizes().values())


@pytest.mark.parametrize("mode", ["eager", "lazy"])
@pytest.mark.parametrize("text", TEXTS)
def test_subscribers_hear_exactly_the_changes(text, mode):
    live, database = maintained(text, mode=mode), Database()
    replica = Replica(live)
    for number, change in enumerate(stream(text)):
        live.update(*change)
        database.apply([change])
        if mode == "eager" or number % 20 == 0:
            live.flush()
            if live.query.outputs:
                assert replica.content == listed_from_scratch(live.query, database)
            else:
                assert replica.content.get((), 0) == count_from_scratch(live.query, database)
    live.flush()
    assert replica.content == {}


@pytest.mark.parametrize("options", [{}, {"space": "linear"}, {"epsilon": {"R": 0.2}}], ids=str)
def test_restored_in_the_middle_everything_goes_on(options, tmp_path):
    live, database = maintained(TRIANGLE, **options), Database()
    changes = stream(TRIANGLE)
    saved = 0
    for number, change in enumerate(changes):
        live.update(*change)
        database.apply([change])
        if number % 23 == 20:
            live.save(tmp_path / "state")
            restored = vk.Maintainer.restore(tmp_path / "state")
            assert_invariants(restored)
            before, after = live.engine.partitions, restored.engine.partitions
            assert (after.base, after.size) == (before.base, before.size)
            assert after.levels == before.levels
            assert restored.partitions() == live.partitions()
            saved += any(before.levels)
            for later in changes[number + 1 : number + 9]:
                live.update(*later)
                restored.update(*later)
            assert (after.base, after.levels) == (before.base, before.levels)
            assert restored.value() == live.value()
            for relation, row, n in changes[number + 1 : number + 9]:
                live.update(relation, row, -n)
        assert_right(live, database)
    assert saved, "some states had heavy values"


def test_a_restored_list_of_triangles_goes_on(tmp_path):
    live, database = maintained(LISTED), Database()
    for number, change in enumerate(stream(LISTED)):
        live.update(*change)
        database.apply([change])
        if number % 50 == 25:
            live.save(tmp_path / "state")
            live = vk.Maintainer.restore(tmp_path / "state")
            assert_invariants(live)
        assert_right(live, database)


@pytest.mark.parametrize("text", [TRIANGLE, COMPOSITE, LISTED])
def test_static_relations_are_loaded(text):
    live, database = maintained(text, static=["S"]), Database()
    changes = stream(text, 80)
    rows = Database().apply((r, row, 1) for r, row, n in changes if n > 0)
    live.load(rows.rows())
    database.apply((r, row, n) for r, content in rows.items() for row, n in content.items())
    assert_invariants(live)
    assert_right(live, database)
    for relation, row, n in changes:
        if relation == "S":
            with pytest.raises(vk.SchemaError, match="declared static"):
                live.update(relation, row, n)
        else:
            live.update(relation, row, n)
            assert_right(live, database.apply([(relation, row, n)]))
    arity = len(next(iter(database["S"])))
    live.load({"S": [(0,) * arity, (50,) * arity]})
    assert_right(live, database.apply([("S", (0,) * arity, 1), ("S", (50,) * arity, 1)]))


def test_inserts_only():
    live, database = maintained(TRIANGLE, insert_only=True), Database()
    for relation, row, n in stream(TRIANGLE, 200):
        if n > 0:
            live.update(relation, row, n)
            assert_right(live, database.apply([(relation, row, n)]))
    with pytest.raises(vk.SchemaError, match="inserts only"):
        live.update("R", (0, 0), -1)
    assert live.engine.partitions.minor


class Fussy(Ring[int]):
    """Integers that refuse to grow beyond a limit: an error in the middle of an update."""

    name, zero, one, limit = "small integers", 0, 1, 9

    def add(self, left, right):
        return self._small(left + right)

    def multiply(self, left, right):
        return self._small(left * right)

    def negate(self, element):
        return -element

    def from_integer(self, n):
        return n

    def _small(self, value):
        if abs(value) > self.limit:
            raise OverflowError(f"{value} is too large")
        return value


@pytest.mark.parametrize("watched", [False, True], ids=["", "watched"])
@pytest.mark.parametrize("text", [TRIANGLE, LISTED, PATH_4])
def test_a_ring_that_refuses_halfway_leaves_everything_as_it_was(text, watched):
    live, database, told = maintained(text, ring=Fussy()), Database(), []
    if watched:
        live.subscribe(told.append)
    refused = 0
    for relation, row, n in islice(skewed_stream(live.query, 17, 18, 4), 150):
        before = dict(live.enumerate())
        inputs = sorted(live.engine.inputs())
        calls = len(told)
        try:
            live.update(relation, row, n)
        except OverflowError:
            refused += 1
            assert dict(live.enumerate()) == before
            assert sorted(live.engine.inputs()) == inputs
            assert len(told) == calls
            assert_right(live, database)
        else:
            assert_right(live, database.apply([(relation, row, n)]))
    assert refused


def test_a_batch_that_is_refused_halfway_is_not_there_at_all():
    live = maintained(TRIANGLE, ring=Fussy())
    rows = {"R": [(0, b) for b in range(9)], "S": [(b, 0) for b in range(9)], "T": [(0, 0)]}
    live.load(rows)
    before = dict(live.engine.maps["R_h"].items()), live.value()
    with pytest.raises(OverflowError):
        live.update_batch("R", [(0, b) for b in range(9)], [5] * 9)
    assert (dict(live.engine.maps["R_h"].items()), live.value()) == before
    live.update("R", (0, 0), -2)
    assert live.value() == 7


class Tiny(Fussy):
    """A limit that views reach before the count does."""

    limit = 12


def test_no_tuple_is_lost_when_a_ring_refuses_while_tuples_move():
    """1 becomes heavy with its 17th tuple, and R_h joined with S_l then adds up to 13 and more."""
    live = maintained(TRIANGLE, ring=Tiny())
    live.load({"S": [(b, 7) for b in range(30)], "R": [(50 + i, 60 + i) for i in range(30)]})
    for b in range(16):
        live.update("R", (1, b))
    before = sorted(live.engine.inputs())
    with pytest.raises(OverflowError):
        live.update("R", (1, 16))
    assert sorted(live.engine.inputs()) == before


def test_a_ring_that_refuses_while_tuples_move_leaves_the_views_as_they_were():
    live = maintained(TRIANGLE, ring=Tiny(), check=False)
    live.load({"S": [(b, 7) for b in range(30)], "R": [(50 + i, 60 + i) for i in range(30)]})
    for b in range(16):
        live.update("R", (1, b))
    with pytest.raises(OverflowError):
        live.update("R", (1, 16))
    for b in range(8, 16):
        live.update("R", (1, b), -1)
    live.update("T", (7, 1))
    assert live.value() == 8


def test_updating_during_an_enumeration_ends_it():
    live = maintained(LISTED)
    live.load({"R": [(0, b) for b in range(9)], "S": [(b, 0) for b in range(9)], "T": [(0, 0)]})
    reading = live.enumerate()
    next(reading)
    live.update("R", (7, 7))
    with pytest.raises(vk.ViewkeepError, match="changed during an enumeration"):
        next(reading)


def test_everything_is_deleted_and_inserted_again():
    live, database = maintained(TRIANGLE), Database()
    rows = {"R": [(0, b) for b in range(20)], "S": [(b, 0) for b in range(20)], "T": [(0, 0)]}
    for _ in range(2):
        for sign in (1, -1):
            for name, content in rows.items():
                live.update_batch(name, content, [sign] * len(content))
                database.apply((name, row, sign) for row in content)
                assert_right(live, database)
        assert live.engine.partitions.size == 0
        assert not any(live.sizes().values())


def test_a_load_that_brings_nothing_changes_nothing():
    live = maintained(TRIANGLE)
    live.load({})
    live.load({"R": []})
    assert live.value() == 0
    live.load({"R": [(1, 2)], "S": [(2, 3)], "T": [(3, 1)]})
    assert live.value() == 1


def test_repeated_variables_and_conditions_are_filters():
    query = "Q() = R(a, b) * S(b, c) * T(c, a) * [a <> 1]"
    live, plain = maintained(query), maintained(TRIANGLE)
    for relation, row, n in stream(TRIANGLE, 120):
        live.update(relation, row, n)
        if not (relation == "R" and row[0] == 1) and not (relation == "T" and row[1] == 1):
            plain.update(relation, row, n)
        assert live.value() == plain.value()
