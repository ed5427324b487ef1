"""Going over to another engine, at any moment and for any reason, changes no result."""

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.engines import LONG
from tests.engine.streams import WAYS, Database, assert_equals_recomputation, streams
from tests.engine.test_adaptive import LISTED, TRIANGLE
from tests.strategies import queries
from viewkeep.engine import switching
from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.engine.compiled.llvm import machine

SUMS = "Q(a; sum(b)) = R(a, b) * S(a)"


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    """These tests name their engines; code is compiled quickly, since it runs on few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIEWKEEP_OPTIMIZE", "0")
        patch.delenv("VIEWKEEP_ENGINE", raising=False)
        yield


def restored(live: vk.Maintainer, path: Path) -> vk.Maintainer:
    live.save(path)
    return vk.Maintainer.restore(path)


# --- where the compiled engine must stop ----------------------------------------------------------


def _update_both(live: vk.Maintainer, *rows: Any) -> None:
    """Numbers of several kinds, in groups of their own."""
    for row in rows:
        live.update("R", row)


STOPS = {
    "decimal": lambda live: _update_both(live, (1, Decimal("1.5")), (3, 0.5)),
    "float": lambda live: _update_both(live, (1, 0.5), (3, Decimal("1.5"))),
    "long value": lambda live: live.update("R", (1, 2**70)),
    "long sum": lambda live: live.update("R", (1, 2**60), 2**9),
    "long count": lambda live: live.update("R", (1, 1), 2**70),
    "batch": lambda live: live.update_batch("R", [(1, 1), (1, 0.25), (2, Decimal(1))]),
}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("subscribed", [False, True])
def test_what_was_saved_after_the_compiled_engine_stopped_is_restored(
    tmp_path, monkeypatch, stop, subscribed
):
    monkeypatch.setenv("VIEWKEEP_ENGINE", "compiled")
    live, reference = vk.maintain(SUMS), vk.maintain(SUMS, engine="reference")
    for each in (live, reference):
        each.load({"R": [(1, 2), (2, 3)], "S": [(1,), (2,)]})
    assert isinstance(live.engine, CompiledEngine)
    if subscribed:
        live.subscribe(lambda changes: None)
    for each in (live, reference):
        STOPS[stop](each)
    assert live.engine_reason
    live = restored(live, tmp_path / "state")
    assert dict(live.enumerate()) == dict(reference.enumerate())
    assert live.engine_reason
    assert live.engine_reason in live.explain()
    for each in (live, reference):
        each.update("R", (2, 7), -1)
        each.update("S", (1,), 3)
    assert dict(live.enumerate()) == dict(reference.enumerate())


@pytest.mark.parametrize("stop", ["decimal", "long value"])
def test_an_engine_that_was_asked_for_and_stopped_is_restored(tmp_path, stop):
    live = vk.maintain(SUMS, engine="compiled")
    live.update("S", (1,))
    STOPS[stop](live)
    again = restored(live, tmp_path / "state")
    assert dict(again.enumerate()) == dict(live.enumerate())
    assert again.engine_reason == live.engine_reason != ""


def test_rows_that_were_not_kept_are_named_where_the_reference_engine_would_need_them():
    live = vk.maintain("Q(a; sum(b)) = R(a, b)", keep_inputs=False)
    live.update("R", (1, 2))
    with pytest.raises(vk.RingError, match=r"decimals after integers.*rows of R were not kept"):
        live.update("R", (1, Decimal("0.5")))
    live.update("R", (1, 3))
    assert dict(live.enumerate()) == {(1,): (5,)}


# --- where it cannot start ------------------------------------------------------------------------


def break_llvm(*arguments: Any) -> None:
    raise RuntimeError("LLVM is out of order")


def test_a_failed_compilation_leaves_the_reference_engine_running(monkeypatch):
    monkeypatch.setattr(switching, "WORTHWHILE", 5)
    monkeypatch.setattr(machine, "load", break_llvm)
    live = vk.maintain("Q(a) = R(a, b) * S(b)")
    with pytest.warns(UserWarning, match="LLVM is out of order"):
        live.update_batch("R", [(i, i) for i in range(6)])
    for i in range(6):
        live.update("S", (i,))
    assert dict(live.enumerate()) == {(i,): 1 for i in range(6)}
    assert "LLVM is out of order" in live.engine_reason
    assert live.engine_reason in live.explain()


def test_a_failed_move_leaves_the_reference_engine_running(monkeypatch):
    def refuse(*arguments: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(switching, "WORTHWHILE", 5)
    monkeypatch.setattr(CompiledEngine, "load", refuse)
    live = vk.maintain("Q(a) = R(a, b) * S(b)")
    live.update_batch("R", [(1, 2)])
    with pytest.warns(UserWarning, match="no room"):
        live.update_batch("S", [(2,), (2,), (3,), (4,)])
    assert dict(live.enumerate()) == {(1,): 2}
    assert "no room" in live.engine_reason


def test_code_for_subscribers_that_cannot_be_compiled_leaves_the_reference_engine_running(
    monkeypatch,
):
    live, heard = vk.maintain("Q(a) = R(a, b) * S(b)", engine="compiled"), []
    live.update("R", (1, 2))
    live.subscribe(heard.append)
    monkeypatch.setattr(machine, "load", break_llvm)
    live.update("S", (2,))
    assert heard == [[vk.OutputChange((1,), None, 1)]]
    assert "LLVM is out of order" in live.engine_reason


@pytest.mark.parametrize("multiplicity", [1, 2**70])
def test_the_single_update_that_makes_compiling_pay(monkeypatch, multiplicity):
    """It goes to the engine that runs from then on, which may have to refuse it."""
    monkeypatch.setattr(switching, "WORTHWHILE", 4096)
    live = vk.maintain("Q(a) = R(a, b) * R(b, c)")
    for i in range(4095):
        live.update("R", (0, i % 7))
    live.update("R", (0, 0), multiplicity)
    assert isinstance(live.engine, CompiledEngine) == (multiplicity == 1)
    reference = vk.maintain("Q(a) = R(a, b) * R(b, c)", engine="reference")
    reference.load({"R": [(0, i % 7) for i in range(4095)]})
    reference.update("R", (0, 0), multiplicity)
    assert dict(live.enumerate()) == dict(reference.enumerate())


# --- every shape of query -------------------------------------------------------------------------

SHAPES = [
    "Q(| a; sum(a)) = R(a) * S(a)",
    "Q(b | a; sum(a * c), count()) = R(a, b) * S(b, c)",
    "Q(| a, b) = R(a, b) * S(b, c)",
    "Q(c | a) = R(a, b) * S(b, c)",
    "Q(; sum(a * a)) = R(a, a)",
    "Q(a; avg(b), sum(2 * b + 1)) = R(a, b) * S(a)",
    "Q(a; min(b), max(b)) = R(a, b)",
    "Q() = R(a) * S(b)",
    "Q(a, c) = R(a, b) * R(b, c) * S(c)",
    TRIANGLE,
    LISTED,
]


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize("strategy", ["auto", "viewtree", "delta", "epsilon"])
def test_shapes_compile_or_say_why_not(monkeypatch, text, strategy):
    monkeypatch.setattr(switching, "WORTHWHILE", 20)
    try:
        live = vk.maintain(text, strategy=strategy)
    except vk.QueryError:
        pytest.skip("this strategy does not take the query")
    assert_goes_over(live, random.Random(1), 60)


@given(query=queries(max_atoms=3), way=st.sampled_from(WAYS), data=st.data())
@settings(max_examples=300 if LONG else 30)
def test_random_queries_compile_or_say_why_not(query, way, data):
    """Warnings are errors here, so a compilation that fails for no good reason is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(switching, "WORTHWHILE", 3)
        live, database = vk.maintain(query, **way), Database()
        inputs = dict.fromkeys(query.inputs, 1)
        for update in data.draw(streams(query)):
            live.update_batch(update[0], [update[1]], [update[2]])
            assert_equals_recomputation(live, query, database.apply([update]), inputs)
        live.load({query.relations[0]: []})
        live._live.runner.note(3)
        assert isinstance(live.engine, CompiledEngine) or live.engine_reason
        assert_equals_recomputation(live, query, database, inputs)


