"""Strategies of views in a lake beside recomputation, one run for all: how long a refresh takes.

    python -m bench.strategies [--cases star zipf hub devices tpch] [--part 0.1] [--spark] [--docs]
                               [--brief] [--results FILE]

star     a sum over three tables that are joined many to many by one column: each value has
         `FAN_OUT` rows in each table, so that the join has its square times as many rows as a table
zipf     the number of triangles of a graph whose vertices have edges by Zipf's law
hub      the number of triangles of a graph in which a third of the edges lead from one vertex, and
         a third to it; both graphs also at a size at which their pairs of edges can be gone through
devices  V and V' of id_based_ivm, section 7: lines of a join, in both layouts, and their sums
tpch     Q3, Q5, Q10 and Q18, after new orders

Tables are filled once; each strategy has a lake of its own over them, and refreshes after the same
changes. Recomputation is that of the same engine. Where a join has more than `MOST_ROWS` rows, what
would have to go through them is left out, and the table says so. `--part` makes all sizes smaller,
`--brief` a tenth, with smaller joins, so that all cases take minutes; `--spark` leaves all work to
Spark. With `--results` each case is written to a file once it is measured, and those that are there
are not measured again. Views are verified at the end, as far as that is possible.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from bench import keeper as devices
from bench._results import Results
from bench._tpch_data import TABLES as TPCH_TABLES
from bench._tpch_data import Tpch
from viewkeep import Keeper, QueryError

STAR = """SELECT r.y, sum(r.a * s.a) AS x, avg(t.a) AS m, count(*) AS n
    FROM r JOIN s ON r.y = s.y JOIN t ON s.y = t.y GROUP BY r.y"""
TRIANGLES = """SELECT count(*) AS n FROM e a JOIN e b ON a.dst = b.src
    JOIN e c ON b.dst = c.src AND c.dst = a.src"""
SUMS = ("viewtree", "recursive", "tuple", "id", "recompute")
GRAPHS = ("epsilon", "tuple", "recompute")
LINES = ("id", "merge-on-read", "tuple", "recompute")
LOOKS_THROUGH = ("id", "tuple", "recompute")
"""The strategies that go through the rows of the join, at least to build the view."""
MOST_ROWS = 3_000_000_000
"""The most rows of a join that a strategy may look through."""
MOST_KEPT = 50_000_000
"""The most rows of a join that a strategy may keep."""
BRIEF = 0.1
"""The part of the sizes, and of the rows of joins, that a brief run has."""
FAN_OUT, ROUNDS, CHANGES = 10, 3, 1000
ROWS, EDGES, FEW_EDGES, USES, SCALE = 10_000_000, 5_000_000, 100_000, (10_000_000, 50_000_000), 1.0
PAGE = Path(__file__).parent.parent / "docs" / "strategy_figures.md"

Session = Any
Change = Callable[[int], None]
"""Applies the changes of a round."""


@dataclass(frozen=True)
class StrategyCase:
    """A view over tables that are in a lake, how they change, and the rows of its join."""

    title: str
    sql: str
    tables: Keeper
    keys: Mapping[str, Sequence[str]]
    change: Change
    strategies: Sequence[str]
    joined: int = 0
    most_rows: int = MOST_ROWS


@dataclass
class StrategyFigure:
    """The seconds to build a view, and to refresh it after changes, by the clock and of all cores:
    the best of some rounds."""

    strategy: str
    build: float = 0.0
    refreshes: list[float] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    note: str = ""

    def __str__(self) -> str:
        if not self.refreshes:
            return f"| `{self.strategy}` | - | - | - | {self.note} |"
        seconds = f"{self.build:.2f} | {min(self.refreshes):.3f} | {min(self.cores):.3f}"
        return f"| `{self.strategy}` | {seconds} | {self.note} |"


class StrategyLakes:
    """A lake for each strategy of a case, over the same tables."""

    def __init__(self, case: StrategyCase, folder: Path, spark: Session | None) -> None:
        self._case, self._folder, self._spark = case, folder, spark
        self._figures: dict[str, StrategyFigure] = {}
        self._keepers: dict[str, Keeper] = {}

    def measure(self, rounds: int) -> list[StrategyFigure]:
        """Build the view by each strategy, and refresh all after the same changes."""
        for strategy in self._case.strategies:
            self._build(strategy)
        for number in range(rounds):
            self._case.change(number)
            for strategy, keeper in self._keepers.items():
                start, used = perf_counter(), process_time()
                keeper.refresh("v")
                self._figures[strategy].refreshes.append(perf_counter() - start)
                self._figures[strategy].cores.append(process_time() - used)
        self._check()
        return list(self._figures.values())

    def _build(self, strategy: str) -> None:
        figure = self._figures[strategy] = StrategyFigure(strategy)
        figure.note = self._left_out(strategy)
        if figure.note:
            return
        keeper = self._open(strategy)
        start = perf_counter()
        try:
            create_view(keeper, strategy, self._case.sql)
        except QueryError as problem:
            figure.note = f"cannot keep it: {problem.args[0]}"
            return
        figure.build = perf_counter() - start
        self._keepers[strategy] = keeper
        files = (self._folder / strategy).rglob("*.parquet")
        size = sum(each.stat().st_size for each in files if "cache" in str(each))
        figure.note = f"caches {size / 2**20:,.0f} MiB" if size else ""

    def _left_out(self, strategy: str) -> str:
        joined = self._case.joined
        is_kept = strategy == "id" and joined > MOST_KEPT
        if is_kept or (strategy in LOOKS_THROUGH and joined > self._case.most_rows):
            return f"left out: the join has about {joined:,} rows"
        return ""

    def _open(self, strategy: str) -> Keeper:
        folder = self._folder / strategy
        keeper = (
            Keeper(folder, durable=False)
            if self._spark is None
            else Keeper(folder, self._spark, backend="spark", durable=False)
        )
        for name, key in self._case.keys.items():
            keeper.register_table(name, self._folder / "tables" / name, key=key)
        return keeper

    def _check(self) -> None:
        """All views have the rows of the query, or where that cannot be computed, of each other."""
        if self._case.joined <= self._case.most_rows:
            for strategy, keeper in self._keepers.items():
                found = keeper.verify("v")
                assert (found.missing_rows, found.extra_rows) == (0, 0), (strategy, found)


def create_view(keeper: Keeper, strategy: str, sql: str) -> None:
    """The view `v` by a strategy, or by IDs in the layout that strategy names."""
    if strategy == "merge-on-read":
        keeper.create_view("v", sql, strategy="id", policy="incremental", layout=strategy)
    else:
        policy = "full" if strategy == "recompute" else "incremental"
        keeper.create_view("v", sql, strategy=strategy, policy=policy)


# --- the star -------------------------------------------------------------------------------------


def star_rows(rng: np.random.Generator, keys: np.ndarray, values: int) -> pa.Table:
    """Rows of one table of the star."""
    y = rng.integers(0, values, len(keys), dtype=np.int32)
    a = rng.integers(0, 100, len(keys), dtype=np.int32)
    return pa.table({"id": pa.array(keys, pa.int64()), "y": y, "a": a})


def star(tables: Keeper, rows: int, changes: int) -> StrategyCase:
    """The star with updates, inserts and deletes of one of two tables."""
    rng, values = np.random.default_rng(7), max(rows // FAN_OUT, 1)
    for name in "rst":
        tables.create_table(name, star_rows(rng, np.arange(rows), values), key=["id"])

    def change(number: int) -> None:
        third, block = max(1, changes // 3), rows // (ROUNDS + 1)
        keys = rng.choice(block, 2 * third, replace=False) + number * block
        new = np.arange(third) + rows + number * third
        tables.apply(
            "rs"[number % 2],
            inserts=star_rows(rng, new, values),
            updates=star_rows(rng, keys[:third], values),
            deletes=pa.table({"id": pa.array(keys[third:], pa.int64())}),
        )

    title = f"star: three tables of {rows:,} rows, {changes:,} changes"
    keys = {name: ["id"] for name in "rst"}
    return StrategyCase(title, STAR, tables, keys, change, SUMS, rows * FAN_OUT**2)


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


def edge_rows(pairs: np.ndarray) -> pa.Table:
    """Edges as rows."""
    return pa.table({"src": pairs[:, 0].astype(np.int32), "dst": pairs[:, 1].astype(np.int32)})


def paths_of_two(pairs: np.ndarray, vertices: int) -> int:
    """How many pairs of edges follow each other: what a join of two copies of the edges has."""
    ends = [np.bincount(pairs[:, side], minlength=vertices).astype(object) for side in (0, 1)]
    return int((ends[0] * ends[1]).sum())


def triangles(graph: str, tables: Keeper, edges: int, changes: int) -> StrategyCase:
    """The triangles of a graph, in which edges come and as many go."""
    rng, vertices = np.random.default_rng(7), max(edges // 5, 10)
    make = zipf_edges if graph == "zipf" else hub_edges
    pairs = np.unique(make(rng, edges, vertices), axis=0)
    rng.shuffle(pairs)
    half = max(1, changes // 2)
    later, now = pairs[: ROUNDS * half], pairs[ROUNDS * half :]
    tables.create_table("e", edge_rows(now), key=["src", "dst"])

    def change(number: int) -> None:
        part = slice(number * half, (number + 1) * half)
        tables.apply("e", inserts=edge_rows(later[part]), deletes=edge_rows(now[part]))

    paths = paths_of_two(now, vertices)
    title = f"{graph}: {len(now):,} edges, {paths:,} pairs that follow each other"
    keys = {"e": ["src", "dst"]}
    return StrategyCase(
        f"{title}, {changes:,} changes", TRIANGLES, tables, keys, change, GRAPHS, paths
    )


# --- devices and parts, TPC-H ---------------------------------------------------------------------


def devices_and_parts(view: str, tables: Keeper, uses: int, changes: int) -> StrategyCase:
    """V or V' with new prices of parts."""
    parts, rng = uses // devices.FANOUT, np.random.default_rng(1)
    devices.fill_tables(tables, uses)

    def change(number: int) -> None:
        chosen = rng.choice(parts, min(parts, changes), replace=False)
        prices = rng.integers(1000, 2000, len(chosen))
        rows = pa.table({"pid": chosen.astype("int32"), "price": prices.astype("int32")})
        tables.apply("parts", updates=rows)

    title = f"{view}: {uses:,} rows of devices_parts, {changes:,} new prices"
    sql, strategies = devices.VIEWS[view][1], LINES if view == "V" else SUMS
    return StrategyCase(title, sql, tables, devices.KEYS, change, strategies)


