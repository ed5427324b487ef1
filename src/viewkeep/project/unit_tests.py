"""Unit tests in YAML: rows of tables, and the rows that a view of them must have.

- test: a device costs what its parts cost
  view: device_cost
  given:
    parts: [{pid: 1, price: 10}]
    uses: [{did: 1, pid: 1}]
  expect: [{did: 1, cost: 10}]
  then:
    - changes: {parts: {updates: [{pid: 1, price: 11}]}}
      expect: [{did: 1, cost: 11}]
"""

from pathlib import Path
from typing import Any

from viewkeep.project.files import checked_mapping, checked_names, read_yaml, relative_name
from viewkeep.project.model import ProjectError, Then, UnitTest

_NAMES = ("test", "view", "given", "expect", "then")
_KINDS = ("inserts", "updates", "deletes", "upserts")


def read_unit_tests(path: Path, folder: Path) -> list[UnitTest]:
    """The unit tests of a file."""
    file, values = relative_name(path, folder), read_yaml(path, folder)
    if values is None:
        return []
    if not isinstance(values, list):
        raise ProjectError(f"{file}: expected a list of tests, each with - test: and view:")
    return [_unit_test(each, number, file) for number, each in enumerate(values, 1)]


def _unit_test(value: Any, number: int, file: str) -> UnitTest:
    place = f"{file}, test {number}"
    about = checked_mapping(value, place)
    checked_names(about, _NAMES, place)
    if not isinstance(about.get("view"), str):
        raise ProjectError(f"{place}: view names the view that is tested")
    if "expect" not in about and "then" not in about:
        raise ProjectError(f"{place}: expect tells the rows of the view; [] means none")
    given = checked_mapping(about.get("given") or {}, f"{place}: given")
    then = about.get("then") or []
    if not isinstance(then, list):
        raise ProjectError(f"{place}: then is a list of changes: and expect:")
    return UnitTest(
        str(about.get("test", f"{about['view']} {number}")),
        about["view"],
        file,
        {name: list(_rows(rows, f"{place}: given {name}")) for name, rows in given.items()},
        _rows(about["expect"], f"{place}: expect") if "expect" in about else None,
        tuple(_then(each, f"{place}: then") for each in then),
    )


def _then(value: Any, place: str) -> Then:
    about = checked_mapping(value, place)
    checked_names(about, ("changes", "expect"), place)
    tables = checked_mapping(about.get("changes"), f"{place}: changes")
    changes = {}
    for name, kinds in tables.items():
        own = checked_mapping(kinds, f"{place}: {name}")
        checked_names(own, _KINDS, f"{place}: {name}")
        changes[name] = {kind: list(_rows(rows, f"{place}: {name}")) for kind, rows in own.items()}
    return Then(changes, _rows(about.get("expect"), f"{place}: expect"))


def _rows(value: Any, place: str) -> tuple[dict[str, object], ...]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ProjectError(f"{place}: expected a list of rows, as [{{pid: 1, price: 10}}]")
    return tuple(checked_mapping(each, place) for each in value)