def assert_goes_over(live: vk.Maintainer, choose: random.Random, updates: int) -> None:
    database = Database()
    for number in range(updates):
        relation = choose.choice(live.query.relations)
        arity = len(live.query.columns_of(relation))
        row = tuple(choose.randrange(4) for _ in range(arity))
        live.update_batch(relation, [row])
        database.apply([(relation, row, 1)])
        if number % 10 == 0:
            inputs = dict.fromkeys(live.query.inputs, 1)
            assert_equals_recomputation(live, live.query, database, inputs)
    assert isinstance(live.engine, CompiledEngine) or live.engine_reason
    assert_equals_recomputation(live, live.query, database, dict.fromkeys(live.query.inputs, 1))


# --- random histories -----------------------------------------------------------------------------

HISTORIES = [
    ("Q(a, c) = R(a, b) * S(b, c)", "viewtree"),
    ("Q(a, c) = R(a, b) * S(b, c)", "epsilon"),
    ("Q(a; sum(b), count()) = R(a, b) * S(a, c)", "viewtree"),
    ("Q(c | a; sum(b)) = R(a, b) * S(b, c)", "auto"),
    ("Q() = R(a, b) * R(b, c)", "delta"),
]
ODD = (0, 1, 2, 3, 2**61, -(2**63), 2**100, "x", "y", Decimal("0.5"), Decimal(2), 0.25, 2.0, None)