def tpch(query: str, sql: str, tables: Keeper, scale: float, changes: int) -> StrategyCase:
    """A query of TPC-H with new orders."""
    data = Tpch(scale)
    with TemporaryDirectory(prefix="viewkeep-tpch-") as folder:
        for name, path in data.tables(Path(folder)).items():
            typed = [f"CAST({f.name} AS {f.type}) AS {f.name}" for f in TPCH_TABLES[name].columns]
            rows = duckdb.sql(f"SELECT {', '.join(typed)} FROM '{path}'").to_arrow_table()
            tables.create_table(name, TPCH_TABLES[name], rows=rows)

    def change(number: int) -> None:
        for each in data.rf1(changes):
            tables.apply(each.table, **each.parts)

    keys = {name: list(each.key) for name, each in TPCH_TABLES.items()}
    title = f"TPC-H {query} at scale {scale:g}, {changes:,} new orders"
    return StrategyCase(title, sql, tables, keys, change, SUMS)


# --- the run --------------------------------------------------------------------------------------

MakeCase = Callable[[Keeper], StrategyCase]


def cases_of(given: argparse.Namespace) -> Iterator[tuple[str, MakeCase]]:
    """The cases that are asked for by their names, each to be made in a lake of its own."""
    part, changes = given.part, given.changes
    for case in given.cases:
        match case:
            case "star":
                yield case, lambda tables: star(tables, int(ROWS * part), changes)
            case "zipf" | "hub":
                few = FEW_EDGES // 2 if given.brief else FEW_EDGES
                for edges in (few, int(EDGES * part)):
                    yield (
                        f"{case} {edges}",
                        lambda tables, g=case, n=edges: triangles(g, tables, n, changes),
                    )
            case "devices":
                for view, uses in [("V'", USES[0]), *(("V", uses) for uses in USES)]:
                    yield (
                        f"{view} {uses}",
                        lambda tables, v=view, n=int(uses * part): devices_and_parts(
                            v, tables, n, 50
                        ),
                    )
            case "tpch":
                for name in ("q03", "q05", "q10", "q18"):
                    text = (TPCH_FOLDER / f"{name}.sql").read_text(encoding="utf-8")
                    yield (
                        name,
                        lambda tables, q=name, sql=text: tpch(
                            q.upper(), sql, tables, SCALE * part, changes
                        ),
                    )


