"""Every method of a keeper with every wrong kind of argument: an error, and nothing is changed."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.keeper.lakes import rows, versions
from tests.misuse import refused, wrong
from viewkeep import Keeper, ViewkeepError

NOTHING: tuple[str, ...] = ()
NAME = {"name": NOTHING}
SQL = "SELECT pid FROM parts"
DECLARED = {
    "key": NOTHING,
    "foreign_keys": NOTHING,
    "fds": NOTHING,
    "static": ("true",),
}
METHODS: dict[str, tuple[dict[str, Any], dict[str, tuple[str, ...]]]] = {
    "create_table": (
        {"name": "n", "data": {"id": "int"}, "key": ["id"]},
        {"name": ("text",), "data": NOTHING, "rows": ("none",), **DECLARED},
    ),
    "register_table": (
        {"name": "n", "location": "nowhere", "key": ["id"]},
        {"name": NOTHING, "location": NOTHING, **DECLARED},
    ),
    "create_view": (
        {"name": "v", "sql": SQL},
        {
            "name": ("text",),
            "sql": NOTHING,
            "strategy": NOTHING,
            "policy": NOTHING,
            "replace": ("true",),
        },
    ),
    "drop_view": ({}, NAME),
    "drop_table": ({}, NAME),
    "table": ({}, NAME),
    "apply": (
        {"name": "parts"},
        {
            "name": NOTHING,
            "inserts": ("none",),
            "updates": ("none",),
            "deletes": ("none", "list of numbers"),
        },
    ),
    "read": ({"name": "dear"}, {"name": NOTHING, "version": ("none",)}),
    "history": ({}, NAME),
    "script": ({}, NAME),
    "operators": ({}, NAME),
    "explain": ({"name": "dear"}, {"name": NOTHING, "script": ("true",)}),
    "verify": ({}, NAME),
    "repair": ({}, NAME),
    "vacuum": (
        {"dry_run": True, "force": True},
        {"hours": ("number", "fraction"), "dry_run": ("true",), "force": ("true",)},
    ),
}


@pytest.fixture(scope="module")
def keeper(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Keeper:
    keeper = Keeper(tmp_path_factory.mktemp("lake"), spark)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 10), (2, 20)])
    keeper.create_view("dear", "SELECT pid FROM parts WHERE price > 15")
    return keeper


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _state(keeper: Keeper) -> Any:
    folder = Path(keeper._lake.uri)
    files = {path.name for path in folder.iterdir()}
    return versions(keeper), rows(keeper, "parts"), keeper.tables, keeper.views, files


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, each) for name, call in METHODS.items() for each in call[1]]
)
def test_methods(keeper: Keeper, name: str, parameter: str, tmp_path: Path) -> None:
    right, kinds = METHODS[name]
    before = _state(keeper)
    for value in wrong(*kinds[parameter]):
        refused(getattr(keeper, name), {**right, parameter: value})
    assert _state(keeper) == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["refresh", "status", "describe_views"])
def test_names(keeper: Keeper, name: str) -> None:
    for value in wrong():
        with pytest.raises(ViewkeepError):
            getattr(keeper, name)(value)


def test_too_many_arguments(keeper: Keeper) -> None:
    with pytest.raises(ViewkeepError, match=r"vacuum\(\): got an unexpected keyword .*'days'"):
        keeper.vacuum(days=1)  # type: ignore[call-arg]
    with pytest.raises(ViewkeepError, match=r"drop_view\(\): missing a required argument: 'name'"):
        keeper.drop_view()  # type: ignore[call-arg]


def test_the_messages(keeper: Keeper, spark: SparkSession) -> None:
    with pytest.raises(ViewkeepError, match=r'"dear" has no version 7; the newest is 0'):
        keeper.read("dear", version=7)
    with pytest.raises(ViewkeepError, match=r"version='x': expected a whole number"):
        keeper.read("dear", version="x")  # type: ignore[arg-type]
    with pytest.raises(ViewkeepError, match=r"give its query as SQL text, not as DataFrame"):
        keeper.create_view("v", spark.range(1))
    with pytest.raises(ViewkeepError, match=r"hours=-1: expected a number from 0"):
        keeper.vacuum(hours=-1)


@pytest.mark.parametrize(
    ("parameter", "allowed"),
    [
        ("spark", {"function", "class", "none"}),
        ("path", {"text"}),
        ("storage_options", {"none"}),
        ("create", {"true"}),
        ("backend", set()),
        ("driver_bytes", {"number", "huge"}),
    ],
)
def test_opening(spark: SparkSession, parameter: str, allowed: set[str], tmp_path: Path) -> None:
    right: dict[str, Any] = {"spark": spark, "path": "lake"}
    for value in wrong(*allowed):
        refused(Keeper, {**right, parameter: value})
    assert not list(tmp_path.iterdir())
