"""Workloads of the engine benchmark with the types that people have: prices, measurements, dates.

Rows come as Arrow batches, half of them new, half deleted again. Beside the compiled engine:
the same by Python dicts, and DuckDB and Polars, which compute the result once.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

import viewkeep as vk
from bench._engine_data import Workload
from bench._engine_rivals import timed
from viewkeep.rings import MatrixRing

BATCH = 10_000
REPEATS = 3


@dataclass(frozen=True)
class TypedLoad:
    """A query over one table, what is loaded, and batches that come and go."""

    name: str
    query: str
    sql: str
    table: pa.Table
    batches: list[tuple[pa.Table, np.ndarray]]
    step: Callable[[dict[Any, Any], tuple[Any, ...], int], None]
    """What Python does for one row in a dict of groups."""
    target: float = 2e6
    """Rows per second that the compiled engine is to reach."""

    @property
    def updates(self) -> int:
        """How many rows the batches have."""
        return sum(len(rows) for rows, _ in self.batches)


def typed_loads(rows: int, updates: int) -> Iterator[TypedLoad]:
    """Sums of decimals, of floats, and of an expression of decimals; extremes of decimals."""
    random = np.random.default_rng(7)
    groups = random.integers(0, max(rows // 100, 1), rows)
    cents, rates = random.integers(1, 10**6, rows), random.integers(0, 10, rows)
    prices = decimals(cents)
    one = pa.table({"g": groups, "x": prices})
    yield _load("T, sum of decimals", "Q(g; sum(x), count()) = R(g, x)", one, updates, _step_of_sum)
    measured = pa.table({"g": groups, "x": random.normal(20, 5, rows)})
    yield _load(
        "T, sum of floats", "Q(g; sum(x), avg(x)) = R(g, x)", measured, updates, _step_of_sum
    )
    three = pa.table({"g": groups, "x": prices, "y": decimals(rates)})
    yield _load(
        "T, sum(x * (1 - y)) of decimals",
        "Q(g; sum(x * (1 - y)), avg(x), count()) = R(g, x, y)",
        three,
        updates,
        _step_of_product,
        "select g, sum(x * (1 - y)), avg(x), count(*) from R group by g",
    )
    yield _load(
        "T, min and max of decimals",
        "Q(g; min(x), max(x)) = R(g, x)",
        one,
        updates,
        _step_of_extremes,
        "select g, min(x), max(x) from R group by g",
        1e6,
    )


def _load(
    name: str,
    query: str,
    table: pa.Table,
    updates: int,
    step: Callable[[dict[Any, Any], tuple[Any, ...], int], None],
    sql: str = "select g, sum(x), count(*) from R group by g",
    target: float = 2e6,
) -> TypedLoad:
    random = np.random.default_rng(8)
    half = BATCH // 2
    signs = np.repeat(np.array([1, -1], np.int64), half)
    batches = []
    for _ in range(max(updates // BATCH, 1)):
        places = random.integers(0, len(table), half)
        shifted = random.permutation(places)
        coming = table.take(shifted).set_column(0, "g", table.column("g").take(places))
        batches.append((pa.concat_tables([coming, table.take(places)]).combine_chunks(), signs))
    return TypedLoad(name, query, sql, table, batches, step, target)


def decimals(cents: np.ndarray) -> pa.Array:
    """Integers as decimals with two digits behind the point."""
    halves = np.column_stack([cents, cents >> 63]).astype(np.int64)
    buffers = [None, pa.py_buffer(halves.tobytes())]
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), buffers)


def compiled_rate(load: TypedLoad) -> tuple[float, vk.Maintainer]:
    """Rows per second, the best of some runs, each taken back by the next."""
    live = vk.maintain(load.query, engine="compiled")
    live.load({"R": load.table})
    best = 0.0
    for sign in (1, -1) * REPEATS:
        seconds = timed(lambda sign=sign: _run(live, load, sign))  # type: ignore[misc]
        best = max(best, load.updates / seconds)
    return best, live


def _run(live: vk.Maintainer, load: TypedLoad, sign: int) -> None:
    for rows, counts in load.batches:
        live.update_batch("R", rows, sign * counts)


def reference_rate(load: TypedLoad, most: int) -> float:
    """Rows per second of the reference engine."""
    live = vk.maintain(load.query, engine="reference")
    rows, counts = load.batches[0]
    part = rows.slice(0, most)
    return len(part) / timed(lambda: live.update_batch("R", part, counts[:most].tolist()))


def dict_rate(load: TypedLoad) -> float:
    """Rows per second of a loop over rows with a dict of groups."""
    groups: dict[Any, Any] = {}
    rows, counts = load.batches[0]
    stream = list(zip(zip(*rows.to_pydict().values(), strict=True), counts.tolist(), strict=True))

    def work() -> None:
        for row, count in stream:
            load.step(groups, row, count)

    return len(stream) / timed(work)


def duckdb_once(load: TypedLoad) -> float:
    """Seconds of DuckDB for the whole result."""
    import duckdb

    with duckdb.connect() as session:
        session.execute("set threads to 1")
        session.register("given", load.table)
        session.execute("create table R as select * from given")
        return min(timed(lambda: session.execute(load.sql).fetchall()) for _ in range(REPEATS))


def polars_once(load: TypedLoad) -> float | None:
    """Seconds of Polars for the whole result; None where it is not installed."""
    try:
        import polars as pl
    except ImportError:
        return None
    frame = pl.from_arrow(load.table)
    with pl.SQLContext(R=frame) as context:
        return min(timed(lambda: context.execute(load.sql, eager=True)) for _ in range(REPEATS))


# --- matrices -------------------------------------------------------------------------------------

FEATURES = tuple(f"x{i}" for i in range(10))


def covariance_rows(rows: int) -> pa.Table:
    """Rows of ten features."""
    random = np.random.default_rng(10)
    return pa.table({name: random.normal(size=rows) for name in FEATURES})


def covariance_rate(rows: pa.Table, keep_inputs: bool) -> float:
    """Rows per second of the degree-10 matrix ring, from Arrow batches."""
    live = vk.maintain(
        f"Q() = R({', '.join(FEATURES)})",
        ring=MatrixRing(FEATURES),
        engine="compiled",
        keep_inputs=keep_inputs,
    )
    best = 0.0
    for sign in (1, -1) * REPEATS:
        counts = np.full(BATCH, sign, np.int64)

        def work(counts: np.ndarray = counts) -> None:
            for batch in rows.to_batches(BATCH):
                live.update_batch("R", pa.Table.from_batches([batch]), counts[: len(batch)])

        best = max(best, len(rows) / timed(work))
    return best


def numpy_covariance_rate(rows: pa.Table) -> float:
    """Rows per second of NumPy that adds up a product of matrices for each batch."""

    def work() -> None:
        total = np.zeros((len(FEATURES) + 1,) * 2)
        for batch in rows.to_batches(BATCH):
            columns = [column.to_numpy() for column in batch.columns]
            matrix = np.column_stack([np.ones(len(batch)), *columns])
            total += matrix.T @ matrix

    return len(rows) / min(timed(work) for _ in range(REPEATS))


def covariance_seconds(rows: pa.Table) -> float:
    """Seconds of DuckDB for all sums and sums of products."""
    import duckdb

    products = [f"sum({a} * {b})" for i, a in enumerate(FEATURES) for b in FEATURES[i:]]
    items = ", ".join(["count(*)", *(f"sum({name})" for name in FEATURES), *products])
    with duckdb.connect() as session:
        session.execute("set threads to 1")
        session.register("given", rows)
        session.execute("create table R as select * from given")
        query = f"select {items} from R"
        return min(timed(lambda: session.execute(query).fetchall()) for _ in range(REPEATS))


# --- texts and subscribers ------------------------------------------------------------------------

SNOWFLAKE = "Q(c; sum(x), count()) = L(o, p, x) * O(o, c) * P(p, k)"


@dataclass(frozen=True)
class TextLoad:
    """A snowflake whose keys are texts: tables, and batches of lines that come and go."""

    tables: dict[str, pa.Table]
    batches: list[tuple[pa.Table, np.ndarray]]

    @property
    def updates(self) -> int:
        """How many rows the batches have."""
        return sum(len(rows) for rows, _ in self.batches)


def text_load(rows: int, updates: int) -> TextLoad:
    """Lines of orders and products, whose names are texts."""
    random = np.random.default_rng(9)
    orders, products = max(rows // 5, 10), max(rows // 50, 10)
    tables = {
        "O": pa.table(
            {
                "o": [f"order-{i:09}" for i in range(orders)],
                "c": [f"customer {i}" for i in random.integers(0, orders // 10 + 1, orders)],
            }
        ),
        "P": pa.table(
            {
                "p": [f"product {i}" for i in range(products)],
                "k": [f"kind {i}" for i in random.integers(0, 20, products)],
            }
        ),
    }

    def lines(count: int) -> pa.Table:
        return pa.table(
            {
                "o": tables["O"].column("o").take(random.integers(0, orders, count)),
                "p": tables["P"].column("p").take(random.integers(0, products, count)),
                "x": decimals(random.integers(1, 10**6, count)),
            }
        ).combine_chunks()

    tables["L"] = lines(rows)
    signs = np.ones(BATCH, np.int64)
    return TextLoad(tables, [(lines(BATCH), signs) for _ in range(max(updates // BATCH, 1))])


def text_rates(load: TextLoad) -> tuple[float, float]:
    """Rows per second from Arrow batches, and one by one (keys of texts, numbers of integers)."""
    live = vk.maintain(SNOWFLAKE, engine="compiled")
    live.load(load.tables)
    best = 0.0
    for sign in (1, -1) * REPEATS:

        def work(sign: int = sign) -> None:
            for rows, counts in load.batches:
                live.update_batch("L", rows, sign * counts)

        best = max(best, load.updates / timed(work))
    whole = {**load.tables, "L": _with_integers(load.tables["L"])}
    live = vk.maintain(SNOWFLAKE, engine="compiled")
    live.load(whole)
    rows, _ = load.batches[0]
    stream = list(zip(*_with_integers(rows).to_pydict().values(), strict=True))
    single = 0.0
    for sign in (1, -1) * REPEATS:

        def one_by_one(sign: int = sign) -> None:
            for row in stream:
                live.update("L", row, sign)

        single = max(single, len(stream) / timed(one_by_one))
    return best, single


def _with_integers(lines: pa.Table) -> pa.Table:
    numbers = pa.array(np.arange(len(lines)) % 1_000)
    return lines.set_column(lines.column_names.index("x"), "x", numbers)


def text_dict_rate(load: TextLoad) -> float:
    """Lines per second of straight-line Python with dicts."""
    customers = dict(zip(*load.tables["O"].to_pydict().values(), strict=True))
    kinds = dict(zip(*load.tables["P"].to_pydict().values(), strict=True))
    rows, _ = load.batches[0]
    stream = list(zip(*rows.to_pydict().values(), strict=True))
    groups: dict[Any, Any] = {}

    def work() -> None:
        for order, product, value in stream:
            if product in kinds:
                _step_of_sum(groups, (customers[order], value), 1)

    return len(stream) / timed(work)


def subscriber_rates(load: Workload) -> tuple[float, float]:
    """Changes of the output per second that a subscriber hears as Arrow batches, and as rows."""
    rates = []
    for form in ("subscribe_batches", "subscribe"):
        live = vk.maintain(load.query, strategy="viewtree", engine="compiled")
        live.load(load.data)
        heard = [0]

        def hear(changes: Any, heard: list[int] = heard) -> None:
            heard[0] += len(changes)

        getattr(live, form)(hear)
        best = 0.0
        for sign in (1, -1) * REPEATS:
            heard[0] = 0
            seconds = timed(lambda sign=sign, live=live: _run_all(live, load, sign))  # type: ignore[misc]
            best = max(best, heard[0] / seconds)
        rates.append(best)
    return rates[0], rates[1]


def _run_all(live: vk.Maintainer, load: Workload, sign: int) -> None:
    for relation, rows, counts in load.batches:
        live.update_batch(relation, rows, sign * counts)


def _step_of_sum(groups: dict[Any, Any], row: tuple[Any, ...], count: int) -> None:
    group, value = row
    entry = groups.get(group)
    if entry is None:
        entry = groups[group] = [0, 0]
    entry[0] += count * value
    entry[1] += count
    if not entry[1]:
        del groups[group]


def _step_of_extremes(groups: dict[Any, Any], row: tuple[Any, ...], count: int) -> None:
    """A sorted list for each group: the extremes are its ends."""
    group, value = row
    values = groups.setdefault(group, [])
    if count > 0:
        insort(values, value)
        return
    place = bisect_left(values, value)
    if place < len(values) and values[place] == value:
        del values[place]


def _step_of_product(groups: dict[Any, Any], row: tuple[Any, ...], count: int) -> None:
    group, value, rate = row
    entry = groups.get(group)
    if entry is None:
        entry = groups[group] = [Decimal(0), Decimal(0), 0]
    entry[0] += count * value * (1 - rate)
    entry[1] += count * value
    entry[2] += count
    if not entry[2]:
        del groups[group]
