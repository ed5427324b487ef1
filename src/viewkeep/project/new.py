"""A new project: a small shop, with everything that a project has."""

from pathlib import Path

from viewkeep.project.model import ProjectError

FILES = {
    "viewkeep.toml": """\
name = "{name}"
lake = "lake"        # where tables and views are kept: a folder beside this file, or a URI

[defaults]           # of all views; each may say otherwise
policy = "auto"

# A Delta table that others write:
# [tables.visits]
# location = "/data/warehouse/visits"
# key = ["visit_id"]
""",
    "tables/shop.sql": """\
-- First rows are in data/, one CSV file for each table; `viewkeep apply` changes them.

CREATE TABLE products (
  product INT PRIMARY KEY,
  name STRING NOT NULL,
  price DECIMAL(10, 2) NOT NULL
);

CREATE TABLE orders (
  order_id INT PRIMARY KEY,
  customer STRING NOT NULL,
  day DATE NOT NULL
);

CREATE TABLE lines (
  order_id INT REFERENCES orders,
  product INT REFERENCES products,
  amount INT NOT NULL,
  PRIMARY KEY (order_id, product)
);
""",
    "views/sales.sql": """\
-- What each product has brought in.
CREATE MATERIALIZED VIEW product_sales COMMENT 'Revenue by product' AS
SELECT p.product, p.name, sum(l.amount * p.price) AS revenue, count(*) AS orders
FROM products p JOIN lines l ON l.product = p.product
GROUP BY p.product, p.name;

-- viewkeep: lag = 1m
CREATE MATERIALIZED VIEW daily_sales AS
SELECT o.day, sum(l.amount * p.price) AS revenue
FROM orders o
JOIN lines l ON l.order_id = o.order_id
JOIN products p ON p.product = l.product
GROUP BY o.day;
""",
    "views/best.sql": """\
-- A view over a view.
CREATE MATERIALIZED VIEW best_sellers AS
SELECT name, revenue FROM product_sales WHERE revenue >= 20;
""",
    "tests/no_negative_revenue.sql": """\
-- A query that must give no rows.
SELECT * FROM product_sales WHERE revenue < 0
""",
    "tests/sales.yml": """\
- test: revenue is amount times price, and follows the price
  view: product_sales
  given:
    products: [{product: 1, name: tea, price: 2.50}]
    lines: [{order_id: 1, product: 1, amount: 2}, {order_id: 2, product: 1, amount: 1}]
  expect: [{product: 1, revenue: 7.50, orders: 2}]
  then:
    - changes: {products: {updates: [{product: 1, price: 3}]}}
      expect: [{product: 1, revenue: 9, orders: 2}]
    - changes: {lines: {deletes: [{order_id: 2, product: 1}]}}
      expect: [{product: 1, revenue: 6, orders: 1}]
""",
    "data/products.csv": "product,name,price\n1,tea,2.50\n2,pot,19.00\n3,cup,4.25\n",
    "data/orders.csv": """\
order_id,customer,day
1,Ada,2026-05-01
2,Ben,2026-05-01
3,Ada,2026-05-02
""",
    "data/lines.csv": "order_id,product,amount\n1,1,2\n1,2,1\n2,3,4\n3,1,1\n3,3,2\n",
    ".gitignore": "lake/\n",
}


def new_project(folder: Path) -> list[str]:
    """Write the files of a new project into a folder that is not there, or empty."""
    name = folder.absolute().name
    if any(sign in name for sign in '"\\\n'):
        raise ProjectError(f"{name!r} is no name for a project: choose a plain one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ProjectError(f"{folder} is not empty: choose another folder")
        for file, text in FILES.items():
            path = folder / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.replace("{name}", name), encoding="utf-8")
    except OSError as error:
        raise ProjectError(f"cannot write {folder}: {error.strerror}") from None
    return list(FILES)
