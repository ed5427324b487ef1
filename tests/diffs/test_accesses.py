"""Accesses on the devices and parts of the paper, against its formulas (bench/_accesses.py).

The model takes an update and the reading of what it changes for one step; the tests see to it
that both cost the same, and count them once.
"""

from collections.abc import Iterator

import duckdb
import pytest

from bench._accesses import Accesses, accesses_of, model_factors
from bench._devices import PRICES, Connection, Devices
from viewkeep.diffs.generate import generate
from viewkeep.execute.duckdb.run_in_connection import create, run_in_connection

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


def refreshed(connection: Connection, data: Devices, grouped: bool, size: int) -> list[Accesses]:
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
        accesses_of(script, run_in_connection(connection, script, names, count_accesses=True))
        for script, names in zip(scripts, sources, strict=True)
    ]


@pytest.mark.parametrize("case", CASES)
def test_price_updates_of_the_join(connection: Connection, case: str) -> None:
    data, size = CASES[case]
    by_ids, by_tuples = refreshed(connection, data, False, size)
    p, _ = model_factors(connection, data, size)
    a = by_tuples.from_tables / size
    assert by_ids.in_one_step == pytest.approx(size * (1 + p), rel=0.01)
    ratio = by_tuples.in_one_step / by_ids.in_one_step
    assert ratio == pytest.approx((a + 2 * p) / (1 + p), rel=0.1)
    assert by_ids.from_kept == by_tuples.from_kept == 0


@pytest.mark.parametrize("case", CASES)
def test_price_updates_of_the_sum(connection: Connection, case: str) -> None:
    data, size = CASES[case]
    by_ids, by_tuples = refreshed(connection, data, True, size)
    p, g = model_factors(connection, data, size)
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
