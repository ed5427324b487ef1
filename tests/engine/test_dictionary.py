"""The dictionary of a compiled engine holds what its tables hold, and little else."""

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import viewkeep as vk
from tests.engine.streams import Replica
from viewkeep.engine.compiled import engine as compiled_engine
from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.graph import TriangleCounter

JOIN = "Q(a, c) = R(a, b) * S(b, c)"
MOST = 2 * compiled_engine.FEW


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    """These tests name their engine; code is compiled quickly, since it runs on few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIEWKEEP_OPTIMIZE", "0")
        patch.setenv("VIEWKEEP_ENGINE", "compiled")
        yield


def size(live: vk.Maintainer) -> int:
    """How many values the dictionary holds."""
    assert isinstance(live.engine, CompiledEngine), live.engine_reason
    coder = live.engine.coder
    assert len(coder.codes) + len(coder.free) == len(coder.values)
    return len(coder)


@pytest.mark.parametrize("way", ["single", "batch", "table", "subscribed"])
@pytest.mark.parametrize("strategy", ["viewtree", "epsilon"])
def test_turnovers_leave_no_values_behind(way, strategy, tmp_path):
    live = vk.maintain(JOIN, strategy=strategy)
    replica = Replica(live) if way == "subscribed" else None
    live.update("S", ("b", "c"))
    rows = 2_000 if way in ("batch", "table") else 400
    for turn in range(6):
        new = [(f"a{turn}.{i}", "b") for i in range(rows)]
        for sign in (1, -1):
            if way in ("single", "subscribed"):
                for row in new:
                    live.update("R", row, sign)
            elif way == "batch":
                live.update_batch("R", new, [sign] * rows)
            else:
                table = pa.table({"a": [a for a, _ in new], "b": ["b"] * rows})
                live.update_batch("R", table, [sign] * rows)
        assert size(live) <= MOST
        if turn == 3:
            live.save(tmp_path / "state")
            assert size(live) == 2, "only what tables hold is saved"
            if replica is None:
                live = vk.Maintainer.restore(tmp_path / "state")
    live.update("R", ("last", "b"))
    assert dict(live.enumerate()) == {("last", "c"): 1}
    assert replica is None or replica.content == {("last", "c"): 1}


def test_values_that_are_all_in_use_are_kept_and_rarely_looked_for(monkeypatch):
    looks = 0
    forget = CompiledEngine.forget_unused

    def counted(self: CompiledEngine) -> None:
        nonlocal looks
        looks += 1
        forget(self)

    monkeypatch.setattr(CompiledEngine, "forget_unused", counted)
    live = vk.maintain("Q(a, b, c) = R(a, b, c)")
    for start in range(0, 20_000, 100):
        live.update_batch("R", [(f"a{i}", f"b{i}", f"c{i}") for i in range(start, start + 100)])
    assert size(live) == 60_000
    assert looks <= 12, "each look is paid for by as many new values as there were"
    live.update_batch("R", [(f"a{i}", f"b{i}", f"c{i}") for i in range(20_000)], [-1] * 20_000)
    assert size(live) <= MOST


def test_questions_leave_no_values_behind():
    graph = TriangleCounter([("u", "v"), ("v", "w")])
    for i in range(5_000):
        assert graph.triangles_at_edge(f"x{i}", "v") == 0
    assert size(graph.maintainer) <= MOST
    assert graph.triangles_at_edge("w", "u") == 1


def test_rows_that_are_not_kept_leave_no_values_behind():
    live = vk.maintain("Q(a) = R(a, b)", strategy="viewtree", keep_inputs=False)
    for turn in range(6):
        for sign in (1, -1):
            live.update_batch(
                "R", [(f"a{turn}.{i}", f"b{i}") for i in range(2_000)], [sign] * 2_000
            )
    live.update("R", ("a", "b"))
    assert size(live) <= MOST
    assert dict(live.enumerate()) == {("a",): 1}


HISTORIES = [
    (JOIN, {"strategy": "viewtree"}),
    (JOIN, {"strategy": "viewtree", "output": "list"}),
    (JOIN, {"strategy": "epsilon"}),
    (JOIN, {"strategy": "delta", "mode": "lazy"}),
    ("Q(c | a) = R(a, b) * S(b, c)", {"output": "list"}),
    ("Q(a) = R(a, b) * R(b, c) * S(c, d)", {"strategy": "recursive"}),
    ("Q(a; sum(n), count()) = R(a, n) * S(a, b)", {}),
]
VALUES = [*(f"t{i}" for i in range(12)), 2**80, 0.5, 1.0, None, 3, Decimal("0.25"), (1, "x")]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("text", "options"), HISTORIES, ids=str)
def test_forgetting_after_every_change_changes_no_result(
    monkeypatch, tmp_path, text, options, seed
):
    monkeypatch.setattr(compiled_engine, "FEW", -1_000_000)
    monkeypatch.setattr(compiled_engine, "OFTEN", 0)
    choose = random.Random(seed)
    live, reference = vk.maintain(text, **options), vk.maintain(text, engine="reference", **options)
    replica = Replica(live) if seed else None
    for step in range(250):
        relation, count = choose.choice("RS"), choose.choice((1, 1, 2, -1, -1))
        rows = [row(choose, text, relation) for _ in range(choose.choice((1, 1, 4)))]
        for each in (live, reference):
            if len(rows) == 1:
                each.update(relation, rows[0], count)
            else:
                each.update_batch(relation, rows, [count] * len(rows))
        if step % 40 == 7:
            inputs = dict.fromkeys(live.query.inputs, "t1")
            assert dict(live.enumerate(inputs)) == dict(reference.enumerate(inputs))
            if replica is None:
                live.save(tmp_path / f"state {step}")
                live = vk.Maintainer.restore(tmp_path / f"state {step}")
    assert isinstance(live.engine, CompiledEngine)
    live.flush()
    reference.flush()
    assert live.engine.maps == reference.engine.maps
    assert live.engine.coder.kept == size(live) <= len(VALUES) + 4


def row(choose: random.Random, text: str, relation: str) -> tuple[Any, Any]:
    last = choose.randrange(5) if "sum" in text and relation == "R" else choose.choice(VALUES)
    return choose.choice(VALUES), last
