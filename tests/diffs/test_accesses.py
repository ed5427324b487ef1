"""Accesses on the devices and parts of the paper, against its formulas (id_based_ivm, section 6,
tables 2 and 3). With d price updates, the model says

    V    tuple-based  d (a + 2 p)         ID-based  d (1 + p)
    V'   tuple-based  d (a + 2 p g)       ID-based  d (1 + p + 2 p g)

p   rows of V per updated part
g   groups per row of V among them
a   accesses per updated part that the tuple-based script computes its diff of V with

The model takes an update and the reading of what it changes for one step (UPDATE RETURNING). A
script reads kept rows in its computations and finds them again when it applies a diff; the tests
see to it that both cost the same, and count them once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pytest

from bench._devices import PRICES, Connection, Devices
from viewkeep.diffs.generate import generate
from viewkeep.diffs.script import Compute, Script
from viewkeep.execute.duckdb.run_in_connection import create, run_in_connection
from viewkeep.execute.report import RunReport
from viewkeep.query.algebra import Stored
from viewkeep.query.traversal import walk

SMALL = Devices(parts=1000, devices=1000, fanout=10)
CASES = {
    **{f"diff size {d}": (SMALL, d) for d in (100, 300, 500)},
    **{
        f"{j} joins": (Devices(1000, 1000, 10, joins=j, selection=False), 200) for j in (2, 3, 4, 6)
    },
    **{f"phones {s:.0%}": (Devices(1000, 1000, 10, phones=s), 200) for s in (0.06, 0.25, 1.0)},
    **{f"fanout {f}": (Devices(1000, 1000, f), 200) for f in (5, 15, 25)},
}


@pytest.fixture
def connection() -> Iterator[Connection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield connection


@dataclass(frozen=True)
class Measured:
    """Accesses of one refresh: computations from tables and diffs, those that read what is kept,
    and the changes of what is kept."""

    from_tables: int
    from_kept: int
    applied: int

    @property
    def in_one_step(self) -> int:
        """What is read of kept relations and then changed costs once."""
        return self.from_tables + self.applied


def measured(script: Script, report: RunReport) -> Measured:
    kept = {each.name for each in script.materialized}
    readers = {
        each.name
        for each in script.statements
        if isinstance(each, Compute)
        for leaf in walk(each.query)
        if isinstance(leaf, Stored) and leaf.name in kept
    }
    costs = {each.name: each.accesses or 0 for each in report.statements}
    computed = [each.name for each in script.computes()]
    return Measured(
        sum(costs[name] for name in computed if name not in readers),
        sum(costs[name] for name in readers),
        sum(cost for name, cost in costs.items() if name not in computed),
    )


def refreshed(connection: Connection, data: Devices, grouped: bool, size: int) -> list[Measured]:
    """The accesses of the ID-based script and of the tuple-based one for the same updates."""
    data.load(connection)
    view = data.view(grouped)
    kinds = {"parts": [(PRICES.kind, PRICES.columns)]}
    scripts = [generate(view, kinds, tuple_based).script for tuple_based in (False, True)]
    sources = [
        {each.name: f'"{each.name} {number}"' for each in script.materialized}
        | {("parts", "pre"): '"parts@pre"'}
        for number, script in enumerate(scripts)
    ]
    for script, names in zip(scripts, sources, strict=True):
        create(connection, script, names)
    PRICES.make(connection, data, size)
    return [
        measured(script, run_in_connection(connection, script, names, count_accesses=True))
        for script, names in zip(scripts, sources, strict=True)
    ]


def factors(connection: Connection, data: Devices, size: int) -> tuple[float, float]:
    """p and g, from the tables."""
    phones = " AND category = 'phone'" if data.selection else ""
    rows = "SELECT count(*), count(DISTINCT did) FROM devices_parts JOIN devices USING (did) "
    where = f'WHERE pid IN (SELECT pid FROM "du(parts)"){phones}'
    found = connection.execute(rows + where).fetchone()
    assert found is not None
    return found[0] / size, found[1] / found[0]


@pytest.mark.parametrize("case", CASES)
def test_price_updates_of_the_join(connection: Connection, case: str) -> None:
    data, size = CASES[case]
    by_ids, by_tuples = refreshed(connection, data, False, size)
    p, _ = factors(connection, data, size)
    a = by_tuples.from_tables / size
    assert by_ids.in_one_step == pytest.approx(size * (1 + p), rel=0.01)
    ratio = by_tuples.in_one_step / by_ids.in_one_step
    assert ratio == pytest.approx((a + 2 * p) / (1 + p), rel=0.1)
    assert by_ids.from_kept == by_tuples.from_kept == 0


@pytest.mark.parametrize("case", CASES)
def test_price_updates_of_the_sum(connection: Connection, case: str) -> None:
    data, size = CASES[case]
    by_ids, by_tuples = refreshed(connection, data, True, size)
    p, g = factors(connection, data, size)
    a = by_tuples.from_tables / size
    assert by_ids.in_one_step == pytest.approx(size * (1 + p + 2 * p * g), rel=0.01)
    ratio = by_tuples.in_one_step / by_ids.in_one_step
    assert ratio == pytest.approx((a + 2 * p * g) / (1 + p + 2 * p * g), rel=0.1)
    assert by_ids.from_kept == by_ids.applied
    assert by_tuples.from_kept == by_tuples.applied


def test_more_joins_cost_the_tuple_based_script_more_and_the_other_nothing(
    connection: Connection,
) -> None:
    costs = []
    for joins in (2, 4, 6):
        with duckdb.connect() as other:
            data = Devices(1000, 1000, 10, joins=joins, selection=False)
            costs.append(refreshed(other, data, True, 200))
    assert len({by_ids.in_one_step for by_ids, _ in costs}) == 1
    by_tuples = [each.from_tables for _, each in costs]
    assert by_tuples[0] < by_tuples[1] < by_tuples[2]


@pytest.mark.parametrize("case", ["diff size 300", "fanout 25"])
def test_a_tuple_based_diff_takes_a_look_up_and_its_rows_for_each_join(
    connection: Connection, case: str
) -> None:
    """No more: a tuple-based diff that looked up its own rows again would be no fair rival."""
    data, size = CASES[case]
    _, by_tuples = refreshed(connection, data, False, size)
    a = by_tuples.from_tables / size
    assert a <= 1 + data.fanout + 2 * data.fanout
