"""Space and update time of IVM^eps on the triangle count, by epsilon: figure 1 of its paper.

Theorem 3 of triangle_ivm_epsilon bounds the amortized update time by N^max(eps, 1 - eps) and the
space by N^(1 + min(eps, 1 - eps)). Exponents are fitted to steps and to entries of maps, on data
that is as bad as it can be for each epsilon. With `space="linear"` values count as heavy that are
so in any relation; views then are over two heavy values. Run with `python -m bench.tradeoff`.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

import viewkeep as vk
from bench._cases import TRIANGLE
from bench._families import Change, Row
from bench.bounds import exponent
from bench.skew import RELATIONS, Graph, new_plot, save_plot

EPSILONS = tuple(i / 8 for i in range(9))
SIZES = (1000, 4000, 16000, 64000)
MARGIN = 0.1
REPEATS = 20

ROTATIONS = (("R", "S", "T"), ("S", "T", "R"), ("T", "R", "S"))
"""The query looks the same from each relation: each in turn takes the part of R."""


def update_bound(epsilon: float) -> float:
    """Theorem 3: the exponent of the amortized update time."""
    return max(epsilon, 1 - epsilon)


def space_bound(epsilon: float, space: str) -> float:
    """Theorem 3: the exponent of the space.

    There are N^(1 - eps) heavy values, so views over two of them have N^(2 - 2 eps) entries.
    """
    if space == "linear":
        return max(1, min(1 + epsilon, 2 - 2 * epsilon))
    return 1 + min(epsilon, 1 - epsilon)


@dataclass(frozen=True)
class Setting:
    """A size, an epsilon, and the degree from which a value is heavy after loading."""

    size: int
    epsilon: float

    @property
    def threshold(self) -> float:
        """N^eps, where N = 2 |D| + 1 (definition 7)."""
        return (2 * self.size + 1) ** self.epsilon

    @property
    def heavy(self) -> int:
        """The least degree of a heavy value."""
        return math.ceil(self.threshold)

    @property
    def light(self) -> int:
        """The largest degree of a light value."""
        return self.heavy - 1


def padded(rows: Mapping[str, Sequence[Row]], size: int) -> Graph:
    """With rows that meet nothing, so that there are `size` rows in all."""
    graph = {name: list(rows.get(name, ())) for name in RELATIONS}
    missing = size - sum(map(len, graph.values()))
    assert missing >= 0, f"{-missing} rows too many"
    graph["R"] += [(10 * size + i, 20 * size + i) for i in range(missing)]
    return graph


# --- space ----------------------------------------------------------------------------------------


def wide_graph(setting: Setting) -> Graph:
    """Many a that are heavy in R, joined to b with many c in S, all different: V_RS is large.

    |V_RS| = |R_h| * N^eps while there are enough b, else |S_l| * N^(1 - eps), as in
    proposition 10.
    """
    half, degree = setting.size // 2, setting.heavy
    width = min(setting.light, half // degree)
    if width == 0:  # nothing can be light, or nothing heavy
        return padded({}, setting.size)
    middle = half // width
    r = [(a, (a * degree + i) % middle) for a in range(half // degree) for i in range(degree)]
    s = [(b, b * width + i) for b in range(middle) for i in range(width)]
    return padded({"R": r, "S": s}, setting.size)


def paired_graph(setting: Setting) -> Graph:
    """Many light c, each between as many heavy b and a: V_ST has many pairs of heavy values.

    Blocks of b and of a are as wide as a light c allows, and each c joins two of them: first each
    block and its namesake, then each and the next one, and so on.
    """
    half = setting.size // 2
    width = min(setting.light, half // setting.heavy)
    if width == 0:  # nothing can be light, or nothing heavy
        return padded({}, setting.size)
    blocks = half // setting.heavy // width
    joined = [(c, c % blocks, (c + c // blocks) % blocks) for c in range(half // width)]
    s = [(left * width + i, c) for c, left, _ in joined for i in range(width)]
    t = [(c, right * width + i) for c, _, right in joined for i in range(width)]
    return padded({"S": s, "T": t}, setting.size)


LARGE = {"fast": wide_graph, "linear": paired_graph}
"""Data that makes the views large."""


def entries(setting: Setting, space: str) -> int:
    """How many entries all maps have together."""
    live = maintained(setting, space)
    live.load(LARGE[space](setting))
    return sum(live.sizes().values())


def maintained(setting: Setting, space: str) -> vk.Maintainer:
    """The count, still of nothing."""
    return vk.maintain(
        TRIANGLE,
        strategy="epsilon",
        engine="reference",
        epsilon=setting.epsilon,
        space=space,
    )


# --- update time ----------------------------------------------------------------------------------

A, B, C = 0, 1_000_000, 2_000_000
"""Values of a, b and c start here; 0 and 1 are those that are updated."""


@dataclass(frozen=True)
class Slow:
    """Data for slow updates of the first relation, called R here.

    R(0, 0) meets `light` c in S(0, c) and in T(c, 0), all of them light.
    R(1, 1) meets as many c as can be heavy, in T(c, 1) and in S(1, c).
    R(1, b) meets, beside those, for many b, about as many c as are light.
    """

    setting: Setting
    light: int

    @staticmethod
    def of(setting: Setting, sizes: Sequence[int]) -> "Slow":
        """With light lists that are the same share of the threshold at all sizes."""
        all_ = [Setting(size, setting.epsilon) for size in sizes]
        share = min(1, *(each.size / 6 / each.threshold for each in all_))
        return Slow(setting, max(math.ceil(share * setting.threshold) - 1, 1))

    @property
    def wave(self) -> range:
        """The b that come and go with a = 1: enough to make it heavy, where that is possible."""
        enough = math.ceil(1.5 * self.setting.threshold) + 1
        count = enough if enough < self.setting.size else self.setting.size // 10
        return range(B + 2, B + 2 + count)

    def graph(self, names: Sequence[str]) -> Graph:
        """The rows, with relations named in this order."""
        fifth, degree = self.setting.size // 5, self.setting.heavy
        count = 2 * fifth // degree
        light = range(C, C + self.light)
        heavy = range(C + self.light, C + self.light + count)
        partners = min(max(self.setting.light, 1), fifth // len(self.wave))
        s = [(B, c) for c in light] + [(B + 1, c) for c in heavy]
        s += [(b, 2 * C + b * partners + i) for b in self.wave for i in range(partners)]
        t = [(c, A) for c in light] + [(c, A + 1 + i) for c in heavy for i in range(degree)]
        return padded(dict(zip(names, ([], s, t), strict=True)), self.setting.size)

    def streams(self, name: str) -> Iterator[list[Change]]:
        """Rows that come and go, one at a time; then a value that becomes heavy, and light."""
        for row in ((A, B), (A + 1, B + 1)):
            yield REPEATS * [(name, row, 1), (name, row, -1)]
        coming: list[Change] = [(name, (A + 1, b), 1) for b in self.wave]
        yield 2 * (coming + [(name, row, -1) for name, row, _ in coming])


@dataclass(frozen=True)
class Pace:
    """The average steps of the worst stream, and how often a value changed sides."""

    steps: float
    moves: int


def pace(setting: Setting, space: str, sizes: Sequence[int]) -> Pace:
    """Over the streams of each relation."""
    slow, steps, moves = Slow.of(setting, sizes), 0.0, 0
    for names in ROTATIONS:
        live = maintained(setting, space)
        live.load(slow.graph(names))
        for stream in slow.streams(names[0]):
            before = live.steps
            for change in stream:
                live.update(*change)
            steps = max(steps, (live.steps - before) / len(stream))
        moves += live.engine.partitions.minor if live.engine.partitions else 0
    return Pace(steps, moves)


# --- the table and the plot -----------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """The exponents of one epsilon, and the moves between parts at the largest size."""

    epsilon: float
    space: str
    update: float
    entries: float
    moves: int

    @property
    def verdict(self) -> str:
        """Whether theorem 3 holds, and whether the data shows that it is tight."""
        bound = space_bound(self.epsilon, self.space)
        over = (self.update - update_bound(self.epsilon), self.entries - bound)
        if max(over) > MARGIN:
            return "above"
        return "below" if min(over) < -MARGIN else "holds"


def measure(epsilon: float, space: str, sizes: Sequence[int]) -> Point:
    """Both exponents, fitted over the sizes."""
    settings = [Setting(size, epsilon) for size in sizes]
    paces = [pace(setting, space, sizes) for setting in settings]
    update = exponent(sizes, [each.steps for each in paces])
    held = exponent(sizes, [entries(setting, space) for setting in settings])
    return Point(epsilon, space, update, held, paces[-1].moves)


def table(points: Sequence[Point]) -> Table:
    """Predicted and measured, by epsilon."""
    title = "Exponents of N, predicted -> measured"
    shown = Table(title=title, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("space", "epsilon", "update", "entries", "moves", "verdict"):
        shown.add_column(column, justify="right" if column == "moves" else "left")
    for point in points:
        predicted = space_bound(point.epsilon, point.space)
        update = f"{update_bound(point.epsilon):.3f} -> {point.update:.2f}"
        cells = (update, f"{predicted:.3f} -> {point.entries:.2f}", f"{point.moves:,}")
        shown.add_row(point.space, f"{point.epsilon:.3f}", *cells, point.verdict)
    return shown


SPACE, UPDATE = "#0072b2", "#d55e00"


def plot(points: Sequence[Point], path: Path) -> None:
    """Lines for theorem 3, marks for what was measured."""
    figure, axes = new_plot("IVM$^\\epsilon$: space and update time", "epsilon", "exponent of N")
    fast, corners = [point for point in points if point.space == "fast"], (0, 0.5, 1)
    x = [point.epsilon for point in fast]
    axes.plot(corners, [space_bound(each, "fast") for each in corners], color=SPACE)
    axes.plot(corners, [update_bound(each) for each in corners], color=UPDATE)
    axes.plot(x, [point.entries for point in fast], "s", color=SPACE)
    axes.plot(x, [point.update for point in fast], "o", color=UPDATE)
    labels = {"ha": "center", "va": "center"}
    axes.annotate(
        "space: 1 + min($\\epsilon$, 1 - $\\epsilon$)", (0.5, 1.58), color=SPACE, **labels
    )
    axes.annotate("update: max($\\epsilon$, 1 - $\\epsilon$)", (0.5, 0.42), color=UPDATE, **labels)
    axes.annotate("lines: theorem 3\nmarks: measured", (0.5, 1), color="#555555", **labels)
    axes.set(ylim=(0.3, 1.7), xticks=EPSILONS[::2])
    save_plot(figure, path)


def options(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The sizes, and where to draw."""
    parser = argparse.ArgumentParser(prog="python -m bench.tradeoff", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="rows in all")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--plot", type=Path, help="where to draw the exponents, as SVG")
    return parser.parse_args(given)


CONSTANTS = """\
moves: how often values changed sides at the largest size; 0 where none can.
Entries at 7/8: a heavy value has (2 N + 1)^(7/8) rows, which is more than half
of all up to N = 32,000. The view is empty below, and the fit says little."""


def main(given: Sequence[str] | None = None) -> None:
    """Measure each epsilon, with both ways to keep views."""
    chosen, console = options(given), Console()
    todo = [(epsilon, space) for space in LARGE for epsilon in chosen.epsilons]
    progress = track(todo, "Measuring", console=Console(stderr=True), transient=True)
    points = [measure(epsilon, space, chosen.sizes) for epsilon, space in progress]
    console.print(table(points))
    console.print(f"sizes {', '.join(map(str, chosen.sizes))}; margin {MARGIN}", highlight=False)
    console.print(CONSTANTS, highlight=False)
    if chosen.plot:
        plot(points, chosen.plot)


if __name__ == "__main__":
    main()
