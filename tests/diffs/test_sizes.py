"""Estimates of sizes beside the sizes of random data."""

import random
from collections import Counter

import pytest

from viewkeep.diffs.costs.joined_rows import joined_rows
from viewkeep.diffs.costs.sizes import Size, SizeEstimates, Spread, size_of_table
from viewkeep.query.algebra import AggregateColumn, GroupBy, Join, Scan, Select, SemiJoin
from viewkeep.query.expressions import Call, Column, literal
from viewkeep.query.tables import Table

EDGES = Table({"id": "int", "src": "int", "dst": "int"}, key=["id"])


def spread(values: list[int]) -> Spread:
    counts = Counter(values)
    return Spread(len(counts), sum(c * c for c in counts.values()) / len(values) ** 2)


def scan(alias: str) -> Scan:
    return Scan("e", EDGES, alias)


def path() -> Join:
    return Join(scan("a"), scan("b"), Call("=", (Column("a.dst"), Column("b.src"))))


@pytest.mark.parametrize("hub", [False, True])
def test_joins_of_many_to_many(hub: bool) -> None:
    rng = random.Random(1)
    draws = [(rng.randrange(40), rng.randrange(40)) for _ in range(1200)]
    if hub:
        draws = [(0, y) if i % 3 else (x, 0) for i, (x, y) in enumerate(draws)]
    sources, targets = [x for x, _ in draws], [y for _, y in draws]
    spreads = {"src": spread(sources), "dst": spread(targets)}
    sizes = SizeEstimates({"e": size_of_table(EDGES, len(draws), spreads)})
    out, into = Counter(sources), Counter(targets)
    real = sum(into[v] * out[v] for v in into)
    # by Cauchy and Schwarz never too few, but for values that meet by chance
    assert 0.9 * real <= sizes.of(path()).rows <= 3 * real


def test_keys_and_groups() -> None:
    table = size_of_table(EDGES, 1000, {"src": Spread.even(50), "dst": Spread.even(20)})
    sizes = SizeEstimates({"e": table})
    by_key = Join(scan("a"), scan("b"), Call("=", (Column("a.src"), Column("b.id"))))
    assert sizes.of(by_key).rows == 1000
    assert sizes.of(by_key).is_unique(["a.id"])
    groups = GroupBy(scan("a"), ("a.src", "a.dst"), (AggregateColumn("n", "count"),))
    assert sizes.of(groups).rows == 1000
    assert sizes.of(GroupBy(scan("a"), ("a.dst",), ())).rows == 20
    assert sizes.of(GroupBy(scan("a"), (), (AggregateColumn("n", "count"),))).rows == 1
    same = Select(scan("a"), Call("=", (Column("a.dst"), literal(3))))
    assert sizes.of(same).rows == 50


def test_diffs_have_partners() -> None:
    sizes = SizeEstimates({"e": size_of_table(EDGES, 1000, {})})
    changed = Select(scan("a"), Call("=", (Column("a.id"), literal(3))))
    partners = Call("=", (Column("a.id"), Column("b.id")))
    assert sizes.of(Join(changed, scan("b"), partners)).rows == pytest.approx(1)
    assert sizes.of(SemiJoin(scan("b"), changed, partners)).rows == pytest.approx(1)
    assert Size(5.0).spread("unknown") == Spread.even(5.0)


def test_rows_of_joins_by_numbers_of_rows() -> None:
    rows = {"f": 9000, "d": 30}
    fact, dimension = Scan("f", EDGES, "f"), Scan("d", EDGES, "d")
    equal = Call("=", (Column("f.src"), Column("d.id")))
    less = Call("<", (Column("d.dst"), literal(5)))
    chosen = Select(dimension, less)
    assert joined_rows(fact, rows) == 0
    assert joined_rows(Join(fact, dimension, equal), rows) == 9000, "one partner for each row"
    assert joined_rows(Join(chosen, fact, equal), rows) == pytest.approx(3000)
    assert joined_rows(Select(Join(fact, dimension, equal), less), rows) == 9000
    assert joined_rows(Join(fact, dimension, less), rows) == 270_000, "all pairs"
    assert joined_rows(SemiJoin(chosen, fact, equal), rows) == 9000, "all are looked up"
    total = GroupBy(dimension, (), (AggregateColumn("n", "count"),))
    one = Join(fact, total, Call("<", (Column("f.src"), Column("n"))))
    assert joined_rows(one, rows) == 9000, "one row of totals"
