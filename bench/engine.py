"""Updates per second of the compiled engine, beside its rivals, on six workloads.

Run with `python -m bench.engine`; it writes docs/engine_figures.md and plots to docs/plots/. The
C++ twin is built when there is a g++; Pathway is installed into an environment of its own with
`--pathway FOLDER`. `--small` runs everything on a tenth of the data, to try it out.
"""

import argparse
import gc
import os
import platform
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import viewkeep as vk
from bench._engine_data import STAR, SUMMED, TRIANGLE, Workload, housing, hubs, star, zipf
from bench._engine_plots import draw
from bench._engine_rivals import checks, dicts_rate, duckdb_seconds, pathway_rate, timed, twin_rate
from bench._engine_types import (
    compiled_rate,
    covariance_rate,
    covariance_rows,
    covariance_seconds,
    dict_rate,
    duckdb_once,
    numpy_covariance_rate,
    polars_once,
    reference_rate,
    subscriber_rates,
    text_dict_rate,
    text_load,
    text_rates,
    typed_loads,
)
from viewkeep.engine.compiled.llvm.machine import CACHE_VARIABLE
from viewkeep.rings import INTEGERS

DOCS = Path(__file__).parent.parent / "docs"
REPEATS = 5


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    workload: str
    contender: str
    measure: str
    value: float
    unit: str
    target: float | None = None

    def text(self) -> str:
        """The value for people."""
        if self.unit == "updates/s":
            return f"{self.value:,.0f}"
        return f"{self.value:,.3g} {self.unit}"

    def verdict(self) -> str:
        """Whether the target is met."""
        if self.target is None:
            return ""
        most = self.unit in ("s", "bytes/entry")
        met = self.value <= self.target if most else self.value >= self.target
        return (
            f"{'met' if met else 'MISSED'}: {self.target:,.10g} {'at most' if most else 'at least'}"
        )


def maintained(load: Workload, **options: Any) -> vk.Maintainer:
    """A maintainer with the workload's data."""
    live = vk.maintain(load.query, **options)
    live.load(load.data)
    return live


def batched_rate(live: vk.Maintainer, load: Workload) -> float:
    """Updates per second in batches: the best of some runs, each back to where it began."""
    best = 0.0
    for _ in range(REPEATS):
        best = max(best, load.updates / timed(lambda: _run(live, load, 1)))
        _run(live, load, -1)
    return best


def _run(live: vk.Maintainer, load: Workload, sign: int) -> None:
    for relation, rows, counts in load.batches:
        live.update_batch(relation, rows, counts if sign > 0 else -counts)


def single_rate(live: vk.Maintainer, load: Workload, most: int) -> float:
    """Calls of `update` per second, the best of some runs, each taken back by the next."""
    stream = load.singles(most)
    best = 0.0
    for sign in (1, -1) * REPEATS:
        signed = [(relation, row, sign * count) for relation, row, count in stream]

        def work(signed: list[Any] = signed) -> None:
            for relation, row, count in signed:
                live.update(relation, row, count)

        best = max(best, len(stream) / timed(work))
    return best


def entry_bytes(live: vk.Maintainer, name: str) -> float:
    """Memory of a map for each of its entries."""
    return live.memory()[name] / live.sizes()[name]


# --- the workloads --------------------------------------------------------------------------------


