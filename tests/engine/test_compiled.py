"""The compiled engine against the reference engine: random programs, long runs, 64 bits, values,
tables, files."""

import os
import random
import subprocess
import sys
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.engines import LONG
from tests.engine.streams import WAYS, Database, Replica, assert_equals_recomputation, streams
from tests.engine.test_adaptive import LISTED, TRIANGLE, skewed_stream
from tests.strategies import queries
from viewkeep.engine import switching
from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.engine.compiled.formats import PLAIN
from viewkeep.engine.compiled.llvm import machine
from viewkeep.rings import INTEGERS, MULTISETS, REALS, MatrixRing, ProductRing

STAR = "Q(y) = R(y, x) * S(y, z) * T(y, w)"


@pytest.fixture(scope="module", autouse=True)
def engine():
    """These tests name their engines; code is compiled quickly, since it runs on few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIEWKEEP_OPTIMIZE", "0")
        yield


def both(query: Any, **options: Any) -> tuple[vk.Maintainer, vk.Maintainer]:
    """The same query under each engine."""
    compiled = vk.maintain(query, engine="compiled", **options)
    assert isinstance(compiled.engine, CompiledEngine), compiled.engine_reason
    return compiled, vk.maintain(query, engine="reference", **options)


def assert_same(compiled: vk.Maintainer, reference: vk.Maintainer) -> None:
    """Every map is the same, and heavy values are; this implies the output."""
    assert isinstance(compiled.engine, CompiledEngine)
    assert compiled.sizes() == reference.sizes()
    assert compiled.engine.maps == reference.engine.maps
    assert compiled.partitions() == reference.partitions()


# --- programs -------------------------------------------------------------------------------------


@given(
    query=queries(max_atoms=3, aggregates=False),
    way=st.sampled_from(WAYS),
    data=st.data(),
)
@settings(max_examples=300 if LONG else 40)
def test_random_queries(query, way, data):
    live, database = vk.maintain(query, engine="compiled", **way), Database()
    inputs = dict.fromkeys(query.inputs, 1)
    for update in data.draw(streams(query)):
        live.update(*update)
        assert_equals_recomputation(live, query, database.apply([update]), inputs)
    assert isinstance(live.engine, CompiledEngine)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (STAR, {"strategy": "viewtree"}),
        (STAR, {"strategy": "viewtree", "output": "list"}),
        (STAR, {"strategy": "recursive"}),
        (TRIANGLE, {"strategy": "delta"}),
        (TRIANGLE, {"strategy": "epsilon"}),
        (LISTED, {"strategy": "epsilon"}),
        ("Q(a, c) = R(a, b) * S(b, c)", {"strategy": "epsilon"}),
        ("Q(a; sum(b * c), count()) = R(a, b) * S(a, c)", {"strategy": "viewtree"}),
    ],
    ids=str,
)
def test_a_long_run_equals_the_reference_engine(text, options):
    """Growth, shrinkage and moves, in batches; all maps compared at checkpoints."""
    compiled, reference = both(text, **options)
    listing = text == LISTED
    most = 20 if listing else 120
    rounds = 50 if LONG and not listing else 1
    for seed in range(rounds):
        batch: dict[str, dict[Any, int]] = {}
        for number, (relation, row, count) in enumerate(
            skewed_stream(compiled.query, seed, most * (1 + seed % 5), 40)
        ):
            rows = batch.setdefault(relation, {})
            rows[row] = rows.get(row, 0) + count
            if number % 97 == 0:
                for live in (compiled, reference):
                    for name, rows in batch.items():  # each once: what is heavy goes by order
                        kept = {row: count for row, count in rows.items() if count}
                        live.update_batch(name, list(kept), list(kept.values()))
                batch = {}
                if number % (97 * (1 if rounds == 1 else 40)) == 0:
                    assert_same(compiled, reference)
        assert_same(compiled, reference)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        (STAR, "viewtree"),
        (TRIANGLE, "epsilon"),
        ("Q() = R(a, b, c) * S(b, c, d) * T(c, d, a) * U(d, a, b)", "epsilon"),
    ],
)
def test_code_as_users_have_it_equals_the_reference_engine(monkeypatch, text, strategy):
    """Optimized, and, of the third, with equal blocks shared."""
    monkeypatch.delenv("VIEWKEEP_OPTIMIZE")
    compiled, reference = both(text, strategy=strategy)
    assert compiled.engine.source.main.is_large == (text.count("*") == 3)
    for seed in range(3):
        stream = skewed_stream(compiled.query, seed, 300, 12)
        for number, (relation, row, count) in enumerate(stream):
            compiled.update(relation, row, count)
            reference.update_batch(relation, [row], [count])
            if number % 50 == 0:
                assert_same(compiled, reference)
        assert_same(compiled, reference)


@pytest.mark.skipif(not LONG, reason="a million updates take some minutes")
def test_a_million_updates():
    """Ten thousand batches of a hundred, up to 60,000 tuples and down to nothing."""
    compiled, reference = both(TRIANGLE, strategy="epsilon")
    choose = np.random.default_rng(1)
    present: dict[str, list[tuple[int, int]]] = {name: [] for name in "RST"}
    for step in range(10_000):
        name, growing = "RST"[step % 3], (step // 3_300) % 2 == 0
        if growing or len(present[name]) < 100:
            ends = (300 ** choose.random((100, 2))).astype(int) - 1
            rows, count = list(dict.fromkeys(tuple(row) for row in ends.tolist())), 1
            present[name] += rows
        else:
            gone = Counter(present[name].pop() for _ in range(100))
            rows, count = list(gone), -1
            present[name] += [row for row, n in gone.items() for _ in range(n - 1)]
        for live in (compiled, reference):
            live.update_batch(name, rows, [count] * len(rows))
        if step % 1_000 == 0:
            assert_same(compiled, reference)
    assert_same(compiled, reference)


# --- rings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ring",
    [
        INTEGERS,
        REALS,
        ProductRing(INTEGERS, REALS),
        MatrixRing(("x", "z")),
        MatrixRing(("x", "z"), INTEGERS),
        ProductRing(INTEGERS, MatrixRing(("z",), INTEGERS)),
    ],
    ids=lambda ring: ring.name,
)
@pytest.mark.parametrize("strategy", ["viewtree", "delta", "recursive"])
def test_rings_of_words(ring, strategy):
    compiled, reference = both("Q(y) = R(y, x) * S(y, z)", ring=ring, strategy=strategy)
    choose = random.Random(3)
    for _ in range(200):
        update = (
            choose.choice("RS"),
            (choose.randrange(4), choose.randrange(5)),
            choose.choice((1, 2, -1)),
        )
        for live in (compiled, reference):
            live.update(*update)
    assert compiled.engine.maps == reference.engine.maps
    expected = dict(reference.enumerate())
    found = dict(compiled.enumerate())
    assert found.keys() == expected.keys()
    assert all(ring.equal(found[row], expected[row]) for row in found)


@pytest.mark.parametrize("ring", [INTEGERS, REALS])
def test_numbers_that_are_lifted_as_they_are_come_as_columns(ring):
    query, lifts = "Q(y) = R(y, x) * S(y, z)", {"x": int, "z": float}
    compiled, reference = both(query, ring=ring, lifts=lifts)
    choose = np.random.default_rng(3)
    for _ in range(20):
        for name in "RS":
            rows, counts = choose.integers(-5, 6, (40, 2)), choose.integers(-1, 2, 40)
            compiled.update_batch(name, rows, counts)
            reference.update_batch(name, rows, counts)
        compiled.update("R", (1, 3))
        reference.update("R", (1, 3))
        assert dict(compiled.enumerate()) == dict(reference.enumerate())
    assert (
        compiled._live.runner.engine.batches("R", choose.integers(0, 9, (4, 2)), None) is not None
    )
    for live in (compiled, reference):
        live.update_batch("R", [(1, "12")])  # what `int` makes of a text is its own business
    assert dict(compiled.enumerate()) == dict(reference.enumerate())


def test_other_rings_are_left_to_the_reference_engine():
    live = vk.maintain("Q(a) = R(a, b)", engine="compiled", ring=MULTISETS)
    live.update("R", (1, 2))
    assert dict(live.enumerate()) == {(1,): MULTISETS.one}
    assert "not numbers of 64 bits" in live.engine_reason


def test_sums_of_integers_become_exact_sums_of_floats():
    live = vk.maintain("Q(; sum(b)) = R(a, b) * S(a)", engine="compiled")
    live.update("R", (1, 2))
    live.update("S", (1,))
    assert isinstance(live.engine, CompiledEngine)
    live.update_batch("R", [(1, 0.1), (1, 0.2)])
    assert live.value() == (2.3,)
    assert isinstance(live.engine, CompiledEngine)


# --- 64 bits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("strategy", ["viewtree", "delta", "recursive"])
def test_what_leaves_64_bits_is_an_error_and_changes_nothing(strategy, single):
    live = vk.maintain(
        "Q(a; sum(b)) = R(a, b) * S(a, c)", engine="compiled", output="list", strategy=strategy
    )
    for _ in range(2):
        live.update("R", (1, 2**40))
        live.update("S", (1, 5))
    before, maps = dict(live.enumerate()), dict(live.engine.maps)
    change = (
        (lambda: live.update("S", (1, 6), 2**30))
        if single
        else (lambda: live.update_batch("S", [(1, 7), (2, 8), (1, 6)], [1, 1, 2**30]))
    )
    with pytest.raises(vk.RingError, match="does not fit 64 bits"):
        change()
    assert dict(live.enumerate()) == before
    assert live.engine.maps == maps
    live.update("S", (1, 6), 3)
    assert dict(live.enumerate()) == {(1,): (5 * 2**41,)}


def test_auto_goes_on_where_64_bits_end(monkeypatch):
    monkeypatch.setenv("VIEWKEEP_ENGINE", "compiled")
    live = vk.maintain("Q() = R(a) * S(b)", strategy="delta")
    live.update("R", (1,), 2**40)
    live.update("S", (1,), 2**40)
    assert live.value() == 2**80
    assert "64 bits" in live.engine_reason


def test_updates_in_machine_code_are_those_of_the_method():
    query = "Q(a, c) = R(a, b) * S(b, c)"
    compiled, reference = both(query, strategy="viewtree", output="list")
    name, calls = "".join(["R"]), 0
    for i in range(300):
        for live in (compiled, reference):
            live.update("R", (i % 7, i % 5))
            live.update(name, (i % 3, i % 5), -1)
            live.update("S", (i % 5, i % 4), multiplicity=2)
            live.update(relation="S", row=(i % 5, f"text {i % 3}"))
        if i % 50 == 0:
            assert dict(compiled.enumerate()) == dict(reference.enumerate())
        calls += 4
    assert type(compiled.update).__name__ == "builtin_function_or_method"
    assert 0 < compiled._live.runner.updates < calls


def test_updates_in_machine_code_refuse_what_the_method_refuses():
    live = vk.maintain("Q(a) = R(a, b)", engine="compiled")
    for _ in range(3):
        live.update("R", (1, 2))
    update = live.update
    with pytest.raises(vk.SchemaError, match="R"):
        update("R", (1, 2, 3))
    with pytest.raises(vk.ViewkeepError, match="Z"):
        update("Z", (1, 2))
    with pytest.raises(TypeError):
        update("R")
    with pytest.raises(TypeError):
        update("R", (1, 2), 1, 1)
    assert dict(live.enumerate()) == {(1,): 3}


def test_updating_while_reading_is_noticed_in_machine_code():
    live = vk.maintain("Q(a) = R(a, b)", engine="compiled")
    for i in range(9):
        live.update("R", (i, 2))
    rows = live.enumerate()
    next(rows)
    live.update("R", (1, 2))
    with pytest.raises(vk.ViewkeepError, match="changed"):
        next(rows)


def test_an_update_that_was_taken_out_of_the_maintainer_outlives_its_engine():
    live = vk.maintain("Q() = R(a, b)", engine="auto")
    live._live.runner.compile()
    for _ in range(3):
        live.update("R", (1, 2))
    update = live.update
    live.update("R", (1, 2), 2**62)
    update("R", (1, 2), 2**62)  # leaves 64 bits: the reference engine goes on
    update("R", (5, 5))
    assert live.value() == 4 + 2**63
    assert not live._live.runner.compiled
    heard: list[Any] = []
    other = vk.maintain("Q() = R(a, b)", engine="compiled")
    for _ in range(3):
        other.update("R", (1, 2))
    update = other.update
    other.subscribe(heard.append)
    update("R", (3, 3))
    assert len(heard) == 1


def test_an_output_beyond_64_bits_is_an_error():
    live = vk.maintain("Q() = R(a) * S(b)", strategy="viewtree", engine="compiled")
    live.update("R", (1,), 2**40)
    live.update("R", (2,))
    live.update("S", (1,), 2**20)
    assert live.value() == 2**60 + 2**20
    live.update("S", (2,), 2**30)
    with pytest.raises(vk.RingError, match="64 bits"):
        live.value()


# --- values ---------------------------------------------------------------------------------------

VALUES = [
    *("text", "", date(2020, 1, 2), datetime(2020, 1, 2, 3), Decimal("1.51"), (1, "x"), None),
    *(2**62, -(2**62), 2**100, PLAIN - 1, -PLAIN + 1, 1.5, -0.5, 1e300, b"bytes", Fraction(1, 3)),
]


def test_values_of_all_kinds_come_out_as_they_went_in():
    live = vk.maintain("Q(a, c) = R(a, b) * S(b, c)", engine="compiled")
    for place, value in enumerate(VALUES):
        live.update("R", (place, value))
        live.update("S", (value, place))
    assert dict(live.enumerate()) == {(i, i): 1 for i in range(len(VALUES))}
    for place, value in enumerate(VALUES):
        live.update("S", (value, place), -1)
    assert list(live.enumerate()) == []
    assert live.lookup(("never seen", 1)) == 0


def test_equal_values_of_different_types_are_one():
    live = vk.maintain("Q(a) = R(a, b) * S(b)", engine="compiled")
    for value in (2, 2.0, Decimal(2), Fraction(2), np.int64(2)):
        live.update("R", (1, value))
    live.update("S", (True,))
    live.update("S", (2.0,))
    assert dict(live.enumerate()) == {(1,): 5}


def test_floats_come_out_as_floats():
    live = vk.maintain("Q(a, b) = R(a, b)", engine="compiled")
    live.update_batch("R", pyarrow.table({"a": [1, 2], "b": [2.0, 2.5]}))
    assert sorted(live.enumerate()) == [((1, 2.0), 1), ((2, 2.5), 1)]
    assert {type(b) for (_, b), _ in live.enumerate()} == {float}


@pytest.mark.parametrize(
    "table",
    [
        pyarrow.table({"a": ["x", "y", "x"], "b": [1, 2, 3]}),
        pyarrow.table({"a": [date(2020, 1, 1), None, date(2020, 1, 2)], "b": [1, 2, 3]}),
        pyarrow.table({"a": [Decimal("1.5"), Decimal("2.0"), None], "b": [1.5, 2.0, 0.0]}),
        pyarrow.chunked_array([[1, 2], [3]]),
        pandas.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 3]}),
        pandas.DataFrame({"a": pandas.to_datetime(["2020-01-01"] * 3), "b": [1.5, 2.0, 3.0]}),
        pandas.DataFrame({"a": pandas.Categorical(["x", "y", "x"]), "b": [True, False, True]}),
        np.array([[1, 2], [3, 4], [1, 3]]),
        np.array([[1.0, 2.5], [3.0, 4.0], [1.0, 3.0]]),
        [(1, 2), (3, 4), (1, 3)],
        [(1, "x"), (3, None), (1.5, 3)],
    ],
    ids=lambda table: type(table).__module__.split(".")[0],
)
def test_tables_of_all_kinds(table):
    if isinstance(table, pyarrow.ChunkedArray):
        table = pyarrow.table({"a": table, "b": table})
    compiled, reference = both("Q(a, b) = R(a, b) * S(a)")
    for live in (compiled, reference):
        live.load({"R": table})
        live.update_batch("S", [(row[0],) for row, _ in vk_rows(table)])
        live.update_batch("R", table, [1, 1, -1])
    assert dict(compiled.enumerate()) == dict(reference.enumerate())
    assert compiled.engine.maps == reference.engine.maps


def vk_rows(table: Any) -> list[tuple[Any, int]]:
    """The rows of a table as the reference engine reads them."""
    live = vk.maintain("Q(a, b) = R(a, b)", engine="reference")
    live.update_batch("R", table)
    return list(live.enumerate())


def test_an_atom_that_names_a_variable_twice():
    compiled, reference = both("Q(a) = R(a, b, a) * S(a)")
    rows = np.array([[1, 5, 1], [1, 5, 2], [3, 5, 3]])
    for live in (compiled, reference):
        live.update_batch("R", rows)
        live.update_batch("S", np.array([[1], [3]]), np.array([2, 4]))
    assert dict(compiled.enumerate()) == dict(reference.enumerate()) == {(1,): 2, (3,): 4}


def test_output_as_arrow():
    compiled, reference = both("Q(a, c) = R(a, b) * S(b, c)", strategy="viewtree")
    for live in (compiled, reference):
        live.load(
            {"R": [(i, i % 7) for i in range(50)], "S": [(i % 7, f"c{i}") for i in range(20)]}
        )
    found = [
        pyarrow.Table.from_batches(list(m.enumerate_batches(rows=9))) for m in (compiled, reference)
    ]
    names = ["a", "c", "count"]
    assert all(table.column_names == names for table in found)
    ordered = [table.sort_by([(name, "ascending") for name in names]) for table in found]
    assert ordered[0].to_pylist() == ordered[1].to_pylist()
    sums = vk.maintain("Q(a; sum(b), count()) = R(a, b)", engine="compiled")
    sums.load({"R": [(1, 2), (1, 3)]})
    (batch,) = sums.enumerate_batches()
    assert batch.to_pylist() == [{"a": 1, "sum(b)": 5, "count()": 2}]


@pytest.mark.parametrize("strategy", ["viewtree", "epsilon"])
def test_readings_may_be_interleaved(strategy):
    live = vk.maintain("Q(a, c) = R(a, b) * S(b, c)", engine="compiled", strategy=strategy)
    live.load({"R": [(i, 0) for i in range(40)], "S": [(0, i) for i in range(40)]})
    first, second = live.enumerate(), live.enumerate()
    pairs = list(zip(first, second, strict=True))
    assert len(pairs) == len({row for (row, _), _ in pairs}) == 1600


@pytest.mark.parametrize("strategy", ["viewtree", "delta", "epsilon"])
def test_subscribers_hear_what_changed(strategy):
    live = vk.maintain("Q(a, c) = R(a, b) * S(b, c)", engine="compiled", strategy=strategy)
    replica = Replica(live)
    for update in list(skewed_stream(live.query, 5, 16, 6))[:150]:
        live.update(*update)
    assert replica.content == dict(live.enumerate())
    assert replica.calls > 10


# --- memory, files, code --------------------------------------------------------------------------


def test_memory_of_a_map_of_two_columns():
    """At most 64 bytes for each entry, at any size that a table has left smallness behind."""
    live = vk.maintain(STAR, engine="compiled", strategy="viewtree")
    worst = 0.0
    for start in range(0, 40_000, 500):
        live.update_batch("R", np.column_stack([np.arange(start, start + 500)] * 2))
        if start >= 1_000:
            worst = max(worst, live.memory()["R"] / live.sizes()["R"])
    assert worst <= 64


def test_tables_shrink_again():
    live = vk.maintain(STAR, engine="compiled", strategy="delta")
    rows = np.column_stack([np.arange(5_000) % 50, np.arange(5_000)])
    small = live.memory()
    for sign in (1, -1):
        live.update_batch("R", rows, np.full(5_000, sign))
    after = live.memory()
    assert set(live.sizes().values()) == {0}
    assert after["Result"] == small["Result"]


@pytest.mark.parametrize("text", [STAR, "Q(a, c) = R(a, b) * S(b, c)"])
def test_files_are_mapped_and_stay_as_they_were(tmp_path, text):
    live = vk.maintain(text, engine="compiled")
    relations = live.query.relations
    live.load({name: [(i % 5, f"v{i}") for i in range(60)] for name in relations})
    path = tmp_path / "state.arrow"
    live.save(path)
    content = path.read_bytes()
    assert pyarrow.ipc.open_file(path).num_record_batches > 1
    restored = vk.Maintainer.restore(path)
    assert_same(restored, live)
    for step in range(300):
        for each in (live, restored):
            each.update(relations[0], (step % 9, f"v{step % 70}"), -1 if step % 3 else 1)
    assert_same(restored, live)
    assert path.read_bytes() == content
    path.write_bytes(content[:-20])
    with pytest.raises(vk.ViewkeepError, match="damaged"):
        vk.Maintainer.restore(path)


def test_inputs_that_nothing_reads_need_not_be_kept(tmp_path):
    bare = vk.maintain(STAR, engine="compiled", strategy="viewtree", keep_inputs=False)
    full = vk.maintain(STAR, engine="reference", strategy="viewtree")
    choose = np.random.default_rng(1)
    for live in (bare, full):
        live.load({name: np.array([[1, 2], [1, 3], [2, 2]]) for name in "RST"})
    for _ in range(30):
        name, rows = "RST"[choose.integers(3)], choose.integers(0, 5, (20, 2))
        counts = choose.choice([1, -1], 20)
        for live in (bare, full):
            live.update_batch(name, rows, counts)
    assert dict(bare.enumerate()) == dict(full.enumerate())
    assert [bare.sizes()[name] for name in "RST"] == [0, 0, 0]
    bare.save(tmp_path / "bare.arrow")
    assert dict(vk.Maintainer.restore(tmp_path / "bare.arrow").enumerate()) == dict(
        full.enumerate()
    )
    with pytest.raises(vk.QueryError, match="keep_inputs=True"):
        bare.subscribe(print)


def test_auto_compiles_when_it_pays(monkeypatch):
    monkeypatch.delenv("VIEWKEEP_ENGINE", raising=False)
    monkeypatch.setattr(switching, "WORTHWHILE", 1_000)
    live = vk.maintain("Q(a, c) = R(a, b) * S(b, c)")
    live.load({"R": [(i, i % 9) for i in range(100)]})
    assert not isinstance(live.engine, CompiledEngine)
    live.update_batch("S", [(i % 9, i) for i in range(950)])
    assert isinstance(live.engine, CompiledEngine)
    reference = vk.maintain("Q(a, c) = R(a, b) * S(b, c)", engine="reference")
    reference.load({"R": [(i, i % 9) for i in range(100)], "S": [(i % 9, i) for i in range(950)]})
    assert dict(live.enumerate()) == dict(reference.enumerate())


def test_what_is_not_installed_is_told(monkeypatch):
    monkeypatch.setattr(switching, "NEEDED", ("llvmlite_of_nowhere",))
    with pytest.raises(
        vk.QueryError, match=r"llvmlite_of_nowhere: pip install 'viewkeep\[compiled\]'"
    ):
        vk.maintain(STAR, engine="compiled")
    monkeypatch.setattr(switching, "WORTHWHILE", 0)
    live = vk.maintain(STAR, engine="auto")
    with pytest.warns(UserWarning, match="pure Python: pip install"):
        live.load({"R": [(1, 2)]})
    assert "not installed" in live.engine_reason


SCRIPT = """
import viewkeep as vk
live = vk.maintain("Q(a) = R(a, b) * S(b)", engine="compiled")
live.update("R", (1, 2)); live.update("S", (2,))
print(dict(live.enumerate()))
"""


def test_several_processes_compile_at_once(tmp_path):
    environment = {**os.environ, machine.CACHE_VARIABLE: str(tmp_path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in running] == ["{(1,): 1}"] * 3
    files = list(Path(tmp_path).iterdir())
    assert files
    assert all(file.suffix == ".o" for file in files), "nothing temporary is left"
    for file in files:
        file.write_bytes(file.read_bytes()[:100])
    again = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    assert again.stdout.strip() == "{(1,): 1}", "a file that was cut short is compiled anew"
