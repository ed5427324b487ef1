"""The running example of the paper (id_based_ivm, examples 1.1 to 4.7, figures 2, 5 and 7).

To make the golden file again, after reviewing what changed against figure 7:
VIEWKEEP_WRITE_GOLDEN=1 python -m pytest tests/diffs/test_running_example.py
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.diffs.harness import PlayedView
from tests.diffs.interpret import run_script
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.generate import generate
from viewkeep.diffs.model import UPDATE
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import identify
from viewkeep.diffs.script import Compute, Script
from viewkeep.query.algebra import Scan, Stored
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk
from viewkeep.sql.parse import parse_view

GOLDEN = Path(__file__).parent.parent / "golden" / "diffs" / "running_example.txt"
TABLES = {
    "devices": Table({"did": "string", "category": "string not null"}, key=["did"]),
    "parts": Table({"pid": "string", "price": "int not null"}, key=["pid"]),
    "devices_parts": Table(
        {"did": "string", "pid": "string"},
        key=["did", "pid"],
        foreign_keys=["did -> devices.did", "pid -> parts.pid"],
    ),
}
JOINED = "parts natural join devices_parts natural join devices where category = 'phone'"
V = f"select did, pid, price from {JOINED}"
V_PRIME = f"select did, sum(price) as cost from {JOINED} group by did"
ROWS = {
    "devices": [("D1", "phone"), ("D2", "phone"), ("D3", "tablet")],
    "parts": [("P1", 10), ("P2", 20)],
    "devices_parts": [("D1", "P1"), ("D2", "P1"), ("D1", "P2")],
}
PRICES = {"parts": [(UPDATE, frozenset({"price"}))]}
FIGURE_2 = {"parts": ChangeBatch("parts", TABLES["parts"], updates=[(("P1", 10), ("P1", 11))])}


def kept(sql: str, tuple_based: bool = False) -> PlayedView:
    width = {name: len(table.key) for name, table in TABLES.items()}
    database: Any = {n: {row[: width[n]]: row for row in rows} for n, rows in ROWS.items()}
    return PlayedView(parse_view(sql, TABLES), TABLES, database, tuple_based)


def diffs_of_the_view(sql: str, tuple_based: bool) -> dict[str, list[dict[str, Any]]]:
    """What the change of figure 2 does to a view: the rows of each of its diffs."""
    view = kept(sql, tuple_based)
    script, relations = view.prepare(FIGURE_2)
    assert relations["du(parts)"] == [("P1", 10, 11)]
    view.kept, computed = run_script(script, relations, view.kept)
    view.check()
    return {
        str(apply.schema): [
            dict(zip(apply.schema.columns, row, strict=True)) for row in computed[apply.diff]
        ]
        for apply in script.applies()
        if apply.target == "view"
    }


def test_one_row_of_an_id_based_diff_changes_two_rows_of_the_view() -> None:
    """Figure 2b and example 2.2."""
    assert diffs_of_the_view(V, tuple_based=False) == {
        "u(pid, price_pre, price_post)": [{"pid": "P1", "price#pre": 10, "price#post": 11}]
    }


def test_a_tuple_based_diff_has_both_rows() -> None:
    """Figure 2a."""
    [rows] = diffs_of_the_view(V, tuple_based=True).values()
    found = sorted((row["did"], row["pid"], row["price#pre"], row["price#post"]) for row in rows)
    assert found == [("D1", "P1", 10, 11), ("D2", "P1", 10, 11)]


@pytest.mark.parametrize("tuple_based", [False, True], ids=["id", "tuple"])
def test_the_view_before_and_after(tuple_based: bool) -> None:
    view = kept(V, tuple_based)
    names = view.materialized[-1].definition.names
    assert names == ("did", "pid", "price")
    assert sorted(view.kept["view"]) == [("D1", "P1", 10), ("D1", "P2", 20), ("D2", "P1", 10)]
    view.refresh(FIGURE_2)
    assert sorted(view.kept["view"]) == [("D1", "P1", 11), ("D1", "P2", 20), ("D2", "P1", 11)]


def test_a_part_that_is_in_no_phone_changes_nothing() -> None:
    """Example 1.2: the row of the diff is a dummy."""
    view = kept(V)
    new = {"parts": ChangeBatch("parts", TABLES["parts"], inserts=[("P3", 20)])}
    view.refresh(new)
    before = list(view.kept["view"])
    changed = [(("P3", 20), ("P3", 21))]
    view.refresh({"parts": ChangeBatch("parts", TABLES["parts"], updates=changed)})
    assert view.kept["view"] == before


def test_costs_of_devices() -> None:
    """Example 4.1: D1 costs 10 + 20, D2 costs 10; then P1 costs one more."""
    view = kept(V_PRIME)
    names = view.materialized[-1].definition.names
    places = names.index("did"), names.index("cost")

    def costs() -> dict[str, int]:
        return {row[places[0]]: row[places[1]] for row in view.kept["view"]}

    assert costs() == {"D1": 30, "D2": 10}
    view.refresh(FIGURE_2)
    assert costs() == {"D1": 31, "D2": 11}
    view.check()


def test_ids_of_every_operator() -> None:
    """Figure 5a; an ID of a join that equals one of the other side has one name."""
    plan = identify(optimize(parse_view(V_PRIME, TABLES)))
    found = [(type(node).__name__, plan.ids[node]) for node in plan.nodes]
    assert found == [
        ("Scan", ("parts.pid",)),
        ("Scan", ("devices_parts.did", "devices_parts.pid")),
        ("Join", ("parts.pid", "devices_parts.did")),
        ("Scan", ("devices.did",)),
        ("Select", ("devices.did",)),
        ("Join", ("parts.pid", "devices_parts.did")),
        ("Project", ("parts.pid", "did")),
        ("GroupBy", ("did",)),
    ]


def script_for_prices(sql: str, minimized: bool) -> Script:
    made = generate(parse_view(sql, TABLES), PRICES)
    return made.script if minimized else made.composed


def read_by(script: Script) -> Iterator[Scan | Stored]:
    """What the queries of a script read, its own results left out."""
    own = {statement.name for statement in script.computes()}
    for statement in script.computes():
        for node in walk(statement.query):
            if isinstance(node, Scan) or (isinstance(node, Stored) and node.name not in own):
                yield node


@pytest.mark.parametrize("minimized", [False, True])
def test_prices_change_the_view_without_a_read(minimized: bool) -> None:
    """Example 1.2, query Q∆: only the diff of the table."""
    assert {node.name for node in read_by(script_for_prices(V, minimized))} == {"du(parts)"}


@pytest.mark.parametrize("minimized", [False, True])
def test_prices_change_the_costs_without_a_read_of_a_table(minimized: bool) -> None:
    """Figure 7: the diff, the cache below the group-by, and the view."""
    script = script_for_prices(V_PRIME, minimized)
    assert {node.name for node in read_by(script)} == {"du(parts)", "cache_6", "view"}
    assert not any(isinstance(node, Scan) for node in read_by(script))


def test_the_script_for_prices() -> None:
    """Figure 7. Where ours differs: all queries come first, so that they read the cache before
    its changes, and the number of prices is kept beside their sum, for NULL."""
    shown = []
    for title, sql in (("V", V), ("V'", V_PRIME)):
        shown.append(f"== {title}, for updates of price ==")
        for statement in script_for_prices(sql, minimized=False).statements:
            is_query = isinstance(statement, Compute)
            told = f"{statement.name} {statement.schema or ''}".rstrip() if is_query else ""
            shown.append(f"{told} :=\n{statement.query}" if is_query else str(statement))
    text = "\n".join(shown) + "\n"
    if os.environ.get("VIEWKEEP_WRITE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
