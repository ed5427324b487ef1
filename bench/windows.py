"""Windows and top-k of a lake beside recomputation by DuckDB, after few changes of a large table.

    python -m bench.windows --sizes 1 10 50

A table of sales, ten for each customer. Some sales get another amount, some come and some go, and
the views are refreshed by an embedded keeper. The rival computes the same query over the same
Parquet files and writes the result in one COPY. Seconds are medians of the rounds. Every view is
compared with its query at the end.
"""

import argparse
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import viewkeep as vk
from bench._files import parquet_files
from bench.keeper import commit_seconds, timed, timed_refresh

PER_CUSTOMER = 10
BY_AMOUNT = "OVER (PARTITION BY customer ORDER BY amount DESC, id)"
VIEWS = {
    "place": (
        "the place of each sale among those of its customer",
        f"SELECT id, customer, amount, row_number() {BY_AMOUNT} AS place FROM sales",
    ),
    "running": (
        "running sums",
        f"SELECT id, customer, sum(amount) {BY_AMOUNT} AS total FROM sales",
    ),
    "best": (
        "the best sale of each customer",
        f"SELECT customer, id, amount FROM sales QUALIFY row_number() {BY_AMOUNT} = 1",
    ),
    "top": (
        "the hundred largest sales",
        "SELECT id, customer, amount FROM sales ORDER BY amount DESC, id LIMIT 100",
    ),
}
LAYOUTS = ("copy-on-write", "merge-on-read")
COLUMNS = ("rows", "view", "layout", "refresh", "by", "DuckDB anew", "x")
PAGE = Path(__file__).parent.parent / "docs" / "window_figures.md"


