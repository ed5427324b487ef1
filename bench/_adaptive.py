"""Data that is as bad as can be for heavy and light parts, and what theory promises on it.

In most families hubs make first-order deltas linear, while lists as long as a threshold, N^eps,
and as many heavy values as there can be, N^(1 - eps), make the adaptive strategy as slow as it
gets. bench/adaptive.py counts steps at growing sizes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from math import ceil
from typing import Any

import viewkeep as vk
from bench._cases import TRIANGLE
from bench._families import Change, Row

Rows = dict[str, list[Row]]
EPSILONS = (0, 0.25, 0.5, 0.75, 1)
SIZES = (1024, 4096, 16384)
TINY, SMALL, LARGE = (128, 512, 2048), (512, 2048, 8192), (4096, 16384, 65536)

PATH_3 = "Q() = R(a, b) * S(b, c) * T(c, d)"
PATH_4 = "Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e)"
LOOMIS_WHITNEY_4 = "Q() = R(a, b, c) * S(b, c, d) * T(c, d, a) * U(d, a, b)"
CYCLE_4 = "Q() = R(a, b) * S(b, c) * T(c, d) * U(d, a)"
HIERARCHICAL = "Q(a) = R(a, b) * S(b)"
HIERARCHICAL_PAIRS = "Q(a, c) = R(a, b) * S(b, c)"


@dataclass(frozen=True)
class Family:
    """Rows to load for a size and an epsilon, and a stream of updates that follows."""

    name: str
    rows: Callable[[int, float], Rows]
    stream: Callable[[int, float], list[Change]]


@dataclass(frozen=True)
class AdaptiveCase:
    """A query on a family, what is measured there, and the exponent that theory promises.

    `delta` is the least exponent that first-order deltas must show on the same updates.
    """

    title: str
    query: str
    family: Family
    quantity: str
    promised: float
    options: Mapping[str, Any] = field(default_factory=dict)
    sizes: tuple[int, ...] = SIZES
    delta: float | None = None

    @property
    def epsilon(self) -> float:
        """The epsilon of all splits."""
        return float(self.options.get("epsilon", 0.5))


def nothing(size: int, epsilon: float) -> list[Change]:
    """For families that are only loaded."""
    return []


# --- triangles ------------------------------------------------------------------------------------

ROTATIONS = (("R", "S", "T"), ("S", "T", "R"), ("T", "R", "S"))
LONG, HEAVY, LIGHT = 0, 1, 2
"""Values of a and b: with a long list of light c, with heavy c, and light themselves."""


def theta(size: int, epsilon: float) -> float:
    """N^eps for the threshold base after loading."""
    return float((2 * size + 1) ** epsilon)


def triangle_lists(names: Sequence[str]) -> Callable[[int, float], Rows]:
    """With X, Y, Z for the names: X(0, 0) meets a long list of light c, X(1, 1) as many heavy c as
    fit in, and X(2, 2) a list that is as light as others at all sizes."""
    _, second, third = names

    def rows(size: int, epsilon: float) -> Rows:
        limit = theta(size, epsilon)
        degree, light = ceil(1.05 * limit), min(ceil(0.15 * limit), size // 8)
        y, z = list[Row](), list[Row]()
        for c in range(size // 3):
            y.append((LONG, size + c))
            z.append((size + c, LONG))
        for c in range(size // 5 // degree):
            y.append((HEAVY, 3 * size + c))
            z += [(3 * size + c, a) for a in (HEAVY, *range(10, 9 + degree))]
        for c in range(light):
            y.append((LIGHT, 4 * size + c))
            z.append((4 * size + c, LIGHT))
        return padded({second: y, third: z}, names[0], size)

    return rows


def padded(rows: Mapping[str, Sequence[Row]], relation: str, size: int) -> Rows:
    """With rows that meet nothing, so that there are `size` of them in all."""
    missing = size - sum(map(len, rows.values()))
    assert missing >= 0, f"{-missing} rows too many"
    lonely = [(10 * size + i, 20 * size + i) for i in range(missing)]
    return {relation: [*rows.get(relation, []), *lonely]} | {
        name: list(content) for name, content in rows.items() if name != relation
    }


def triangle_visits(size: int, epsilon: float) -> list[Change]:
    """Each row between the special values comes and goes, in each relation."""
    pairs = product((LONG, HEAVY, LIGHT), repeat=2)
    return [(name, row, n) for row in pairs for name in "RST" for n in (1, -1)]


def wave_lists(size: int, epsilon: float) -> Rows:
    """R(0, b) meets, for each of many b, nearly as many c in S as are light, and in T as many c as
    can be heavy: moving it costs N^max(eps, 1 - eps)."""
    third, limit = size // 3, theta(size, epsilon)
    degree, light = ceil(1.1 * limit), max(int(0.45 * limit), 1)
    width = min(wave_length(size, epsilon), third // light)
    s = [(b, size + i) for b in range(width) for i in range(light)]
    t = [(c, a) for c in range(third // degree) for a in range(degree)]
    return padded({"S": s, "T": t}, "R", size)


def wave_length(size: int, epsilon: float) -> int:
    """So many rows make a value heavy."""
    return ceil(1.5 * theta(size, epsilon)) + 1


def wave_stream(size: int, epsilon: float) -> list[Change]:
    """The value 0 of R becomes heavy and light again, just over each threshold."""
    high = wave_length(size, epsilon)
    low = max(int(0.5 * theta(size, epsilon)) - 1, 0)
    start: list[Change] = [("R", (0, b), 1) for b in range(low)]
    up: list[Change] = [("R", (0, b), 1) for b in range(low, high)]
    down: list[Change] = [("R", (0, b), -1) for b in reversed(range(low, high))]
    return start + 3 * (up + down)


def wide_lists(size: int, epsilon: float) -> Rows:
    """Every a heavy in R, every b light in S, with all c different: R_h joined with S_l has as
    many entries as it can, also if N is half or twice as large."""
    half, degree = size // 2, ceil(1.05 * theta(2 * size, epsilon))
    width = max(min(int(0.6 * theta(size, epsilon)), half // degree), 1)
    middle = half // width
    r = [(a, (a * degree + i) % middle) for a in range(half // degree) for i in range(degree)]
    s: list[Row] = [(b, b * width + i) for b in range(middle) for i in range(width)]
    return {"R": list(dict.fromkeys(r)), "S": s}


def tide_lists(size: int, epsilon: float) -> Rows:
    """Wide lists and, in R, as many rows again that come and go."""
    rows = wide_lists(size // 2, epsilon)
    return rows | {"R": rows["R"] + _tide(rows)}


def _tide(rows: Rows) -> list[Row]:
    """New a, each with all b of S, as many rows as there are."""
    middle = list(dict.fromkeys(b for b, _ in rows["S"]))
    count = sum(map(len, rows.values()))
    return [(-1 - a, b) for a in range(ceil(count / len(middle))) for b in middle]


def tide_stream(size: int, epsilon: float) -> list[Change]:
    """Down to a quarter of N and up to N, for the N of the moment: partitioned anew each time."""
    rows = wide_lists(size // 2, epsilon)
    going = [("R", row) for row in _tide(rows)] + [("S", row) for row in rows["S"][:9]]
    down: list[Change] = [(*each, -1) for each in going]
    return 2 * (down + [(*each, 1) for each in reversed(going)])


def paired_lists(size: int, epsilon: float) -> Rows:
    """Complete bipartite blocks: every value as heavy as a square allows, in all relations."""
    side = int((size / 3) ** 0.5)
    block: list[Row] = [(i, j) for i in range(side) for j in range(side)]
    return dict.fromkeys("RST", block)


def mixed_lists(size: int, epsilon: float) -> Rows:
    """Blocks, hubs and long lists together, for loading and inserting."""
    rows = triangle_lists("RST")(size // 2, epsilon)
    for name, block in paired_lists(size // 2, epsilon).items():
        rows[name] = list(dict.fromkeys([*rows[name], *((-1 - a, -1 - b) for a, b in block)]))
    return rows


LISTS = {
    names[0]: Family(f"lists, {names[0]}", triangle_lists(names), triangle_visits)
    for names in ROTATIONS
}
WAVES = Family("waves", wave_lists, wave_stream)
TIDES = Family("tides", tide_lists, tide_stream)
WIDE = Family("wide", wide_lists, nothing)
BLOCKS = Family("blocks", paired_lists, nothing)
MIXED = Family("mixed", mixed_lists, nothing)


# --- any query ------------------------------------------------------------------------------------


def skewed(text: str, power: float) -> Family:
    """In every column a hub, values that are just light, and as many just heavy ones as fit in,
    where N^power is the threshold."""
    atoms = [(atom.relation, len(atom.variables)) for atom in vk.parse(text).atoms]
    pieces = sum(columns + 2 * columns * (columns - 1) for _, columns in atoms)

    def rows(size: int, epsilon: float) -> Rows:
        share, limit = size // pieces, theta(size, power)
        found: Rows = {}
        for relation, columns in atoms:
            own = [_placed(columns, {spread: i}) for spread in range(columns) for i in range(share)]
            for first, second in permutations(range(columns), 2):
                for start, degree in ((JUST_LIGHT, ceil(0.5 * limit)), (JUST_HEAVY, ceil(limit))):
                    own += [
                        _placed(columns, {first: start + i, second: start + j})
                        for i in range(share // degree)
                        for j in range(degree)
                    ]
            found[relation] = list(dict.fromkeys(own))
        return found

    def stream(size: int, epsilon: float) -> list[Change]:
        special = (0, JUST_LIGHT, JUST_HEAVY, 10 * size)
        visits = [
            (name, row) for name, columns in atoms for row in product(special, repeat=columns)
        ]
        return [(*visit, n) for visit in visits for n in (1, -1)]

    return Family("hubs", rows, stream)


JUST_LIGHT, JUST_HEAVY = 1_000_000, 2_000_000


def _placed(columns: int, values: Mapping[int, int]) -> Row:
    return tuple(values.get(column, 0) for column in range(columns))


# --- the 4-cycle ----------------------------------------------------------------------------------


def cycle_lists(names: Sequence[str]) -> Callable[[int, float], Rows]:
    """With R, S, T, U for the names: R(0, 0) meets as many c in S as fit in, each with as
    many d in T as make it heavy, and so has a = 0 in U."""
    first, second, third, last = names

    def rows(size: int, epsilon: float) -> Rows:
        degree = ceil(1.05 * theta(size, 1 / 3))
        length = int(0.8 * size) // degree
        long = [(0, c) for c in range(length)]
        wide = [(c, d) for c in range(length) for d in range(degree)]
        back = [(d, 0) for d in range(degree)]
        return padded({second: long, third: wide, last: back}, first, size)

    return rows


def cycle_visits(size: int, epsilon: float) -> list[Change]:
    """The row between the special values comes and goes, in each relation."""
    return [(name, (0, 0), n) for name in "RSTU" for n in (1, -1)]


CYCLE_LISTS = tuple(
    Family(f"lists, {names[0]}", cycle_lists(names), cycle_visits)
    for names in ("RSTU", "STUR", "TURS", "URST")
)


# --- hierarchical queries -------------------------------------------------------------------------

HUB, EDGE = -1, -2
"""Values of b: with a long list of a, and with one that is about as long as the threshold."""


def shared_lists(columns: int) -> Callable[[int, float], Rows]:
    """As many heavy b as fit in, all with the same a, are in S, which has so many columns. A hub
    and a b that is just light are not in S."""

    def rows(size: int, epsilon: float) -> Rows:
        limit = theta(size, epsilon)
        degree, light = ceil(limit), min(ceil(0.4 * limit), size // 8)
        heavy = range(size // 2 // degree)
        r = [(a, b) for b in heavy for a in range(degree)]
        r += [(size + a, EDGE) for a in range(light)]
        r += [(2 * size + a, HUB) for a in range(size // 3)]
        return padded({"R": r, "S": [_in_s(columns, b) for b in heavy]}, "R", size)

    return rows


def _in_s(columns: int, b: int) -> Row:
    return (b, *[0] * (columns - 1))


def shared_visits(columns: int) -> Callable[[int, float], list[Change]]:
    """The hub and the just light b come and go in S, and the latter comes back."""
    moves = ((HUB, 1), (HUB, -1), (EDGE, 1), (EDGE, -1), (EDGE, 1))
    return lambda size, epsilon: [("S", _in_s(columns, b), n) for b, n in moves]


def edge_stream(size: int, epsilon: float) -> list[Change]:
    """The value on the edge becomes heavy and light again, and comes and goes in S at each step."""
    high, low = ceil(1.5 * theta(size, epsilon)) + 1, int(0.5 * theta(size, epsilon)) - 1
    start: list[Change] = [("R", (3 * size + a, EDGE), 1) for a in range(low)]
    up: list[Change] = [("R", (3 * size + a, EDGE), 1) for a in range(low, high)]
    down: list[Change] = [(name, row, -1) for name, row, _ in reversed(up)]
    visit: list[Change] = [("S", (EDGE,), 1), ("S", (EDGE,), -1)]
    return start + [change for step in up + down for change in (step, *visit)]


def edge_lists(size: int, epsilon: float) -> Rows:
    """Shared lists without the just light b, which comes with the stream."""
    rows = shared_lists(1)(size, epsilon)
    return rows | {"R": [(a, b) for a, b in rows["R"] if b != EDGE]}


SHARED = Family("shared", shared_lists(1), shared_visits(1))
SHARED_PAIRS = Family("shared", shared_lists(2), shared_visits(2))
EDGES = Family("edge", edge_lists, edge_stream)


# --- the cases ------------------------------------------------------------------------------------


def _update(
    title: str,
    query: str,
    promised: float,
    sizes: Sequence[int] = SIZES,
    **options: Any,
) -> AdaptiveCase:
    found = skewed(query, 1 - promised), "worst update", promised, options, tuple(sizes), 0.9
    return AdaptiveCase(title, query, *found)


def _hierarchical(epsilon: float) -> Iterator[AdaptiveCase]:
    options, few = {"epsilon": epsilon}, epsilon > 0.5
    for kind, query, family in (
        ("hierarchical", HIERARCHICAL, SHARED),
        ("two outputs", HIERARCHICAL_PAIRS, SHARED_PAIRS),
    ):
        found, sizes = (f"{kind}, eps {epsilon:g}", query, family), LARGE if few else SIZES
        yield AdaptiveCase(*found, "worst update", epsilon, options, delta=0.9)
        yield AdaptiveCase(*found, "delay", 1 - epsilon, options, sizes)
    found, sizes = (f"hierarchical, eps {epsilon:g}", HIERARCHICAL, EDGES), TINY if few else LARGE
    yield AdaptiveCase(*found, "average update", epsilon, options, sizes)


CASES = (
    *(
        AdaptiveCase(
            f"triangle, eps {epsilon:g}",
            TRIANGLE,
            family,
            "worst update",
            max(epsilon, 1 - epsilon),
            {"epsilon": epsilon},
            LARGE,
            delta=0.9,
        )
        for epsilon in EPSILONS
        for family in (LISTS.values() if epsilon == 0.5 else [LISTS["R"]])
    ),
    *(
        AdaptiveCase(
            "triangle, linear space",
            TRIANGLE,
            family,
            "worst update",
            0.5,
            {"space": "linear"},
            LARGE,
            delta=0.9,
        )
        for family in LISTS.values()
    ),
    AdaptiveCase("triangle", TRIANGLE, WAVES, "average update", 0.5),
    AdaptiveCase("triangle, eps 0.25", TRIANGLE, WAVES, "average update", 0.75, {"epsilon": 0.25}),
    AdaptiveCase("triangle", TRIANGLE, TIDES, "average update", 0.5, {}, SMALL),
    *(
        AdaptiveCase(
            f"triangle, eps {epsilon:g}",
            TRIANGLE,
            MIXED,
            "loading",
            1.5,
            {"epsilon": epsilon},
            LARGE,
        )
        for epsilon in EPSILONS
    ),
    AdaptiveCase("triangle", TRIANGLE, BLOCKS, "inserting", 1.5, {}, LARGE),
    AdaptiveCase("triangle", TRIANGLE, MIXED, "inserting", 1.5, {}, LARGE),
    AdaptiveCase("triangle", TRIANGLE, WIDE, "space", 1.5, {}, SMALL),
    AdaptiveCase("triangle, linear space", TRIANGLE, WIDE, "space", 1, {"space": "linear"}, SMALL),
    AdaptiveCase(
        "triangle, linear space", TRIANGLE, BLOCKS, "space", 1, {"space": "linear"}, SMALL
    ),
    AdaptiveCase("triangle, linear space", TRIANGLE, MIXED, "space", 1, {"space": "linear"}, SMALL),
    _update("path of 3", PATH_3, 0.5),
    _update("path of 3, linear space", PATH_3, 0.5, space="linear"),
    _update("path of 4", PATH_4, 0.5),
    _update("Loomis-Whitney 4", LOOMIS_WHITNEY_4, 0.5, (8192, 16384, 32768)),
    _update("4-cycle", CYCLE_4, 2 / 3),
    *(
        AdaptiveCase(
            "4-cycle", CYCLE_4, family, "worst update", 2 / 3, {}, (1024, 16384), delta=0.9
        )
        for family in CYCLE_LISTS
    ),
    *(case for epsilon in EPSILONS[1:-1] for case in _hierarchical(epsilon)),
)
"""What `make bounds` measures: each case by itself."""
