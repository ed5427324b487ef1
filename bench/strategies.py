"""Strategies of conjunctive views in an embedded lake, one run for all: how long a refresh takes.

    python -m bench.strategies [--rows 10000000] [--fan-out 10] [--edges 5000000] [--changes 1000]

star   a sum over three tables that are joined many to many by one column: each value has `fan-out`
       rows in each table, so that the join has fan-out squared times as many rows as a table

zipf   the number of triangles of a graph whose vertices have edges by Zipf's law
hub    the number of triangles of a graph in which a third of the edges lead from one vertex, and a
       third to it

`id` and `tuple` look through the join; where it has more than `MOST_ROWS` rows they are left out,
and the table says so. Recomputation is DuckDB's, in the same lake.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

from viewkeep import Keeper

STAR = """SELECT r.y, sum(r.a * s.a) AS x, avg(t.a) AS m, count(*) AS n
    FROM r JOIN s ON r.y = s.y JOIN t ON s.y = t.y GROUP BY r.y"""
TRIANGLES = """SELECT count(*) AS n FROM e a JOIN e b ON a.dst = b.src
    JOIN e c ON b.dst = c.src AND c.dst = a.src"""
GRAPH_STRATEGIES = ("epsilon", "tuple", "recompute")
STRATEGIES = ("viewtree", "recursive", "tuple", "id", "recompute")
MOST_ROWS = 50_000_000
"""The most rows of a join that a strategy may look through."""
ROUNDS = 4


@dataclass(frozen=True)
class Figure:
    """The seconds to build a view, and to refresh it after changes, by the clock and of all cores:
    the best of some rounds."""

    strategy: str
    build: float | None = None
    refresh: float = 0.0
    cores: float = 0.0
    note: str = ""

    def __str__(self) -> str:
        if self.build is None:
            return f"| `{self.strategy}` | - | - | - | {self.note} |"
        seconds = f"{self.build:.2f} | {self.refresh:.3f} | {self.cores:.3f}"
        return f"| `{self.strategy}` | {seconds} | {self.note} |"


def star_rows(rng: np.random.Generator, keys: np.ndarray, values: int) -> pa.Table:
    """Rows of one table of the star."""
    y = rng.integers(0, values, len(keys), dtype=np.int32)
    a = rng.integers(0, 100, len(keys), dtype=np.int32)
    return pa.table({"id": pa.array(keys, pa.int64()), "y": y, "a": a})


def star(rows: int, fan_out: int, changes: int, strategy: str) -> Figure:
    """Build and refresh the star by one strategy, in a lake of its own."""
    values, joined = max(rows // fan_out, 1), rows * fan_out**2
    if strategy in ("id", "tuple") and joined > MOST_ROWS:
        return Figure(strategy, note=f"left out: the join has about {joined:,} rows")
    rng = np.random.default_rng(7)
    with TemporaryDirectory(prefix="viewkeep-strategies-") as place:
        keeper = Keeper(Path(place), durable=False)
        for name in "rst":
            keeper.create_table(name, star_rows(rng, np.arange(rows), values), key=["id"])
        start = perf_counter()
        keeper.create_view("star", STAR, strategy=strategy, policy="incremental")
        build = perf_counter() - start
        measured = list(refreshes(keeper, rng, rows, values, changes))
        caches = sum(f.stat().st_size for f in Path(place).rglob("*.parquet") if "cache" in str(f))
    note = f"caches {caches / 2**20:,.0f} MiB" if caches else ""
    return Figure(strategy, build, *map(min, zip(*measured, strict=True)), note)


def refreshes(
    keeper: Keeper, rng: np.random.Generator, rows: int, values: int, changes: int
) -> Iterator[tuple[float, float]]:
    """The seconds of refreshes after updates, inserts and deletes of one of two tables."""
    for number in range(ROUNDS):
        third = changes // 3
        keys = rng.choice(rows // ROUNDS, 2 * third, replace=False) + number * (rows // ROUNDS)
        new = np.arange(third) + rows + number * third
        keeper.apply(
            "rs"[number % 2],
            inserts=star_rows(rng, new, values),
            updates=star_rows(rng, keys[:third], values),
            deletes=pa.table({"id": pa.array(keys[third:], pa.int64())}),
        )
        start, used = perf_counter(), process_time()
        keeper.refresh("star")
        yield perf_counter() - start, process_time() - used


# --- triangles ------------------------------------------------------------------------------------


def zipf_edges(rng: np.random.Generator, count: int, vertices: int) -> np.ndarray:
    """Pairs of vertices, each drawn by Zipf's law."""
    weights = 1 / np.arange(1, vertices + 1)
    return rng.choice(vertices, (count, 2), p=weights / weights.sum())


def hub_edges(rng: np.random.Generator, count: int, vertices: int) -> np.ndarray:
    """Pairs of vertices, of which a third start at vertex 0 and a third end there."""
    pairs = rng.integers(1, vertices, (count, 2))
    kinds = rng.integers(0, 3, count)
    pairs[kinds == 0, 0] = 0
    pairs[kinds == 1, 1] = 0
    return pairs


GRAPHS = {"zipf": zipf_edges, "hub": hub_edges}


def edge_rows(pairs: np.ndarray) -> pa.Table:
    """Edges as rows."""
    return pa.table({"src": pairs[:, 0].astype(np.int32), "dst": pairs[:, 1].astype(np.int32)})


def triangles(graph: str, edges: int, changes: int, strategy: str) -> Figure:
    """Build and refresh the number of triangles by one strategy, in a lake of its own."""
    rng, vertices = np.random.default_rng(7), max(edges // 5, 10)
    pairs = np.unique(GRAPHS[graph](rng, edges, vertices), axis=0)
    rng.shuffle(pairs)
    later, now = pairs[: ROUNDS * changes // 2], pairs[ROUNDS * changes // 2 :]
    with TemporaryDirectory(prefix="viewkeep-strategies-") as place:
        keeper = Keeper(Path(place), durable=False)
        keeper.create_table("e", edge_rows(now), key=["src", "dst"])
        start = perf_counter()
        keeper.create_view("n", TRIANGLES, strategy=strategy, policy="incremental")
        build = perf_counter() - start
        measured = []
        for number in range(ROUNDS):
            half = slice(number * (changes // 2), (number + 1) * (changes // 2))
            keeper.apply("e", inserts=edge_rows(later[half]), deletes=edge_rows(now[half]))
            start, used = perf_counter(), process_time()
            keeper.refresh("n")
            measured.append((perf_counter() - start, process_time() - used))
        count = keeper.read("n").to_pylist()[0]["n"]
    return Figure(strategy, build, *map(min, zip(*measured, strict=True)), f"{count:,} triangles")


HEADER = "| strategy | build (s) | refresh (s) | of all cores (s) | |\n|---|---:|---:|---:|---|"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--fan-out", type=int, default=10)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--cases", nargs="*", default=("star", *GRAPHS))
    parser.add_argument("--strategies", nargs="*", default=())
    given = parser.parse_args()
    if "star" in given.cases:
        print(f"star: three tables of {given.rows:,} rows, {given.changes:,} changes\n\n{HEADER}")
        for strategy in given.strategies or STRATEGIES:
            print(star(given.rows, given.fan_out, given.changes, strategy), flush=True)
    for graph in (each for each in given.cases if each in GRAPHS):
        print(f"\n{graph}: {given.edges:,} edges, {given.changes:,} changes\n\n{HEADER}")
        for strategy in given.strategies or GRAPH_STRATEGIES:
            print(triangles(graph, given.edges, given.changes, strategy), flush=True)


if __name__ == "__main__":
    main()
