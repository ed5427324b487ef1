"""ID-based scripts beside tuple-based ones, recursive views and recomputation.

In DuckDB, or with `--spark` on Spark over Parquet files (`_spark_devices`).

The devices and parts of the paper (id_based_ivm, section 7): 200 price updates, 200 inserts and
200 deletes of devices_parts, each brought into V (the parts of phones) and V' (the cost of each
phone) by every strategy, with the seconds and the accesses that it takes. Every strategy has its
own copy of the view, and all copies are compared after every step.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median
from time import perf_counter

import duckdb
from rich.console import Console
from rich.table import Table

from bench._accesses import accesses_of
from bench._devices import DELETES, INSERTS, PRICES, Changes, Connection, Data, Devices
from viewkeep.diffs.generate import generate
from viewkeep.diffs.recursive import generate_recursive
from viewkeep.diffs.script import Script
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.run_in_connection import create, run_in_connection
from viewkeep.query.algebra import Node

KINDS = (PRICES, INSERTS, DELETES)
FIXED = ("parts", "devices_parts")
STREAMS = ("parts", "devices_parts", "devices")
RECOMPUTE = "recompute"
WHY = {
    "tuple": "in V' it keeps no input of the group-by to change; for inserts in V it is the same",
    "fixed": "its diff meets one kept join, and in V' it keeps no input of the group-by",
    "streams": "its diff meets one kept join, and in V' it keeps no input of the group-by",
    RECOMPUTE: "one statement over small tables, where a script has up to a dozen",
}
"""What a strategy saves where it beats the ID-based script."""

Generate = Callable[[Node, Changes], Script]
STRATEGIES: dict[str, Generate] = {
    "id": lambda view, c: generate(view, {c.table: [(c.kind, c.columns)]}).script,
    "tuple": lambda view, c: generate(view, {c.table: [(c.kind, c.columns)]}, True).script,
    "fixed": lambda view, c: generate_recursive(view, c.table, FIXED, [(c.kind, c.columns)]),
    "streams": lambda view, c: generate_recursive(view, c.table, STREAMS, [(c.kind, c.columns)]),
}


@dataclass(frozen=True)
class Cost:
    """One refresh: seconds, those of them that go into SQL text, and accesses.

    `in_one_step` are accesses as the paper counts them (`_accesses`).
    """

    seconds: float
    text: float
    accesses: int
    in_one_step: int = 0

    @property
    def in_engine(self) -> float:
        """The seconds that grow with the data."""
        return self.seconds - self.text


@dataclass(frozen=True)
class Kept:
    """One view by one strategy, under names of its own, and the changes that may come."""

    strategy: str
    title: str
    view: Node
    kinds: tuple[Changes, ...] = KINDS

    def script(self, changes: Changes) -> Script:
        """The script of this strategy."""
        return STRATEGIES[self.strategy](self.view, changes)

    def sources(self, script: Script) -> dict[tuple[str, str] | str, str]:
        """Where its relations are."""
        own = {each.name: self.relation(each.name) for each in script.materialized}
        return {**own, **{(c.table, "pre"): quote_name(f"{c.table}@pre") for c in self.kinds}}

    def relation(self, name: str) -> str:
        """The table of a cache, or of the view."""
        return quote_name(f"{self.strategy} {self.title} {name}")

    def create(self, connection: Connection) -> float:
        """Fill the view and all caches; the seconds."""
        script = self.script(self.kinds[0])
        start = perf_counter()
        create(connection, script, self.sources(script))
        return perf_counter() - start

    def refresh(self, connection: Connection, changes: Changes) -> Cost:
        """Run the script; counting accesses is not part of its seconds."""
        script = self.script(changes)
        text = _text_seconds(script)
        report = run_in_connection(connection, script, self.sources(script), count_accesses=True)
        seconds = text + sum(each.seconds for each in report.statements)
        counted = accesses_of(script, report)
        return Cost(seconds, text, report.accesses or 0, counted.in_one_step)

    def rows(self, connection: Connection) -> dict[str, int]:
        """How many rows are kept, relation by relation."""
        script = self.script(self.kinds[0])
        return {
            each.name: _number(connection, f"SELECT count(*) FROM {self.relation(each.name)}")
            for each in script.materialized
        }


def _text_seconds(script: Script) -> float:
    start = perf_counter()
    for each in script.computes():
        statements.query(each.query, lambda leaf: quote_name(leaf.name))
    return perf_counter() - start


def _number(connection: Connection, text: str) -> int:
    [(number,)] = connection.execute(text).fetchall()
    return int(number)


def recompute(connection: Connection, data: Data, title: str, view: Node) -> Cost:
    """The view from scratch: every table is read as a whole, and every row written."""
    start = perf_counter()
    text = statements.query(view, lambda leaf: quote_name(leaf.name))
    translated = perf_counter() - start
    rows = f"FROM ({text}) AS rows ({', '.join(map(quote_name, view.names))})"
    connection.execute(f"CREATE OR REPLACE TABLE {_recomputed(title)} AS {rows}")
    seconds = perf_counter() - start
    read = sum(_number(connection, f"SELECT count(*) FROM {name}") for name in data.tables)
    written = _number(connection, f"SELECT count(*) FROM {_recomputed(title)}")
    return Cost(seconds, translated, read + written)


def _recomputed(title: str) -> str:
    return quote_name(f"{RECOMPUTE} {title}")


def check(connection: Connection, kept: Kept) -> None:
    """The view of a strategy is the recomputed one."""
    names = ", ".join(map(quote_name, kept.view.names))
    pairs = (_recomputed(kept.title), kept.relation("view"))
    sums = [
        connection.execute(
            f"SELECT count(*), sum(hash({names})::HUGEINT) FROM {relation}"
        ).fetchall()
        for relation in pairs
    ]
    if sums[0] != sums[1]:
        raise SystemExit(f"{kept.title} by {kept.strategy} is wrong: {sums[1]}, not {sums[0]}")


def measure(
    connection: Connection,
    data: Data,
    keeps: list[Kept],
    size: int,
    rounds: int,
    kinds: Sequence[Changes] = KINDS,
) -> Iterator[tuple[Changes, str, dict[str, Cost]]]:
    """For each kind of change and each view: what every strategy takes."""
    views = {kept.title: kept.view for kept in keeps}
    for changes in kinds:
        found: dict[str, dict[str, list[Cost]]] = {title: {} for title in views}
        for number in range(rounds):
            changes.make(connection, data, size, seed=number + 1)
            for title, view in views.items():
                cost = recompute(connection, data, title, view)
                found[title].setdefault(RECOMPUTE, []).append(cost)
            for kept in keeps:
                cost = kept.refresh(connection, changes)
                found[kept.title].setdefault(kept.strategy, []).append(cost)
                check(connection, kept)
        for title, costs in found.items():
            yield changes, title, {name: typical(each) for name, each in costs.items()}


def typical(costs: list[Cost]) -> Cost:
    """The median of seconds; accesses hardly vary, and are averaged."""
    accesses, in_one_step = (
        round(mean(getattr(cost, name) for cost in costs)) for name in ("accesses", "in_one_step")
    )
    text = median(cost.text for cost in costs)
    return Cost(median(cost.seconds for cost in costs), text, accesses, in_one_step)


# --- what is shown --------------------------------------------------------------------------------


def sizes_table(connection: Connection, keeps: list[Kept], seconds: dict[Kept, float]) -> Table:
    """What every strategy keeps, and how long filling it takes."""
    shown = Table(title="What is kept")
    for column in ("view", "strategy", "rows of caches", "rows of the view", "seconds to fill"):
        shown.add_column(column, justify="left" if column in ("view", "strategy") else "right")
    for kept in keeps:
        rows = kept.rows(connection)
        view = rows.pop("view")
        caches = f"{sum(rows.values()):,}"
        shown.add_row(kept.title, kept.strategy, caches, f"{view:,}", f"{seconds[kept]:.1f}")
    return shown


def add_costs(shown: Table, changes: Changes, title: str, costs: dict[str, Cost]) -> None:
    """The strategies for one kind of change of one view, with ratios to the ID-based one."""
    base = costs["id"]
    first = f"{changes.title}, {title}"
    for name in (*STRATEGIES, RECOMPUTE):
        cost = costs[name]
        shown.add_row(
            first,
            name,
            f"{cost.seconds:.3f}",
            f"{max(cost.in_engine, 0):.3f}",
            f"{cost.seconds / base.seconds:.1f}",
            f"{cost.accesses:,}",
            f"{cost.accesses / max(base.accesses, 1):.1f}",
        )
        first = ""
    shown.add_section()


def verdict(changes: Changes, title: str, costs: dict[str, Cost]) -> str | None:
    """Who beats the ID-based script, by what measure."""
    base = costs["id"]
    faster = [
        f"{name} ({base.seconds / cost.seconds:.1f} times)"
        for name, cost in costs.items()
        if cost.seconds < base.seconds / 1.05
    ]
    fewer = [
        f"{name} ({base.accesses / cost.accesses:.1f} times)"
        for name, cost in costs.items()
        if cost.accesses * 1.05 < base.accesses
    ]
    if not faster and not fewer:
        return None
    told = [f"faster: {', '.join(faster)}"] if faster else []
    told += [f"fewer accesses: {', '.join(fewer)}"] if fewer else []
    return f"  {changes.title}, {title}: {'; '.join(told)}"


def arguments() -> argparse.Namespace:
    """Sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=5_000_000, help="rows of parts")
    parser.add_argument("--devices", type=int, default=5_000_000, help="rows of devices")
    parser.add_argument("--fanout", type=int, default=2, help="devices of each part")
    parser.add_argument("--phones", type=float, default=0.2, help="share of devices in the views")
    parser.add_argument("--changes", type=int, default=200, help="changes of each kind")
    parser.add_argument("--rounds", type=int, default=3, help="batches; the median counts")
    parser.add_argument(
        "--paper", action="store_true", help="the paper's 50M rows of devices_parts (fanout 10)"
    )
    parser.add_argument("--spark", action="store_true", help="on Spark, over Parquet files")
    parser.add_argument("--folder", help="with --spark: where the files are written for a while")
    parser.add_argument("--memory", default="6g", help="with --spark: memory of the driver")
    return parser.parse_args()


