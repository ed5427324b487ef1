"""A tour of what Viewkeep does in one process, in two acts.

1. Analysis: how fast can a query be maintained, why not faster, what would help?
2. Maintenance: a result that stays right while rows come and go, one at a time.
"""

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from operator import mul
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

import viewkeep as vk
from viewkeep.report.query.page import analysis_page
from viewkeep.report.query.workload import analysis_line, workload_page

JOIN = "Join(a, b, c) = R(a, b) * S(b, c)"
CYCLE = "Cycle() = R(a, b) * S(b, c) * T(c, a)"
SPENT = "Spent(area; sum(price)) = Customer(c, area) * Order(o, c) * Line(o, price)"
KEYS = ["Customer.c", "Order.o"]
SQL = """
  SELECT c.city, sum(b.price) AS revenue
  FROM customers c JOIN bookings b ON b.cid = c.cid
  GROUP BY c.city
"""
TABLES = {
    "customers": vk.Table({"cid": "int", "city": "string"}, key=["cid"]),
    "bookings": vk.Table({"bid": "int", "cid": "int", "price": "int not null"}, key=["bid"]),
}

PAIRS = "Pairs() = R(a, b) * S(b, c)"
UPDATES, CHECK_EVERY = 20_000, 500

Row = tuple[object, ...]
Update = tuple[str, Row, int]
"""A relation, a row, and how often it is inserted; a negative number deletes it."""


def main() -> None:
    """Both acts; where the output is no terminal, in plain lines."""
    console = Console(highlight=False)
    console.width = min(console.width, 100)
    console.rule("1. Analysis: what is possible, before anything runs")
    show_queries(console)
    console.rule("2. Maintenance: a result that stays right")
    show_one_update(console)
    show_many_updates(console)


# --- analysis -------------------------------------------------------------------------------------


def show_queries(console: Console) -> None:
    """Five queries in a table, then one of them in full."""
    console.print(f"\n{JOIN}\n{CYCLE}\n{SPENT}")
    console.print(f"Keyed is Spent with the keys {' and '.join(KEYS)}.\nView is SQL:{SQL}", end="")
    analyses = [
        vk.analyze(JOIN),
        vk.analyze(CYCLE),
        vk.analyze(SPENT),
        vk.analyze(replace(vk.parse(SPENT), name="Keyed"), keys=KEYS),
        vk.analyze(replace(vk.from_sql(SQL, TABLES), name="View")),
    ]
    console.print(workload_page([analysis_line(analysis) for analysis in analyses]))
    console.print("One of them in full:")
    console.print(analysis_page(vk.analyze(CYCLE)))


# --- maintenance ----------------------------------------------------------------------------------


def show_one_update(console: Console) -> None:
    """The triangle count of a small database: deleting one row twice takes it from 19 to 13."""
    live = vk.maintain(CYCLE)
    apply(live, [("R", ("a1", "b1"), 2), ("R", ("a2", "b1"), 3)])
    apply(live, [("S", ("b1", "c1"), 2), ("S", ("b1", "c2"), 1)])
    apply(live, [("T", ("c1", "a1"), 1), ("T", ("c2", "a1"), 3), ("T", ("c2", "a2"), 3)])
    before = live.value()
    live.update("R", ("a2", "b1"), -2)
    console.print(f"\n{CYCLE}\n  delete (a2, b1) from R, twice: {before} -> {live.value()}\n")


def show_many_updates(console: Console) -> None:
    """A stream of inserts and deletes, compared with the result from scratch as it runs."""
    console.print(f"{PAIRS}\n  {UPDATES:,} random inserts and deletes, one at a time")
    live, rows, updates = vk.maintain(PAIRS), Counter[tuple[str, Row]](), list(random_updates())
    spent = 0.0
    with stream_display(console) as progress:
        task = progress.add_task("", total=UPDATES, rate=0, result=0, checks=0)
        for checks, start in enumerate(range(0, UPDATES, CHECK_EVERY), start=1):
            batch = updates[start : start + CHECK_EVERY]
            spent += apply(live, batch)
            for name, row, multiplicity in batch:
                rows[name, row] += multiplicity
            check(live.value(), recompute(PAIRS, rows))
            done = start + len(batch)
            progress.update(
                task, completed=done, rate=done / spent, result=live.value(), checks=checks
            )
    started = perf_counter()
    recompute(PAIRS, rows)
    fresh = perf_counter() - started
    console.print(f"  one update: {1e3 * spent / UPDATES:.3f} ms, join anew: {1e3 * fresh:.0f} ms")


def stream_display(console: Console) -> Progress:
    """A bar with the speed, the result and the number of checks, redrawn on terminals."""
    return Progress(
        TextColumn(" "),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[rate]:,.0f} updates/s"),
        TextColumn("result {task.fields[result]:,}"),
        TextColumn("[green]{task.fields[checks]} checks ok"),
        console=console,
    )


def apply(live: vk.Maintainer, updates: Iterable[Update]) -> float:
    """Make the updates and tell how many seconds they took."""
    started = perf_counter()
    for update in updates:
        live.update(*update)
    return perf_counter() - started


def recompute(query: str, rows: Mapping[tuple[str, Row], int]) -> int:
    """The result from scratch: join everything, then add up the multiplicities."""
    relations = {atom.relation: vk.Relation(atom.variables) for atom in vk.parse(query).atoms}
    for (name, row), multiplicity in rows.items():
        relations[name].add(row, multiplicity)
    joined = reduce(mul, relations.values())
    return joined.marginalise(joined.schema).lookup(())


def check(kept: int, recomputed: int) -> None:
    """The promise: what is kept equals what a fresh computation gives."""
    if kept != recomputed:
        sys.exit(f"wrong: kept {kept:,}, but from scratch {recomputed:,}")


def random_updates(seed: int = 7) -> Iterator[Update]:
    """Inserts into R and S, and deletes of rows that are there."""
    chance = random.Random(seed)
    present: list[tuple[str, Row]] = []
    for _ in range(UPDATES):
        if present and chance.random() < 0.4:
            yield *present.pop(chance.randrange(len(present))), -1
        else:
            own, shared = chance.randrange(1000), chance.randrange(100)
            fresh = chance.choice([("R", (own, shared)), ("S", (shared, own))])
            present.append(fresh)
            yield *fresh, 1


if __name__ == "__main__":
    main()
