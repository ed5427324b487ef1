"""Triangle counts on skewed data: steps and time of an update, by strategy.

Zipf graphs, hubs that are joined to everything, and, to be fair, sparse graphs without skew, where
first-order deltas win. Run with `python -m bench.skew`; `--help` lists the sizes.
"""

import argparse
import gc
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

import viewkeep as vk
from bench._cases import TRIANGLE
from bench._families import Change, Row
from bench.bounds import exponent

RELATIONS = ("R", "S", "T")
NEXT = {"R": "S", "S": "T", "T": "R"}
"""R(a, b) meets S in b, S(b, c) meets T in c, and T(c, a) meets R in a."""

Graph = dict[str, list[Row]]
"""The rows of each relation."""

Show = Callable[[str], None]
"""Tells what is being measured."""

MOST_PAIRS = 6_000_000
"""Views that are joins of two relations are filled up to so many pairs of rows."""


@dataclass(frozen=True)
class Contender:
    """A way to maintain the count, with the views it keeps: joins of a relation and its next.

    Each entry of a view that an update changes takes so many steps at least.
    """

    name: str
    options: Mapping[str, Any]
    views: tuple[str, ...] = ()
    steps: int = 0

    def maintain(self) -> vk.Maintainer:
        """The count, still of nothing."""
        return vk.maintain(TRIANGLE, engine="reference", **self.options)

    def pairs(self, graph: Graph) -> int:
        """How many pairs of rows its views have to join."""
        return sum(pairs(graph, left) for left in self.views)


DELTA = Contender("delta", {"strategy": "delta"})
FAST = Contender("epsilon", {"strategy": "epsilon", "space": "fast"})
LINEAR = Contender("epsilon, linear", {"strategy": "epsilon", "space": "linear"})
RECURSIVE = Contender("recursive", {"strategy": "recursive"}, RELATIONS, steps=2)
VIEW_TREE = Contender("viewtree", {"strategy": "viewtree"}, ("S",), steps=3)
CONTENDERS = (DELTA, FAST, LINEAR, RECURSIVE, VIEW_TREE)


def pairs(graph: Graph, left: str) -> int:
    """The size of the join of a relation and its next one: sum over b of deg_R(b) * deg_S(b)."""
    coming = Counter(row[1] for row in graph[left])
    going = Counter(row[0] for row in graph[NEXT[left]])
    return sum(count * going[value] for value, count in coming.items())


@dataclass(frozen=True)
class Cost:
    """What a contender took for a stream of updates after loading."""

    load: float
    steps: float
    microseconds: float
    entries: int


def run(contender: Contender, graph: Graph, streams: Iterable[list[Change]]) -> list[Cost]:
    """Load the graph, then run the streams one after another."""
    live = contender.maintain()
    start = time.process_time()
    live.load(graph)
    load = time.process_time() - start
    found = []
    for stream in streams:
        steps, start = live.steps, time.process_time()
        for relation, row, multiplicity in stream:
            live.update(relation, row, multiplicity)
        seconds = time.process_time() - start
        entries, count = sum(live.sizes().values()), len(stream)
        found.append(Cost(load, (live.steps - steps) / count, 1e6 * seconds / count, entries))
    del live
    gc.collect()
    return found


# --- streams --------------------------------------------------------------------------------------


