"""Texts as keys: codes straight from Arrow's buffers, forgotten when no row holds them."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import viewkeep as vk
from tests.engine.engines import LONG
from tests.engine.streams import Replica
from viewkeep.engine.compiled import texts as dictionary
from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.engine.compiled.formats import INTEGERS, MIXED, PLAIN, TEXTS
from viewkeep.engine.compiled.texts import Texts

JOIN = "Q(c; count(), sum(n)) = O(o, c) * L(o, n)"
TURNS, STEPS = (50, 1_000) if LONG else (8, 150)


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    """These tests name their engines; code is compiled quickly, since it runs on few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIEWKEEP_OPTIMIZE", "0")
        yield


def coder(live: vk.Maintainer) -> Any:
    assert isinstance(live.engine, CompiledEngine), live.engine_reason
    return live.engine.coder


def some_text(choose: random.Random) -> str | None:
    long = "x" * choose.randrange(20) + str(choose.randrange(9))
    return choose.choice(["", f"é{choose.randrange(9)}", "a\0b", "\U0001f600", long, None])


def test_texts_and_their_codes():
    texts, known = Texts(), dict[str, int]()
    choose = random.Random(3)
    for turn in range(6):
        new = [f"{turn} {'y' * choose.randrange(40)} {i}" for i in range(300)]
        codes = texts.code_arrow(pa.array(["cut off", *new, None])[1:])
        assert codes[-1] == dictionary.NULL
        known |= dict(zip(new, codes[:-1].tolist(), strict=True))
        assert len(set(known.values())) == len(known) == len(texts)
        assert texts.values(codes[:-1]) == new
        assert all(texts.find(text) == code == texts.code(text) for text, code in known.items())
        known = {text: code for text, code in known.items() if choose.random() < 0.5}
        kept = [PLAIN + i in set(known.values()) for i in range(texts.places)]
        texts.keep(dictionary.np.array(kept))
        assert len(texts) == len(known)
        assert texts.find(new[0]) == known.get(new[0])
    assert texts.places <= 900, "places of texts that are gone are used again"


@pytest.mark.parametrize("seed", range(2))
def test_every_update_gives_what_the_reference_engine_gives(seed, tmp_path):
    choose = random.Random(seed)
    live, reference = (vk.maintain(JOIN, engine=each) for each in ("compiled", "reference"))
    replica = Replica(live) if seed else None
    present: dict[str, list[tuple[Any, Any]]] = {"O": [], "L": []}
    for step in range(STEPS):
        relation, size = choose.choice("OL"), choose.choice((1, 1, 4, 20))
        rows = [
            (some_text(choose), some_text(choose) if relation == "O" else choose.randrange(5))
            for _ in range(size)
        ]
        gone = choose.sample(present[relation], min(len(present[relation]), size // 2))
        present[relation] += rows
        for row in gone:
            present[relation].remove(row)
        counts = [1] * size + [-1] * len(gone)
        if size == 1:
            live.update(relation, rows[0])
        else:
            arrays = [pa.array(list(column)) for column in zip(*rows, *gone, strict=True)]
            table = pa.Table.from_arrays(arrays, ["first", "second"])
            live.update_batch(relation, choose.choice((table, rows + gone)), counts)
        reference.update_batch(relation, rows + gone, counts)
        expected = dict(reference.enumerate())
        assert dict(live.enumerate()) == expected
        assert replica is None or replica.content == expected
        if step % 40 == 0:
            coder(live) and live.engine.forget_unused()  # type: ignore[union-attr]
        if step == STEPS // 2 and replica is None:
            live.save(tmp_path / "state")
            live = vk.Maintainer.restore(tmp_path / "state")
    assert [coder(live).domains[v].format for v in "ocn"] == [TEXTS, TEXTS, INTEGERS]
    shown = {row[0]: row[1:] for row in live.to_arrow().to_pylist() and _rows(live.to_arrow())}
    assert shown == {row[0]: payload for row, payload in expected.items()}


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*table.to_pydict().values(), strict=True))


def test_turnovers_of_fresh_texts_leave_memory_flat():
    live = vk.maintain("Q(c) = O(o, c) * L(o, n)", engine="compiled", strategy="viewtree")
    live.update_batch("O", [("kept", "c")])
    sizes = []
    for turn in range(TURNS):
        rows = pa.table({"o": [f"{turn}.{i}" for i in range(3_000)], "n": [1] * 3_000})
        live.update_batch("L", rows)
        live.update_batch("L", rows, [-1] * len(rows))
        words = coder(live).texts.words
        sizes.append(int(words[dictionary.SPACE] + 16 * words[dictionary.ROOM]))
    assert max(sizes) == max(sizes[:4])
    live.update("L", ("kept", 1))
    assert dict(live.enumerate()) == {("c",): 1}


def test_single_rows_of_texts_need_no_python(monkeypatch):
    live = vk.maintain("Q(c) = O(o, c) * L(o, n)", engine="compiled", strategy="viewtree")
    for i in range(600):
        live.update("O", (f"o{i}", f"c{i % 7}"))
    for i in range(600):
        live.update("L", (f"o{i}", i))
    before = live._live.runner.updates
    for i in range(600):
        live.update("L", (f"o{i}", 1))
    assert live._live.runner.updates == before + 600
    for odd in ((5, 1), (None, 1), ("\ud800", 1), ("o1", "text")):
        live.update("L", odd)
    assert sum(dict(live.enumerate()).values()) == 1_201
    assert coder(live).domains["o"].format == MIXED


def test_single_rows_of_fresh_texts_do_not_pile_up():
    live = vk.maintain("Q(o) = L(o, n)", engine="compiled", strategy="viewtree")
    for i in range(30_000):
        live.update("L", (f"text {i}", 1))
        live.update("L", (f"text {i}", 1), -1)
    assert len(coder(live)) < 12_000


def resident() -> int:
    """Bytes of memory that the process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from Linux")
@pytest.mark.parametrize("text", ["Q(a) = R(a, b)", "Q(a; min(b), count_distinct(b)) = R(a, b)"])
def test_fifty_turnovers_of_new_texts_leave_memory_as_it_was(text):
    rows = 20_000 if LONG else 4_000
    live, sizes = vk.maintain(text, engine="compiled"), []
    for turn in range(50):
        names = [f"{turn}.{number:0>40}" for number in range(rows)]
        table = pa.table({"a": names, "b": names[::-1]})
        live.update_batch("R", table)
        live.update_batch("R", table, [-1] * rows)
        sizes.append(resident())
    # Forty turns bring 80 bytes a row: a third of that would be seen.
    assert max(sizes[10:]) - sizes[10] < max(40 * rows * 80 // 10, 4 << 20)
    assert not list(live.enumerate())
