"""Views that several strategies can keep, their tables at any size, and changes of these."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from viewkeep import Keeper

Random = np.random.Generator
MakeRows = Callable[[Random, np.ndarray, int], pa.Table]
"""Rows with some keys, of a table in a lake of so many rows."""

FAN_OUT = 4
"""The rows of each table of the star that have the same value."""
HUB = 0.02
"""The part of a graph's edges that start at its hub, and the part that end there: with many more,
strategies that keep paths of two edges would keep billions of them."""
ZIPF = 0.7
"""The exponent of the law that vertices are drawn by."""


@dataclass(frozen=True)
class Table:
    """A table: a row for so many of the lake's rows, and how rows are made."""

    per_row: int
    rows: MakeRows


@dataclass(frozen=True)
class ChoiceView:
    """A view, its tables, and the changes that it is measured for: tables and kinds."""

    name: str
    sql: str
    tables: Mapping[str, Table]
    changes: tuple[tuple[str, str], ...]


def drawn(rng: Random, keys: np.ndarray, **limits: int) -> pa.Table:
    """Rows with these keys and columns of numbers below some limits."""
    columns = {
        name: pa.array(rng.integers(0, max(1, limit), len(keys)), pa.int32())
        for name, limit in limits.items()
    }
    return pa.table({"id": pa.array(keys, pa.int32()), **columns})


SALES = Table(
    1,
    lambda rng, keys, rows: drawn(rng, keys, customer=rows // 20, product=rows // 100, amount=1000),
)
CUSTOMERS = Table(20, lambda rng, keys, rows: drawn(rng, keys, region=50, age=90))
PRODUCTS = Table(100, lambda rng, keys, rows: drawn(rng, keys, kind=10, price=500))
STAR = Table(1, lambda rng, keys, rows: drawn(rng, keys, y=rows // FAN_OUT, a=100))


def zipf_edges(rng: Random, keys: np.ndarray, rows: int) -> pa.Table:
    """Edges whose ends are drawn by Zipf's law."""
    vertices = max(10, rows // 20)
    weights = np.arange(1, vertices + 1) ** -ZIPF
    ends = rng.choice(vertices, (len(keys), 2), p=weights / weights.sum())
    return _edges(keys, ends)


def hub_edges(rng: Random, keys: np.ndarray, rows: int) -> pa.Table:
    """Edges of which some start at vertex 0, and as many end there."""
    ends = rng.integers(1, max(10, rows // 20), (len(keys), 2))
    draws = rng.random(len(keys))
    ends[draws < HUB, 0] = 0
    ends[draws > 1 - HUB, 1] = 0
    return _edges(keys, ends)


def _edges(keys: np.ndarray, ends: np.ndarray) -> pa.Table:
    names = {"src": ends[:, 0], "dst": ends[:, 1]}
    columns = {name: pa.array(values, pa.int32()) for name, values in names.items()}
    return pa.table({"id": pa.array(keys, pa.int32()), **columns})


TRIANGLES = """SELECT count(*) AS n FROM e a JOIN e b ON a.dst = b.src
    JOIN e c ON b.dst = c.src AND c.dst = a.src"""
VIEWS = (
    ChoiceView(
        "sales by region",
        """SELECT c.region, sum(s.amount) AS amount, count(*) AS n
        FROM sales s JOIN customers c ON s.customer = c.id GROUP BY c.region""",
        {"sales": SALES, "customers": CUSTOMERS},
        (("sales", "insert"), ("customers", "update")),
    ),
    ChoiceView(
        "costs by customer",
        """SELECT s.customer, sum(s.amount * p.price) AS cost
        FROM sales s JOIN products p ON s.product = p.id GROUP BY s.customer""",
        {"sales": SALES, "products": PRODUCTS},
        (("sales", "update"), ("products", "update")),
    ),
    ChoiceView(
        "costs by region",
        """SELECT c.region, sum(s.amount * p.price) AS cost FROM sales s
        JOIN customers c ON s.customer = c.id JOIN products p ON s.product = p.id
        WHERE p.kind < 5 GROUP BY c.region""",
        {"sales": SALES, "customers": CUSTOMERS, "products": PRODUCTS},
        (("sales", "delete"), ("customers", "update")),
    ),
    ChoiceView(
        "lines of sales",
        """SELECT s.id, s.customer, s.amount * p.price AS cost
        FROM sales s JOIN products p ON s.product = p.id WHERE p.kind < 3""",
        {"sales": SALES, "products": PRODUCTS},
        (("sales", "insert"), ("products", "update")),
    ),
    ChoiceView(
        "star",
        """SELECT r.y, sum(r.a * s.a) AS x, count(*) AS n
        FROM r JOIN s ON r.y = s.y JOIN t ON s.y = t.y GROUP BY r.y""",
        {"r": STAR, "s": STAR, "t": STAR},
        (("r", "update"), ("s", "insert")),
    ),
    ChoiceView(
        "pairs",
        "SELECT sum(r.a) AS x, count(*) AS n FROM r JOIN s ON r.y = s.y",
        {"r": STAR, "s": STAR},
        (("r", "delete"), ("s", "update")),
    ),
    ChoiceView(
        "triangles of a hub",
        TRIANGLES,
        {"e": Table(4, hub_edges)},
        (("e", "insert"), ("e", "update")),
    ),
    ChoiceView(
        "triangles by Zipf",
        TRIANGLES,
        {"e": Table(4, zipf_edges)},
        (("e", "insert"), ("e", "delete")),
    ),
)


@dataclass
class ChoiceLake:
    """A lake with the tables of a view; the same changes come in every lake of the same size."""

    keeper: Keeper
    view: ChoiceView
    rows: int
    keys: dict[str, np.ndarray] = field(default_factory=dict)
    _random: Random = field(default_factory=lambda: np.random.default_rng(7))

    def fill(self) -> None:
        """Make the tables."""
        for name, table in self.view.tables.items():
            self.keys[name] = np.arange(max(10, self.rows // table.per_row))
            self.keeper.create_table(name, self._made(name, self.keys[name]), key=["id"])

    def change(self, name: str, kind: str, share: float) -> int:
        """Change a part of a table; the number of changed rows."""
        keys = self.keys[name]
        count = max(1, int(share * len(keys)))
        if kind == "insert":
            chosen = np.arange(count) + keys.max() + 1
            self.keys[name] = np.append(keys, chosen)
            self.keeper.apply(name, inserts=self._made(name, chosen))
            return count
        places = self._random.choice(len(keys), count, replace=False)
        rows = self._made(name, keys[places])
        if kind == "update":
            self.keeper.apply(name, updates=rows)
        else:
            self.keys[name] = np.delete(keys, places)
            self.keeper.apply(name, deletes=rows.select(["id"]))
        return count

    def _made(self, name: str, keys: np.ndarray) -> pa.Table:
        return self.view.tables[name].rows(self._random, keys, self.rows)