class Zipf:
    """Pairs of nodes, both ends drawn with probability proportional to 1 / rank^s."""

    def __init__(self, nodes: int, s: float = 1.1, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        weights = np.arange(1, nodes + 1) ** -s
        self._below = np.cumsum(weights / weights.sum())

    def rows(self, count: int) -> Iterator[Row]:
        """So many draws; a pair may come again."""
        ends = np.searchsorted(self._below, self._random.random((count, 2)))
        return ((a, b) for a, b in ends.clip(max=len(self._below) - 1).tolist())


class Uniform:
    """Pairs of nodes, all equally likely."""

    def __init__(self, nodes: int, seed: int = 0) -> None:
        self._random, self._nodes = np.random.default_rng(seed), nodes

    def rows(self, count: int) -> Iterator[Row]:
        """So many draws."""
        return ((a, b) for a, b in self._random.integers(self._nodes, size=(count, 2)).tolist())


class Multigraph:
    """How many copies of each row there are, and the rows in an order to choose from."""

    def __init__(self, graph: Graph, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self.copies = {name: Counter(rows) for name, rows in graph.items()}
        self._rows = {name: list(copies) for name, copies in self.copies.items()}

    def updates(self, source: Zipf | Uniform, count: int, new: bool) -> list[Change]:
        """80% inserts, 20% deletes of a row that is there, each of a relation at random."""
        drawn, found = self._draws(source, new), []
        for name, inserts in zip(*self._choices(count), strict=True):
            relation = RELATIONS[name]
            row = drawn(relation) if inserts else self._present(relation)
            self._apply(relation, row, 1 if inserts else -1)
            found.append((relation, row, 1 if inserts else -1))
        return found

    def _choices(self, count: int) -> tuple[list[int], list[bool]]:
        inserts = self._random.random(count) < 0.8
        return self._random.integers(3, size=count).tolist(), inserts.tolist()

    def _draws(self, source: Zipf | Uniform, new: bool) -> Any:
        def endless() -> Iterator[Row]:
            while True:
                yield from source.rows(10_000)

        rows = endless()
        return lambda relation: next(r for r in rows if not new or r not in self.copies[relation])

    def _present(self, relation: str) -> Row:
        rows = self._rows[relation]
        while True:  # rows that have gone leave their place when they are met
            place = int(self._random.integers(len(rows)))
            if rows[place] in self.copies[relation]:
                return rows[place]
            rows[place] = rows[-1]
            rows.pop()

    def _apply(self, relation: str, row: Row, multiplicity: int) -> None:
        copies = self.copies[relation]
        if row not in copies:
            self._rows[relation].append(row)
        copies[row] += multiplicity
        if not copies[row]:
            del copies[row]


def distinct_graph(source: Zipf | Uniform, size: int) -> Graph:
    """The first rows that the source draws, so many in each relation, each once."""
    graph: Graph = {}
    for relation in RELATIONS:
        rows: dict[Row, None] = {}
        while len(rows) < size:
            rows.update(dict.fromkeys(source.rows(size)))
        graph[relation] = list(rows)[:size]
    return graph


def grid_graph(side: int) -> Graph:
    """A square grid with a diagonal in each cell, the edges directed along small triangles."""
    cells = [(x * side + y) for x in range(side - 1) for y in range(side - 1)]
    edges = [(c, c + side) for c in cells] + [(c + side, c + side + 1) for c in cells]
    edges += [(c + side + 1, c) for c in cells]
    return {relation: list(edges) for relation in RELATIONS}


def toggles(rows: Iterable[tuple[str, Row]], graph: Graph) -> list[Change]:
    """Each row deleted and inserted again, or the other way round."""
    there = {(relation, row) for relation in graph for row in graph[relation]}
    return [
        (relation, row, sign if (relation, row) not in there else -sign)
        for relation, row in rows
        for sign in (1, -1)
    ]


# --- a. Zipf graphs -------------------------------------------------------------------------------

STREAMS = {"as drawn": False, "new rows only": True}
"""Frequent pairs are there already: as drawn, they get more copies; or they are drawn again."""


def zipf_streams(nodes: int, size: int, updates: int) -> tuple[Graph, list[list[Change]]]:
    """A graph, and for each kind a stream that goes on where the one before ended."""
    source = Zipf(nodes)
    graph = distinct_graph(source, size)
    state = Multigraph(graph)
    return graph, [state.updates(source, updates, new) for new in STREAMS.values()]


def computed_steps(contender: Contender, graph: Graph, streams: list[list[Change]]) -> list[float]:
    """Steps that an update takes at least: each entry of the lists to go through, and its view.

    An update of R(a, b) changes the view of R and S for all c in S(b, c), and that of T and R for
    all c in T(c, a).
    """
    copies = {name: Counter(rows) for name, rows in graph.items()}
    degrees = Counter(
        (name, end, row[end]) for name in graph for row in graph[name] for end in (0, 1)
    )
    found = []
    for stream in streams:
        steps = 0
        for name, row, multiplicity in stream:
            steps += contender.steps * _partners(contender.views, degrees, name, row)
            before, after = copies[name][row], copies[name][row] + multiplicity
            copies[name][row] = after
            for end in (0, 1):
                degrees[name, end, row[end]] += bool(after) - bool(before)
        found.append(steps / len(stream))
    return found


def _partners(views: Sequence[str], degrees: Counter[Any], name: str, row: Row) -> int:
    previous = next(each for each in RELATIONS if NEXT[each] == name)
    onward = degrees[NEXT[name], 0, row[1]] if name in views else 0
    return onward + (degrees[previous, 1, row[0]] if previous in views else 0)


@dataclass
class Line:
    """A line of the table of one stream."""

    size: int
    contender: str
    cost: Cost | None
    computed: float

    @property
    def steps(self) -> float:
        """As measured, or else as computed."""
        return self.cost.steps if self.cost else self.computed


def zipf_lines(
    nodes: int, size: int, updates: int, show: Show, share: int
) -> dict[str, list[Line]]:
    """All contenders at a share of the size; at full size those that fit, the others computed."""
    found: dict[str, list[Line]] = {stream: [] for stream in STREAMS}
    for part in (share, 1):
        graph, streams = zipf_streams(nodes // part, size // part, updates)
        for contender in CONTENDERS:
            show(f"Zipf, {size // part:,} rows: {contender.name}")
            lines = _zipf_costs(contender, graph, streams)
            for stream, figures in zip(STREAMS, lines, strict=True):
                found[stream].append(Line(size // part, contender.name, *figures))
    return found


def _zipf_costs(
    contender: Contender, graph: Graph, streams: list[list[Change]]
) -> list[tuple[Cost | None, float]]:
    fits = contender.pairs(graph) <= MOST_PAIRS
    costs = run(contender, graph, streams) if fits else [None] * len(streams)
    return list(zip(costs, computed_steps(contender, graph, streams), strict=True))


COLUMNS = (
    "rows each",
    "strategy",
    "load s",
    "steps",
    "computed",
    "us",
    "steps ratio",
    "us ratio",
    "entries",
)


def zipf_table(title: str, lines: Sequence[Line]) -> Table:
    """Steps, time and space; ratios are to epsilon at the same size."""
    shown = _table(title, COLUMNS)
    for line in lines:
        base = next(x for x in lines if (x.size, x.contender) == (line.size, FAST.name))
        ratio, cost = f"{line.steps / base.steps:.2f}", line.cost
        load, steps, time_, slower, entries = ("-",) * 5
        if cost and base.cost:
            load, steps, time_ = _figures(cost)
            slower = f"{cost.microseconds / base.cost.microseconds:.2f}"
            entries = f"{cost.entries:,}"
        computed = f">= {line.computed:,.0f}" if line.computed else ""
        cells = (load, steps, computed, time_, ratio, slower, entries)
        shown.add_row(f"{line.size:,}", line.contender, *cells)
    return shown


def _figures(cost: Cost) -> tuple[str, str, str]:
    return f"{cost.load:.1f}", f"{cost.steps:,.1f}", f"{cost.microseconds:,.1f}"


TARGETS = {DELTA.name: 3, RECURSIVE.name: 10, VIEW_TREE.name: 10}
"""How many times fewer steps epsilon should take at full size."""


def verdicts(lines: Sequence[Line]) -> Iterator[str]:
    """Whether the targets are met at the largest size."""
    steps = {line.contender: line.steps for line in lines if line.size == lines[-1].size}
    for name, target in TARGETS.items():
        ratio = steps[name] / steps[FAST.name]
        met = "met" if ratio >= target else "not met"
        yield f"{name} takes {ratio:.1f} times the steps of epsilon; target {target}: {met}"


# --- b. hubs --------------------------------------------------------------------------------------

HUBS = (-1, -2)
NEARLY = (-3, -4)
"""Nodes that miss being heavy, at epsilon 0.5, by one row."""

HUB_SIZES = (1000, 2000, 4000, 8000, 16000, 32000, 64000)
REPEATS = 10


def hub_graph(size: int) -> Graph:
    """Hubs joined to a share of all nodes, both ways, and nodes that are nearly heavy.

    Rows that meet nothing make it `size` rows in all.
    """
    partners, nodes = int((2 * size + 1) ** 0.5) - 1, range(size // 18)
    rows = [(hub, node) for hub in HUBS for node in nodes]
    rows += [(node, hub) for hub in HUBS for node in nodes]
    rows += [(hub, other) for hub in HUBS for other in HUBS]
    rows += [(node, other) for node in NEARLY for other in nodes[:partners]]
    rows += [(size + i, 2 * size + i) for i in range(size // 3 - len(rows))]
    return {relation: list(rows) for relation in RELATIONS}


KINDS = {"hub to hub": HUBS, "hub to nearly heavy": NEARLY}
"""Rows that meet two long lists, and rows that meet as many light rows as there may be."""


def hub_streams(graph: Graph) -> dict[str, list[Change]]:
    """Rows of each kind in each relation, deleted and inserted again."""
    rows = {
        kind: [(name, (hub, end)) for name in RELATIONS for hub in HUBS for end in ends]
        for kind, ends in KINDS.items()
    }
    return {kind: REPEATS * toggles(each, graph) for kind, each in rows.items()}


@dataclass
class Growth:
    """What a contender took at each size that was feasible, by kind of update."""

    contender: Contender
    costs: dict[int, dict[str, Cost]] = field(default_factory=dict)

    def worst(self, size: int) -> Cost:
        """The kind of update that took most steps."""
        return max(self.costs[size].values(), key=lambda cost: cost.steps)

    @property
    def exponent(self) -> float:
        """How the steps of the worst kind of update grow."""
        sizes = list(self.costs)
        return exponent(sizes, [self.worst(size).steps for size in sizes])


def hub_growth(
    sizes: Sequence[int], show: Show, contenders: Sequence[Contender] = CONTENDERS
) -> list[Growth]:
    """Growing hubs; contenders whose views become too large stop early."""
    found = [Growth(contender) for contender in contenders]
    for size in sizes:
        graph = hub_graph(size)
        streams = hub_streams(graph)
        for growth in found:
            show(f"hubs, {size:,} rows: {growth.contender.name}")
            if growth.contender.pairs(graph) <= MOST_PAIRS:
                costs = run(growth.contender, graph, streams.values())
                growth.costs[size] = dict(zip(streams, costs, strict=True))
    return found


def hub_table(found: Sequence[Growth], kind: str) -> Table:
    """Steps and microseconds of one kind of update, and how they grow."""
    title = f"Hubs, {kind}: steps per update | microseconds"
    shown = _table(title, ("rows", *(growth.contender.name for growth in found)))
    for size in found[0].costs:
        shown.add_row(f"{size:,}", *(_cell(growth, size, kind) for growth in found))
    shown.add_row("exponents", *(_exponents(growth, kind) for growth in found))
    return shown


def _cell(growth: Growth, size: int, kind: str) -> str:
    if size not in growth.costs:
        return "too large"
    cost = growth.costs[size][kind]
    return f"{cost.steps:,.0f} | {cost.microseconds:,.0f}"


def _exponents(growth: Growth, kind: str) -> str:
    costs = {size: kinds[kind] for size, kinds in growth.costs.items()}
    if len(costs) < 2:
        return "-"
    steps = exponent(list(costs), [cost.steps for cost in costs.values()])
    times = exponent(list(costs), [cost.microseconds for cost in costs.values()])
    return f"{steps:.2f} | {times:.2f}"


# --- c. no skew -----------------------------------------------------------------------------------


def plain_graphs(size: int, updates: int) -> Iterator[tuple[str, Graph, list[Change]]]:
    """Graphs without heavy nodes: four partners each, and a grid."""
    source = Uniform(max(size // 4, 10))
    graph = distinct_graph(source, size)
    yield "uniform", graph, Multigraph(graph).updates(source, updates, new=True)
    grid = grid_graph(round((size / 3) ** 0.5) + 1)
    chosen = np.random.default_rng(0).integers(len(grid["R"]), size=updates // 2).tolist()
    rows = [(RELATIONS[i % 3], grid["R"][place]) for i, place in enumerate(chosen)]
    yield "grid", grid, toggles(rows, grid)


def plain_table(size: int, updates: int, show: Show) -> Table:
    """What balance costs where there is nothing to balance."""
    title = f"No skew, {size:,} rows in each relation"
    shown = _table(title, ("graph", "strategy", "load s", "steps", "us", "us ratio", "entries"))
    for name, graph, stream in plain_graphs(size, updates):
        costs = {}
        for contender in CONTENDERS:
            show(f"{name} graph: {contender.name}")
            costs[contender.name] = run(contender, graph, [stream])[0]
        for contender, cost in costs.items():
            ratio = f"{cost.microseconds / costs[FAST.name].microseconds:.2f}"
            shown.add_row(name, contender, *_figures(cost), ratio, f"{cost.entries:,}")
        shown.add_section()
    return shown


# --- the plot -------------------------------------------------------------------------------------

COLOURS = ("#000000", "#d55e00", "#e69f00", "#0072b2", "#009e73")
MARKERS = "osD^v"
BESIDE = {"recursive": (-10, 2, "right"), "viewtree": (6, -12, "left")}
"""Where labels go, in points, that would cross the line of another strategy."""


def new_plot(title: str, across: str, up: str) -> tuple[Any, Any]:
    """A figure and its axes; text stays text, and nothing in the file depends on the day."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "viewkeep", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    axes.set(xlabel=across, ylabel=up)
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    return figure, axes


def save_plot(figure: Any, path: Path) -> None:
    """As SVG, the same for the same figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
    # Matplotlib leaves spaces at the ends of lines.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def plot_hubs(found: Sequence[Growth], path: Path) -> None:
    """Steps of the worst kind of update against the number of rows, both logarithmic."""
    title = "Triangle count with hubs: worst kind of update"
    figure, axes = new_plot(title, "rows N", "steps per update")
    axes.set(xscale="log", yscale="log")
    for growth, colour, marker in zip(found, COLOURS, MARKERS, strict=True):
        sizes = list(growth.costs)
        steps = [growth.worst(size).steps for size in sizes]
        axes.plot(sizes, steps, color=colour, marker=marker, markersize=5, linewidth=1.4)
        name = growth.contender.name
        right, up, side = BESIDE.get(name, (8, -4, "left"))
        place = {"xytext": (right, up), "textcoords": "offset points", "ha": side}
        label = f"{name}  $N^{{{growth.exponent:.2f}}}$"
        axes.annotate(label, (sizes[-1], steps[-1]), color=colour, **place)
    axes.set_xlim(right=6 * max(max(growth.costs) for growth in found))
    save_plot(figure, path)


# --- all of it ------------------------------------------------------------------------------------


def _table(title: str, columns: Sequence[str]) -> Table:
    shown = Table(title=title, box=None, padding=(0, 2, 0, 0), pad_edge=False, title_justify="left")
    for column in columns:
        text = column in ("strategy", "graph")
        shown.add_column(column, justify="left" if text else "right", no_wrap=True)
    return shown


def _describe(progress: Progress, task: TaskID, what: str) -> None:
    progress.update(task, description=what)


def options(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The sizes, and what to run."""
    parser = argparse.ArgumentParser(prog="python -m bench.skew", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--nodes", type=int, default=50_000, help="of the Zipf graph")
    parser.add_argument("--rows", type=int, default=200_000, help="of each relation of it")
    parser.add_argument("--updates", type=int, default=20_000, help="in each stream")
    parser.add_argument("--share", type=int, default=16, help="1/share of it fits all strategies")
    parser.add_argument("--hubs", type=int, nargs="+", default=HUB_SIZES, help="sizes with hubs")
    parser.add_argument("--plain", type=int, default=50_000, help="rows of graphs without skew")
    parser.add_argument("--plot", type=Path, help="where to draw the costs with hubs, as SVG")
    return parser.parse_args(given)


PARTS = ("zipf", "hubs", "plain")


def main(given: Sequence[str] | None = None) -> None:
    """Measure the parts one after another."""
    chosen, console = options(given), Console(width=110)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        show = partial(_describe, progress, task)
        if "zipf" in chosen.parts:
            found = zipf_lines(chosen.nodes, chosen.rows, chosen.updates, show, chosen.share)
            for stream, lines in found.items():
                console.print(zipf_table(f"Zipf 1.1, updates {stream}", lines))
                console.print("\n".join(verdicts(lines)), "\n", highlight=False)
        if "hubs" in chosen.parts:
            growths = hub_growth(chosen.hubs, show)
            for kind in KINDS:
                console.print(hub_table(growths, kind), "")
            if chosen.plot:
                plot_hubs(growths, chosen.plot)
        if "plain" in chosen.parts:
            console.print(plain_table(chosen.plain, chosen.updates, show))


if __name__ == "__main__":
    main()
