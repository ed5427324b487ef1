"""Sums and averages of decimals of every width and scale keep all their digits."""

from decimal import Decimal
from random import Random
from typing import Any

import pytest

from tests.diffs.harness import PlayedView
from viewkeep.changes import ChangeBatch
from viewkeep.query.tables import Table
from viewkeep.sql.parse import parse_view

TYPES = [(p, s) for p in (4, 10, 18, 20, 28, 29, 34, 38) for s in (0, 2, 5, 7, 12, 18, 30) if s < p]
VIEWS = [
    "SELECT g, sum(x) AS s, avg(x) AS a FROM t GROUP BY g",
    "SELECT sum(x) AS s, avg(x) AS a FROM t",
    "SELECT g, sum(x * 1.5) AS s, avg(-x) AS a, sum(DISTINCT x) AS d FROM t GROUP BY g",
    "SELECT sum(m) AS s FROM (SELECT g, sum(x) AS m, avg(x) AS n FROM t GROUP BY g) q",
]


def _value(rng: Random, precision: int, scale: int) -> Decimal | None:
    if rng.random() < 0.1:
        return None
    digits = min(precision, scale + 2)  # few before the point: sums of them do not overflow
    return Decimal(rng.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale)


def _batch(rng: Random, table: Table, rows: dict[Any, Any], kind: tuple[int, int]) -> ChangeBatch:
    """Some of: an insert, a delete, an update within a group, and one that changes groups."""
    number = max(key for (key,) in rows) + 1
    went, valued, moved = rng.sample(list(rows.values()), 3)
    inserts = [(number, number % 2, _value(rng, *kind))]
    updates = [
        (valued, (*valued[:2], _value(rng, *kind))),
        (moved, (moved[0], 1 - moved[1], moved[2])),
    ]
    chosen = rng.choice([(1, 1, 2), (1, 0, 0), (0, 0, 1), (0, 1, 0), (0, 0, 2)])
    changed = [(old, new) for old, new in updates[: chosen[2]] if old != new]
    return ChangeBatch("t", table, inserts[: chosen[0]], [went][: chosen[1]], changed)


@pytest.mark.parametrize("sql", VIEWS)
def test_no_digit_is_lost(sql: str) -> None:
    for number, kind in enumerate(TYPES):
        rng = Random(number)
        table = Table({"k": "int", "g": "int", "x": "decimal({}, {})".format(*kind)}, ["k"])
        rows = {(k,): (k, k % 2, _value(rng, *kind)) for k in range(8)}
        view = PlayedView(parse_view(sql, {"t": table}), {"t": table}, {"t": rows})
        for _ in range(6):
            view.refresh({"t": _batch(rng, table, view.database["t"], kind)})
            view.check()


def test_averages_of_wide_values() -> None:
    """Their sums have more digits than those that averages are divided from."""
    table = Table({"k": "int", "g": "int", "x": "decimal(30, 2)"}, ["k"])
    rows = {(k,): (k, k % 2, Decimal(10**27 + k)) for k in range(4)}
    sql = "SELECT g, avg(x) AS a FROM t GROUP BY g"
    view = PlayedView(parse_view(sql, {"t": table}), {"t": table}, {"t": rows})
    view.refresh({"t": ChangeBatch("t", table, [(9, 1, Decimal(10**27))], [rows[2,]])})
    view.check()
    assert {row[0] for row in view.kept["view"]} == {0, 1}
