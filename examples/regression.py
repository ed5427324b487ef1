"""A linear regression kept live over a join of three relations.

Units sold are predicted from the size of the store and the price of the item. The payload of the
query is the degree-3 matrix ring: the count, the sums and the sums of products of the variables,
which is all that least squares needs. A sale changes the model in constant time; nothing is
joined again and no sale is looked at twice.

    python examples/regression.py
"""

import random

from rich.console import Console
from rich.table import Table

import viewkeep as vk
from viewkeep.rings import MatrixRing, least_squares

STORES, ITEMS, SALES = 40, 60, 6_000
TRUE_WEIGHTS = {"size": 0.5, "price": -2.0}
INTERCEPT = 30.0
QUERY = "Q() = Sales(store, item, units) * Stores(store, size) * Items(item, price)"


def main() -> None:
    """Load the two static relations, then let sales stream in and some be returned."""
    choose = random.Random(7)
    ring = MatrixRing(("size", "price", "units"))
    live = vk.maintain(QUERY, ring=ring, static=["Stores", "Items"])
    stores = {s: float(choose.randint(10, 90)) for s in range(STORES)}
    items = {i: float(choose.randint(1, 12)) for i in range(ITEMS)}
    live.load({"Stores": list(stores.items()), "Items": list(items.items())})

    table = Table(title="units = intercept + a * size + b * price")
    for column in ("sales", "intercept", "a (size)", "b (price)", "steps per update"):
        table.add_column(column, justify="right")
    sold: list[tuple[int, int, float]] = []
    for number in range(1, SALES + 1):
        before = live.steps
        if sold and choose.random() < 0.2:
            live.update("Sales", sold.pop(choose.randrange(len(sold))), -1)
        else:
            sold.append(random_sale(choose, stores, items))
            live.update("Sales", sold[-1])
        if number in (20, 100, 500, 2_000, SALES):
            model = least_squares(ring, live.value(), label="units")
            table.add_row(
                f"{len(sold):,}",
                f"{model.intercept:.3f}",
                f"{model.weights['size']:.3f}",
                f"{model.weights['price']:.3f}",
                str(live.steps - before),
            )
    table.caption = f"true: {INTERCEPT}, {TRUE_WEIGHTS['size']}, {TRUE_WEIGHTS['price']}"
    Console().print(table)


def random_sale(
    choose: random.Random, stores: dict[int, float], items: dict[int, float]
) -> tuple[int, int, float]:
    """A sale that follows the true weights, with noise."""
    store, item = choose.randrange(STORES), choose.randrange(ITEMS)
    mean = INTERCEPT + TRUE_WEIGHTS["size"] * stores[store] + TRUE_WEIGHTS["price"] * items[item]
    return store, item, mean + choose.gauss(0, 5)


if __name__ == "__main__":
    main()
