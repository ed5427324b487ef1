"""The benchmarks on skew, at sizes so small that only their working is tested."""

from pathlib import Path

import pytest

pytest.importorskip("numpy")

from bench import skew, tradeoff
from bench.skew import CONTENDERS, DELTA, FAST, LINEAR, RECURSIVE, VIEW_TREE
from bench.tradeoff import ROTATIONS, Setting, Slow, paired_graph, wide_graph

NODES, ROWS, UPDATES = 60, 300, 60


def test_streams_are_the_same_each_time() -> None:
    assert skew.zipf_streams(NODES, ROWS, UPDATES) == skew.zipf_streams(NODES, ROWS, UPDATES)


def test_streams_delete_only_what_is_there() -> None:
    graph, streams = skew.zipf_streams(NODES, ROWS, UPDATES)
    state = skew.Multigraph(graph)
    for relation, row, multiplicity in [change for stream in streams for change in stream]:
        assert multiplicity == 1 or state.copies[relation][row] > 0
        state.copies[relation][row] += multiplicity


def test_new_rows_are_new() -> None:
    source = skew.Zipf(NODES)
    graph = skew.distinct_graph(source, ROWS)
    there = {(name, row) for name, rows in graph.items() for row in rows}
    for relation, row, multiplicity in skew.Multigraph(graph).updates(source, UPDATES, new=True):
        assert ((relation, row) in there) == (multiplicity == -1)
        there ^= {(relation, row)}


@pytest.mark.parametrize("name", ["zipf", "hubs", "uniform", "grid"])
def test_all_strategies_count_the_same(name: str) -> None:
    graph, stream = _workloads()[name]
    counts = set()
    for contender in CONTENDERS:
        live = contender.maintain()
        live.load(graph)
        for change in stream:
            live.update(*change)
        counts.add(live.value())
    assert len(counts) == 1
    assert counts != {0}


def _workloads() -> dict[str, tuple[skew.Graph, list[skew.Change]]]:
    graph, streams = skew.zipf_streams(NODES, ROWS, UPDATES)
    hubs = skew.hub_graph(1000)
    plain = {name: (rows, stream) for name, rows, stream in skew.plain_graphs(ROWS, UPDATES)}
    found = {"zipf": (graph, streams[0]), "hubs": (hubs, skew.hub_streams(hubs)["hub to hub"][:9])}
    return found | plain


@pytest.mark.parametrize("contender", [RECURSIVE, VIEW_TREE], ids=lambda each: each.name)
def test_computed_steps_are_a_close_lower_bound(contender: skew.Contender) -> None:
    graph, streams = skew.zipf_streams(NODES, ROWS, UPDATES)
    computed = skew.computed_steps(contender, graph, streams)
    for cost, least in zip(skew.run(contender, graph, streams), computed, strict=True):
        assert least <= cost.steps < 1.8 * least


def test_hubs_separate_the_strategies() -> None:
    growths = {
        growth.contender.name: growth
        for growth in skew.hub_growth((1000, 4000), _ignore, (DELTA, FAST, LINEAR))
    }
    assert growths[DELTA.name].exponent > 0.9
    assert growths[FAST.name].exponent < 0.6
    assert growths[LINEAR.name].exponent < 0.6


def _ignore(_: str) -> None:
    """In place of a progress bar."""


@pytest.mark.parametrize("epsilon", tradeoff.EPSILONS)
@pytest.mark.parametrize("size", [100, 1000])
def test_families_have_the_size_they_say(epsilon: float, size: int) -> None:
    setting = Setting(size, epsilon)
    slow = Slow.of(setting, (size,)).graph(ROTATIONS[1])
    for graph in (wide_graph(setting), paired_graph(setting), slow):
        assert sum(len(set(rows)) for rows in graph.values()) == size


@pytest.mark.parametrize("space", ["fast", "linear"])
def test_a_point_of_the_trade_off(space: str) -> None:
    point = tradeoff.measure(0.5, space, (300, 1200))
    assert point.update == pytest.approx(0.5, abs=0.2)
    assert point.entries == pytest.approx(1.5 if space == "fast" else 1, abs=0.2)
    assert point.moves > 0


@pytest.mark.slow
def test_commands_print_and_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    hubs, trade = tmp_path / "hubs.svg", tmp_path / "tradeoff.svg"
    small = (
        f"--nodes {NODES} --rows {ROWS} --updates {UPDATES} --share 2 --plain 100 --hubs 300 600"
    )
    skew.main([*small.split(), "--plot", str(hubs)])
    tradeoff.main(["--sizes", "50", "100", "--epsilons", "0", "0.5", "--plot", str(trade)])
    assert "target 3" in capsys.readouterr().out
    for path in (hubs, trade):
        assert "<svg" in path.read_text()
