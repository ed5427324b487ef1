"""A shop on Spark: four views kept fresh through ten rounds of changes, run by `make demo`.

Tables of about five million rows are made, and four views over them: a join, an aggregate over
joins, an anti-join, and a view on a view. Then come rounds of what happens in a shop. After each
round all views are refreshed, and each is compared with its query, computed anew by Spark.

The seconds of recomputation are those that Viewkeep takes to compute the view with the strategy
`recompute`: the query, run by the same Spark and written to a table, without anything that
incremental refreshes need.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import viewkeep as vk
from viewkeep.keeper import local_session

VIEWS = {
    "to_ship": """
        SELECT o.order_id, o.placed, c.name, c.city
        FROM orders o JOIN customers c ON c.customer_id = o.customer_id
        WHERE o.status = 'open'""",
    "brand_sales": """
        SELECT p.brand, p.category, count(*) AS sold, sum(l.quantity * p.price) AS revenue
        FROM lines l JOIN orders o ON o.order_id = l.order_id
            JOIN products p ON p.product_id = l.product_id
        WHERE o.status <> 'cancelled'
        GROUP BY p.brand, p.category""",
    "no_orders": """
        SELECT c.customer_id, c.name, c.city FROM customers c
        WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)""",
    "category_sales": """
        SELECT category, count(*) AS brands, sum(revenue) AS revenue, max(revenue) AS best
        FROM brand_sales GROUP BY category""",
}
KINDS = {
    "to_ship": "join",
    "brand_sales": "aggregate over joins",
    "no_orders": "anti-join",
    "category_sales": "view on a view",
}
CITIES = ("Athens", "Bern", "Cork", "Delft", "Evora", "Faro", "Ghent", "Haarlem")
CATEGORIES = ("books", "games", "garden", "kitchen", "music", "shoes", "sport", "tools")
TODAY = date(2026, 11, 16)
LINES_OF_ORDER = 4
IDLE = 25
"""Every 25th customer has no order."""

Rows = list[dict[str, Any]]


class Screen(Console):
    """Lines that stay, and one below them that tells what is being done."""

    def __init__(self) -> None:
        super().__init__(highlight=False)
        self._start = perf_counter()

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Tell what is being done, on terminals."""
        with self.status(f"{what} ..."):
            yield

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return perf_counter() - self._start