class Sales:
    """A lake with the table and the views."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.rows = folder, rows
        self.keeper = vk.Keeper(folder)
        self._random, self._next = np.random.default_rng(1), rows

    def fill(self) -> None:
        """The sales of a customer are all over the table, as they are when they come by time."""
        customers = self.rows // PER_CUSTOMER
        text = (
            f"SELECT i AS id, (i * 7919 % {customers})::INT AS customer, "
            f"(hash(i) % 1000000)::INT AS amount FROM range({self.rows}) t(i)"
        )
        with closing(duckdb.connect()) as connection:
            self.keeper.create_table("sales", connection.sql(text).to_arrow_table(), key=["id"])

    def create_views(self) -> None:
        """All views, in both layouts where most of their rows are written with every change."""
        for name, layout in kept_views():
            self.keeper.create_view(stored_name(name, layout), VIEWS[name][1], layout=layout)

    def change(self, count: int) -> None:
        """Other amounts, new sales, and sales that go."""
        updates, others = count - 2 * (count // 4), count // 4
        chosen = self._random.choice(self.rows, updates + others, replace=False)
        new = np.arange(self._next, self._next + others)
        self._next += others
        self.keeper.apply("sales", deletes=pa.table({"id": chosen[updates:]}))
        self.keeper.apply(
            "sales",
            inserts=self._sales(new),
            updates=self._sales(chosen[:updates]).drop_columns(["customer"]),
        )
        # Their IDs stay in use: what was deleted comes back.
        self.keeper.apply("sales", inserts=self._sales(chosen[updates:]))

    def _sales(self, ids: np.ndarray) -> pa.Table:
        customers = self._random.integers(0, self.rows // PER_CUSTOMER, len(ids)).astype("int32")
        amounts = self._random.integers(0, 1_000_000, len(ids)).astype("int32")
        return pa.table({"id": ids, "customer": customers, "amount": amounts})

    def duckdb_anew(self, name: str, sql: str) -> float:
        """DuckDB computes the view over the same files and writes it; the seconds."""
        with closing(duckdb.connect()) as connection:
            files = parquet_files(self.folder / "sales")
            connection.execute(f"CREATE VIEW sales AS FROM read_parquet({files})")
            target = self.folder.parent / f"{name}.parquet"
            return timed(lambda: connection.execute(f"COPY ({sql}) TO '{target}'"))[0]

    def check(self) -> None:
        """Every view is as its query gives."""
        for name, layout in kept_views():
            found = self.keeper.verify(stored_name(name, layout))
            assert (found.missing_rows, found.extra_rows) == (0, 0), found


def kept_views() -> Iterator[tuple[str, str]]:
    """Views and their layouts; views of few rows are stored in one layout only."""
    for name in VIEWS:
        for layout in LAYOUTS if name in ("place", "running") else LAYOUTS[:1]:
            yield name, layout


def stored_name(name: str, layout: str) -> str:
    """The name of a view in a layout."""
    return name if layout == LAYOUTS[0] else f"{name}_marked"


def measure(lake: Sales, changes: int, rounds: int, commit: float) -> Iterator[tuple[str, ...]]:
    """A row of the table for each view."""
    seconds: dict[tuple[str, str], list[tuple[float, float]]] = {each: [] for each in kept_views()}
    ways: dict[tuple[str, str], str] = {}
    for _ in range(rounds):
        lake.change(changes)
        for name, (_, sql) in VIEWS.items():
            anew = lake.duckdb_anew(name, sql)
            for layout in (other for view, other in kept_views() if view == name):
                own, reports = timed_refresh(lake.keeper, stored_name(name, layout))
                ways[name, layout] = reports[-1].strategy
                seconds[name, layout].append((own, anew))
    for (name, layout), pairs in seconds.items():
        own, other = (median(column) for column in zip(*pairs, strict=True))
        figures = (
            f"{own:.3f}",
            ways[name, layout],
            f"{other:.3f}",
            f"{own / (other + commit):.2f}",
        )
        yield f"{lake.rows // 1_000_000}M", name, layout, *figures


def page(rows: list[tuple[str, ...]], given: argparse.Namespace) -> str:
    """The table as a page of docs."""
    table = [COLUMNS, tuple("---:" for _ in COLUMNS), *rows]
    views = [f"- `{name}`, {about}: `{sql}`" for name, (about, sql) in VIEWS.items()]
    return "\n".join(
        [
            "# Windows and top-k of a lake: figures",
            "",
            "Written by `python -m bench.windows --docs` (`make bench-keeper` prints it); do not "
            f"edit. {platform.machine()}, {os.cpu_count()} cores; medians of {given.rounds} "
            f"rounds, in seconds, from `refresh` to visible, after {given.changes} sales have "
            "changed, come or gone. `DuckDB anew` computes the view over the same files and writes "
            "a Parquet file; x is the refresh over that and one commit.",
            "",
            *(f"| {' | '.join(row)} |" for row in table),
            "",
            "The views over `sales(id, customer, amount)`, ten sales for each customer:",
            "",
            *views,
            "",
        ]
    )


def arguments() -> argparse.Namespace:
    """Sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 10, 50], help="million sales")
    parser.add_argument("--changes", type=int, default=100, help="changed rows of a batch")
    parser.add_argument("--rounds", type=int, default=3, help="batches; the median counts")
    parser.add_argument("--docs", action="store_true", help="write docs/window_figures.md")
    parser.add_argument("--folder", type=Path, help="where lakes are made")
    return parser.parse_args()


def main() -> None:
    """The table."""
    given, console = arguments(), Console(width=110)
    folder = Path(tempfile.mkdtemp(prefix="viewkeep-bench-", dir=given.folder))
    rows: list[tuple[str, ...]] = []
    try:
        commit = commit_seconds(folder / "commit")
        for size in given.sizes:
            lake = Sales(folder / f"sales{size}", size * 1_000_000)
            console.print(f"{size}M rows: written in {timed(lake.fill)[0]:.1f} s")
            console.print(f"  views: filled in {timed(lake.create_views)[0]:.1f} s")
            for row in measure(lake, given.changes, given.rounds, commit):
                rows.append(row)
                console.print("  " + "  ".join(row), highlight=False)
            lake.check()
            shutil.rmtree(lake.folder)
        table = Table(*COLUMNS, title="Seconds; x: times DuckDB's recomputation with one commit")
        for row in rows:
            table.add_row(*row)
        console.print(table)
        if given.docs:
            PAGE.write_text(page(rows, given), encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
