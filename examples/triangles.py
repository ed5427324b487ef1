"""The triangles of a graph, counted live while edges stream in and some drop out.

A few communities form one after another, and hubs know people everywhere. The count, and with it
the clustering coefficient, is right after every single edge; nothing is counted again until the
end, when a count from scratch has to agree.

    python examples/triangles.py                     # a live display of ten seconds
    python examples/triangles.py --plain             # as fast as it goes, then a summary
"""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import comb, isqrt
from time import perf_counter, sleep

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from viewkeep.graph import TriangleCounter

HUBS = ("Hub 1", "Hub 2", "Hub 3")
COMMUNITIES = {"A": "cyan", "B": "green", "C": "yellow", "D": "magenta", "E": "blue", "F": "red"}
FRAMES_PER_SECOND = 12
WIDTH = 76
SPARKS = " ▁▂▃▄▅▆▇█"

Edge = tuple[str, str]
Change = tuple[str, str, bool]
"""Two nodes, and whether their edge comes or goes."""


# --- the stream -----------------------------------------------------------------------------------


@dataclass
class Stream:
    """Edges that come and go at random; what is there is remembered for the check at the end."""

    chance: random.Random
    nodes: int
    edges: int
    present: list[Edge] = field(default_factory=list)
    known: set[Edge] = field(default_factory=set)

    def __iter__(self) -> Iterator[Change]:
        """For four edges that come one drops out, so that communities also come apart."""
        for number in range(self.edges):
            edge = self.new_edge(number / self.edges)
            if edge not in self.known:
                self.known.add(edge)
                self.present.append(edge)
                yield *edge, True
            if len(self.present) > 1 and self.chance.random() < 1 / 4:
                place = self.chance.randrange(len(self.present))
                self.present[place], self.present[-1] = self.present[-1], self.present[place]
                gone = self.present.pop()
                self.known.remove(gone)
                yield *gone, False

    def new_edge(self, progress: float) -> Edge:
        """Mostly inside the community whose time it is; some to a hub, some anywhere."""
        draw = self.chance.random()
        if draw < 0.2:
            pair = {self.chance.choice(HUBS), self.node()}
        elif draw < 0.35:
            pair = {self.node(), self.node()}
        else:
            current = list(COMMUNITIES)[int(progress * len(COMMUNITIES))]
            pair = {self.node(current), self.node(current)}
        return (min(pair), max(pair)) if len(pair) == 2 else self.new_edge(progress)

    def node(self, community: str = "") -> str:
        """Somebody, of a community or of any; the first ones know more people than the others."""
        community = community or self.chance.choice(list(COMMUNITIES))
        size = community_size(self.nodes)
        return f"{community} {int(size * self.chance.random() ** 1.3) + 1}"


