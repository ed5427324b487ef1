"""The devices and parts of the paper (id_based_ivm, figures 1, 5 and 11), made inside DuckDB.

Every part is in `fanout` devices, spread over all of them; a share of the devices are phones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb

from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.query.algebra import Node
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view

Connection = duckdb.DuckDBPyConnection


class Data(Protocol):
    """Tables that can be made in a connection."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """The declarations."""

    def load(self, connection: Connection) -> None:
        """Create and fill the tables."""


@dataclass(frozen=True)
class Devices:
    """How much data, and which view: `joins` beyond 2 are 1-to-1, with tables on (did, pid)."""

    parts: int = 5_000_000
    devices: int = 5_000_000
    fanout: int = 2
    phones: float = 0.2
    joins: int = 2
    selection: bool = True

    @property
    def uses(self) -> int:
        """The rows of devices_parts."""
        return self.parts * self.fanout

    @property
    def others(self) -> list[str]:
        """The tables of the joins beyond two."""
        return [f"r{i}" for i in range(1, self.joins - 1)]

    @property
    def tables(self) -> dict[str, Table]:
        """The declarations."""
        pairs = {"did": "int not null", "pid": "int not null"}
        return {
            "parts": Table({"pid": "int", "price": "int not null"}, key=["pid"]),
            "devices": Table({"did": "int", "category": "string not null"}, key=["did"]),
            "devices_parts": Table(pairs, key=["did", "pid"]),
        } | {name: Table(pairs | {"x": "int"}, key=["did", "pid"]) for name in self.others}

    def view(self, grouped: bool) -> Node:
        """V, the parts of phones with their prices; grouped V', the cost of each phone."""
        source = "parts p join devices_parts dp on p.pid = dp.pid join devices d on dp.did = d.did"
        for r in self.others:
            source += f" join {r} on dp.did = {r}.did and dp.pid = {r}.pid"
        where = " where d.category = 'phone'" if self.selection else ""
        wanted = "dp.did, sum(p.price) as cost" if grouped else "dp.did, dp.pid, p.price"
        text = f"select {wanted} from {source}{where}{' group by dp.did' if grouped else ''}"
        return parse_view(text, self.tables)

    def load(self, connection: Connection) -> None:
        """Create and fill the tables."""
        run = connection.execute
        run(
            f"CREATE TABLE parts AS SELECT i::INT AS pid, (hash(i) % 1000)::INT AS price "
            f"FROM range({self.parts}) AS t (i)"
        )
        run(
            f"CREATE TABLE devices AS SELECT i::INT AS did, CASE WHEN hash(i) % 10000 < "
            f"{round(self.phones * 10_000)} THEN 'phone' ELSE 'other' END AS category "
            f"FROM range({self.devices}) AS t (i)"
        )
        # Devices of one part differ: multiples of the stride are distinct below `devices`.
        stride = self.devices // self.fanout
        run(
            f"CREATE TABLE devices_parts AS SELECT ((i * 7919 + k * {stride}) % {self.devices})"
            f"::INT AS did, i::INT AS pid FROM range({self.parts}) AS p (i), "
            f"range({self.fanout}) AS f (k)"
        )
        for name in self.others:
            rows = "SELECT did, pid, pid % 7 AS x FROM devices_parts"
            run(f"CREATE TABLE {quote_name(name)} AS {rows}")


@dataclass(frozen=True)
class Changes:
    """One kind of change of one table: its diff as a query, and how the diff changes the table."""

    title: str
    table: str
    kind: str
    diff: str
    rows: Callable[[Any, int, int], str]
    """From the data, the number of changes and a seed."""
    statement: str
    columns: frozenset[str] = frozenset()

    def make(self, connection: Connection, data: Data, size: int, seed: int = 0) -> None:
        """Draw the diff, keep the table as it was in `<table>@pre`, and change the table."""
        run = connection.execute
        run(f"CREATE OR REPLACE TABLE {quote_name(self.diff)} AS {self.rows(data, size, seed)}")
        run(f"CREATE OR REPLACE TABLE {quote_name(f'{self.table}@pre')} AS FROM {self.table}")
        run(self.statement)


def _updates(data: Devices, size: int, seed: int) -> str:
    return (
        'SELECT pid, price AS "price#pre", price + 1 AS "price#post" FROM parts '
        f"ORDER BY hash(pid + {seed}) LIMIT {size}"
    )


def _deletes(data: Devices, size: int, seed: int) -> str:
    return f"SELECT did, pid FROM devices_parts ORDER BY hash(pid, did, {seed}) LIMIT {size}"


def _inserts(data: Devices, size: int, seed: int) -> str:
    """Parts that are there, in devices that are there but do not have them yet."""
    return (
        f"SELECT did, pid FROM (SELECT (hash(i, {seed}) % {data.devices})::INT AS did, "
        f"(hash({seed}, i) % {data.parts})::INT AS pid FROM range({2 * size}) AS t (i)) AS new "
        "WHERE NOT EXISTS (FROM devices_parts AS dp WHERE dp.did = new.did AND dp.pid = new.pid) "
        f"GROUP BY ALL ORDER BY pid, did LIMIT {size}"
    )


PRICES = Changes(
    "price updates",
    "parts",
    "update",
    "du(parts)",
    _updates,
    'UPDATE parts SET price = d."price#post" FROM "du(parts)" AS d WHERE parts.pid = d.pid',
    frozenset({"price"}),
)
INSERTS = Changes(
    "inserts",
    "devices_parts",
    "insert",
    "d+(devices_parts)",
    _inserts,
    'INSERT INTO devices_parts FROM "d+(devices_parts)"',
)
DELETES = Changes(
    "deletes",
    "devices_parts",
    "delete",
    "d-(devices_parts)",
    _deletes,
    'DELETE FROM devices_parts AS t USING "d-(devices_parts)" AS d '
    "WHERE t.did = d.did AND t.pid = d.pid",
)
