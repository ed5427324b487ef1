"""Payloads from any ring are maintained over joins as the ring's own sums and products say."""

from itertools import product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import INSERTS, WAYS, Database, streams
from tests.strategies import queries
from viewkeep.rings import (
    BOOLEAN,
    FACTORIZED,
    INTEGERS,
    MAX,
    MIN,
    RELATIONAL,
    MatrixRing,
    ProductRing,
    Ring,
    least_squares,
)

ids = {"ids": lambda way: "-".join(way.values())}
some_ways = st.lists(st.sampled_from(WAYS), min_size=4, max_size=4)


class Polynomials(Ring[tuple[int, ...]]):
    """Polynomials in x up to x^2: 1 + 3x is (1, 3, 0)."""

    name, zero, one = "polynomials", (0, 0, 0), (1, 0, 0)

    def add(self, left, right):
        return tuple(a + b for a, b in zip(left, right, strict=True))

    def multiply(self, left, right):
        return tuple(sum(left[i] * right[n - i] for i in range(n + 1)) for n in range(3))

    def negate(self, element):
        return tuple(-a for a in element)


class ClockHours(Ring[int]):
    """Integers modulo 12: products of what is not zero may be zero."""

    name, zero, one = "hours", 0, 1

    def add(self, left, right):
        return (left + right) % 12

    def multiply(self, left, right):
        return (left * right) % 12

    def negate(self, element):
        return -element % 12


POLYNOMIALS, CLOCK = Polynomials(), ClockHours()


def by_definition(query, database, ring, lifts):
    """The sum over all bindings of the product of multiplicities and lifted values."""
    total = {}
    contents = [list(database.get(atom.relation, {}).items()) for atom in query.atoms]
    for entries in product(*contents):
        binding, payload = {}, ring.one
        agree = all(
            binding.setdefault(v, x) == x
            for atom, (row, _) in zip(query.atoms, entries, strict=True)
            for v, x in zip(atom.variables, row, strict=True)
        )
        if not agree:
            continue
        for _, multiplicity in entries:
            payload = ring.multiply(payload, ring.from_integer(multiplicity))
        for variable, lift in lifts.items():
            payload = ring.multiply(payload, lift(binding[variable]))
        row = tuple(binding[v] for v in query.outputs)
        total[row] = ring.add(total.get(row, ring.zero), payload)
    return {row: payload for row, payload in total.items() if not ring.is_zero(payload)}


def check(query, ring, lifts, stream, ways, **known):
    for way in ways:
        live = vk.maintain(query, ring=ring, lifts=lifts, **way, **known)
        database = Database()
        for update in stream:
            live.update(*update)
            expected = by_definition(query, database.apply([update]), ring, lifts)
            assert dict(live.enumerate()) == expected
            for row, payload in expected.items():
                assert live.lookup(row) == payload


plain = queries(max_atoms=3, inputs=False, aggregates=False, conditions=False)


@given(query=plain, ways=some_ways, data=st.data())
@settings(max_examples=30)
def test_a_ring_of_the_users_own(query, ways, data):
    lifts = {v: lambda x, n=n: (1, x, n) for n, v in enumerate(query.variables)}
    check(query, POLYNOMIALS, lifts, data.draw(streams(query, max_size=8)), ways)


@given(query=plain, ways=some_ways, data=st.data())
@settings(max_examples=30)
def test_a_ring_with_zero_divisors(query, ways, data):
    lifts = {v: lambda x: x + 2 for v in query.variables}
    check(query, CLOCK, lifts, data.draw(streams(query, (1, 2, 3, 4, 6, -6), max_size=8)), ways)


@pytest.mark.parametrize("ring", [BOOLEAN, MIN, MAX], ids=lambda ring: ring.name)
@given(query=plain, ways=some_ways, data=st.data())
@settings(max_examples=15)
def test_semirings_where_nothing_is_deleted(ring, query, ways, data):
    lifts = {} if ring is BOOLEAN else dict.fromkeys(query.variables[:2], ring.from_value)
    stream = data.draw(streams(query, INSERTS, max_size=8))
    check(query, ring, lifts, stream, ways, insert_only=True)


@given(query=plain, ways=some_ways, data=st.data())
@settings(max_examples=20)
def test_several_rings_at_once(query, ways, data):
    ring = ProductRing(INTEGERS, POLYNOMIALS, CLOCK)
    lifts = {v: lambda x: (x, (x, 1, 0), x) for v in query.variables[:1]}
    check(query, ring, lifts, data.draw(streams(query, max_size=6)), ways)


@given(query=plain, ways=some_ways, data=st.data())
@settings(max_examples=25)
def test_relational_payloads_list_the_join(query, ways, data):
    """Every variable that is summed away goes on in the payload, with its multiplicity."""
    stream = data.draw(streams(query, max_size=8))
    full = vk.ConjunctiveQuery("Full", query.outputs + query.bound, query.atoms)
    expected = by_definition(full, Database().apply(stream), INTEGERS, {})
    for way, ring in zip(ways, [RELATIONAL, FACTORIZED] * 2, strict=True):
        live = vk.maintain(query, ring=ring, **way)
        for update in stream:
            live.update(*update)
        found = {
            row + rest: count
            for row, payload in live.enumerate()
            for rest, count in ring.to_relation(payload, query.bound).items()
        }
        assert found == expected


