"""Which views in SQL count distinct values in one pass beside other aggregates."""

import pytest

from viewkeep.query.tables import Table
from viewkeep.sql.stages.plan import plan_sql

TABLES = {
    "sales": Table({"shop": "int", "customer": "string", "price": "decimal(8, 2)", "x": "double"}),
    "shops": Table({"shop": "int not null", "city": "string"}, key=["shop"]),
}


@pytest.mark.parametrize(
    ("sql", "stages"),
    [
        ("SELECT shop, count(DISTINCT customer) AS n FROM sales GROUP BY shop", 1),
        ("SELECT count(DISTINCT customer), count(DISTINCT shop), sum(price) FROM sales", 1),
        (
            "SELECT city, count(DISTINCT customer) AS n, max(price) AS m FROM sales "
            "JOIN shops USING (shop) GROUP BY city HAVING count(*) > 1",
            1,
        ),
        (
            "WITH c AS (SELECT shop, customer FROM sales) SELECT a.shop, a.n, b.m FROM "
            "(SELECT shop, count(DISTINCT customer) AS n FROM c GROUP BY shop) a JOIN "
            "(SELECT shop, count(*) AS m FROM c GROUP BY shop) b ON a.shop = b.shop",
            3,  # a NULL shop is a group of each, and no row of the join
        ),
        ("SELECT shop, count(DISTINCT x) AS n FROM sales GROUP BY shop", 2),
        ("SELECT shop, sum(DISTINCT price) AS n FROM sales GROUP BY shop", 2),
        ("SELECT count(DISTINCT customer, price) AS n FROM sales", 2),
    ],
)
def test_distinct_values_are_counted_in_one_stage_where_they_have_an_order(sql, stages):
    plan = plan_sql(sql, TABLES)
    assert len(plan.stages) == stages, [str(each.query) for each in plan.stages]
