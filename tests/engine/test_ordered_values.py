"""Min and max in machine code: what the reference engine gives, after every update of random
histories with nulls, ties and groups that empty; saved, undone, subscribed to."""

import random
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import viewkeep as vk
from tests.engine.engines import LONG
from tests.engine.streams import Replica
from tests.engine.test_typed_sums import (
    Make,
    as_some_table,
    cents,
    changes,
    day,
    mixed,
    moment,
    note,
    number,
    price,
    refusal,
    results,
    whole,
    wild,
)
from tests.engine.test_typed_sums import engine as engine
from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.engine.compiled.extremes import OVERTAKEN

STEPS, SEEDS = (400, 8) if LONG else (40, 2)

ONE = "Q(g; min(x), max(x)) = R(g, x)"
SUMS = "Q(g; sum(x), min(x), count(), max(x), avg(x)) = R(g, x)"
TWO = "Q(g; min(x), max(y), count(x)) = R(g, x) * S(g, y)"
DISTINCT = "Q(g; count_distinct(x), sum(y), count_distinct(y), max(y)) = R(g, x, y)"
VALUES = "Q(g, y; count_distinct(x), count_distinct(y)) = R(g, x) * S(g, y)"
ALL = "Q(; max(x), min(x)) = R(g, x) * S(g)"
HEAD = "Q(g, x; max(x), min(y)) = R(g, x) * S(g, y)"
PATH = "Q(h; min(x), max(y)) = R(g, x) * S(g, h) * T(h, y)"
ENDS = "Q(g; max(y)) = R(g, x) * S(x, h) * T(h, y)"
LOOSE = "Q(g; min(y)) = R(g, x) * S(x, h) * T(h, y)"
TRIANGLE = "Q(; min(x), max(y)) = R(x, y) * S(y, h) * T(h, x)"


def name(choose: random.Random) -> Any:
    return choose.choice([None, "", "a", "ab", "b", "\u00e9", "\uffff", "\U0001f600", "a" * 40])


CASES: list[tuple[str, dict[str, Any], dict[str, tuple[Make, ...]]]] = [
    (ONE, {}, {"R": (whole, whole)}),
    (ONE, {}, {"R": (day, price)}),
    (ONE, {"output": "list"}, {"R": (whole, wild)}),
    (ONE, {"mode": "lazy"}, {"R": (whole, moment)}),
    (ONE, {"strategy": "delta"}, {"R": (whole, day)}),
    (SUMS, {}, {"R": (whole, cents)}),
    (SUMS, {"keep_inputs": False}, {"R": (whole, number)}),
    (TWO, {}, {"R": (whole, price), "S": (whole, wild)}),
    (TWO, {"output": "list"}, {"R": (whole, whole), "S": (whole, whole)}),
    (ALL, {}, {"R": (whole, wild), "S": (whole,)}),
    (HEAD, {}, {"R": (whole, whole), "S": (whole, price)}),
    (PATH, {}, {"R": (day, cents), "S": (day, whole), "T": (whole, number)}),
    (PATH, {"strategy": "delta"}, {"R": (day, cents), "S": (day, whole), "T": (whole, day)}),
    (ENDS, {}, {"R": (day, day), "S": (day, day), "T": (day, whole)}),
    (LOOSE, {"strategy": "recursive"}, {"R": (day, day), "S": (day, day), "T": (day, whole)}),
    (TRIANGLE, {}, {"R": (day, day), "S": (day, day), "T": (day, day)}),
    (ONE, {}, {"R": (whole, mixed)}),
    (ONE, {}, {"R": (whole, name)}),
    (TWO, {}, {"R": (whole, name), "S": (whole, name)}),
    (DISTINCT, {}, {"R": (whole, cents, whole)}),
    (DISTINCT, {"output": "list"}, {"R": (day, name, number)}),
    (VALUES, {}, {"R": (whole, price), "S": (whole, whole)}),
    (VALUES, {"strategy": "delta"}, {"R": (whole, wild), "S": (whole, day)}),
]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("text", "options", "makers"), CASES, ids=lambda each: str(each)[:24])
def test_every_update_gives_what_the_reference_engine_gives(text, options, makers, seed, tmp_path):
    choose = random.Random(f"{text}{seed}")
    live = vk.maintain(text, engine="compiled", **options)
    others = {name: value for name, value in options.items() if name != "keep_inputs"}
    reference = vk.maintain(text, engine="reference", **others)
    replica = Replica(live) if not seed and "keep_inputs" not in options else None
    present: dict[str, list[tuple[Any, ...]]] = {name: [] for name in makers}
    for step in range(STEPS):
        relation = choose.choice(list(makers))
        rows, counts = changes(choose, present[relation], makers[relation])
        table = rows if name in makers[relation] else as_some_table(choose, rows, makers[relation])
        outcomes = [
            refusal(live, relation, table, counts),
            refusal(reference, relation, rows, counts),
        ]
        assert outcomes[0] == outcomes[1]
        if outcomes[0] is None:
            note(present[relation], rows, counts)
        assert results(live) == results(reference)
        if replica is not None and live.query.outputs:
            assert replica.content == results(live)
        if step == STEPS // 2 and seed:
            live.save(tmp_path / "state")
            live = vk.Maintainer.restore(tmp_path / "state")
    if mixed not in makers[next(iter(makers))]:
        assert isinstance(live.engine, CompiledEngine), live.engine_reason
        live.flush()
        reference.flush()
        assert_same_maps(live, reference)
    for relation, rows in present.items():
        live.update_batch(relation, rows, [-1] * len(rows))
    live.flush()
    assert all(size == 0 for size in live.sizes().values()), "something stays of what is deleted"


