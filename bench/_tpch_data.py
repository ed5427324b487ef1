"""TPC-H data of any scale factor and its refresh functions, made by DuckDB.

Sizes, domains and correlations are those of the specification (4.2.3), texts are not: random
values are hashes of the keys, so that the same rows come every time and in every process. Keys of
orders are dense.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from docs import make_tpch

TABLES = make_tpch.read_tables()
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    *(("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4)),
    *(("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2)),
    *(("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0)),
    *(("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3)),
    *(("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3)),
    ("UNITED STATES", 1),
)
LISTS = {
    "colors": "almond antique azure beige black blue blush brown chartreuse chiffon chocolate "
    "coral cyan dark dim dodger drab firebrick forest frosted gainsboro ghost goldenrod green",
    "sizes": "STANDARD SMALL MEDIUM LARGE ECONOMY PROMO",
    "coatings": "ANODIZED BURNISHED PLATED POLISHED BRUSHED",
    "metals": "TIN NICKEL BRASS STEEL COPPER",
    "boxes": "SM LG MED JUMBO WRAP",
    "shapes": "CASE BOX BAG JAR PKG PACK CAN DRUM",
    "segments": "AUTOMOBILE BUILDING FURNITURE MACHINERY HOUSEHOLD",
    "priorities": "1-URGENT 2-HIGH 3-MEDIUM 4-NOT_SPECIFIED 5-LOW",
    "modes": "REG_AIR AIR RAIL SHIP TRUCK MAIL FOB",
    "instructions": "DELIVER_IN_PERSON COLLECT_COD NONE TAKE_BACK_RETURN",
}
"""Words of the specification; an underscore stands for a space."""

_QUERIES = {
    "supplier": """
        SELECT k, 'Supplier#' || k, 'address ' || r(k, 'sa', 100000), r(k, 'nation', 25),
            phone(r(k, 'nation', 25), k), (r(k, 'sb', 1099998) - 99999) / 100,
            CASE WHEN r(k, 'sc', 200) = 0 THEN 'Customer has Complaints' ELSE 'quick' END
        FROM ks""",
    "part": """
        SELECT k, pick(k, 'n1', 'colors') || ' ' || pick(k, 'n2', 'colors') || ' '
                || pick(k, 'n3', 'colors'),
            'Manufacturer#' || (1 + r(k, 'pm', 5)),
            'Brand#' || (1 + r(k, 'pm', 5)) || (1 + r(k, 'pb', 5)),
            pick(k, 't1', 'sizes') || ' ' || pick(k, 't2', 'coatings') || ' '
                || pick(k, 't3', 'metals'),
            1 + r(k, 'ps', 50), pick(k, 'c1', 'boxes') || ' ' || pick(k, 'c2', 'shapes'),
            (90000 + (k // 10) % 20001 + 100 * (k % 1000)) / 100, 'part'
        FROM ks""",
    "partsupp": """
        SELECT k, supplier_of(k, i), 1 + r(k * 4 + i, 'pa', 9999),
            (100 + r(k * 4 + i, 'pc', 99901)) / 100, 'stock'
        FROM ks, range(4) AS t(i)""",
    "customer": """
        SELECT k, 'Customer#' || k, 'address ' || r(k, 'ca', 100000), r(k, 'cn', 25),
            phone(r(k, 'cn', 25), k), (r(k, 'cb', 1099998) - 99999) / 100,
            pick(k, 'cs', 'segments'), 'customer'
        FROM ks""",
    "orders": """
        SELECT k, customer_of(k), CASE WHEN placed(k) < DATE '1995-02-17' THEN 'F'
                WHEN placed(k) > DATE '1995-06-17' THEN 'O' ELSE 'P' END,
            (90000 + r(k, 'ot', 40000000)) / 100, placed(k), pick(k, 'op', 'priorities'),
            'Clerk#' || r(k, 'oc', 1000), 0,
            CASE WHEN r(k, 'om', 100) = 0 THEN 'special packages requests' ELSE 'plain' END
        FROM ks""",
    "lineitem": """
        WITH lines AS (
            SELECT k, i, k * 8 + i AS n, placed(k) AS placed, 1 + r(k * 8 + i, 'lp', parts()) AS p
            FROM ks, range(1, 8) AS t(i) WHERE i <= 1 + r(k, 'lines', 7)
        ), dated AS (
            SELECT *, placed + CAST(1 + r(n, 'ls', 121) AS INT) AS shipped,
                placed + CAST(30 + r(n, 'lc', 61) AS INT) AS committed,
                1 + r(n, 'lq', 50) AS quantity FROM lines
        ), received AS (
            SELECT *, shipped + CAST(1 + r(n, 'lr', 30) AS INT) AS received FROM dated
        )
        SELECT k, p, supplier_of(p, r(n, 'li', 4)), i, quantity,
            quantity * (90000 + (p // 10) % 20001 + 100 * (p % 1000)) / 100,
            r(n, 'ld', 11) / 100, r(n, 'lt', 9) / 100,
            CASE WHEN received > DATE '1995-06-17' THEN 'N'
                WHEN r(n, 'lf', 2) = 0 THEN 'R' ELSE 'A' END,
            CASE WHEN shipped > DATE '1995-06-17' THEN 'O' ELSE 'F' END,
            shipped, committed, received, pick(n, 'lx', 'instructions'), pick(n, 'lm', 'modes'),
            'line'
        FROM received""",
}

UPDATED = {
    "orders": {
        "o_custkey": "customer_of(o_orderkey + {n})",
        "o_orderdate": "placed(o_orderkey + {n})",
        "o_orderpriority": "pick(o_orderkey + {n}, 'op', 'priorities')",
    },
    "lineitem": {
        "l_suppkey": "supplier_of(l_partkey, r(l_orderkey + {n}, 'li', 4))",
        "l_quantity": "1 + r(l_orderkey + {n}, 'lq', 50)",
        "l_shipdate": "l_shipdate + CAST(1 + r(l_orderkey + {n}, 'ls', 90) AS INT)",
        "l_discount": "r(l_orderkey + {n}, 'ld', 11) / 100",
    },
    "customer": {
        "c_nationkey": "r(c_custkey + {n}, 'cn', 25)",
        "c_mktsegment": "pick(c_custkey + {n}, 'cs', 'segments')",
    },
    "supplier": {"s_nationkey": "r(s_suppkey + {n}, 'nation', 25)"},
    "part": {
        "p_brand": "'Brand#' || (1 + r(p_partkey + {n}, 'pm', 5)) || 3",
        "p_size": "1 + r(p_partkey + {n}, 'ps', 50)",
    },
    "partsupp": {"ps_supplycost": "(100 + r(ps_partkey + {n}, 'pc', 99901)) / 100"},
}
"""Columns that queries join, group and filter by, and their new values in round n."""


@dataclass(frozen=True)
class Change:
    """What `apply` is given for one table, as Arrow tables."""

    table: str
    parts: Mapping[str, Any]


@dataclass
class Tpch:
    """Data of one scale factor; rounds of changes never touch an order twice."""

    scale: float
    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)

    def __post_init__(self) -> None:
        self.sizes = {
            name: max(least, round(rows * self.scale))
            for name, rows, least in (
                *(("supplier", 10_000, 10), ("part", 200_000, 20)),
                *(("customer", 150_000, 15), ("orders", 1_500_000, 150)),
            )
        }
        self.inserted, self.deleted = self.sizes["orders"], 0
        words = ", ".join(
            f"'{name}': {[word.replace('_', ' ') for word in text.split()]}"
            for name, text in LISTS.items()
        )
        suppliers, parts = self.sizes["supplier"], self.sizes["part"]
        for macro in (
            "r(k, salt, n) AS CAST(hash(k, salt) % n AS BIGINT)",
            f"word_list(name) AS (MAP {{{words}}})[name]",
            "pick(k, salt, name) AS word_list(name)[1 + r(k, salt, len(word_list(name)))]",
            "phone(nation, k) AS (nation + 10) || '-' || (100 + r(k, 'ph', 900)) || '-0100'",
            f"parts() AS {parts}",
            # Four different ones for every part, also where suppliers are few.
            f"supplier_of(p, i) AS (p + (p - 1) // {suppliers} + i * ({suppliers} // 4)) "
            f"% {suppliers} + 1",
            # A third of the customers has no orders.
            f"customer_of(k) AS 3 * r(k, 'oc', {self.sizes['customer'] // 3}) + 1 + r(k, 'o3', 2)",
            "placed(k) AS DATE '1992-01-01' + CAST(r(k, 'od', 2405) AS INT)",
        ):
            self.connection.execute(f"CREATE OR REPLACE MACRO {macro}")

    def tables(self, folder: Path) -> dict[str, Path]:
        """The tables at first, as Parquet files."""
        return {
            name: self.write_range(name, 1, self.sizes.get(_counted(name), 0), folder)
            for name in TABLES
        }

    def write_range(self, name: str, first: int, last: int, folder: Path) -> Path:
        """The rows of a table for a range of keys, as a Parquet file."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (f"{name}.parquet" if first == 1 else f"{name}-{first}.parquet")
        rows = self._rows(name, first, last)
        self.connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
        return path

    def _rows(self, name: str, first: int, last: int) -> str:
        """The rows of the keys from `first` to `last`, with the declared types."""
        match name:
            case "region":
                values = [(key, region, "") for key, region in enumerate(REGIONS)]
                query = f"VALUES {', '.join(map(str, values))}"
            case "nation":
                nations = [(key, *nation, "") for key, nation in enumerate(NATIONS)]
                query = f"VALUES {', '.join(map(str, nations))}"
            case _:
                keys = f"SELECT range AS k FROM range({first}, {last + 1})"
                query = f"WITH ks AS ({keys}) SELECT * FROM ({_QUERIES[name]})"
        fields = TABLES[name].columns
        typed = ", ".join(f"CAST({f.name} AS {f.type}) AS {f.name}" for f in fields)
        return f"SELECT {typed} FROM ({query}) AS t({', '.join(f.name for f in fields)})"

    # --- changes --------------------------------------------------------------------------------

    def rf1(self, count: int) -> list[Change]:
        """New orders with their lines."""
        first, self.inserted = self.inserted + 1, self.inserted + count
        return [
            Change(name, {"inserts": self._arrow(self._rows(name, first, self.inserted))})
            for name in ("orders", "lineitem")
        ]

    def rf2(self, count: int) -> list[Change]:
        """The oldest orders go, with their lines."""
        first, self.deleted = self.deleted + 1, self.deleted + count
        return [
            Change(name, {"deletes": self._arrow(self._keys(name, first))})
            for name in ("lineitem", "orders")
        ]

    def _keys(self, name: str, first: int) -> str:
        rows = self._rows(name, first, self.deleted)
        return f"SELECT {', '.join(TABLES[name].key)} FROM ({rows})"

    def updates(self, count: int, number: int) -> list[Change]:
        """New values in rows all over the tables; columns of orders and lines alternate."""
        return [self._update(name, count, number) for name in UPDATED]

    def _update(self, name: str, count: int, number: int) -> Change:
        counted = _counted(name)
        first = self.deleted + 1 if counted == "orders" else 1
        last = self.sizes[counted]
        stride = max(1, (last - first + 1) // count)
        start = first + number % stride
        key = TABLES[name].key
        columns = {c: text.format(n=1000 * (number + 1)) for c, text in UPDATED[name].items()}
        fields = {f.name: f for f in TABLES[name].columns}
        new = ", ".join(f"CAST({t} AS {fields[c].type}) AS {c}" for c, t in columns.items())
        rows = self._rows(name, start, last)
        chosen = f"{key[0]} % {stride} = {start % stride}"
        once = f" AND {key[1]} = 1" if name == "lineitem" else ""
        text = f"SELECT {', '.join(key)}, {new} FROM ({rows}) WHERE {chosen}{once} LIMIT {count}"
        return Change(name, {"updates": self._arrow(text)})

    def _arrow(self, text: str) -> Any:
        return self.connection.sql(text).to_arrow_table()


def _counted(name: str) -> str:
    """The table whose keys a table's rows are counted by."""
    return {"lineitem": "orders", "partsupp": "part"}.get(name, name)
