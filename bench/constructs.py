"""Every construct of SQL, with an example, how a view with it is kept, and by which engines.

    python -m bench.constructs            prints the table
    python -m bench.constructs --docs     writes docs/sql.md

The answers are those of the planner for the examples; nothing is run.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from viewkeep.diffs.decide import Decision, decide
from viewkeep.errors import UnsupportedError, ViewkeepError
from viewkeep.execute.duckdb.exact import inexact
from viewkeep.query.algebra import GroupBy, Node, Window
from viewkeep.query.traversal import walk
from viewkeep.sql.parse import parse_view
from viewkeep.sql.schema import read_schema
from viewkeep.sql.verbatim import read_verbatim
from viewkeep.sql.view_statement import read_view_statement

PAGE = Path(__file__).resolve().parents[1] / "docs" / "sql.md"
TABLES = """
CREATE TABLE orders (id INT, customer INT, day DATE, at TIMESTAMP, amount DECIMAL(10, 2),
    state STRING, weight DOUBLE, tags ARRAY<STRING>, prices MAP<STRING, INT>,
    place STRUCT<city: STRING, zip: INT>, PRIMARY KEY (id));
CREATE TABLE customers (id INT, name STRING, country STRING, PRIMARY KEY (id));
"""
CONSTRUCTS: dict[str, dict[str, str]] = {
    "Rows and columns": {
        "WHERE": "SELECT id, amount FROM orders WHERE state = 'open' AND amount BETWEEN 1 AND 9",
        "expressions, CASE, CAST": "SELECT id, CASE WHEN amount > 5 THEN 'x' END AS c FROM orders",
        "columns without a name": "SELECT id, amount * 2 FROM orders",
        "t.*, * EXCEPT": "SELECT o.* EXCEPT (tags) FROM orders o",
        "columns of one name (id, id_2)": (
            "SELECT o.*, c.* FROM orders o JOIN customers c ON c.id = o.customer"
        ),
        "lateral column aliases": "SELECT id, amount * 2 AS a, a + 1 AS b FROM orders",
        "DISTINCT": "SELECT DISTINCT state FROM orders",
        "comments, backticks": "SELECT `id` /* the key */ FROM orders -- all",
        "CREATE VIEW ... AS": "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id FROM orders",
        "VALUES": "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(x, y)",
        "range()": "SELECT o.id, r.id AS n FROM orders o JOIN range(1, 4) r ON r.id <= o.customer",
        "SELECT without FROM": "SELECT 1 AS one UNION ALL SELECT id FROM customers",
        "ORDER BY alone (left out)": "SELECT id FROM orders ORDER BY amount",
        "DISTRIBUTE, SORT, CLUSTER BY (left out)": "SELECT id FROM orders DISTRIBUTE BY customer "
        "SORT BY day",
        "TABLE": "TABLE customers",
        "LIKE ANY, LIKE ALL, ESCAPE": "SELECT id FROM orders WHERE state LIKE ANY ('o%', '%d') "
        "OR state LIKE '!_%' ESCAPE '!'",
        "rows of values": "SELECT id FROM orders WHERE (customer, state) IN ((1, 'open'), (2, "
        "'paid')) AND (customer, id) > (1, 2)",
        "texts of other values": "SELECT concat(id, '-', state) AS code FROM orders",
    },
    "Joins": {
        "INNER JOIN ... ON": "SELECT o.id, c.name FROM orders o JOIN customers c "
        "ON c.id = o.customer",
        "comma joins": "SELECT o.id, c.name FROM orders o, customers c WHERE c.id = o.customer",
        "USING, NATURAL": "SELECT id, name FROM orders JOIN customers USING (id)",
        "LEFT, RIGHT, FULL JOIN": "SELECT o.id, c.id AS c FROM orders o FULL JOIN customers c "
        "ON c.id = o.customer",
        "CROSS JOIN": "SELECT o.id, c.id AS c FROM orders o CROSS JOIN customers c",
        "LEFT SEMI, LEFT ANTI JOIN": "SELECT id FROM customers c LEFT ANTI JOIN orders o "
        "ON c.id = o.customer",
        "joins by inequality": "SELECT o.id, c.id AS c FROM orders o JOIN customers c "
        "ON c.id < o.customer",
        "LATERAL with LIMIT": "SELECT c.id, q.day FROM customers c LEFT JOIN LATERAL (SELECT o.day "
        "FROM orders o WHERE o.customer = c.id ORDER BY o.day DESC LIMIT 2) q ON TRUE",
        "LATERAL subqueries": "SELECT c.id, q.n FROM customers c, LATERAL (SELECT count(*) AS n "
        "FROM orders o WHERE o.customer = c.id) q",
        "set operations in LATERAL": "SELECT c.id, q.x FROM customers c, LATERAL (SELECT "
        "o.id AS x FROM orders o WHERE o.customer = c.id EXCEPT SELECT c.id + 1) q",
        "LATERAL with outer values": "SELECT c.id, q.n FROM customers c, LATERAL (SELECT "
        "o.id + c.id AS n FROM orders o WHERE o.customer = c.id ORDER BY o.id LIMIT 1) q",
    },
    "Groups": {
        "GROUP BY, sum, count, avg": "SELECT customer, sum(amount), avg(amount), count(*) "
        "FROM orders GROUP BY customer",
        "min, max, stddev, median": "SELECT customer, min(day), stddev(weight) FROM orders "
        "GROUP BY customer",
        "DISTINCT, FILTER": "SELECT customer, count(DISTINCT state), sum(amount) FILTER "
        "(WHERE state = 'open') FROM orders GROUP BY customer",
        "aggregates without GROUP BY": "SELECT count(*), sum(amount) FROM orders",
        "HAVING": "SELECT customer FROM orders GROUP BY customer HAVING sum(amount) > 100",
        "GROUP BY ALL, positions": "SELECT customer, state, count(*) FROM orders GROUP BY ALL",
        "ROLLUP, CUBE": "SELECT customer, state, sum(amount) FROM orders "
        "GROUP BY ROLLUP (customer, state)",
        "GROUPING SETS": "SELECT customer, state, grouping(state), sum(amount) FROM orders "
        "GROUP BY GROUPING SETS ((customer), (state), ())",
        "PIVOT": "SELECT * FROM (SELECT customer, state, amount FROM orders) "
        "PIVOT (sum(amount) FOR state IN ('open', 'paid'))",
        "UNPIVOT": "SELECT * FROM (SELECT id, customer, id AS other FROM orders) "
        "UNPIVOT (value FOR name IN (customer, other))",
    },
    "Windows and first rows": {
        "ranking with PARTITION BY": "SELECT id, rank() OVER (PARTITION BY customer ORDER BY day) "
        "FROM orders",
        "lag, lead, first_value": "SELECT id, lag(amount) OVER (PARTITION BY customer ORDER BY id) "
        "FROM orders",
        "aggregates over frames": "SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY id "
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM orders",
        "windows without PARTITION BY": "SELECT id, rank() OVER (ORDER BY day) FROM orders",
        "QUALIFY": "SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY customer "
        "ORDER BY day DESC) = 1",
        "ORDER BY ... LIMIT, OFFSET": "SELECT id FROM orders ORDER BY amount DESC LIMIT 10",
    },
    "Subqueries": {
        "derived tables, WITH": "WITH q AS (SELECT customer, sum(amount) AS s FROM orders "
        "GROUP BY customer) SELECT c.name, q.s FROM customers c JOIN q ON q.customer = c.id",
        "scalar": "SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
        "correlated scalar": "SELECT id, (SELECT count(*) FROM orders o WHERE o.customer = c.id) "
        "AS n FROM customers c",
        "EXISTS, IN": "SELECT id FROM customers WHERE id IN (SELECT customer FROM orders)",
        "NOT IN, NOT EXISTS": "SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM "
        "orders)",
        "EXISTS or IN in expressions": "SELECT id, id IN (SELECT customer FROM orders) AS buys "
        "FROM customers",
        "correlated by inequality": "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM orders p "
        "WHERE p.customer = o.customer AND p.amount > o.amount)",
        "WITH RECURSIVE": "WITH RECURSIVE q(n) AS (SELECT id FROM customers UNION ALL "
        "SELECT n + 1 FROM q WHERE n < 5) SELECT n FROM q",
    },
    "Set operations": {
        "UNION [ALL]": "SELECT id FROM orders UNION SELECT id FROM customers",
        "EXCEPT, INTERSECT": "SELECT id FROM orders EXCEPT SELECT id FROM customers",
        "EXCEPT ALL, INTERSECT ALL": "SELECT state FROM orders EXCEPT ALL SELECT name "
        "FROM customers",
    },
    "Nested values": {
        "arrays, maps, structs as columns": "SELECT id, tags, place FROM orders",
        "fields and elements": "SELECT id, place.city, prices['a'], tags[0] FROM orders",
        "groups by arrays, structs": "SELECT tags, place, count(*) FROM orders "
        "GROUP BY tags, place",
        "joins by arrays, structs": "SELECT a.id, b.id AS other FROM orders a JOIN orders b "
        "ON a.tags = b.tags",
        "min, max, < of arrays, structs": "SELECT state, min(tags), max(place) FROM orders "
        "WHERE tags < array('b') GROUP BY state",
        "explode with a condition": "SELECT id, tag FROM orders LEFT JOIN LATERAL "
        "explode(tags) t(tag) ON tag > state",
        "explode, LATERAL VIEW": "SELECT id, tag FROM orders LATERAL VIEW explode(tags) t AS tag",
        "explode in the select list": "SELECT id, explode(tags) AS tag FROM orders",
        "stack": "SELECT id, stack(2, 'id', id, 'customer', customer) AS (name, value) FROM orders",
        "fields of a struct by *": "SELECT id, place.* FROM orders",
    },
    "Time": {
        "units of time": "SELECT id, datediff(MONTH, day, at) AS m, dateadd(HOUR, 2, at) AS later "
        "FROM orders",
        "time between two moments": "SELECT a.id, b.id AS next FROM orders a JOIN orders b "
        "ON b.at - a.at < INTERVAL 1 HOUR",
        "calendars": "SELECT explode(sequence(DATE'2024-01-01', DATE'2024-12-31', INTERVAL 1 "
        "MONTH)) AS month",
        "the clock in comparisons": "SELECT id FROM orders WHERE day > current_date() - 7",
        "the clock elsewhere": "SELECT id, datediff(current_date(), day) FROM orders",
    },
    "Never": {
        "random values": "SELECT id, rand() FROM orders",
        "samples": "SELECT id FROM orders TABLESAMPLE (10 PERCENT)",
        "versions of tables": "SELECT id FROM orders VERSION AS OF 1",
    },
}


@dataclass(frozen=True)
class Line:
    """One construct."""

    name: str
    example: str
    kept: str
    engines: str


def lines(part: str) -> Iterator[Line]:
    """The constructs of one part."""
    tables = read_schema(TABLES)
    for name, sql in CONSTRUCTS[part].items():
        try:
            node = parse_view(read_view_statement(sql).query, tables, has_clock=True)
        except UnsupportedError as refusal:
            yield Line(name, sql, *_fallback(sql, refusal))
        except ViewkeepError as error:
            yield Line(name, sql, f"refused: {_first_line(error)}", "-")
        else:
            yield Line(name, sql, _way(decide(node), node), _engines(node))


def _fallback(sql: str, refusal: UnsupportedError) -> tuple[str, str]:
    try:
        read_verbatim(sql, read_schema(TABLES), refusal)
    except ViewkeepError as error:
        return f"refused: {_first_line(error)}", "-"
    return "computed anew when its inputs change", "Spark"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _way(decision: Decision, node: Node) -> str:
    if decision.strategy == "recompute":
        return f"computed anew: {decision.reason}"
    root = decision.plan.root if decision.plan is not None else node
    windows = [each for each in walk(root) if isinstance(each, Window)]
    if any(each.limit is not None for each in windows):
        return "incremental: from the first rows and what changes"
    if any(not each.partition_by for each in windows):
        return "incremental; that operator is computed anew"
    if windows:
        return "incremental: the partitions touched"
    if any(isinstance(each, GroupBy) for each in walk(node)):
        return "incremental: by differences, or the groups touched"
    return "incremental"


def _engines(node: Node) -> str:
    reason = inexact(node)
    return "DuckDB, Spark" if reason is None else f"Spark ({reason})"


def page() -> str:
    """The page of the docs."""
    parts = [
        "# SQL that views may use",
        "Made by `python -m bench.constructs --docs` from what the planner answers for the "
        "examples; do not edit. The SQL is Spark's\n(ANSI mode). *Incremental* views read what "
        "changes and what it joins with; the others are computed as a whole when one of\n"
        "their inputs has changed, and `explain` and `status` tell why. Where DuckDB is not named, "
        "a lake without Spark refuses the\nview. The functions are on [a page of their "
        "own](functions.md); [whole benchmarks](coverage.md) on another.",
    ]
    for part in CONSTRUCTS:
        rows = [
            f"| {line.name} | `{line.example.replace('|', chr(92) + '|')}` | {line.kept} | "
            f"{line.engines} |"
            for line in lines(part)
        ]
        header = ["| construct | example | how it is kept | engines |", "|---|---|---|---|"]
        parts += [f"## {part}", "\n".join([*header, *rows])]
    tables = "\n".join(line.rstrip() for line in TABLES.strip().splitlines())
    parts += ["The tables of the examples:", f"```sql\n{tables}\n```"]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--docs", action="store_true", help="write docs/sql.md")
    if parser.parse_args().docs:
        PAGE.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