def assert_same_maps(live: vk.Maintainer, reference: vk.Maintainer) -> None:
    engine = live.engine
    assert isinstance(engine, CompiledEngine)
    for name, relation in reference.engine.maps.items():
        if name not in engine.dropped:
            assert engine.maps[name] == relation


def compiled(live: vk.Maintainer) -> bool:
    return isinstance(live.engine, CompiledEngine)


def test_a_heap_is_in_order_however_values_come_and_go():
    live = vk.maintain(ONE, engine="compiled")
    choose, present = random.Random(5), [(0, n % 601) for n in range(1200)]
    choose.shuffle(present)
    live.load({"R": present})
    while present:
        values = [x for _, x in present]
        assert live.lookup((0,)) == (min(values), max(values))
        choose.shuffle(present)
        gone = [row for row in present if row[1] in (min(values), max(values))] + present[:60]
        gone = list(dict.fromkeys(gone))
        for row in gone:
            present.remove(row)
        live.update_batch("R", gone, [-1] * len(gone))
    assert live.lookup((0,)) is None
    assert compiled(live)


def test_floats_are_in_the_order_of_numbers():
    values = [float("inf"), -0.0, 1e-310, -1e-310, -2.5, 3.5, float("-inf")]
    live = vk.maintain(ONE, engine="compiled")
    live.update_batch("R", pa.table({"g": [1] * len(values), "x": values}))
    for low, high in ((0, 0), (1, 1), (2, 2), (3, 3)):
        ordered = sorted(values)[low : len(values) - high]
        assert live.lookup((1,)) == (ordered[0], ordered[-1])
        live.update_batch("R", [(1, ordered[0]), (1, ordered[-1])], [-1, -1])
    assert compiled(live)


def test_nulls_have_no_extreme_but_are_rows():
    live = vk.maintain("Q(g; min(x), max(x), count(x), count()) = R(g, x)", engine="compiled")
    live.update_batch("R", [(1, None), (1, None), (2, 5), (2, None)])
    assert dict(live.enumerate()) == {(1,): (None, None, 0, 2), (2,): (5, 5, 1, 2)}
    live.update("R", (2, 5), -1)
    live.update("R", (1, None), -2)
    assert dict(live.enumerate()) == {(2,): (None, None, 0, 1)}
    assert compiled(live)


def test_distinct_values_are_counted_without_nulls():
    live = vk.maintain("Q(g; count_distinct(x), count()) = R(g, x)", engine="compiled")
    replica = Replica(live)
    live.update_batch("R", [(1, "a"), (1, "a"), (1, "b"), (1, None), (2, None)])
    assert dict(live.enumerate()) == {(1,): (2, 4), (2,): (0, 1)}
    live.update("R", (1, "a"), -1)
    assert live.lookup((1,)) == (2, 3)
    live.update_batch("R", [(1, "a"), (1, None), (2, None)], [-1, -1, -1])
    assert replica.content == dict(live.enumerate()) == {(1,): (1, 1)}
    live.update("R", (1, "c"), -1)
    with pytest.raises(vk.RingError, match="number of distinct values"):
        live.lookup((1,))
    live.update("R", (1, "c"))
    assert live.lookup((1,)) == (1, 1)


def test_a_null_that_joins_with_nothing_is_not_taken_off():
    live = vk.maintain("Q(; count_distinct(a), min(a)) = R(a) * S(a)", engine="compiled")
    live.update_batch("R", [("x",), (None,)])
    live.update("S", ("x",))
    assert live.value() == (1, "x")
    live.update("S", (None,))
    assert live.value() == (1, "x")


def test_inserts_alone_count_distinct_values():
    for engine_name in ("compiled", "reference"):
        live = vk.maintain(
            "Q(g; count_distinct(x), min(x)) = R(g, x)", engine=engine_name, insert_only=True
        )
        live.update_batch("R", [(1, 3), (1, 3), (1, 4)])
        assert live.lookup((1,)) == (2, 3)