def values() -> st.SearchStrategy[Any]:
    """Mostly small integers, so that rows join."""
    return st.one_of(st.sampled_from(ODD[:4]), st.sampled_from(ODD[:4]), st.sampled_from(ODD))


rows = st.tuples(values(), values())
counts = st.sampled_from((1, 1, 1, 2, -1, 2**40, 2**65))
actions = st.one_of(
    st.tuples(st.just("update"), st.sampled_from("RS"), rows, counts),
    st.tuples(
        st.just("batch"), st.sampled_from("RS"), st.lists(st.tuples(rows, counts), max_size=4)
    ),
    st.tuples(st.just("save")),
    st.tuples(st.just("compile")),
    st.tuples(st.just("read")),
)


@given(
    history=st.sampled_from(HISTORIES),
    start=st.sampled_from(("auto", "env", "compiled")),
    stream=st.lists(actions, max_size=25),
)
@settings(max_examples=500 if LONG else 150)
def test_any_history_is_that_of_the_reference_engine(history, start, stream, tmp_path_factory):
    """Fallbacks, files and compilations at random moments; what one engine refuses, both do."""
    text, strategy = history
    path = tmp_path_factory.mktemp("state") / "state"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(switching, "WORTHWHILE", 6)
        if start == "env":
            patch.setenv("VIEWKEEP_ENGINE", "compiled")
        asked = "compiled" if start == "compiled" else "auto"
        live = vk.maintain(text, strategy=strategy, engine=asked)
        reference = vk.maintain(text, strategy=strategy, engine="reference")
        for action in stream:
            live = run(live, reference, action, path)
        assert_reads_alike(live, reference)


def run(live: vk.Maintainer, reference: vk.Maintainer, action: Any, path: Path) -> vk.Maintainer:
    match action:
        case ("save",):
            return restored(live, path)
        case ("compile",):
            live._live.runner.compile() if not live._live.runner.compiled else None
        case ("read",):
            assert_reads_alike(live, reference)
        case ("update", relation, row, count):
            both(live, reference, lambda each: each.update(relation, row, count))
        case ("batch", relation, changes):
            found, many = [row for row, _ in changes], [count for _, count in changes]
            both(live, reference, lambda each: each.update_batch(relation, found, many))
    return live


def both(live: vk.Maintainer, reference: vk.Maintainer, change: Any) -> None:
    """The change for both, unless 64 bits that were asked for end."""
    problem = problem_of(lambda: change(live))
    if "64 bits" not in problem:
        assert problem_of(lambda: change(reference)) == problem


def problem_of(action: Any) -> str:
    try:
        action()
    except vk.ViewkeepError as error:
        return str(error)
    return ""


def assert_reads_alike(live: vk.Maintainer, reference: vk.Maintainer) -> None:
    inputs = dict.fromkeys(live.query.inputs, 1)
    found: dict[Any, Any] = {}
    problem = problem_of(lambda: found.update(live.enumerate(inputs)))
    if "64 bits" not in problem:
        assert found == dict(reference.enumerate(inputs))
    assert live.sizes().keys() == reference.sizes().keys()
