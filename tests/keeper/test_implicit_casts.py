"""Views in which texts meet numbers and dates: Spark's casts are added, and the views are kept."""

from datetime import date
from pathlib import Path
from random import Random

from viewkeep import Keeper

VIEWS = {
    "joined": "SELECT o.id, c.name FROM orders o JOIN codes c ON o.code = c.code",
    "using_code": "SELECT o.id, c.name FROM orders o JOIN codes c USING (code)",
    "member": "SELECT id FROM orders WHERE code IN (SELECT code FROM codes WHERE name > 'b')",
    "marked": "SELECT id, code IN (SELECT code FROM codes) AS is_known FROM orders",
    "absent": "SELECT id FROM orders WHERE code NOT IN (SELECT c.code FROM codes c)",
    "by_day": "SELECT day, count(*) AS n, sum(amount) AS total FROM orders GROUP BY day",
    "late": "SELECT id, datediff('2026-03-01', day) AS days FROM orders WHERE day < '2026-02-20'",
    "labels": "SELECT id, 'order ' || id || ': ' || amount AS label FROM orders",
    "both": "SELECT code FROM orders UNION SELECT code FROM codes",
    "least": "SELECT code FROM orders INTERSECT SELECT code FROM codes",
}


def test_views_are_kept(tmp_path: Path) -> None:
    rng, keeper = Random(2), Keeper(tmp_path / "lake")
    order_columns = {"id": "int", "code": "int", "day": "date", "amount": "string"}
    keeper.create_table("orders", order_columns, key=["id"])
    keeper.create_table("codes", {"code": "string", "name": "string"}, key=["code"])
    keeper.apply("codes", inserts=[("1", "a"), (" 2", "c"), ("03", "d")])
    keeper.apply("orders", inserts=[(0, 3, date(2026, 2, 1), "1.5")])
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, policy="incremental")
    rows = keeper.read("joined").to_pylist()
    assert rows == [{"id": 0, "name": "d"}]
    assert keeper.read("member")["id"].to_pylist() == [0]
    assert keeper.read("marked").to_pylist() == [{"id": 0, "is_known": True}]
    assert keeper.read("absent")["id"].to_pylist() == []
    assert keeper.read("labels")["label"].to_pylist() == ["order 0: 1.5"]
    assert keeper.read("late")["days"].to_pylist() == [28]
    for number in range(1, 7):
        order = (number, rng.choice([None, 1, 2, 3, 4]), date(2026, 2, 10 + number), f"{number}.25")
        keeper.apply("orders", inserts=[order], updates=[{"id": 0, "code": rng.randint(1, 4)}])
        code = rng.choice(["1", " 2", "03"])
        keeper.apply("codes", upserts=[(rng.choice([code, "4"]), rng.choice("abcd"))])
        assert {report.strategy for report in keeper.refresh()} <= {"id", "none"}
        for name in VIEWS:
            verified = keeper.verify(name)
            assert (verified.missing_rows, verified.extra_rows) == (0, 0), name