TPCH_FOLDER = Path(__file__).parents[1] / "examples" / "tpch"
HEADER = "| strategy | build (s) | refresh (s) | of all cores (s) | |\n|---|---:|---:|---:|---|"


def run_case(make: MakeCase, rounds: int, most_rows: int, spark: Session | None) -> Iterator[str]:
    """The lines of one case."""
    with TemporaryDirectory(prefix="viewkeep-strategies-") as name:
        folder = Path(name)
        case = replace(make(Keeper(folder / "tables", durable=False)), most_rows=most_rows)
        yield f"## {case.title}\n\n{HEADER}"
        figures = StrategyLakes(case, folder, spark).measure(rounds)
        yield from map(str, figures)
        yield f"\n{verdict(figures)}\n"


def verdict(figures: Sequence[StrategyFigure]) -> str:
    """The fastest strategy, and how many times faster than the others it is."""
    measured = sorted((each for each in figures if each.refreshes), key=lambda e: min(e.refreshes))
    best, *others = measured
    ratios = [f"{min(e.refreshes) / min(best.refreshes):.1f} times `{e.strategy}`" for e in others]
    return f"`{best.strategy}` is the fastest: {', '.join(ratios) or 'the only one'}."


def page(lines: Sequence[str], spark: bool) -> str:
    """The figures as a page of docs."""
    engine = "Spark" if spark else "embedded lakes (DuckDB)"
    return "\n".join(
        [
            "# Strategies beside recomputation: figures",
            "",
            "Written by `python -m bench.strategies --docs` (`make bench-strategies` prints it); "
            f"do not edit. {platform.machine()}, {os.cpu_count()} cores, {engine}; seconds from "
            f"`refresh` to visible, the best of {ROUNDS} rounds. Each strategy has a lake of its "
            "own over the same tables.",
            "",
            *lines,
        ]
    )


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    names = ("star", "zipf", "hub", "devices", "tpch")
    parser.add_argument("--cases", nargs="*", default=names, choices=names)
    parser.add_argument("--part", type=float, default=1.0, help="of the sizes, which are large")
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--spark", action="store_true", help="leave all work to Spark")
    parser.add_argument("--docs", action="store_true", help="write docs/strategy_figures.md")
    parser.add_argument("--brief", action="store_true", help="sizes that take minutes in all")
    parser.add_argument("--results", type=Path, help="keep figures here, and go on from them")
    given, lines = parser.parse_args(), list[str]()
    if given.brief:
        given.part = BRIEF
    results, session = Results(given.results), spark_session() if given.spark else None
    most_rows = int(MOST_ROWS * BRIEF) if given.brief else MOST_ROWS
    for name, make in cases_of(given):
        key = json.dumps([name, given.part, given.changes, given.brief, given.spark])
        if key not in results:
            results.add(key, list(run_case(make, ROUNDS, most_rows, session)))
        lines += results[key]
        print("\n".join(results[key]), flush=True)
    if given.docs:
        PAGE.write_text(page(lines, given.spark), encoding="utf-8")


def spark_session() -> Session:
    """The session of this machine."""
    from viewkeep.execute.spark.session import session

    return session()


if __name__ == "__main__":
    main()
