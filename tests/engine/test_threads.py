"""Threads that share a maintainer take turns: nothing is lost, and nobody waits for ever."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import viewkeep as vk
from tests.engine.streams import Replica
from viewkeep.graph import TriangleCounter

JOIN = "Q(a, c) = R(a, b) * S(b, c)"
THREADS, ROUNDS = 4, 150


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Threads are interrupted as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*work: Callable[[], None]) -> None:
    """Run in threads of their own, and raise what they raise; none may hang."""
    errors: list[BaseException] = []

    def run(action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def changes(live: Any, name: Callable[[int], Any] = lambda i: i % 5) -> Callable[[], None]:
    """Single updates and batches whose sum is known."""

    def work() -> None:
        for i in range(ROUNDS):
            live.update("R", (i % 7, name(i)))
            live.update("S", (name(i), i % 4), 2)
            live.update_batch("R", [(i % 3, name(i)), (i % 7, name(i))], [3, -1])

    return work


def expected(name: Callable[[int], Any] = lambda i: i % 5) -> dict[Any, int]:
    live = vk.maintain(JOIN, engine="reference")
    for _ in range(THREADS):
        changes(live, name)()
    return dict(live.enumerate())


WAYS = [
    {"strategy": "viewtree", "output": "list"},
    {"strategy": "viewtree"},
    {"strategy": "epsilon"},
    {"strategy": "delta", "mode": "lazy"},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
def test_no_update_is_lost(way):
    live = vk.maintain(JOIN, **way)
    together(*[changes(live)] * THREADS)
    assert dict(live.enumerate()) == expected()


def test_no_update_is_lost_when_the_compiled_engine_stops():
    """One thread in 64 bits that end, while the others update in machine code."""
    live = vk.maintain(JOIN, strategy="viewtree", output="list")
    changes(live)()
    done = threading.Event()

    def overflow() -> None:
        live.update("R", (0, 0), 2**61)
        for _ in range(20):
            live.update("S", (0, 0), 2**61)
            live.update("S", (0, 0), -(2**61))
        done.set()

    together(overflow, *[changes(live)] * (THREADS - 1))
    assert done.is_set()
    live.update("R", (0, 0), -(2**61))
    assert dict(live.enumerate()) == expected()


def test_values_of_all_kinds_from_several_threads():
    def name(i: int) -> Any:
        return (i % 5, f"text {i % 3}", 2**70, 0.5)[i % 4]

    live = vk.maintain(JOIN)
    together(*[changes(live, name)] * THREADS)
    assert dict(live.enumerate()) == expected(name)


def test_readers_see_a_state_that_was_there_or_are_told_to_start_anew(tmp_path):
    """Every state has as many rows on the left as on the right."""
    live = vk.maintain("Q(a, b) = T(a, b)")
    stop = threading.Event()

    def write() -> None:
        for i in range(400):
            live.update_batch("T", [("left", i), ("right", i)])
        stop.set()

    def read() -> None:
        while not stop.is_set():
            with suppress(vk.ViewkeepError):
                rows = Counter(row[0] for row, _ in live.enumerate())
                assert rows["left"] == rows["right"]
            live.lookup(("left", 3))
            sum(live.sizes().values())

    def save() -> None:
        while not stop.is_set():
            live.save(tmp_path / "state")
            rows = Counter(
                row[0] for row, _ in vk.Maintainer.restore(tmp_path / "state").enumerate()
            )
            assert rows["left"] == rows["right"]

    together(write, read, save)
    assert len(dict(live.enumerate())) == 800


def test_a_batch_that_is_read_while_the_data_changes_is_refused():
    live = vk.maintain("Q(a) = R(a)")
    live.load({"R": [(i,) for i in range(100)]})
    batches = live.enumerate_batches(rows=10)
    next(batches)
    live.update("R", (5,))
    with pytest.raises(vk.ViewkeepError, match="start a new one"):
        next(batches)


# --- subscribers ----------------------------------------------------------------------------------


def test_subscribers_hear_everything_in_order_from_all_threads():
    live = vk.maintain(JOIN)
    replica = Replica(live)
    together(*[changes(live)] * 2)
    assert replica.content == dict(live.enumerate())


def test_a_callback_may_update_and_read_and_all_hear_the_changes_in_order():
    live = vk.maintain("Q(a) = R(a)")
    first: list[Any] = []

    def again(told: list[vk.OutputChange]) -> None:
        first.extend(change.row[0] for change in told)
        assert all(live.lookup(change.row) == change.after for change in told)
        if told[0].row[0] < 5:
            live.update("R", (told[0].row[0] + 1,))

    live.subscribe(again)
    replica = Replica(live)
    live.update("R", (0,))
    assert first == [0, 1, 2, 3, 4, 5]
    assert replica.content == dict(live.enumerate())


def test_a_callback_may_wait_for_another_thread_that_reads_and_updates():
    live, found = vk.maintain("Q(a) = R(a)"), []

    def wait(told: list[vk.OutputChange]) -> None:
        def other() -> None:
            found.append(live.lookup(told[0].row))
            if told[0].row == (1,):
                live.update("R", (2,))

        together(other)

    live.subscribe(wait)
    together(lambda: live.update("R", (1,)))
    assert found == [1, 1]


def test_everyone_is_told_even_if_one_raises():
    live, heard = vk.maintain("Q(a) = R(a)"), []

    def fail(told: list[vk.OutputChange]) -> None:
        raise ValueError("not today")

    live.subscribe(fail)
    live.subscribe(heard.append)
    for i in range(2):
        with pytest.raises(ValueError, match="not today"):
            live.update("R", (i,))
    assert [told[0].row for told in heard] == [(0,), (1,)]


# --- several queries, and graphs ------------------------------------------------------------------


def test_no_update_of_a_workload_is_lost():
    texts = ["Q1(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)", "Q2(a, b, c) = R(a, b) * S(b, c)"]
    work = vk.maintain(texts)

    def write() -> None:
        for i in range(40):
            work.update("R", (i % 3, i % 2))
            work.update("S", (i % 2, i % 4))
            work.update("T", (i % 4, 1))

    def read() -> None:
        for _ in range(20):
            with suppress(vk.ViewkeepError):
                list(work["Q1"].enumerate())
            work["Q2"].lookup((0, 0, 0))

    together(write, write, read)
    alone = vk.maintain(texts)
    write_twice = [("R", lambda i: (i % 3, i % 2)), ("S", lambda i: (i % 2, i % 4))]
    for relation, row in [*write_twice, ("T", lambda i: (i % 4, 1))]:
        alone.update_batch(relation, [row(i) for i in range(40)] * 2)
    for name in ("Q1", "Q2"):
        assert dict(work[name].enumerate()) == dict(alone[name].enumerate())


def test_no_edge_of_a_graph_is_lost():
    graph = TriangleCounter()

    def write(shift: int) -> None:
        for u in range(9):
            for v in range(u):
                graph.add(u, v)
                graph.add(u + shift, v + shift)
                graph.remove(u, v)

    together(*(lambda shift=10 * k: write(shift) for k in range(1, 4)))
    assert graph.count == 3 * 84
    assert len(graph) == len(graph.edges) == 3 * 36
    assert graph.clustering == 1
