"""Views that are computed anew: by their optimized query, however their SQL joins."""

from pathlib import Path

import pyarrow as pa
import pytest

from viewkeep import Keeper

ROWS = 3_000
COMMA_JOIN = """
    SELECT c.region, sum(l.price * (1 - l.share)) AS revenue
    FROM customers c, orders o, lines l
    WHERE c.id = o.customer AND l.order_id = o.id AND o.day >= 3 AND 100 / l.share > 1
    GROUP BY c.region"""
"""A cross product of 27 billion rows, were it computed as it is written: the condition that may
fail keeps DuckDB from moving the others."""


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper, numbers = Keeper(tmp_path), range(ROWS)
    regions = [n % 7 for n in numbers]
    for name, columns in {
        "customers": {"id": numbers, "region": regions},
        "orders": {"id": numbers, "customer": reversed(numbers), "day": regions},
        "lines": {"id": numbers, "order_id": numbers, "price": numbers, "share": [2] * ROWS},
    }.items():
        schema = pa.schema([(column, pa.int64()) for column in columns])
        table = pa.table([pa.array(list(each), pa.int64()) for each in columns.values()], schema)
        keeper.create_table(name, table, key=["id"])
    return keeper


def test_comma_joins_are_joins(keeper: Keeper) -> None:
    keeper.create_view("revenue", COMMA_JOIN, strategy="recompute")
    keeper.create_view("kept", COMMA_JOIN)
    keeper.apply("orders", updates=[{"id": 6, "day": 1}])
    reports = {report.view: report.strategy for report in keeper.refresh()}
    assert reports == {"revenue": "recompute", "kept": "id"}
    for view in reports:
        assert keeper.verify(view).ok
    expected = {}
    for n in range(ROWS):
        if n % 7 >= 3 and n != 6:
            region = (ROWS - 1 - n) % 7
            expected[region] = expected.get(region, 0) - n
    for view in reports:
        rows = keeper.read(view).to_pylist()
        assert {row["region"]: row["revenue"] for row in rows} == expected
