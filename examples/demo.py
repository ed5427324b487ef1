"""A shop: four views kept fresh through ten rounds of changes, run by `make demo`.

Tables of about five million rows are made, and four views over them: a join, an aggregate over
joins, an anti-join, and a view on a view. Then come rounds of what happens in a shop. After each
round all views are refreshed, and each is compared with its query, computed anew. All of this is
done in this process; where Java is installed, the same lake then takes new prices by Spark.

The seconds of recomputation are those that Viewkeep takes to compute the view with the strategy
`recompute`: the query, run by the same engine and written to a table, without anything that
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

import duckdb
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
    "customer_sales": """
        SELECT c.customer_id, c.city, count(*) AS bought, sum(l.quantity * p.price) AS spent
        FROM lines l JOIN orders o ON o.order_id = l.order_id
            JOIN products p ON p.product_id = l.product_id
            JOIN customers c ON c.customer_id = o.customer_id
        WHERE o.status <> 'cancelled'
        GROUP BY c.customer_id, c.city""",
    "empty_orders": """
        SELECT o.order_id, o.customer_id, o.status FROM orders o
        WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.order_id)""",
    "city_sales": """
        SELECT city, count(*) AS customers, sum(spent) AS spent, max(spent) AS most
        FROM customer_sales GROUP BY city""",
}
KINDS = {
    "to_ship": "join",
    "customer_sales": "aggregate over joins",
    "empty_orders": "anti-join",
    "city_sales": "view on a view",
}
CITIES = ("Athens", "Bern", "Cork", "Delft", "Evora", "Faro", "Ghent", "Haarlem")
CATEGORIES = ("books", "games", "garden", "kitchen", "music", "shoes", "sport", "tools")
TODAY = date(2026, 11, 16)
EMPTY = 100
"""Every 100th order has no lines."""

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
    new_orders: int = 0
    new_customers: int = 0
    handled: int = 0
    returned: int = 0

    @property
    def customers(self) -> int:
        """So many customers at first."""
        return self.rows // 25

    @property
    def products(self) -> int:
        """So many products."""
        return self.rows // 100

    @property
    def orders(self) -> int:
        """So many orders at first; the newest of them are open."""
        return self.rows // 5

    @property
    def lines(self) -> int:
        """So many lines of orders at first: three or four of each."""
        return self.rows - self.customers - self.products - self.orders

    @property
    def full_orders(self) -> int:
        """So many orders have lines at first."""
        return self.orders - self.orders // EMPTY

    @property
    def first_open(self) -> int:
        """Orders from this one on are open: one in fifty."""
        return self.orders - self.orders // 50

    # --- tables ---------------------------------------------------------------------------------

    def fill(self) -> dict[str, int]:
        """Make the tables, and tell their sizes."""
        place = f"(id % {self.full_orders})"
        self._create(
            "customers", self.customers, ["customer_id"],
            "CAST(id AS INT) AS customer_id", "concat('Customer ', id) AS name",
            f"{_one_of(CITIES)} AS city",
        )  # fmt: skip
        self._create(
            "products", self.products, ["product_id"],
            "CAST(id AS INT) AS product_id", f"{_one_of(CATEGORIES)} AS category",
            "CAST(100 + id * 7919 % 9900 AS INT) AS price",
        )  # fmt: skip
        self._create(
            "orders", self.orders, ["order_id"],
            "CAST(id AS INT) AS order_id",
            f"CAST(id * 48271 % {self.customers} AS INT) AS customer_id",
            f"CASE WHEN id >= {self.first_open} THEN 'open' WHEN id % 20 = 1 THEN 'cancelled' "
            "ELSE 'sent' END AS status",
            f"DATE '2026-01-01' + CAST(id * 319 // {self.orders} AS INT) AS placed",
        )  # fmt: skip
        self._create(
            "lines", self.lines, ["order_id", "line"],
            f"CAST({place} + {place} // {EMPTY - 1} + 1 AS INT) AS order_id",
            f"CAST(id // {self.full_orders} AS INT) AS line",
            f"CAST(id * 7919 % {self.products} AS INT) AS product_id",
            "CAST(1 + id % 5 AS INT) AS quantity",
        )  # fmt: skip
        return {each.name: each.rows or 0 for each in self.keeper.describe_tables()}

    def _create(self, name: str, rows: int, key: list[str], *columns: str) -> None:
        made = duckdb.sql(f"SELECT {', '.join(columns)} FROM range({rows}) AS t(id)")
        self.keeper.create_table(name, made.to_arrow_table(), key=key)

    # --- changes --------------------------------------------------------------------------------

    def one_round(self) -> int:
        """What happens in a shop between two refreshes; the number of changed rows."""
        bought, lines = self._new_orders(self._count(80))
        changes: dict[str, dict[str, Rows]] = {
            "customers": {
                "inserts": [self._new_customer() for _ in range(self._count(10))],
                "updates": self._moved(self._count(10)),
            },
            "products": {"updates": self._new_prices(self._count(10))},
            "orders": {"inserts": bought, "updates": self._handled(self._count(60))},
            "lines": {"inserts": lines, "deletes": self._returned(self._count(10))},
        }
        for table, kinds in changes.items():
            self.keeper.apply(table, **kinds)
        return sum(len(rows) for kinds in changes.values() for rows in kinds.values())

    def _count(self, usual: int) -> int:
        """Fewer changes where there are few rows."""
        return max(1, min(usual, self.rows // 10_000))

    def _new_orders(self, count: int) -> tuple[Rows, Rows]:
        """Some customers buy four products each."""
        orders, lines = [], []
        for _ in range(count):
            self.new_orders += 1
            number, customer = self.orders + self.new_orders, self.random.randrange(self.customers)
            orders.append(
                {"order_id": number, "customer_id": customer, "status": "open", "placed": TODAY}
            )
            for line, product in enumerate(self.random.sample(range(self.products), 4)):
                sold = {"line": line, "product_id": product, "quantity": 1 + line}
                lines.append({"order_id": number, **sold})
        return orders, lines

    def _handled(self, count: int) -> Rows:
        """The oldest open orders are sent, and now and then one is cancelled."""
        first = self.first_open + self.handled
        chosen = range(first, min(first + count, self.orders))
        self.handled += len(chosen)
        return [{"order_id": o, "status": "sent" if o % 6 else "cancelled"} for o in chosen]

    def _returned(self, count: int) -> Rows:
        """All lines of some orders that were sent not long ago are sent back."""
        gone: Rows = []
        for _ in range(count):
            self.returned += 1
            order = self.first_open - 10 * self.returned + 1
            place = order - 1 - (order - 1) // EMPTY
            count_of_lines = (self.lines - place - 1) // self.full_orders + 1
            gone += [{"order_id": order, "line": line} for line in range(count_of_lines)]
        return gone

    def _new_customer(self) -> dict[str, Any]:
        self.new_customers += 1
        number = self.customers + self.new_customers
        return {"customer_id": number, "name": f"Customer {number}", "city": CITIES[0]}

    def _moved(self, count: int) -> Rows:
        chosen = self.random.sample(range(self.customers), count)
        return [{"customer_id": c, "city": self.random.choice(CITIES)} for c in chosen]

    def _new_prices(self, count: int) -> Rows:
        chosen = self.random.sample(range(self.products), count)
        return [{"product_id": p, "price": self.random.randrange(100, 9_900)} for p in chosen]


def _one_of(texts: tuple[str, ...]) -> str:
    return f"({list(texts)})[1 + id % {len(texts)}]"


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
    screen.print(f"\n[bold]Four views[/]{'':31}rows     filled   recomputed")
    measured = {}
    for name, sql in VIEWS.items():
        with screen.busy(f"computing {name}"):
            report = shop.keeper.create_view(name, sql)
        with screen.busy(f"computing {name} as a plain query"):
            anew = min(seconds_anew(shop.keeper, sql) for _ in range(2))
        measured[name] = Measured(anew)
        screen.print(
            f"  {name:15}{KINDS[name]:21}{report.rows:7,}{report.seconds:9.2f} s{anew:11.2f} s"
        )
    screen.print("  filled: with all that refreshes need; recomputed: the query alone, to a table")
    return measured


def seconds_anew(keeper: vk.Keeper, sql: str) -> float:
    """The query by the same engine, written to a table, without IDs and caches."""
    report = keeper.create_view("anew", sql, strategy="recompute")
    keeper.drop_view("anew")
    return report.seconds


def run_rounds(shop: Shop, rounds: int, measured: dict[str, Measured], screen: Screen) -> bool:
    """Change, refresh, compare; whether all views were right all the time."""
    screen.print("\n[bold]Rounds[/]  changes   refreshed   recomputed   speed-up   verified")
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
            f"{number:6}{changes:9,}{seconds:10.2f} s{anew:11.2f} s{anew / seconds:10.1f}x   {said}"
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
        shop = Shop(vk.Keeper(folder), given.rows)
        with screen.busy(f"writing {given.rows:,} rows"):
            start = perf_counter()
            sizes = shop.fill()
        screen.print(f"[bold]A shop[/], written in {perf_counter() - start:.0f} s")
        screen.print("\n".join(f"  {name:12}{rows:12,} rows" for name, rows in sizes.items()))
        measured = create_views(shop, screen)
        right = run_rounds(shop, given.rounds, measured, screen)
        screen.print()
        screen.print(results(measured, given.rounds))
        right = on_spark(shop, folder, screen) and right
    screen.print(f"\n{screen.seconds:.0f} seconds in all.", end=" ")
    if given.lake is not None:
        screen.print(f"The lake is still there: viewkeep status --lake {given.lake}")
    else:
        screen.print("With --lake FOLDER the lake stays, for `viewkeep status --lake FOLDER`.")
    if not right:
        sys.exit("a view was wrong")


def on_spark(shop: Shop, folder: Path, screen: Screen) -> bool:
    """The same lake, new prices, and Spark for all that reads more than a megabyte."""
    try:
        with screen.busy("starting Spark"):
            spark = local_session()
    except (vk.ViewkeepError, ModuleNotFoundError):
        screen.print("\nWith Java 17 and pyspark, large batches go to Spark: Keeper(path, spark).")
        return True
    keeper = vk.Keeper(folder, spark, driver_bytes=1 << 20)
    prices = [{"product_id": p, "price": 50 + p % 9_000} for p in range(shop.products)]
    keeper.apply("products", updates=prices[::200])
    screen.print(f"\n[bold]On Spark[/]: {len(prices[::200]):,} new prices")
    for stage in keeper.plan():
        screen.print(f"  {stage}")
    with screen.busy("refreshing by Spark"):
        start = perf_counter()
        reports = keeper.refresh()
        seconds = perf_counter() - start
    jobs = sum(each.jobs for each in reports)
    with screen.busy("every view beside its query"):
        right = all(shop.keeper.verify(name).ok for name in VIEWS)
    verdict = "[green]all[/] verified" if right else "[red]not all verified[/]"
    screen.print(f"  refreshed in {seconds:.1f} s by {jobs} Spark jobs; {verdict}")
    return right


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
    parser = argparse.ArgumentParser(description="Keep four views of a shop fresh.")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of all tables")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of changes")
    parser.add_argument("--lake", type=Path, help="keep the lake in this folder, which is new")
    given = parser.parse_args(arguments)
    if given.rows < 10_000:
        parser.error("--rows: at least 10000")
    if given.lake is not None and given.lake.exists():
        parser.error(f"--lake: {given.lake} is there already; give a new folder")
    return given


if __name__ == "__main__":
    main()
