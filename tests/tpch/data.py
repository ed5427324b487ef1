"""A tiny TPC-H database that every query finds rows in, and the changes of its refresh functions.

Values are drawn from the few that the queries ask for (the validation parameters of the
specification) and some that they do not, so that a hundred lines are enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from docs import make_tpch

Row = tuple[Any, ...]
Key = tuple[Any, ...]

TABLES = make_tpch.read_tables()
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = {
    2: ("BRAZIL", 1),
    3: ("CANADA", 1),
    6: ("FRANCE", 3),
    7: ("GERMANY", 3),
    8: ("INDIA", 2),
    18: ("CHINA", 2),
    20: ("SAUDI ARABIA", 4),
}
BRANDS = ("Brand#12", "Brand#23", "Brand#23", "Brand#34", "Brand#45")
CONTAINERS = ("SM CASE", "MED BOX", "MED BOX", "LG CASE", "JUMBO JAR")
TYPES = (
    "ECONOMY ANODIZED STEEL",
    "ECONOMY ANODIZED STEEL",
    "PROMO BURNISHED BRASS",
    "SMALL PLATED BRASS",
    "MEDIUM POLISHED TIN",
)
NAMES = ("forest green", "forest chiffon", "green lace", "red blue")
SIZES = (15, 15, 3, 9, 5)
SEGMENTS = ("BUILDING", "BUILDING", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM")
MODES = ("MAIL", "SHIP", "AIR", "AIR REG")
INSTRUCTIONS = ("DELIVER IN PERSON", "DELIVER IN PERSON", "NONE")
DAYS = (
    date(1993, 7, 20),
    date(1993, 10, 15),
    date(1994, 1, 20),
    date(1994, 5, 2),
    date(1995, 3, 1),
    date(1995, 8, 20),
    date(1995, 12, 20),
)
SUPPLIERS, PARTS, CUSTOMERS = 7, 10, 14


@dataclass(frozen=True)
class Change:
    """What `apply` is given for one table."""

    table: str
    inserts: list[Row] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    deletes: list[Key] = field(default_factory=list)


class Tpch:
    """The rows by table and key; changes are drawn from them and made to them."""

    def __init__(self, seed: int, orders: int = 40) -> None:
        self.rng = Random(seed)
        self.rows: dict[str, dict[Key, Row]] = {name: {} for name in TABLES}
        self._orders = 0
        for key, name in enumerate(REGIONS):
            self._put("region", (key, name, ""))
        for key, (name, region) in NATIONS.items():
            self._put("nation", (key, name, region, ""))
        for table, count in (("supplier", SUPPLIERS), ("part", PARTS), ("customer", CUSTOMERS)):
            for number in range(1, count + 1):
                self._put(table, getattr(self, f"_{table}")(number))
        for _ in range(orders):
            for table, row in self._order():
                self._put(table, row)

    # --- rows -----------------------------------------------------------------------------------

    def _put(self, table: str, row: Row) -> None:
        names = TABLES[table].names
        self.rows[table][tuple(row[names.index(k)] for k in TABLES[table].key)] = row

    def _any(self, values: Any) -> Any:
        return self.rng.choice(list(values))

    def _cents(self, least: int, most: int) -> Decimal:
        return Decimal(self.rng.randint(least, most)) / 100

    def _supplier(self, key: int) -> Row:
        nation = list(NATIONS)[key % len(NATIONS)]
        comment = "Customer has Complaints" if key == SUPPLIERS else "quick"
        balance = self._cents(-999, 99999)
        return key, f"Supplier#{key}", f"address {key}", nation, _phone(nation), balance, comment

    def _part(self, key: int) -> Row:
        drawn = (NAMES, BRANDS, TYPES, SIZES, CONTAINERS)
        name, brand, type_, size, container = (self._any(each) for each in drawn)
        # Partners of a part; foreign keys of lines ask for them.
        for number in range(3):
            supplier = (key + number * 2) % SUPPLIERS + 1
            cost = self._cents(100, 400)
            self._put("partsupp", (key, supplier, self.rng.randint(100, 999), cost, "stock"))
        price = Decimal(90000 + key * 100) / 100
        return key, name, "Manufacturer#1", brand, type_, size, container, price, "part"

    def _customer(self, key: int) -> Row:
        nation, segment = self._any(NATIONS), self._any(SEGMENTS)
        balance = self._cents(-999, 99999)
        name = f"Customer#{key}"
        return key, name, f"address {key}", nation, _phone(nation), balance, segment, "customer"

    def _order(self) -> Iterator[tuple[str, Row]]:
        """An order and its lines; some are large, as Q18 asks."""
        self._orders += 1
        key, placed = self._orders, self._any(DAYS)
        # A third of the customers has no orders (specification, 4.2.3).
        customer = self._any(k for (k,) in self.rows["customer"] if k % 3)
        comment = self._any(["special packages requests", "plain"])
        total = self._cents(100000, 900000)
        status, priority = self._any("FFO"), self._any(PRIORITIES)
        yield "orders", (key, customer, status, total, placed, priority, "Clerk#1", 0, comment)
        large = self.rng.random() < 0.15
        for number in range(1, (7 if large else self.rng.randint(1, 3)) + 1):
            yield "lineitem", self._line(key, number, placed, 45 if large else 1)

    def _line(self, order: int, number: int, placed: date, least: int) -> Row:
        part, supplier = self._any(self.rows["partsupp"])
        shipped, committed = (placed + timedelta(days=self.rng.randint(5, 40)) for _ in range(2))
        received = shipped + timedelta(days=self.rng.randint(1, 30))
        return (
            *(order, part, supplier, number, Decimal(self.rng.randint(least, 50))),
            *(self._cents(100000, 900000), self._cents(4, 8), self._cents(0, 8)),
            *(self._any("RAN"), self._any("OF"), shipped, committed, received),
            *(self._any(INSTRUCTIONS), self._any(MODES), "line"),
        )

    # --- changes --------------------------------------------------------------------------------

    def rf1(self, count: int) -> list[Change]:
        """New orders with their lines."""
        new: dict[str, list[Row]] = {"orders": [], "lineitem": []}
        for _ in range(count):
            for table, row in self._order():
                new[table].append(row)
        return self._made([Change(table, inserts=rows) for table, rows in new.items()])

    def rf2(self, count: int) -> list[Change]:
        """Orders that go, with their lines."""
        gone = self.rng.sample(list(self.rows["orders"]), count)
        lines = [key for key in self.rows["lineitem"] if key[:1] in gone]
        return self._made([Change("lineitem", deletes=lines), Change("orders", deletes=gone)])

    def updates(self, count: int) -> list[Change]:
        """Other values of columns that queries join, group and filter by."""
        nations, customers = list(NATIONS), [k for (k,) in self.rows["customer"]]
        pairs = list(self.rows["partsupp"])
        drawn = {
            "orders": lambda: {
                "o_custkey": self._any(customers),
                "o_orderdate": self._any(DAYS),
                "o_orderpriority": self._any(PRIORITIES),
                "o_orderstatus": self._any("FO"),
            },
            "lineitem": lambda: {
                ("l_partkey", "l_suppkey"): self._any(pairs),
                "l_quantity": Decimal(self.rng.randint(1, 50)),
                "l_shipdate": self._any(DAYS),
                "l_discount": self._cents(4, 8),
                "l_returnflag": self._any("RAN"),
                "l_shipmode": self._any(MODES),
            },
            "customer": lambda: {
                "c_nationkey": self._any(nations),
                "c_mktsegment": self._any(SEGMENTS),
                "c_acctbal": self._cents(-999, 99999),
            },
            "supplier": lambda: {"s_nationkey": self._any(nations), "s_comment": "slow"},
            "part": lambda: {
                "p_brand": self._any(BRANDS),
                "p_container": self._any(CONTAINERS),
                "p_type": self._any(TYPES),
                "p_name": self._any(NAMES),
                "p_size": self._any(SIZES),
            },
            "partsupp": lambda: {
                "ps_supplycost": self._cents(100, 400),
                "ps_availqty": self.rng.randint(1, 999),
            },
        }
        return self._made(
            [change for name, make in drawn.items() for change in self._update(name, make, count)]
        )

    def _update(self, table: str, make: Any, count: int) -> list[Change]:
        """One or two of the columns of some rows; rows of a batch name the same ones."""
        updates: dict[frozenset[str], list[dict[str, Any]]] = {}
        for key in self.rng.sample(list(self.rows[table]), min(count, len(self.rows[table]))):
            drawn = make()
            values = dict(zip(TABLES[table].key, key, strict=True))
            for columns in self.rng.sample(list(drawn), min(2, len(drawn))):
                several = isinstance(columns, tuple)
                values |= dict(
                    zip(columns, drawn[columns], strict=True)
                    if several
                    else [(columns, drawn[columns])]
                )
            updates.setdefault(frozenset(values), []).append(values)
        return [Change(table, updates=rows) for rows in updates.values()]

    def _made(self, changes: list[Change]) -> list[Change]:
        """The changes, which are made to the rows here."""
        for change in changes:
            names, rows = TABLES[change.table].names, self.rows[change.table]
            for row in change.inserts:
                self._put(change.table, row)
            for key in change.deletes:
                del rows[key]
            for values in change.updates:
                key = tuple(values[name] for name in TABLES[change.table].key)
                old = dict(zip(names, rows[key], strict=True))
                rows[key] = tuple((old | values).values())
        return changes


def _phone(nation: int) -> str:
    return f"{nation + 10}-555-0100"
