"""The covariance matrix over a join of three tables, kept under sales that come and go.

The data and the query are those of examples/regression.py.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import viewkeep as vk
from examples.regression import ITEMS, QUERY, STORES, random_sale
from viewkeep.rings import MatrixRing

VARIABLES = ("size", "price", "units")
UPDATES = 200
Sale = tuple[int, int, float]


@dataclass(frozen=True)
class Model:
    """What an update takes after so many sales, and recomputation; the largest relative error."""

    sales: int
    steps: float
    update_seconds: float
    recompute_seconds: float
    error: float


def model_costs(sizes: Sequence[int]) -> list[Model]:
    """At each number of sales."""
    return [_model_cost(size) for size in sizes]


def _model_cost(size: int) -> Model:
    choose, ring = random.Random(7), MatrixRing(VARIABLES)
    stores = {store: float(choose.randint(10, 90)) for store in range(STORES)}
    items = {item: float(choose.randint(1, 12)) for item in range(ITEMS)}
    sales = [random_sale(choose, stores, items) for _ in range(size)]
    live = vk.maintain(QUERY, ring=ring, static=["Stores", "Items"], engine="reference")
    live.load({"Stores": list(stores.items()), "Items": list(items.items()), "Sales": sales})
    steps, start = live.steps, perf_counter()
    for _ in range(UPDATES // 2):  # as many come as go
        sales.append(random_sale(choose, stores, items))
        live.update("Sales", sales[-1])
        live.update("Sales", sales.pop(choose.randrange(len(sales))), -1)
    seconds = (perf_counter() - start) / UPDATES
    start = perf_counter()
    expected = _moments(sales, stores, items)
    anew = perf_counter() - start
    found = _matrix(ring, live)
    error = float(np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1)))
    return Model(size, (live.steps - steps) / UPDATES, seconds, anew, error)


def _moments(
    sales: Sequence[Sale], stores: dict[int, float], items: dict[int, float]
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """The count, the sums and the sums of products, from the joined rows."""
    joined = [(1.0, stores[store], items[item], units) for store, item, units in sales]
    rows = np.array(joined)
    return rows.T @ rows


def _matrix(
    ring: MatrixRing, live: vk.Maintainer
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    value, size = live.value(), len(VARIABLES) + 1
    found = np.zeros((size, size))
    found[0, 0] = ring.count_of(value)
    for i, first in enumerate(VARIABLES, 1):
        found[0, i] = found[i, 0] = ring.sum_of(value, first)
        for j, second in enumerate(VARIABLES, 1):
            found[i, j] = ring.sum_of_products(value, first, second)
    return found
