"""Payloads of many words: maps that nothing reads are left out, and nothing else changes."""

import random

import pytest

import viewkeep as vk
from tests.engine.streams import Replica
from tests.engine.test_typed_sums import changes, note, results, whole
from tests.engine.test_typed_sums import engine as engine
from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.rings import INTEGERS, MatrixRing

RING = MatrixRing(tuple("abcde"), INTEGERS)
"""21 words."""

CASES = {
    "one": ("Q() = R(a, b, c, d, e)", {"R": 5}, {}, ["R", "V_a"]),
    "groups": ("Q(a) = R(a, b, c, d, e)", {"R": 5}, {}, ["R", "V_b", "V_a"]),
    "list": ("Q(a) = R(a, b, c, d, e)", {"R": 5}, {"output": "list"}, None),
    "join": ("Q() = R(a, b, c) * S(c, d, e)", {"R": 3, "S": 3}, {}, None),
    "star": ("Q(a) = R(a, b, c) * S(a, d) * T(a, e)", {"R": 3, "S": 2, "T": 2}, {}, None),
    "delta": ("Q() = R(a, b, c) * S(c, d, e)", {"R": 3, "S": 3}, {"strategy": "delta"}, None),
}


@pytest.mark.parametrize("keep_inputs", [True, False])
@pytest.mark.parametrize(("text", "arities", "options", "maps"), CASES.values(), ids=CASES)
def test_results_are_those_of_the_reference_engine(
    text, arities, options, maps, keep_inputs, tmp_path
):
    choose = random.Random(text)
    live = vk.maintain(text, ring=RING, engine="compiled", keep_inputs=keep_inputs, **options)
    reference = vk.maintain(text, ring=RING, engine="reference", **options)
    present = {name: [(0,) * arity, (1,) * arity] for name, arity in arities.items()}
    for each in (live, reference):
        each.load(present)
    assert results(live) == results(reference)
    replica = Replica(live) if keep_inputs and live.query.outputs else None
    if replica is not None:
        replica.content = results(live)
    for step in range(40):
        relation = choose.choice(list(arities))
        rows, counts = changes(choose, present[relation], (whole,) * arities[relation])
        for each in (live, reference):
            each.update_batch(relation, rows, counts)
        note(present[relation], rows, counts)
        assert results(live) == results(reference)
        if replica is not None:
            assert replica.content == results(live)
        if step == 20:
            live.save(tmp_path / "state")
            restored = vk.Maintainer.restore(tmp_path / "state")
            assert results(restored) == results(live)
    assert isinstance(live.engine, CompiledEngine), live.engine_reason
    assert maps is None or list(live.sizes()) == maps
    for relation, rows in present.items():
        live.update_batch(relation, rows, [-1] * len(rows))
    assert all(size == 0 for size in live.sizes().values())
