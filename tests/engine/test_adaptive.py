"""Heavy and light parts under skewed streams: after every update the result is the query run from
scratch, every invariant holds, and tuples have moved in every direction."""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, permutations
from math import ceil, sqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import Database, Update, assert_equals_recomputation, streams
from tests.oracle import Row, recompute
from tests.strategies import queries
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.rings import REALS, MatrixRing, Ring

TRIANGLE = "Q() = R(a, b) * S(b, c) * T(c, a)"
LISTED = "Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)"
DIRECTED = "Q() = E(a, b) * E(b, c) * E(c, a)"
ORIENTED = "Q() = E(a, b) * E(b, c) * E(a, c)"
COMPOSITE = "Q() = R(x, a, b) * S(x, b, c) * T(x, c, a, l)"
WIDE = "Q() = R(a, u, b) * S(b, c, w) * T(w, c, u, a)"
PATH_3 = "Q() = R(a, b) * S(b, c) * T(c, d)"
PATH_4 = "Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e)"
LW_4 = "Q() = R(a, b, c) * S(b, c, d) * T(c, d, a) * U(d, a, b)"
CYCLE_4 = "Q() = R(a, b) * S(b, c) * T(c, d) * U(d, a)"
TAIL = "Q() = A(a, b) * B(b, c) * C(c, a) * D(c, d) * E(d, e)"

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
COUNTS = (TRIANGLE, DIRECTED, ORIENTED, COMPOSITE, WIDE, PATH_3, PATH_4, LW_4)


# --- streams --------------------------------------------------------------------------------------


def zipf_value(choose: random.Random, values: int) -> int:
    """Half of all draws are of a value below the square root."""
    return int(values ** choose.random()) - 1