def test_deletes_may_overtake_inserts_until_somebody_reads():
    live = vk.maintain(ONE, engine="compiled")
    live.update_batch("R", [(1, 5), (1, 3), (1, 3)], [-1, 1, 1])
    live.update("R", (1, 5))
    assert dict(live.enumerate()) == {(1,): (3, 3)}
    assert compiled(live)
    live.update("R", (1, 7), -1)
    for read in (live.to_arrow, lambda: live.lookup((1,)), lambda: list(live.enumerate())):
        with pytest.raises(vk.RingError, match="deleted more often"):
            read()
    assert not compiled(live)
    assert live.engine_reason == OVERTAKEN
    live.update("R", (1, 7))
    assert dict(live.enumerate()) == {(1,): (3, 3)}


def test_a_batch_that_fails_changes_nothing():
    live = vk.maintain("Q(g; min(x), sum(x * x)) = R(g, x)", engine="compiled")
    live.load({"R": [(1, 5), (2, 6)]})
    with pytest.raises(vk.RingError, match="64 bits"):
        live.update_batch("R", [(1, 1), (2, 6), (3, 2**61), (1, 5)], [1, -1, 1, -1])
    assert dict(live.enumerate()) == {(1,): (5, 25), (2,): (6, 36)}
    live.update("R", (1, 5), -1)
    assert dict(live.enumerate()) == {(2,): (6, 36)}
    assert compiled(live)


def test_subscribers_hear_of_an_extreme_that_changes_while_the_count_does_not():
    live = vk.maintain(ONE, engine="compiled")
    live.load({"R": [(1, 5), (1, 8), (2, 5)]})
    replica, batches = Replica(live), list[pa.RecordBatch]()
    replica.content = dict(live.enumerate())
    live.subscribe_batches(batches.append)
    live.update_batch("R", [(1, 5), (1, 6), (2, 5), (3, 1)], [-1, 1, -1, 1])
    assert replica.content == dict(live.enumerate()) == {(1,): (6, 8), (3,): (1, 1)}
    assert sum(map(len, batches)) == 3
    assert compiled(live)


def test_single_rows_go_straight_to_machine_code():
    live = vk.maintain(ONE, engine="compiled")
    for n in range(50):
        live.update("R", (n % 3, n * 7 % 50))
    assert live._live.runner.updates > 40
    for n in range(0, 50, 2):
        live.update("R", (n % 3, n * 7 % 50), -1)
    left = [(n % 3, n * 7 % 50) for n in range(1, 50, 2)]
    expected = {g: [x for h, x in left if h == g] for g in range(3)}
    assert dict(live.enumerate()) == {(g,): (min(v), max(v)) for g, v in expected.items()}


def test_insert_only_extremes_are_machine_code_too(tmp_path):
    live = vk.maintain(TWO, engine="compiled", insert_only=True)
    live.load({"R": [(1, 5), (1, None)], "S": [(1, Decimal("2.5")), (2, Decimal(1))]})
    live.update_batch("R", [(1, 4), (2, None)])
    assert dict(live.enumerate()) == {(1,): (4, Decimal("2.5"), 2), (2,): (None, Decimal(1), 0)}
    assert compiled(live)


def test_columns_of_arrow_have_the_type_of_the_values():
    live = vk.maintain(ONE, engine="compiled")
    at = datetime(2024, 2, 29, 12)
    live.update_batch("R", pa.table({"g": [1, 1], "x": pa.array([at, None], pa.timestamp("us"))}))
    assert live.to_arrow().to_pylist() == [{"g": 1, "min(x)": at, "max(x)": at}]
    assert compiled(live)


@pytest.mark.parametrize(
    ("text", "rows", "reason"),
    [
        ("Q(g; min(-x)) = R(g, x)", [(1, 2)], "of an expression"),
        (ONE, [(1, True), (1, 2.5)], "not all integers"),
        ("Q(g; min(x)) = R(g, x) * S(g, h) * T(h)", [(1, 2)], ""),
    ],
)
def test_what_machine_code_does_not_keep_in_order_is_said(text, rows, reason):
    live = vk.maintain(text, engine="compiled")
    live.update_batch("R", rows)
    live.flush()
    assert reason in live.engine_reason
    assert compiled(live) == (not reason)


def test_texts_are_in_order_also_after_others_were_forgotten(tmp_path):
    live = vk.maintain(ONE, engine="compiled")
    present: list[tuple[int, str]] = []
    for turn in range(6):
        rows = [(n % 2, f"{(n * 7919 + turn) % 1000:03} in turn {turn}") for n in range(900)]
        live.update_batch("R", pa.table({"g": [g for g, _ in rows], "x": [x for _, x in rows]}))
        live.update_batch("R", present, [-1] * len(present))
        present = rows
        if turn == 3:
            live.save(tmp_path / "state")
            live = vk.Maintainer.restore(tmp_path / "state")
        groups = {g: [x for h, x in present if h == g] for g in (0, 1)}
        assert dict(live.enumerate()) == {(g,): (min(v), max(v)) for g, v in groups.items()}
    assert compiled(live)
    assert isinstance(live.engine, CompiledEngine)
    assert len(live.engine.coder) < 3000
