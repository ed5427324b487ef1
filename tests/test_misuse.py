"""Every public function with every wrong kind of argument: a ViewkeepError, and nothing changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.misuse import refused, wrong
from viewkeep import Maintainer, Table, ViewkeepError, analyze, from_sql, maintain, parse_many
from viewkeep import parse as parse_query
from viewkeep.graph import TriangleCounter, count_triangles

PATHS = "Q(a, c) = R(a, b) * S(b, c)"
TABLES = {"R": Table({"a": "int", "b": "int"}, key=["a"])}
Call = tuple[Callable[..., Any], dict[str, Any], dict[str, tuple[str, ...]]]
"""A function, arguments that it takes, and for each parameter the kinds of values that fit it."""

NOTHING: tuple[str, ...] = ()
LISTED = dict.fromkeys(("fds", "static", "foreign_keys", "keys", "degrees"), NOTHING)

FUNCTIONS: dict[str, Call] = {
    "parse": (parse_query, {"text": PATHS}, {"text": NOTHING}),
    "parse_many": (parse_many, {"text": PATHS}, {"text": ("empty text",)}),
    "from_sql": (
        from_sql,
        {"sql": "SELECT a FROM R", "tables": TABLES},
        {"sql": NOTHING, "tables": NOTHING},
    ),
    "analyze": (analyze, {"query": PATHS}, {"query": NOTHING, "insert_only": ("true",), **LISTED}),
    "maintain": (
        maintain,
        {"query": PATHS},
        {
            **dict.fromkeys(("query", "strategy", "engine", "output", "mode", "space"), NOTHING),
            **dict.fromkeys(("check", "keep_inputs", "insert_only"), ("true",)),
            **LISTED,
            "ring": ("none",),
            "lifts": ("none",),
            "epsilon": ("none",),
        },
    ),
    "Table": (
        Table,
        {"columns": {"x": "int"}},
        {
            "columns": NOTHING,
            "key": ("list", "tuple", "set", "mapping"),
            "foreign_keys": NOTHING,
            "fds": NOTHING,
            "static": ("true",),
        },
    ),
    "count_triangles": (
        count_triangles,
        {"edges": [(1, 2)]},
        {"edges": NOTHING, "directed": ("true",)},
    ),
    "TriangleCounter": (
        TriangleCounter,
        {},
        {"edges": NOTHING, "directed": ("true",), "epsilon": ("none",), "strategy": NOTHING},
    ),
    "restore": (Maintainer.restore, {}, {"path": NOTHING}),
}

GIVEN = {"given": ("none",)}
COUNTS = {"multiplicities": ("none", "list of numbers")}
METHODS: dict[str, tuple[dict[str, Any], dict[str, tuple[str, ...]]]] = {
    "load": ({}, {"data": NOTHING}),
    "update": (
        {"relation": "R", "row": (1, 2)},
        {"relation": NOTHING, "row": NOTHING, "multiplicity": ("number", "negative", "huge")},
    ),
    "update_batch": (
        {"relation": "R", "rows": [(1, 2)]},
        {"relation": NOTHING, "rows": NOTHING, **COUNTS},
    ),
    "update_batches": ({}, {"batches": NOTHING}),
    "check_batch": (
        {"relation": "R", "rows": [(1, 2)]},
        {"relation": NOTHING, "rows": NOTHING, **COUNTS},
    ),
    "enumerate": ({}, GIVEN),
    "enumerate_batches": ({}, {**GIVEN, "rows": ("number",)}),
    "lookup": ({"row": (1, 3)}, {**GIVEN, "row": NOTHING}),
    "exists": ({}, GIVEN),
    "subscribe": ({}, {"callback": ("function", "class")}),
    "save": ({}, {"path": ("text",)}),
}
WORKLOAD = {name: METHODS[name] for name in ("load", "update", "update_batch")}


def _cases(calls: dict[str, Any], place: int) -> list[tuple[str, str]]:
    return [(name, parameter) for name, call in calls.items() for parameter in call[place]]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what is written by mistake is written there


@pytest.mark.parametrize(("name", "parameter"), _cases(FUNCTIONS, 2))
def test_functions(name: str, parameter: str, tmp_path: Path) -> None:
    function, right, kinds = FUNCTIONS[name]
    for value in wrong(*kinds[parameter]):
        refused(function, {**right, parameter: value})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "parameter"), _cases(METHODS, 1))
def test_methods_of_a_maintainer(name: str, parameter: str) -> None:
    live = maintain(PATHS)
    live.load({"R": [(1, 2)], "S": [(2, 3)]})
    _refused(live, name, parameter, *METHODS[name])
    assert list(live.enumerate()) == [((1, 3), 1)]


@pytest.mark.parametrize(("name", "parameter"), _cases(WORKLOAD, 1))
def test_methods_of_a_workload(name: str, parameter: str) -> None:
    work = maintain([parse_query(PATHS), parse_query("Q2(a, b) = R(a, b)")])
    work.load({"R": [(1, 2)], "S": [(2, 3)]})
    _refused(work, name, parameter, *WORKLOAD[name])
    assert list(work["Q"].enumerate()) == [((1, 3), 1)]


def test_queries_of_a_workload() -> None:
    work = maintain([parse_query(PATHS), parse_query("Q2(a, b) = R(a, b)")])
    for value in wrong():
        with pytest.raises(ViewkeepError):
            work[value]


def _refused(
    made: Any, name: str, parameter: str, right: dict[str, Any], kinds: dict[str, tuple[str, ...]]
) -> None:
    for value in wrong(*kinds[parameter]):
        refused(getattr(made, name), {**right, parameter: value})
