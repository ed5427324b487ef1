"""Workloads of the engine benchmark: what is loaded, and a stream of updates in batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bench.skew import Multigraph, Zipf, distinct_graph

Rows = NDArray[np.int64]
Batch = tuple[str, Rows, NDArray[np.int64]]
"""A relation, its rows and their multiplicities."""

STAR = "Q(y) = R(y, x) * S(y, z) * T(y, w)"
TRIANGLE = "Q() = R(a, b) * S(b, c) * T(c, a)"
HOUSING = "Q(; sum(a)) = H(p, a) * S(p, b) * I(p, c) * R(p, d) * D(p, e) * T(p, f)"
SUMMED = "Q() = H(p, a) * S(p, b) * I(p, c) * R(p, d) * D(p, e) * T(p, f)"
"""The same join; what is summed is lifted into a ring."""
BATCH = 1_000


@dataclass(frozen=True)
class Workload:
    """A query, its data and its stream."""

    name: str
    query: str
    data: dict[str, Rows]
    batches: list[Batch]

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations, in order."""
        return tuple(self.data)

    @property
    def updates(self) -> int:
        """How many updates the stream has."""
        return sum(len(rows) for _, rows, _ in self.batches)

    def singles(self, most: int) -> list[tuple[str, tuple[int, ...], int]]:
        """The first updates of the stream, one by one."""
        found = (
            (name, tuple(row), count)
            for name, rows, counts in self.batches
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
        )
        return list(islice(found, most))


def keyed(
    name: str, query: str, relations: str, keys: int, size: int, updates: int, seed: int = 1
) -> Workload:
    """Relations over one key: distinct rows; then rows that are there leave and new ones come."""
    random = np.random.default_rng(seed)
    each = size // len(relations)
    span = 10 * each // keys + 10
    data = {}
    for relation in relations:
        codes = random.permutation(np.unique(random.integers(0, keys * span, 2 * each)))[:each]
        data[relation] = np.column_stack([codes // span, codes % span])
    batches = [
        _turnover(random, relations[i % len(relations)], data, keys, span)
        for i in range(updates // BATCH)
    ]
    return Workload(name, query, data, batches)


def _turnover(
    random: np.random.Generator, relation: str, data: dict[str, Rows], keys: int, span: int
) -> Batch:
    half = BATCH // 2
    coming = np.column_stack(
        [random.integers(0, keys, half), random.integers(span, 2 * span, half)]
    )
    going = data[relation][random.integers(0, len(data[relation]), half)]
    order = random.permutation(BATCH)
    counts = np.repeat(np.array([1, -1], np.int64), half)
    return relation, np.concatenate([coming, going])[order], counts[order]


def star(size: int, updates: int) -> Workload:
    """Workload A."""
    return keyed("A, star count", STAR, "RST", 50_000, size, updates)


def housing(size: int, updates: int) -> Workload:
    """Workload C."""
    return keyed("C, six-way join", HOUSING, "HSIRDT", 25_000, size, updates)


def zipf(size: int, updates: int, nodes: int = 50_000) -> Workload:
    """Workload B: both ends of an edge by Zipf's law, new edges and some that go."""
    source = Zipf(nodes)
    graph = distinct_graph(source, size)
    stream = Multigraph(graph).updates(source, updates, new=True)
    data = {name: np.array(rows, np.int64) for name, rows in graph.items()}
    return Workload("B, Zipf triangles", TRIANGLE, data, list(_batched(stream)))


def hubs(size: int, updates: int, count: int = 10) -> Workload:
    """Workload B on hubs that are joined to everything; edges between hubs come and go."""
    leaves = np.arange(count, count + size // (6 * count))
    hub = np.arange(count)
    out = np.array([(h, leaf) for h in hub for leaf in leaves], np.int64)
    rows = np.concatenate([out, out[:, ::-1]])
    random = np.random.default_rng(2)
    pairs = random.integers(0, count, (updates // 2, 2))
    stream = []
    for i, (a, b) in enumerate(pairs.tolist()):
        relation = "RST"[(i // (BATCH // 2)) % 3]
        stream += [(relation, (a, b), 1), (relation, (a, b), -1)]
    data = dict.fromkeys("RST", rows)
    return Workload(f"B, hubs, {size:,} tuples", TRIANGLE, data, list(_batched(stream)))


def _batched(stream: list[tuple[str, tuple[int, ...], int]]) -> Iterator[Batch]:
    """Three batches at a time, one for each relation."""
    for start in range(0, len(stream), 3 * BATCH):
        part = stream[start : start + 3 * BATCH]
        for name in "RST":
            own = [(row, count) for relation, row, count in part if relation == name]
            if own:
                rows = np.array([row for row, _ in own], np.int64)
                yield name, rows, np.array([count for _, count in own], np.int64)