@pytest.mark.parametrize("way", WAYS, **ids)
def test_a_regression_over_a_join_follows_its_updates(way):
    """The model from the maintained sums is the one fitted to the joined rows."""
    ring = MatrixRing(("size", "rooms", "price"))
    text = "Q() = House(zip, id, size, price) * Rooms(id, rooms) * Shop(zip, shop)"
    live = vk.maintain(text, ring=ring, **way)
    random = numpy.random.default_rng(7)
    houses = [(i % 3, i, float(random.integers(20, 200)), 0.0) for i in range(12)]
    rooms = [(i, float(random.integers(1, 6))) for i in range(12)]
    houses = [
        (z, i, size, 3 * size + 10 * rooms[i][1] + random.normal()) for z, i, size, _ in houses
    ]
    shops = [(0, "a"), (0, "b"), (1, "a"), (2, "c")]
    live.load({"House": houses, "Rooms": rooms, "Shop": shops})
    assert_fits(ring, live, houses, rooms, shops)
    for house in houses[::4]:
        live.update("House", house, -1)
    live.update("Shop", (1, "d"))
    live.update("Rooms", rooms[1], 2)
    remaining = [house for house in houses if house not in houses[::4]]
    assert_fits(ring, live, remaining, [*rooms, rooms[1], rooms[1]], [*shops, (1, "d")])


def assert_fits(ring, live, houses, rooms, shops):
    joined = [
        (size, count, price)
        for zip_code, house, size, price in houses
        for id_, count in rooms
        for place, _ in shops
        if (house, zip_code) == (id_, place)
    ]
    points = numpy.array(joined)
    design = numpy.column_stack([numpy.ones(len(points)), points[:, :2]])
    expected, *_ = numpy.linalg.lstsq(design, points[:, 2], rcond=None)
    model = least_squares(ring, live.value(), label="price")
    found = [model.intercept, model.weights["size"], model.weights["rooms"]]
    assert found == pytest.approx(list(expected), rel=1e-6)


class Fussy(Ring[int]):
    """Integers that refuse to grow beyond 100: an error in the middle of an update."""

    name, zero, one = "small integers", 0, 1

    def add(self, left, right):
        return self._small(left + right)

    def multiply(self, left, right):
        return self._small(left * right)

    def negate(self, element):
        return -element

    def from_integer(self, n):
        return n

    def _small(self, value):
        if abs(value) > 100:
            raise OverflowError(f"{value} is too large")
        return value


REFUSED = [
    ("S", [(1, 0), (1, 2), (2, 0)], [60, 1, 60]),  # the first row brings Q(0) to 122
    ("R", [(7, 7), (0, 1)], [5, 90]),  # the last row does
    ("T", [(0,), (9,), (2,)], [-1, 1, 101]),  # and so does the look-up of an input
]


def fussy(way):
    live = vk.maintain("Q(a) = R(a, b) * S(b, c) * T(c)", ring=Fussy(), **way)
    live.load({"R": [(0, 1), (0, 1)], "S": [(1, c) for c in range(3)], "T": [(0,), (1,)]})
    return live


NOW = [way for way in WAYS if way["mode"] == "eager" and way["strategy"] != "recompute"]
LATER = [way for way in WAYS if way not in NOW]


@pytest.mark.parametrize("watched", [False, True], ids=["", "watched"])
@pytest.mark.parametrize("way", NOW, **ids)
def test_a_ring_that_refuses_halfway_leaves_everything_as_it_was(way, watched):
    live, told = fussy(way), []
    if watched:
        live.subscribe(told.append)
    before = {name: dict(relation.items()) for name, relation in live.engine.maps.items()}
    for relation, rows, counts in REFUSED:
        with pytest.raises(OverflowError):
            live.update_batch(relation, rows, counts)
        after = {name: dict(relation.items()) for name, relation in live.engine.maps.items()}
        assert after == before
    assert told == []
    live.update("T", (2,))
    assert dict(live.enumerate()) == {(0,): 6}


@pytest.mark.parametrize("way", LATER, **ids)
def test_what_a_ring_refuses_later_can_be_taken_back(way):
    """Nothing is computed before it is read; the error comes then, every time, until the row
    that causes it is deleted."""
    live = fussy(way)
    for relation, rows, counts in REFUSED[:2]:
        live.update_batch(relation, rows, counts)
        for _ in range(2):
            with pytest.raises(OverflowError):
                list(live.enumerate())
        live.update_batch(relation, rows, [-count for count in counts])
        assert dict(live.enumerate()) == {(0,): 4}
