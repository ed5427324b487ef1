"""A failure is told in its smallest form."""

from random import Random

from tests.generated.cases import Case
from tests.generated.histories import random_history
from tests.generated.runners import InvalidCaseError
from tests.generated.shrink import shrink
from tests.generated.tables import TABLES
from viewkeep.errors import ViewkeepError
from viewkeep.sql.parse import parse_view

SQL = """
WITH base AS (SELECT o.cid, sum(o.amount) AS total FROM orders o GROUP BY o.cid)
SELECT c.region, max(b.total) AS top, count(*) AS n
FROM customers c LEFT JOIN base b ON c.cid = b.cid AND b.total > 1
WHERE c.tier IN (1, 2) AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.oid = c.cid)
GROUP BY c.region, c.tier HAVING count(*) > 1
"""


def sums_are_wrong(case: Case) -> None:
    """Stands for a defect: a view that sums, once orders have two rows."""
    try:
        parse_view(case.views[0][1], TABLES)
    except ViewkeepError as error:
        raise InvalidCaseError from error
    enough = any(len(state["orders"]) >= 2 for state in case.history.states)
    assert not (enough and "sum(" in case.views[0][1].lower()), "sums are wrong"


def test_what_does_not_matter_is_dropped() -> None:
    case = Case((("v", SQL),), random_history(TABLES, Random(1), 4), seed=1)
    small, failure = shrink(case, sums_are_wrong, seconds=600)
    assert str(failure).startswith("sums are wrong")
    rows = [row for state in small.history.states for table in state.values() for row in table]
    assert len(small.history.states) == 2
    assert len(rows) <= 4
    assert len(small.views[0][1]) < len(SQL) / 3, small
    assert "seed 1" in str(small)
    assert "orders" in str(small)