def main() -> None:
    """The tables."""
    given, console = arguments(), Console(width=100)
    if given.spark:
        from bench import _spark_devices  # Spark is not needed otherwise

        _spark_devices.main(given)
        return
    fanout = 10 if given.paper else given.fanout
    data = Devices(given.parts, given.devices, fanout, given.phones)
    with duckdb.connect() as connection:
        data.load(connection)
        console.print(
            f"parts {data.parts:,}, devices {data.devices:,}, devices_parts {data.uses:,} rows; "
            f"{data.phones:.0%} phones; {given.changes} changes"
        )
        views = {"V": data.view(False), "V'": data.view(True)}
        keeps = [Kept(name, title, view) for title, view in views.items() for name in STRATEGIES]
        filled = {kept: kept.create(connection) for kept in keeps}
        console.print(sizes_table(connection, keeps, filled))
        shown = Table(title="Refreshes; x: times that of the ID-based script")
        for column in ("changes", "strategy", "seconds", "in DuckDB", "x", "accesses", "x"):
            shown.add_column(
                column, justify="left" if column in ("changes", "strategy") else "right"
            )
        verdicts = []
        for changes, title, costs in measure(connection, data, keeps, given.changes, given.rounds):
            add_costs(shown, changes, title, costs)
            verdicts.append(verdict(changes, title, costs))
        console.print(shown)
        losses = [each for each in verdicts if each]
        told = ["Where the ID-based script does not win (in seconds, less than 2 may be noise):"]
        told += [*losses, *(f"  {n}: {why}" for n, why in WHY.items() if n in " ".join(losses))]
        console.print("\n".join(told) if losses else "The ID-based script wins everywhere.")


if __name__ == "__main__":
    main()