@dataclass
class Shop:
    """The tables of a lake, and what happens in them."""

    keeper: vk.Keeper
    rows: int
    random: Random = field(default_factory=lambda: Random(7))
    waiting: dict[int, list[int]] = field(default_factory=dict)
    added: int = 0

    @property
    def customers(self) -> int:
        """So many customers at first."""
        return self.rows // 25

    @property
    def products(self) -> int:
        """So many products."""
        return max(self.rows // 100, len(CATEGORIES))

    @property
    def orders(self) -> int:
        """So many orders at first."""
        return self.rows // 5

    @property
    def lines(self) -> int:
        """So many lines of orders at first."""
        return self.rows - self.customers - self.products - self.orders

    # --- tables ---------------------------------------------------------------------------------

    def fill(self, spark: Any) -> dict[str, int]:
        """Make the tables, and tell their sizes."""
        city = f"element_at(array{CITIES}, CAST(id % {len(CITIES)} AS INT) + 1)"
        category = f"element_at(array{CATEGORIES}, CAST(id % {len(CATEGORIES)} AS INT) + 1)"
        self._create(
            spark, "customers", self.customers, ["customer_id"],
            "CAST(id AS INT) AS customer_id", "concat('Customer ', id) AS name", f"{city} AS city",
        )  # fmt: skip
        self._create(
            spark, "products", self.products, ["product_id"],
            "CAST(id AS INT) AS product_id", f"CAST(id % {self._brands} AS INT) AS brand",
            f"{category} AS category", "CAST(100 + id * 7919 % 9900 AS INT) AS price",
        )  # fmt: skip
        busy = f"(id * 48271 % {self.customers - self.customers // IDLE})"
        self._create(
            spark, "orders", self.orders, ["order_id"],
            "CAST(id AS INT) AS order_id",
            f"CAST({busy} + {busy} DIV {IDLE - 1} + 1 AS INT) AS customer_id",
            "CASE WHEN id % 10 = 0 THEN 'open' WHEN id % 10 = 1 THEN 'cancelled' "
            "ELSE 'sent' END AS status",
            "date_add(DATE'2026-01-01', CAST(id % 300 AS INT)) AS placed",
        )  # fmt: skip
        self._create(
            spark, "lines", self.lines, ["order_id", "line"],
            f"CAST(id % {self.orders} AS INT) AS order_id",
            f"CAST(id DIV {self.orders} AS INT) AS line",
            f"CAST(id * 7919 % {self.products} AS INT) AS product_id",
            "CAST(1 + id % 5 AS INT) AS quantity",
        )  # fmt: skip
        return {each.name: each.rows or 0 for each in self.keeper.describe_tables()}

    @property
    def _brands(self) -> int:
        return max(self.products // 25, 2)

    def _create(self, spark: Any, name: str, rows: int, key: list[str], *columns: str) -> None:
        self.keeper.create_table(name, spark.range(rows).selectExpr(*columns), key=key)

    # --- changes --------------------------------------------------------------------------------

    def one_round(self) -> int:
        """What happens in a shop between two refreshes; the number of changed rows."""
        bought, lines = self._new_orders(self._count(80))
        gone = self._orders_ending_in(3, self._count(10))
        changes: dict[str, dict[str, Rows]] = {
            "customers": {
                "inserts": [self._new_customer() for _ in range(self._count(10))],
                "updates": self._moved(self._count(10)),
            },
            "products": {"updates": self._new_prices(self._count(20))},
            "orders": {
                "inserts": bought,
                "updates": self._handled(self._count(60)),
                "deletes": [{"order_id": order} for order in gone],
            },
            "lines": {"inserts": lines, "deletes": self._lines_of(gone)},
        }
        for table, kinds in changes.items():
            self.keeper.apply(table, **kinds)
        return sum(len(rows) for kinds in changes.values() for rows in kinds.values())

    def _count(self, usual: int) -> int:
        """Fewer changes where there are few rows."""
        return max(1, min(usual, self.rows // 5_000))

    def _orders_ending_in(self, digit: int, count: int) -> list[int]:
        """Orders that nothing has happened to: those with other last digits are others."""
        waiting = self.waiting.setdefault(digit, [])
        if not waiting:
            waiting += self.random.sample(range(digit, self.orders, 10), self.orders // 10)
        return [waiting.pop() for _ in range(min(count, len(waiting)))]

    def _lines_of(self, orders: list[int]) -> Rows:
        return [
            {"order_id": order, "line": line}
            for order in orders
            for line in range(LINES_OF_ORDER)
            if line * self.orders + order < self.lines
        ]

    def _new_orders(self, count: int) -> tuple[Rows, Rows]:
        orders, lines = [], []
        for _ in range(count):
            number, customer = self._new_number(), self.random.randrange(self.customers)
            orders.append(
                {"order_id": number, "customer_id": customer, "status": "open", "placed": TODAY}
            )
            for line, product in enumerate(self.random.sample(range(self.products), 4)):
                sold = {"line": line, "product_id": product, "quantity": 1 + line}
                lines.append({"order_id": number, **sold})
        return orders, lines

    def _handled(self, count: int) -> Rows:
        """Open orders are sent, and now and then one is cancelled."""
        chosen = enumerate(self._orders_ending_in(0, count))
        return [{"order_id": o, "status": "sent" if n % 5 else "cancelled"} for n, o in chosen]

    def _new_customer(self) -> dict[str, Any]:
        number = self._new_number()
        return {"customer_id": number, "name": f"Customer {number}", "city": CITIES[0]}

    def _moved(self, count: int) -> Rows:
        chosen = self.random.sample(range(self.customers), count)
        return [{"customer_id": c, "city": self.random.choice(CITIES)} for c in chosen]

    def _new_prices(self, count: int) -> Rows:
        chosen = self.random.sample(range(self.products), count)
        return [{"product_id": p, "price": self.random.randrange(100, 9_900)} for p in chosen]

    def _new_number(self) -> int:
        self.added += 1
        return 1_000_000_000 + self.added


# --- the demo -------------------------------------------------------------------------------------


@dataclass
class Measured:
    """The seconds of a view, computed anew and refreshed; and how often it was right."""

    anew: float
    refreshed: list[float] = field(default_factory=list)
    strategies: set[str] = field(default_factory=set)
    right: int = 0

    @property
    def usual(self) -> float:
        """The median refresh."""
        return median(self.refreshed)


def create_views(shop: Shop, screen: Screen) -> dict[str, Measured]:
    """Define the views, and measure how long computing each of them anew takes."""
    screen.print(f"\n[bold]Four views[/]{'':30}rows     filled   recomputed")
    measured = {}
    for name, sql in VIEWS.items():
        with screen.busy(f"computing {name}"):
            report = shop.keeper.create_view(name, sql)
        with screen.busy(f"computing {name} as a plain query"):
            anew = min(seconds_anew(shop.keeper, sql) for _ in range(2))
        measured[name] = Measured(anew)
        screen.print(
            f"  {name:15}{KINDS[name]:20}{report.rows:7,}{report.seconds:9.1f} s{anew:11.1f} s"
        )
    screen.print("  filled: with all that refreshes need; recomputed: the query alone, to a table")
    return measured


def seconds_anew(keeper: vk.Keeper, sql: str) -> float:
    """The query by the same Spark, written to a table, without IDs and caches."""
    report = keeper.create_view("anew", sql, strategy="recompute")
    keeper.drop_view("anew")
    return report.seconds


def run_rounds(shop: Shop, rounds: int, measured: dict[str, Measured], screen: Screen) -> bool:
    """Change, refresh, compare; whether all views were right all the time."""
    screen.print("\n[bold]Rounds[/]  changes   refreshed   recomputed   speed-up   jobs   verified")
    anew = sum(each.anew for each in measured.values())
    for number in range(1, rounds + 1):
        with screen.busy(f"round {number}: changes"):
            changes = shop.one_round()
        with screen.busy(f"round {number}: refresh"):
            start = perf_counter()
            reports = shop.keeper.refresh()
            seconds = perf_counter() - start
        for report in reports:
            measured[report.view].refreshed.append(report.seconds)
            measured[report.view].strategies.add(report.strategy)
        with screen.busy(f"round {number}: every view beside its query"):
            right = [name for name in VIEWS if shop.keeper.verify(name).ok]
        for name in right:
            measured[name].right += 1
        said = "[green]all[/]" if len(right) == len(VIEWS) else f"[red]only {', '.join(right)}[/]"
        screen.print(
            f"{number:6}{changes:9,}{seconds:10.1f} s{anew:11.1f} s{anew / seconds:10.1f}x"
            f"{sum(each.jobs for each in reports):7}   {said}"
        )
    return all(each.right == rounds for each in measured.values())


def results(measured: dict[str, Measured], rounds: int) -> Table:
    """What a person wants to know, in a table."""
    table = Table(box=box.ROUNDED, title="Seconds of a refresh (median) beside recomputation")
    for name in ("view", "strategy", "refresh", "recompute", "speed-up", "verified"):
        right = name in ("refresh", "recompute", "speed-up")
        table.add_column(name, justify="right" if right else "left")
    for name, each in measured.items():
        speed = each.anew / each.usual
        table.add_row(
            Text(name, "bold"),
            ", ".join(sorted(each.strategies)),
            f"{each.usual:.2f} s",
            f"{each.anew:.2f} s",
            Text(f"{speed:.1f}x", "bold green" if speed > 1 else ""),
            Text(f"{each.right} of {rounds}", "green" if each.right == rounds else "bold red"),
        )
    return table


def main(arguments: list[str] | None = None) -> None:
    """Make the lake, keep its views fresh, and tell how it went."""
    given, screen = options(arguments), Screen()
    with lake_folder(given.lake) as folder:
        with screen.busy("starting Spark"):
            spark = local_session()
        shop = Shop(vk.Keeper(spark, folder), given.rows)
        with screen.busy(f"writing {given.rows:,} rows"):
            start = perf_counter()
            sizes = shop.fill(spark)
        screen.print(f"[bold]A shop[/], written in {perf_counter() - start:.0f} s")
        screen.print("\n".join(f"  {name:12}{rows:12,} rows" for name, rows in sizes.items()))
        measured = create_views(shop, screen)
        right = run_rounds(shop, given.rounds, measured, screen)
        screen.print()
        screen.print(results(measured, given.rounds))
    screen.print(f"\n{screen.seconds:.0f} seconds in all.", end=" ")
    if given.lake is not None:
        screen.print(f"The lake is still there: viewkeep status --lake {given.lake}")
    else:
        screen.print("With --lake FOLDER the lake stays, for `viewkeep status --lake FOLDER`.")
    if not right:
        sys.exit("a view was wrong")


@contextmanager
def lake_folder(chosen: Path | None) -> Iterator[Path]:
    """The folder of the lake: one that stays, or one that is removed at the end."""
    if chosen is not None:
        yield chosen
        return
    with tempfile.TemporaryDirectory(prefix="viewkeep-demo-") as folder:
        yield Path(folder) / "lake"


def options(arguments: list[str] | None) -> argparse.Namespace:
    """The size of the demo."""
    parser = argparse.ArgumentParser(description="Keep four views of a shop fresh, on Spark.")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of all tables")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of changes")
    parser.add_argument("--lake", type=Path, help="keep the lake in this folder, which is new")
    given = parser.parse_args(arguments)
    if given.rows < 2_000:
        parser.error("--rows: at least 2000")
    if given.lake is not None and given.lake.exists():
        parser.error(f"--lake: {given.lake} is there already; give a new folder")
    return given


if __name__ == "__main__":
    main()