def measure_star(scale: int, pathway: Path | None) -> Iterator[Figure]:
    """Workload A."""
    load = star(1_000_000 // scale, 200_000 // scale)
    live = maintained(load, strategy="viewtree", engine="compiled")
    kept = Figure(load.name, "compiled", "batches", batched_rate(live, load), "updates/s", 5e6)
    yield kept
    yield Figure(
        load.name, "compiled", "single", single_rate(live, load, 100_000), "updates/s", 5e5
    )
    yield Figure(load.name, "compiled", "memory of R", entry_bytes(live, "R"), "bytes/entry", 64)
    total = sum(payload for _, payload in live.enumerate())
    yield from enumeration(live, load)
    bare = maintained(load, strategy="viewtree", engine="compiled", keep_inputs=False)
    yield Figure(
        load.name, "compiled, no inputs kept", "batches", batched_rate(bare, load), "updates/s", 1e7
    )
    del live, bare
    gc.collect()
    yield from rivals(load, kept.value, pathway, {"strategy": "viewtree"}, total)


def enumeration(live: vk.Maintainer, load: Workload) -> Iterator[Figure]:
    """Output rows per second, into Arrow and one by one."""
    count = sum(batch.num_rows for batch in live.enumerate_batches())
    seconds = min(timed(lambda: list(live.enumerate_batches())) for _ in range(REPEATS))
    yield Figure(load.name, "compiled", "output rows into Arrow", count / seconds, "rows/s")
    seconds = timed(lambda: list(live.enumerate()))
    yield Figure(load.name, "compiled", "output rows, one by one", count / seconds, "rows/s")


def measure_zipf(scale: int, pathway: Path | None) -> Iterator[Figure]:
    """Workload B on the Zipf graph; the stream runs once, from where loading ended."""
    load = zipf(200_000 // scale, 20_000 // scale, 50_000 // scale)
    best, total = 0.0, 0
    for options in ({"strategy": "delta"}, {"strategy": "epsilon"}):
        live = maintained(load, engine="compiled", **options)
        rate = batched_rate(live, load)
        best, total = max(best, rate), live.value()
        yield Figure(load.name, f"compiled, {options['strategy']}", "batches", rate, "updates/s")
        del live
        gc.collect()
    yield Figure(load.name, "compiled, the better", "batches", best, "updates/s", 1e6)
    yield Figure(load.name, "smaller side", "look-ups of an update", lookups(load), "on average")
    yield from rivals(load, best, None, {"strategy": "delta"}, total)


def lookups(load: Workload) -> float:
    """Look-ups of an update that goes over the smaller side: what no such program can save."""
    names = load.relations
    leaving = {name: np.bincount(rows[:, 0]) for name, rows in load.data.items()}
    coming = {name: np.bincount(rows[:, 1]) for name, rows in load.data.items()}
    total = 0
    for name, rows, _ in load.batches:
        after, before = (names[(names.index(name) + i) % 3] for i in (1, 2))
        sides = _counts(leaving[after], rows[:, 1]), _counts(coming[before], rows[:, 0])
        total += int(np.minimum(*sides).sum())
    return total / load.updates


def _counts(counts: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(counts, 0)[np.minimum(values, len(counts))]


def measure_hubs(scale: int, pathway: Path | None) -> Iterator[Figure]:
    """Workload B on hubs, at two sizes."""
    for size in (100_000, 1_000_000):
        load = hubs(size // scale, 100_000 // scale)
        live = maintained(load, strategy="epsilon", engine="compiled")
        rate = batched_rate(live, load)
        yield Figure(load.name, "compiled, epsilon", "batches", rate, "updates/s", 2e6)
        del live
        gc.collect()


def measure_housing(scale: int, pathway: Path | None) -> Iterator[Figure]:
    """Workload C: the sum as one number by a ring, and as SQL has it, with counts beside it."""
    load = housing(1_000_000 // scale, 200_000 // scale)
    by_ring = replace(load, query=SUMMED)
    lifted = {"ring": INTEGERS, "lifts": {"a": int}}
    totals = set()
    for title, chosen, options in (
        ("compiled", by_ring, lifted),
        ("compiled, no inputs kept", by_ring, {**lifted, "keep_inputs": False}),
        ("compiled, SQL's sum", load, {}),
    ):
        live = maintained(chosen, strategy="viewtree", engine="compiled", **options)
        rate = batched_rate(live, load)
        yield Figure(load.name, title, "batches", rate, "updates/s", 8e6 if options else None)
        rate = single_rate(live, load, 100_000)
        yield Figure(load.name, title, "single", rate, "updates/s", 3e6 if options else None)
        totals.add(live.value() if options else live.value()[0])
        del live
        gc.collect()
    (total,) = totals
    yield from rivals(load, 0, None, {"strategy": "viewtree"}, total)


def measure_types(scale: int, pathway: Path | None) -> Iterator[Figure]:
    """Workload T: sums of decimals, floats and expressions, and extremes, from Arrow batches."""
    for load in typed_loads(1_000_000 // scale, 200_000 // scale):
        rate, live = compiled_rate(load)
        yield Figure(load.name, "compiled", "batches", rate, "updates/s", load.target)
        yield Figure(load.name, "compiled", "memory of R", entry_bytes(live, "R"), "bytes/entry")
        del live
        gc.collect()
        yield Figure(
            load.name, "reference engine", "batches", reference_rate(load, 2_000), "updates/s"
        )
        yield Figure(load.name, "Python dicts", "single", dict_rate(load), "updates/s")
        yield Figure(load.name, "DuckDB", "recompute once", duckdb_once(load), "s")
        if (seconds := polars_once(load)) is not None:
            yield Figure(load.name, "Polars", "recompute once", seconds, "s")


def measure_texts(scale: int, pathway: Path | None) -> Iterator[Figure]:
    """Workload S: a snowflake whose keys are texts; and what subscribers of a star hear."""
    load, name = text_load(1_000_000 // scale, 200_000 // scale), "S, snowflake of texts"
    batches, single = text_rates(load)
    yield Figure(name, "compiled", "batches", batches, "updates/s", 2e6)
    yield Figure(name, "compiled", "single", single, "updates/s", 3e5)
    yield Figure(name, "Python dicts", "single", text_dict_rate(load), "updates/s")
    large = star(1_000_000 // scale, 200_000 // scale)
    arrow, rows = subscriber_rates(large)
    yield Figure(
        "A, star count", "compiled, a subscriber", "changes as Arrow", arrow, "changes/s", 1e6
    )
    yield Figure("A, star count", "compiled, a subscriber", "changes as rows", rows, "changes/s")


def measure_matrices(scale: int, pathway: Path | None) -> Iterator[Figure]:
    """Workload M: the covariance of ten features, by the matrix ring, from Arrow batches."""
    rows, name = covariance_rows(100_000 // scale), "M, covariance of 10 features"
    for title, keep in (("compiled", True), ("compiled, no inputs kept", False)):
        yield Figure(name, title, "batches", covariance_rate(rows, keep), "updates/s", 3e6)
    yield Figure(name, "NumPy", "batches", numpy_covariance_rate(rows), "updates/s")
    yield Figure(name, "DuckDB", "recompute once", covariance_seconds(rows), "s")


PROGRAMS = {
    "star, viewtree": (STAR, "viewtree"),
    "triangle, delta": (TRIANGLE, "delta"),
    "triangle, epsilon": (TRIANGLE, "epsilon"),
    "Loomis-Whitney-4, epsilon": (
        "Q() = R(a, b, c) * S(b, c, d) * T(c, d, a) * U(d, a, b)",
        "epsilon",
    ),
    "4-path, epsilon": ("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e)", "epsilon"),
    "4-cycle, epsilon": ("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, a)", "epsilon"),
}


def measure_compiling(scale: int, pathway: Path | None) -> Iterator[Figure]:
    """Seconds from a query to machine code, nothing of it on disk."""
    kept = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = ""
    for title, (query, strategy) in PROGRAMS.items():
        seconds = timed(lambda q=query, s=strategy: vk.maintain(q, strategy=s, engine="compiled"))  # type: ignore[misc]
        yield Figure("compiling", title, "once", seconds, "s", 3)
    os.environ.pop(CACHE_VARIABLE)
    if kept is not None:
        os.environ[CACHE_VARIABLE] = kept


def rivals(
    load: Workload, own: float, pathway: Path | None, options: dict[str, Any], total: int
) -> Iterator[Figure]:
    """The same stream elsewhere."""
    live = maintained(load, engine="reference", **options)
    rate = single_rate(live, load, 2_000)
    yield Figure(load.name, "reference engine", "single", rate, "updates/s")
    del live
    if (rate := dicts_rate(load, 20_000)) is not None:
        yield Figure(load.name, "Python dicts", "single", rate, "updates/s")
    yield Figure(load.name, "DuckDB", "recompute once", duckdb_seconds(load), "s")
    if (rate := twin_rate(load)) is not None:
        yield Figure(load.name, "C++ twin", "stream", rate, "updates/s")
        yield Figure(load.name, "compiled / C++ twin", "batches", own / rate, "times", 0.5)
        if checks[load.name] != total_after(load, options):
            raise SystemExit(f"{load.name}: the twin and the engine disagree")
    if pathway is not None:
        found = pathway_rate(load, pathway)
        if isinstance(found, float):
            yield Figure(load.name, "Pathway", "stream", found, "updates/s")
        else:
            print(f"Pathway: skipped, {found}")


def total_after(load: Workload, options: dict[str, Any]) -> int:
    """The sum of the output after the stream."""
    live = maintained(load, engine="compiled", **options)
    _run(live, load, 1)
    return sum(payload for _, payload in live.enumerate())


# --- flat cost ------------------------------------------------------------------------------------


def turnovers(scale: int, times: int = 10) -> list[float]:
    """Nanoseconds of an update while all data is replaced so many times."""
    load = star(300_000 // scale, 3_000)
    live = maintained(load, strategy="viewtree", engine="compiled")
    present, found = dict(load.data), []
    for turn in range(times):
        coming = {
            name: rows + np.array([0, 1_000_000 * (turn + 1)]) for name, rows in load.data.items()
        }
        seconds = timed(lambda new=coming, old=dict(present): _replace(live, old, new))  # type: ignore[misc]
        found.append(1e9 * seconds / (2 * sum(map(len, present.values()))))
        present = coming
    return found


def _replace(live: vk.Maintainer, old: dict[str, Any], new: dict[str, Any]) -> None:
    for name in old:
        for start in range(0, len(old[name]), 1_000):
            gone = old[name][start : start + 1_000]
            live.update_batch(name, gone, [-1] * len(gone))
            live.update_batch(name, new[name][start : start + 1_000])


def sizes_and_costs(scale: int) -> list[tuple[int, float, float]]:
    """Tuples, nanoseconds of an update of A, and bytes per entry of R."""
    found = []
    for size in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000):
        load = star(size // scale, 30_000)
        live = maintained(load, strategy="viewtree", engine="compiled")
        found.append((size // scale, 1e9 / batched_rate(live, load), entry_bytes(live, "R")))
    return found


# --- output ---------------------------------------------------------------------------------------


def shown(figures: Sequence[Figure]) -> Table:
    """The table on the screen."""
    table = Table(title="The compiled engine and its rivals")
    for column in ("workload", "contender", "measure", "value", "target"):
        table.add_column(column, justify="right" if column == "value" else "left")
    for each in figures:
        table.add_row(each.workload, each.contender, each.measure, each.text(), each.verdict())
    return table


def page(figures: Sequence[Figure], turns: Sequence[float]) -> str:
    """The table as a page of docs."""
    lines = [
        "# The compiled engine: figures",
        "",
        "Written by `make bench-engine`; do not edit. "
        f"{platform.machine()}, Python {platform.python_version()}, one process.",
        "",
        "| workload | contender | measure | value | target |",
        "|---|---|---|---:|---|",
    ]
    for each in figures:
        cells = (each.workload, each.contender, each.measure, each.text(), each.verdict())
        lines.append(f"| {' | '.join(cells)} |")
    flat = ", ".join(f"{turn:.0f}" for turn in turns)
    lines += ["", f"Nanoseconds of an update in ten full turnovers of the data: {flat}.", ""]
    lines += ["![Updates per second](plots/engine_rates.svg)", ""]
    lines += ["![Cost of an update against N](plots/engine_sizes.svg)", ""]
    lines += ["![Memory per entry against N](plots/engine_memory.svg)", ""]
    return "\n".join(lines)


MEASURES = {
    "K": measure_compiling,
    "A": measure_star,
    "B": measure_zipf,
    "H": measure_hubs,
    "C": measure_housing,
    "T": measure_types,
    "S": measure_texts,
    "M": measure_matrices,
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a tenth of the data")
    parser.add_argument("--parts", default="KABHCTSM", help="which (K: compiling, H: hubs)")
    parser.add_argument("--pathway", type=Path, help="folder for Pathway's environment")
    parser.add_argument("--docs", action="store_true", help="write docs/engine_figures.md")
    chosen = parser.parse_args()
    scale = 10 if chosen.small else 1
    figures = []
    for part in chosen.parts:
        for figure in MEASURES[part](scale, chosen.pathway):
            print(f"{figure.workload}: {figure.contender}, {figure.measure}: {figure.text()}")
            figures.append(figure)
    turns = turnovers(scale)
    sizes = list(islice(sizes_and_costs(scale), 6))
    console = Console()
    console.print(shown(figures))
    console.print("ns per update over ten turnovers:", ", ".join(f"{turn:.0f}" for turn in turns))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    console.print(f"most memory of this process: {peak:,} MB")
    if chosen.docs:
        (DOCS / "engine_figures.md").write_text(page(figures, turns))
        draw(DOCS / "plots", figures, sizes)


if __name__ == "__main__":
    main()
