"""Random small tables with NULLs and duplicates, in Python and in DuckDB."""

import random
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import sqlglot

from tests.sql.evaluate import Bag, Row
from viewkeep.query.tables import Table

TABLES = {
    "r": Table({"a": "int", "b": "int", "s": "string"}),
    "t": Table({"b": "int", "c": "int not null", "d": "date"}),
    "u": Table({"c": "bigint", "x": "double", "m": "decimal(8, 2)"}),
    "parts": Table({"pid": "int", "price": "int not null"}, key=["pid"]),
    "devices": Table({"did": "int", "category": "string not null"}, key=["did"]),
    "devices_parts": Table(
        {"did": "int", "pid": "int"},
        key=["did", "pid"],
        foreign_keys=["did -> devices.did", "pid -> parts.pid"],
    ),
    "edge": Table({"source": "int not null", "target": "int not null"}),
}
DATES = [date(2024, 1, 31), date(2024, 2, 29), date(2023, 12, 1)]
WORDS = ["x", "yy", " Ab ", "phone"]


def random_data(seed: int) -> dict[str, list[Row]]:
    """Rows for every table; small domains, so that joins and groups meet."""
    rng = random.Random(seed)

    def pick(*choices: Any) -> Any:
        return rng.choice(choices)

    def rows(make: Any, most: int = 7) -> list[Row]:
        return [make() for _ in range(rng.randint(0, most))]

    def keyed(make: Any, width: int) -> list[Row]:
        return list({row[:width]: row for row in rows(make, 6)}.values())

    return {
        "r": rows(lambda: (pick(None, 1, 2, 3), pick(None, 1, 2), pick(None, *WORDS))),
        "t": rows(lambda: (pick(None, 1, 2, 3), pick(0, 1, 5), pick(None, *DATES))),
        "u": rows(lambda: (pick(None, 1, 5), pick(None, 0.5, -2.0), pick(None, Decimal("1.25")))),
        "parts": keyed(lambda: (pick(1, 2, 3, 4), pick(10, 20)), 1),
        "devices": keyed(lambda: (pick(1, 2, 3), pick("phone", "tablet")), 1),
        "devices_parts": keyed(lambda: (pick(1, 2, 3), pick(1, 2, 3, 4)), 2),
        "edge": rows(lambda: (pick(1, 2, 3), pick(1, 2, 3))),
    }


class Oracle:
    """DuckDB's answer to a Spark SQL query, as a bag."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        for name, table in TABLES.items():
            columns = ", ".join(f"{f.name} {f.type}" for f in table.columns)
            self._connection.execute(f"CREATE TABLE {name} ({columns})")

    def load(self, data: dict[str, list[Row]]) -> None:
        """Replace the rows of all tables."""
        for name, rows in data.items():
            self._connection.execute(f"DELETE FROM {name}")
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)

    def answer(self, sql: str) -> Bag:
        """The rows of a query with their multiplicities."""
        [text] = sqlglot.transpile(sql, read="spark", write="duckdb")
        return normalized(Counter(self._connection.execute(text).fetchall()))


def normalized(bag: Bag) -> Bag:
    """Numbers as rounded floats, since the two sides have different number types."""
    result: Bag = Counter()
    for row, count in bag.items():
        result[tuple(_plain(value) for value in row)] += count
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return round(float(value), 4) + 0.0
    if isinstance(value, datetime):
        return value.date()  # DuckDB's date + interval is a timestamp
    return value
