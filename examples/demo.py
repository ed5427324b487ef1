"""A tour of Viewkeep in two acts, run by `make demo`.

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
from viewkeep.report.page import analysis_page
from viewkeep.report.workload import analysis_line, workload_page

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


class Kept:
    """The result of Q() = R(..) * S(..) * ..., kept by first-order deltas: dQ = dR * S * ..."""

    def __init__(self, query: str) -> None:
        self._relations = empty_relations(query)
        self._value = 0
        for relation in self._relations.values():
            for column in relation.schema:
                relation.index_on([column])  # so that a delta meets only the rows that match it

    def update(self, name: str, row: Row, multiplicity: int = 1) -> None:
        """Insert a row, or delete it where the multiplicity is negative."""
        changed = self._relations[name]
        delta = vk.Relation.from_mapping(changed.schema, {row: multiplicity})
        others = (other for other in self._relations.values() if other is not changed)
        self._value += total(reduce(mul, others, delta))
        changed.add(row, multiplicity)

    def value(self) -> int:
        """The result now."""
        return self._value


def recompute(query: str, rows: Mapping[tuple[str, Row], int]) -> int:
    """The result from scratch."""
    relations = empty_relations(query)
    for (name, row), multiplicity in rows.items():
        relations[name].add(row, multiplicity)
    return total(reduce(mul, relations.values()))


def empty_relations(query: str) -> dict[str, vk.Relation[int]]:
    """A relation for each atom of a query without self-joins."""
    return {atom.relation: vk.Relation(atom.variables) for atom in vk.parse(query).atoms}


def total(relation: vk.Relation[int]) -> int:
    """The sum of all multiplicities."""
    return relation.marginalise(relation.schema).lookup(())


def show_one_update(console: Console) -> None:
    """The triangle count of a small database: deleting one row twice takes it from 19 to 13."""
    kept = Kept(CYCLE)
    apply(kept, [("R", ("a1", "b1"), 2), ("R", ("a2", "b1"), 3)])
    apply(kept, [("S", ("b1", "c1"), 2), ("S", ("b1", "c2"), 1)])
    apply(kept, [("T", ("c1", "a1"), 1), ("T", ("c2", "a1"), 3), ("T", ("c2", "a2"), 3)])
    before = kept.value()
    kept.update("R", ("a2", "b1"), -2)
    console.print(f"\n{CYCLE}\n  delete (a2, b1) from R, twice: {before} -> {kept.value()}\n")


def show_many_updates(console: Console) -> None:
    """A stream of inserts and deletes, compared with the result from scratch as it runs."""
    console.print(f"{PAIRS}\n  {UPDATES:,} random inserts and deletes, one at a time")
    kept, rows, updates = Kept(PAIRS), Counter[tuple[str, Row]](), list(random_updates())
    spent = 0.0
    with stream_display(console) as progress:
        task = progress.add_task("", total=UPDATES, rate=0, result=0, checks=0)
        for checks, start in enumerate(range(0, UPDATES, CHECK_EVERY), start=1):
            batch = updates[start : start + CHECK_EVERY]
            spent += apply(kept, batch)
            for name, row, multiplicity in batch:
                rows[name, row] += multiplicity
            check(kept.value(), recompute(PAIRS, rows))
            done = start + len(batch)
            progress.update(
                task, completed=done, rate=done / spent, result=kept.value(), checks=checks
            )
    started = perf_counter()
    recompute(PAIRS, rows)
    fresh = perf_counter() - started
    console.print(f"  one update: {1e3 * spent / UPDATES:.2f} ms, all anew: {1e3 * fresh:.0f} ms")


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


def apply(kept: Kept, updates: Iterable[Update]) -> float:
    """Make the updates and tell how many seconds they took."""
    started = perf_counter()
    for update in updates:
        kept.update(*update)
    return perf_counter() - started


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
