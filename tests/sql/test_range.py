"""The table function range(): numbers as rows, kept beside tables that change."""

import pytest

from tests.diffs.interpret import evaluate
from tests.sql.database import TABLES
from viewkeep.errors import ParseError, UnsupportedError
from viewkeep.sql.parse import parse_view

NUMBERS = {
    "range(3)": [0, 1, 2],
    "range(2, 5)": [2, 3, 4],
    "range(-1, 6, 3)": [-1, 2, 5],
    "range(6, 0, -2)": [6, 4, 2],
    "range(4, 4)": [],
    "range(0)": [],
    "range(5, 1)": [],
}


@pytest.mark.parametrize("function", NUMBERS)
def test_numbers(function: str) -> None:
    rows = evaluate(parse_view(f"select x.n from {function} as x(n)", TABLES), {})
    assert rows == [(number,) for number in NUMBERS[function]]


def test_beside_a_table() -> None:
    node = parse_view("select r.a, n.id from r join range(1, 3) n on n.id = r.a", TABLES)
    rows = [(1, None, None), (2, 1, None), (3, 1, None), (None, 1, None)]
    assert evaluate(node, {("r", "post"): rows}) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("arguments", ["", "1, 2, 0", "1, 2, 3, 4"])
def test_other_arguments_are_errors(arguments: str) -> None:
    with pytest.raises(ParseError, match=r"range\(\) takes an end"):
        parse_view(f"select id from range({arguments})", TABLES)


def test_only_whole_numbers() -> None:
    with pytest.raises(UnsupportedError, match=r"range\(\) of anything but whole numbers"):
        parse_view("select id from range(1 + 1.5)", TABLES)
