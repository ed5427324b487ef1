"""A small lake with every panel of the page, and names and values that want to be markup."""

from pathlib import Path

import viewkeep as vk

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
COLUMN = '"><b>bold</b>'


def hostile_lake(path: Path) -> vk.Keeper:
    """Tables and views, some of them behind; rows, columns and texts with markup in them."""
    keeper = vk.Keeper(path, durable=False)
    keeper.create_table(
        "parts",
        {"pid": "int", COLUMN: "string", "price": "int"},
        key=["pid"],
        rows=[(1, HOSTILE, 2), (2, "javascript:window.hacked=1", 3), (3, None, 5)],
    )
    keeper.create_table(
        "uses", {"did": "int", "pid": "int"}, key=["did", "pid"], rows=[(1, 1), (1, 2), (2, 3)]
    )
    keeper.create_view(
        "cost",
        f"-- {HOSTILE}\nSELECT u.did, sum(p.price) AS cost "
        "FROM parts p JOIN uses u ON u.pid = p.pid GROUP BY u.did",
    )
    keeper.create_view("dear", "SELECT did FROM cost WHERE cost > 4")
    keeper.create_view("names", f"SELECT pid, `{COLUMN}` FROM parts WHERE price < 9")
    keeper.apply("parts", updates=[{"pid": 1, "price": 3}])
    keeper.refresh()
    keeper.apply("parts", updates=[{"pid": 1, "price": 4, COLUMN: f"{HOSTILE}!"}])
    keeper.refresh("names")
    return keeper