def community_size(nodes: int) -> int:
    """The communities share the nodes that are no hubs."""
    return max(3, (nodes - len(HUBS)) // len(COMMUNITIES))


# --- counting -------------------------------------------------------------------------------------


class Watch:
    """A counter for the graph and one inside each community, with what the display tells."""

    def __init__(self, nodes: int) -> None:
        self.graph = TriangleCounter()
        self.inside = {name: TriangleCounter() for name in COMMUNITIES}
        self.size = community_size(nodes)
        self.clustering: list[float] = []
        self.updates, self.seconds, self.steps = 0, 0.0, 0.0

    def apply(self, changes: Iterable[Change]) -> int:
        """Make the changes one at a time, and note how fast that was; how many they were."""
        listed = list(changes)
        steps, started = self.graph.steps, perf_counter()
        for change in listed:
            make(self.graph, change)
        self.seconds += perf_counter() - started
        self.updates += len(listed)
        for change in listed:
            u, v = change[0][0], change[1][0]
            if u == v and u in self.inside:
                make(self.inside[u], change)
        if listed:
            self.steps = (self.graph.steps - steps) / len(listed)
            self.clustering.append(self.graph.clustering)
        return len(listed)

    def density(self, community: str) -> float:
        """The share of the triples of a community that are triangles."""
        return self.inside[community].count / comb(self.size, 3)

    def heavy_nodes(self) -> dict[str, int]:
        """The nodes in heavy parts with their degrees, by falling degree."""
        found = {
            node: self.graph.degree(node)
            for partition in self.graph.maintainer.partitions()
            if len(partition.split.variables) == 1
            for (node,) in partition.levels
        }
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def make(counter: TriangleCounter, change: Change) -> None:
    """Add or remove one edge."""
    u, v, comes = change
    (counter.add if comes else counter.remove)(u, v)


def recount(edges: Iterable[Edge]) -> int:
    """From scratch: the neighbours that the ends of each edge share, a third of all."""
    neighbours: dict[str, set[str]] = {}
    listed = list(edges)
    for u, v in listed:
        neighbours.setdefault(u, set()).add(v)
        neighbours.setdefault(v, set()).add(u)
    return sum(len(neighbours[u] & neighbours[v]) for u, v in listed) // 3


# --- showing --------------------------------------------------------------------------------------


def frame(watch: Watch) -> RenderableType:
    """The whole picture: numbers, communities, the clustering over time, and who is heavy."""
    half = (WIDTH - 1) // 2
    top = Columns(
        [
            Panel(numbers(watch), title="graph", width=half, height=8),
            Panel(communities(watch), title="triangles per triple", width=half, height=8),
        ],
        padding=(0, 1),
    )
    width, values = 2 * half + 1, watch.clustering or [0.0]
    history = Text("\n".join(chart(values, width - 4, height=4)), style="bright_green")
    title = f"clustering over time, {min(values):.2f} to {max(values):.2f}"
    return Group(
        top,
        Panel(history, title=title, width=width, height=6),
        Panel(heavy(watch), title="heavy nodes", width=width, height=4),
    )


def facts(watch: Watch) -> dict[str, str]:
    """What the display and the summary tell."""
    graph, rate = watch.graph, watch.updates / watch.seconds if watch.seconds else 0
    return {
        "triangles": f"{graph.count:,}",
        "clustering": f"{graph.clustering:.4f}",
        "edges": f"{len(graph):,}",
        "updates": f"{watch.updates:,}",
        "updates/s": f"{rate:,.0f}",
        "steps/update": f"{watch.steps:,.0f}  (√N = {isqrt(len(graph))})",
    }


def numbers(watch: Watch) -> Table:
    """The facts in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="left")
    for name, value in facts(watch).items():
        bold = name in ("triangles", "clustering")
        table.add_row(name, Text(value, style="bold bright_green" if bold else ""))
    return table


def communities(watch: Watch) -> Table:
    """A bar for each community, full where every triple is a triangle."""
    table = Table.grid(padding=(0, 1))
    highest = max(0.01, *(watch.density(name) for name in COMMUNITIES))
    for name, colour in COMMUNITIES.items():
        density = watch.density(name)
        table.add_row(name, Text(bar(density / highest, 20), style=colour), f"{density:7.2%}")
    return table


def heavy(watch: Watch) -> Text:
    """Names with degrees, as many as fit into two lines."""
    nodes, text = watch.heavy_nodes(), Text(overflow="ellipsis")
    if not nodes:
        return Text("none yet", style="dim")
    for node, degree in islice(nodes.items(), 10):
        text.append(node, style="bold" if node in HUBS else COMMUNITIES[node[0]])
        text.append(f" {degree}   ", style="dim")
    text.append(f"({len(nodes)} in all)", style="dim")
    return text


def bar(share: float, width: int) -> str:
    """A bar in eighths of a character."""
    full, rest = divmod(round(share * width * 8), 8)
    return ("█" * full + " ▏▎▍▌▋▊▉"[rest])[:width].ljust(width)


def chart(values: list[float], width: int, height: int = 1) -> list[str]:
    """Columns in eighths of a character, from the lowest value to the highest, as lines."""
    if len(values) > width:
        values = [values[i * (len(values) - 1) // (width - 1)] for i in range(width)]
    low, high = min(values), max(values)
    tall = [1 + round((8 * height - 1) * (v - low) / (high - low or 1)) for v in values]
    rows = reversed(range(height))
    return ["".join(SPARKS[max(0, min(8, top - 8 * row))] for top in tall) for row in rows]


# --- running --------------------------------------------------------------------------------------


def animate(console: Console, watch: Watch, stream: Stream, seconds: float) -> None:
    """So many edges per frame that the stream takes the time; it is cut off where it is slow."""
    changes, frames = iter(stream), max(1, int(seconds * FRAMES_PER_SECOND))
    share = 5 * stream.edges // 4 // frames + 1
    started = perf_counter()
    with Live(frame(watch), console=console, auto_refresh=False) as live:
        for number in range(1, 2 * frames):
            if not watch.apply(islice(changes, share)) or perf_counter() - started > seconds:
                break
            live.update(frame(watch), refresh=True)
            sleep(max(0, started + number / FRAMES_PER_SECOND - perf_counter()))
        live.update(frame(watch), refresh=True)


def run_plain(console: Console, watch: Watch, stream: Stream) -> None:
    """Everything at once, then a summary in lines."""
    changes = iter(stream)
    while watch.apply(islice(changes, max(1, stream.edges // 40))):
        pass
    for name, value in facts(watch).items():
        console.print(f"{name:<19} {value}")
    densities = (f"{name} {watch.density(name):.2%}" for name in COMMUNITIES)
    console.print(f"{'per triple':<19} {'  '.join(densities)}")
    console.print(f"{'clustering so far':<19} {chart(watch.clustering, 40)[0]}")
    console.print(f"{'heavy nodes':<19} {heavy(watch).plain}", soft_wrap=True)


def check(console: Console, watch: Watch, edges: Iterable[Edge]) -> None:
    """The promise: the kept count equals the one from scratch."""
    started = perf_counter()
    fresh = recount(edges)
    spent = 1e3 * (perf_counter() - started)
    if fresh != watch.graph.count:
        sys.exit(f"wrong: kept {watch.graph.count:,}, but from scratch {fresh:,}")
    one = 1e3 * watch.seconds / max(1, watch.updates)
    console.print(f"recounted from scratch: equal, {fresh:,} triangles", style="bold")
    console.print(f"one update took {one:.3f} ms, the recount {spent:.1f} ms", style="dim")


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Triangles counted live in a changing graph.")
    parser.add_argument("--nodes", type=int, default=300, help="of communities and hubs (300)")
    parser.add_argument("--edges", type=int, default=15_000, help="that stream in (15000)")
    parser.add_argument("--seconds", type=float, default=10, help="of the live display (10)")
    parser.add_argument("--plain", action="store_true", help="no animation, only a summary")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def main() -> None:
    """Watch a stream, live on terminals, and check the count at the end."""
    given, console = options(), Console(highlight=False)
    stream = Stream(random.Random(given.seed), given.nodes, given.edges)
    watch = Watch(given.nodes)
    if given.plain or not console.is_terminal:
        run_plain(console, watch, stream)
    else:
        animate(console, watch, stream, given.seconds)
    check(console, watch, stream.present)


if __name__ == "__main__":
    main()
