"""What is maintained by diffs, what is computed anew, and what is refused."""

import pytest

import viewkeep as vk
from tests.diffs.components import components
from viewkeep.diffs.decide import decide
from viewkeep.diffs.passes.identify import identify
from viewkeep.errors import QueryError, UnsupportedError
from viewkeep.sql import parse_view

TABLES = {
    "devices": vk.Table({"did": "string", "category": "string"}, key=["did"]),
    "parts": vk.Table({"pid": "string", "price": "int"}, key=["pid"]),
    "devices_parts": vk.Table({"did": "string", "pid": "string"}, key=["did", "pid"]),
    "log": vk.Table({"line": "string", "tags": "map<string, int>"}),
}


def test_a_view_over_keyed_tables_is_maintained_by_ids():
    assert decide(parse_view("SELECT pid FROM parts", TABLES)).strategy == "id"


def test_without_a_key_copies_of_rows_are_numbered():
    decision = decide(parse_view("SELECT line FROM log", TABLES))
    assert (decision.strategy, decision.reason) == (
        "id",
        "log has no key: copies of equal rows are numbered",
    )


def test_a_view_of_rows_that_do_not_compare_is_computed_anew_and_says_why():
    decision = decide(parse_view("SELECT line, tags FROM log", TABLES))
    assert decision.strategy == "recompute"
    assert '"log" has no key, and values of "tags"' in decision.reason


@pytest.mark.parametrize("asked", [{"policy": "strict"}, {"strategy": "id"}])
def test_what_was_asked_for_and_cannot_be_is_an_error(asked):
    with pytest.raises(QueryError, match="has no key"):
        decide(parse_view("SELECT line, tags FROM log", TABLES), **asked)


def test_unknown_options_are_refused():
    with pytest.raises(QueryError, match='did you mean "strict"'):
        decide(parse_view("SELECT pid FROM parts", TABLES), policy="strickt")


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT pid, rand() AS x FROM parts", "non-deterministic"),
        (
            "SELECT pid, lag(pid) OVER (ORDER BY pid ROWS UNBOUNDED PRECEDING) AS n FROM parts",
            "frame",
        ),
        ("SELECT year(price) AS x FROM parts", "int"),
    ],
)
def test_what_cannot_be_right_is_refused_when_it_is_defined(sql, problem):
    with pytest.raises((QueryError, UnsupportedError), match=f"(?i){problem}"):
        parse_view(sql, TABLES)


def test_the_components_of_a_key_determine_the_columns_of_their_tables():
    """Example 2.5: did and pid are components of V's key, pid -> price."""
    sql = (
        "SELECT did, pid, price, category FROM parts NATURAL JOIN devices_parts "
        "NATURAL JOIN devices"
    )
    plan = identify(parse_view(sql, TABLES))
    found = {each.ids: each.determined for each in components(plan, plan.root)}
    assert found == {
        ("pid",): {"price"},
        ("did", "pid"): set(),
        ("did",): {"category"},
    }