def skewed_stream(
    query: ConjunctiveQuery, seed: int, most: int, values: int = 12
) -> Iterator[Update]:
    """Up to `most` rows, down to an eighth, up and down to nothing, with waves in between.

    On the way up rows come several times, and some deletes come before their inserts.
    """
    choose, database = random.Random(seed), Database()
    arity = {atom.relation: len(atom.variables) for atom in query.atoms}
    for target in (most, most // 8, most // 2, 0):
        while (size := sum(map(len, database.values()))) != target:
            if size > target:
                relation = choose.choice([name for name in sorted(database) if database[name]])
                row = choose.choice(sorted(database[relation]))
                change = -database[relation][row]
            else:
                relation = choose.choice(sorted(arity))
                row = tuple(zipf_value(choose, values) for _ in range(arity[relation]))
                change = choose.choice((1, 1, 1, 1, 2, 3, -1, -2))
            database.apply([(relation, row, change)])
            if not database[relation][row]:
                del database[relation][row]
            yield relation, row, change
        if target:
            yield from waves(arity, target)


def waves(arity: dict[str, int], size: int) -> Iterator[Update]:
    """In each relation one value, first of its first columns and then of its last, gets so many
    rows that it is heavy, and loses them again."""
    count = ceil(1.6 * sqrt(4 * size))
    for relation, columns in arity.items():
        for change in (2, -2):
            for i in range(count):
                yield relation, (0,) * (columns - 1) + (100 + i,), change
        for change in (-1, 1):
            for i in range(count):
                yield relation, (100 + i, *(0,) * (columns - 1)), change


def count_from_scratch(query: ConjunctiveQuery, database: Database) -> int:
    """Atom by atom, variables summed away as soon as no later atom has them."""
    names: tuple[str, ...] = ()
    total: dict[Row, int] = {(): 1}
    for position, atom in enumerate(query.atoms):
        later = {v for each in query.atoms[position + 1 :] for v in each.variables}
        shared = [v for v in names if v in atom.variables]
        by_shared: dict[Row, list[tuple[Row, int]]] = {}
        for row, count in database.get(atom.relation, {}).items():
            binding = dict(zip(atom.variables, row, strict=True))
            if count and all(binding[v] == x for v, x in zip(atom.variables, row, strict=True)):
                key = tuple(binding[v] for v in shared)
                by_shared.setdefault(key, []).append((row, count))
        kept = tuple(v for v in dict.fromkeys((*names, *atom.variables)) if v in later)
        joined: dict[Row, int] = {}
        for values, count in total.items():
            binding = dict(zip(names, values, strict=True))
            for row, own in by_shared.get(tuple(binding[v] for v in shared), ()):
                both = binding | dict(zip(atom.variables, row, strict=True))
                key = tuple(both[v] for v in kept)
                joined[key] = joined.get(key, 0) + count * own
        names, total = kept, joined
    return sum(total.values())


def test_the_fast_recomputation_is_the_slow_one() -> None:
    for text in (*COUNTS, CYCLE_4):
        query, database = vk.parse(text), Database()
        for update in islice(skewed_stream(query, 1, 24, 4), 30):
            database.apply([update])
        assert count_from_scratch(query, database) == recompute(query, database).get((), 0)


@dataclass
class Moves:
    """What rebalancing was seen while a stream ran."""

    live: Any
    up: int = 0
    down: int = 0
    doubled: int = 0
    halved: int = 0

    def update(self, *change: Any) -> None:
        partitions = self.live.engine.partitions
        base, minor = partitions.base, partitions.minor
        height = sum(sum(levels.values()) for levels in partitions.levels)
        self.live.update(*change)
        if partitions.base != base:
            self.doubled += partitions.base == 2 * base
            self.halved += partitions.base == base // 2 - 1
        elif partitions.minor != minor:
            risen = sum(sum(levels.values()) for levels in partitions.levels) - height
            self.up += risen > 0
            self.down += risen < 0


def run(text: str, seed: int, most: int, values: int = 12, **options: Any) -> Moves:
    """A stream that is compared with recomputation after every update, invariants checked."""
    query, database = vk.parse(text), Database()
    moves = Moves(vk.maintain(query, strategy="epsilon", check=True, **options))
    for update in skewed_stream(query, seed, most, values):
        moves.update(*update)
        database.apply([update])
        if query.outputs:
            assert dict(moves.live.enumerate()) == listed_from_scratch(query, database)
        else:
            assert moves.live.value() == count_from_scratch(query, database)
    left = {name: size for name, size in moves.live.sizes().items() if size}
    assert not left, "something stays of what is deleted"
    assert not any(moves.live.engine.partitions.levels)
    return moves


def listed_from_scratch(query: ConjunctiveQuery, database: Database) -> dict[Row, int]:
    """The triangles R(a, b), S(b, c), T(c, a)."""
    following: dict[Any, list[tuple[Row, int]]] = {}
    for row, count in database.get("S", {}).items():
        following.setdefault(row[0], []).append((row, count))
    last = database.get("T", {})
    return {
        (a, b, c): product
        for (a, b), first in database.get("R", {}).items()
        for (_, c), second in following.get(b, ())
        if (product := first * second * last.get((c, a), 0))
    }


# --- counts ---------------------------------------------------------------------------------------

SIZES = {PATH_4: 16, DIRECTED: 16, ORIENTED: 16, LW_4: 16}
VALUES = {TRIANGLE: 24, DIRECTED: 18, ORIENTED: 18, COMPOSITE: 6, WIDE: 5, LW_4: 6}


@pytest.mark.parametrize("text", COUNTS)
def test_counts_over_skewed_streams(text: str) -> None:
    """At epsilon 1/2, with values that become heavy and light, and N that doubles and halves."""
    moves = run(text, 7, SIZES.get(text, 32), VALUES.get(text, 12))
    assert moves.up
    assert moves.down
    assert moves.doubled
    assert moves.halved


@pytest.mark.parametrize(
    ("text", "epsilon"),
    [
        *((TRIANGLE, epsilon) for epsilon in (0, 0.25, 0.75, 1)),
        *((PATH_3, epsilon) for epsilon in (0, 0.25, 0.75, 1)),
        *((text, epsilon) for text in (DIRECTED, COMPOSITE) for epsilon in (0, 0.75)),
        *((text, epsilon) for text in (PATH_4, LW_4) for epsilon in (0.25, 1)),
    ],
)
def test_counts_whatever_is_heavy(text: str, epsilon: float) -> None:
    moves = run(text, 11, 12, VALUES.get(text, 12), epsilon=epsilon)
    if epsilon in (0, 1):
        assert moves.up == moves.down == 0, "all values are heavy, or all are light"


@pytest.mark.parametrize(
    ("text", "epsilon"),
    [
        (TRIANGLE, {"R": 0.1, "S": 0.9}),
        (TRIANGLE, {"R": 0, "S": 0.5, "T": 1}),
        (TRIANGLE, {"R": 1, "S": 0.3, "T": 0}),
        (DIRECTED, {"E": 0.3, "E#2": 0.8}),
        (TRIANGLE, "first-order"),
        (TRIANGLE, "factorized"),
        (TRIANGLE, "factorized:T"),
        (LW_4, "factorized:U"),
        (PATH_4, {"b": 0.2, "c": 0.7}),
        (LW_4, {"R": 0, "S": 0.4, "T": 0.7, "U": 1}),
    ],
    ids=str,
)
def test_counts_with_an_epsilon_for_each_relation(text: str, epsilon: Any) -> None:
    run(text, 3, 16, VALUES.get(text, 12), epsilon=epsilon)


@pytest.mark.parametrize(
    ("text", "epsilon"),
    [
        *((text, 0.5) for text in (TRIANGLE, DIRECTED, COMPOSITE, PATH_3, PATH_4)),
        *((TRIANGLE, epsilon) for epsilon in (0, 0.3, 1)),
    ],
)
def test_counts_in_linear_space(text: str, epsilon: float) -> None:
    """Joint splits: a value that is heavy in one relation is so in the other too."""
    size = SIZES.get(text, 24) if epsilon == 0.5 else 16
    moves = run(text, 5, size, VALUES.get(text, 12), epsilon=epsilon, space="linear")
    if epsilon == 0.5:
        assert moves.up
        assert moves.down


@pytest.mark.slow
def test_four_cycles() -> None:
    moves = run(CYCLE_4, 2, 12, 12)
    assert moves.up
    assert moves.down
    assert moves.doubled
    assert moves.halved


@pytest.mark.slow
def test_triangles_with_a_tail_use_three_levels() -> None:
    run(TAIL, 3, *((10, 8) if LONG else (4, 4)))
    live = vk.maintain(TAIL, strategy="epsilon")
    hub = [(i, 0) for i in range(60)]
    some = [(i, 1) for i in range(9)]
    live.load({"D": hub + some, "E": [(i, i) for i in range(40)]})
    levels = live.engine.partitions.levels[3]
    assert (levels[0,], levels[1,]) == (2, 1)
    assert all(value not in levels for value in [(2,), (39,)])


# --- lists of triangles ---------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, 0.25, 0.5, 0.75, 1, {"R": 0.1, "S": 0.9}], ids=str)
def test_lists_of_triangles(epsilon: Any) -> None:
    moves = run(LISTED, 13, 50 if epsilon == 0.5 else 20, 20, epsilon=epsilon)
    if epsilon == 0.5:
        assert moves.up
        assert moves.down
        assert moves.halved


@pytest.mark.parametrize("head", ["".join(order) for order in permutations("abc")])
def test_heads_in_any_order(head: str) -> None:
    text = f"Q({', '.join(head)}) = R(a, b) * S(b, c) * T(c, a)"
    query, database = vk.parse(text), Database()
    live = vk.maintain(text, strategy="epsilon", check=True)
    for update in islice(skewed_stream(query, 4, 30, 6), 40):
        live.update(*update)
        database.apply([update])
        assert_equals_recomputation(live, query, database)


def test_lists_of_triangles_in_one_graph() -> None:
    query = vk.parse("Q(a, b, c) = E(a, b) * E(b, c) * E(a, c)")
    live, database = vk.maintain(query, strategy="epsilon", check=True), Database()
    for update in islice(skewed_stream(query, 4, 24, 8), 60):
        live.update(*update)
        database.apply([update])
        assert dict(live.enumerate()) == recompute(query, database)


@pytest.mark.parametrize("times", [1, 2])
def test_a_relation_without_columns_counts_as_one_tuple(times: int) -> None:
    """Also when its multiplicity changes, and when it becomes empty."""
    query, database = vk.parse("Q(a, b) = R() * S(a, b, c) * T(a, b, c) * U(c, b)"), Database()
    live = vk.maintain(query, strategy="epsilon", check=True)
    rows: list[tuple[str, tuple[int, ...]]] = [("S", (1, 1, 2)), ("T", (1, 1, 2)), ("U", (2, 1))]
    nothing: list[tuple[str, tuple[int, ...], int]] = [("R", (), n) for n in (1, times, -1, -times)]
    for update in (nothing[0], *((*row, 1) for row in rows), *nothing[1:], nothing[0]):
        live.update(*update)
        database.apply([update])
        assert_equals_recomputation(live, query, database)


# --- payloads -------------------------------------------------------------------------------------

CANCELLING = "Q(; sum(a * c), count(), sum(b), avg(a)) = R(a, b) * S(b, c) * T(c, a)"


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.2}, {"space": "linear"}], ids=str)
def test_aggregates_over_triangles(options: dict[str, Any]) -> None:
    query, database = vk.parse(CANCELLING), Database()
    live = vk.maintain(query, strategy="epsilon", check=True, **options)
    for relation, row, change in skewed_stream(query, 21, 27, 8):
        # Values on both sides of zero: sums vanish while their counts do not.
        row = tuple(value - 2 for value in row)
        live.update(relation, row, change)
        database.apply([(relation, row, change)])
        assert_equals_recomputation(live, query, database)
    assert not any(live.sizes().values())


class Clock(Ring[int]):
    """Integers modulo 6: products and sums of what is not zero may be zero."""

    name, zero, one = "hours", 0, 1

    def add(self, left: int, right: int) -> int:
        return (left + right) % 6

    def multiply(self, left: int, right: int) -> int:
        return (left * right) % 6

    def negate(self, element: int) -> int:
        return -element % 6


@pytest.mark.parametrize("text", [TRIANGLE, COMPOSITE, PATH_4, LISTED])
def test_a_ring_with_zero_divisors(text: str) -> None:
    """Rows vanish at a multiplicity of 6, and light and heavy parts with them."""
    query, database, clock = vk.parse(text), Database(), Clock()
    live = vk.maintain(query, strategy="epsilon", check=True, ring=clock)
    for update in skewed_stream(query, 6, 12, VALUES.get(text, 10)):
        live.update(*update)
        database.apply([update])
        if query.outputs:
            integers = listed_from_scratch(query, database)
            expected = {row: n % 6 for row, n in integers.items() if n % 6}
            assert dict(live.enumerate()) == expected
        else:
            assert live.value() == count_from_scratch(query, database) % 6
    assert not any(live.sizes().values())


FLOATS = (0.1, 1e16, -0.3, 7.25, 1e-9, -1e16, 3.0, 0.2)


def test_sums_of_floats_are_exact_however_tuples_move() -> None:
    """0.1 and 1e16 are added and taken away by every move; nothing of them is lost or stays."""
    query, database = vk.parse("Q(; sum(a), sum(c)) = R(a, b) * S(b, c) * T(c, a)"), Database()
    live = vk.maintain(query, strategy="epsilon", check=True)
    for number, (relation, row, change) in enumerate(skewed_stream(query, 8, 24, 9)):
        row = tuple(FLOATS[value] if value < 8 else float(value) for value in row)
        live.update(relation, row, change)
        database.apply([(relation, row, change)])
        if number % 20 == 0:
            pairs = recompute(vk.parse(f"Q(a, c) = {TRIANGLE[6:]}"), database)
            for place, total in enumerate(live.value()):
                exact = sum(Fraction(row[place]) * n for row, n in pairs.items())
                assert total is None or Fraction(total) == Fraction(float(exact))
    assert not any(live.sizes().values())


def test_reals_with_lifts() -> None:
    lifts = {"a": lambda a: a + 0.5, "c": lambda c: 0.25 * c}
    query, database = vk.parse(TRIANGLE), Database()
    live = vk.maintain(query, strategy="epsilon", check=True, ring=REALS, lifts=lifts)
    pairs = vk.parse(f"Q(a, c) = {TRIANGLE[6:]}")
    for number, update in enumerate(skewed_stream(query, 8, 24, 8)):
        live.update(*update)
        database.apply([update])
        if number % 10 == 0:
            found = recompute(pairs, database).items()
            assert live.value() == sum((a + 0.5) * 0.25 * c * n for (a, c), n in found)


def test_regression_sums_over_triangles() -> None:
    ring = MatrixRing(("a", "c"))
    query, database = vk.parse(TRIANGLE), Database()
    live = vk.maintain(query, strategy="epsilon", check=True, ring=ring)
    pairs = vk.parse("Q(a, c) = R(a, b) * S(b, c) * T(c, a)")
    for number, update in enumerate(skewed_stream(query, 10, 24, 8)):
        live.update(*update)
        database.apply([update])
        if number % 10 == 0:
            found = recompute(pairs, database).items()
            total = live.value()
            assert ring.count_of(total) == sum(n for _, n in found)
            assert ring.sum_of(total, "a") == sum(a * n for (a, _), n in found)
            assert ring.sum_of_products(total, "a", "c") == sum(a * c * n for (a, c), n in found)


# --- any query ------------------------------------------------------------------------------------


@given(
    query=queries(
        max_atoms=3,
        variables=tuple("abcde"),
        inputs=False,
        aggregates=False,
        conditions=False,
    ),
    epsilon=st.sampled_from([0, 0.3, 0.5, 0.8, 1]),
    space=st.sampled_from(["fast", "fast", "linear"]),
    data=st.data(),
)
@settings(max_examples=60)
def test_any_count_that_is_accepted_is_right(query, epsilon, space, data) -> None:
    """With two to four values for a variable, each becomes heavy sooner or later."""
    query = ConjunctiveQuery("Q", (), query.atoms)
    try:
        live = vk.maintain(query, strategy="epsilon", epsilon=epsilon, space=space, check=True)
    except vk.QueryError:
        return
    database = Database()
    for update in data.draw(streams(query, max_size=16)):
        live.update(*update)
        assert_equals_recomputation(live, query, database.apply([update]))


@given(query=queries(max_atoms=3, self_joins=False, repeated_variables=False, conditions=False))
@settings(max_examples=60)
def test_auto_takes_heavy_and_light_parts_only_where_they_are_planned(query) -> None:
    """What the analysis promises can be planned; what cannot is refused."""
    program = vk.maintain(query).program
    try:
        asked = vk.maintain(query, strategy="epsilon").program
    except vk.QueryError:
        assert program.strategy != "epsilon"
    else:
        assert asked.strategy == "epsilon"
        assert asked.splits
