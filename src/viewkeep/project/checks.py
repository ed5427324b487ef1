"""The tests of a project: assertions over its lake, unit tests in a lake of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from viewkeep.errors import ViewkeepError
from viewkeep.keeper import Keeper
from viewkeep.project.model import Assertion, Project, ProjectError, ProjectView, UnitTest
from viewkeep.query.tables import Table

Row = Mapping[str, Any]
SHOWN = 10
"""The rows of a failed assertion that are listed."""


@dataclass(frozen=True)
class CheckResult:
    """One test: whether it passed, and the rows that should not be there, or are not."""

    name: str
    file: str
    kind: str
    problem: str = ""
    missing: tuple[Row, ...] = ()
    extra: tuple[Row, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether all is as the test says."""
        return not self.problem


def run_assertion(assertion: Assertion, keeper: Keeper) -> CheckResult:
    """Whether the query of an assertion gives no rows."""
    about = (assertion.name, assertion.file, "assertion")
    try:
        rows = keeper.query(assertion.sql, SHOWN + 1).to_pylist()
    except ViewkeepError as error:
        return CheckResult(*about, str(error))
    if not rows:
        return CheckResult(*about)
    count = f"{len(rows)}" if len(rows) <= SHOWN else f"more than {SHOWN}"
    return CheckResult(*about, f"{count} rows, expected none", extra=tuple(rows[:SHOWN]))


def run_unit_test(test: UnitTest, project: Project, spark: Any = None) -> CheckResult:
    """Whether a view of some rows has the rows that are expected, at first and after changes."""
    about = (test.name, test.file, "unit test")
    try:
        with TemporaryDirectory(prefix="viewkeep-test-") as folder:
            for number, missing, extra in _differences(test, project, Path(folder), spark):
                if missing or extra:
                    when = f" after change {number}" if number else ""
                    counts = f"{len(missing)} rows are missing, {len(extra)} are too many"
                    return CheckResult(*about, f"{test.view}{when}: {counts}", missing, extra)
    except ViewkeepError as error:
        return CheckResult(*about, str(error))
    return CheckResult(*about)


def _differences(
    test: UnitTest, project: Project, folder: Path, spark: Any
) -> Iterator[tuple[int, tuple[Row, ...], tuple[Row, ...]]]:
    """The rows that the view lacks and those it should not have, at first and after each change."""
    keeper = Keeper(folder, spark, durable=False)
    tables = _make_lake(test, project, keeper)
    if test.expect is not None:
        yield 0, *_compared(keeper, test.view, test.expect)
    for number, then in enumerate(test.then, 1):
        changes = {
            name: {kind: _typed_rows(rows, tables[name]) for kind, rows in kinds.items()}
            for name, kinds in then.changes.items()
            if name in tables or _unknown_table(name, tables)
        }
        keeper.transaction(changes)
        keeper.refresh()
        yield number, *_compared(keeper, test.view, then.expect)


def _make_lake(test: UnitTest, project: Project, keeper: Keeper) -> dict[str, Table]:
    """The tables that the view reads, with the rows of the test, and the views below it."""
    views = _views_below(test.view, project)
    read = {name.lower() for view in views for name in view.reads}
    own = {each.name: each for each in project.tables if each.name.lower() in read}
    tables = {name: each.table for name, each in own.items() if each.table is not None}
    external = [name for name in own if name not in tables]
    if external:
        problem = f'table "{external[0]}" is not made by the project'
        raise ProjectError(f"{problem}: declare it with CREATE TABLE to use it in unit tests")
    for name in test.given:
        if name not in tables:
            _unknown_table(name, tables)
    for name, table in tables.items():
        rows = _typed_rows(test.given.get(name, []), table, fill=True)
        keeper.create_table(name, table, rows=rows)
    for view in views:
        options = view.options
        keeper.create_view(view.name, view.sql, options.strategy, options.policy)
    return tables


def _unknown_table(name: str, tables: Mapping[str, Table]) -> bool:
    raise ProjectError(f'"{name}" is no table that the view reads ({", ".join(tables)})')


def _views_below(name: str, project: Project) -> list[ProjectView]:
    """A view and the views that it reads, in the order of the project."""
    by_name = {each.name.lower(): each for each in project.views}
    if name.lower() not in by_name:
        raise ProjectError(f'there is no view "{name}" in the project')
    wanted, todo = set[str](), [name.lower()]
    while todo:
        view = todo.pop()
        if view in by_name and view not in wanted:
            wanted.add(view)
            todo += [each.lower() for each in by_name[view].reads]
    return [each for each in project.views if each.name.lower() in wanted]


def _typed_rows(rows: Sequence[Row], table: Table, fill: bool = False) -> list[dict[str, Any]]:
    """Rows of YAML with values as their columns have them; with `fill`, NULL for the others."""
    kinds = {field.name: field.type.name for field in table.columns}
    names = list(kinds) if fill else []
    filled = [{**dict.fromkeys(names), **row} for row in rows]
    return [{n: _typed_value(v, kinds.get(n, "")) for n, v in row.items()} for row in filled]


def _typed_value(value: Any, kind: str) -> Any:
    if kind == "decimal" and isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    if kind in ("float", "double") and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == "timestamp" and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if kind in ("date", "timestamp") and isinstance(value, str):
        read = datetime.fromisoformat(value)
        return read.date() if kind == "date" else read
    return value


def _compared(
    keeper: Keeper, view: str, expect: Sequence[Row]
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Rows that are missing and rows that are too many, by the columns that the test names."""
    rows: list[Row] = keeper.read(view, backend="duckdb").to_pylist()
    names = list(dict.fromkeys(name for row in expect for name in row))
    known = keeper.read(view, backend="duckdb").column_names
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ProjectError(f'{view} has no column "{unknown[0]}" ({", ".join(known)})')
    extra: list[Row] = [{n: row[n] for n in names} for row in rows] if names else list(rows)
    missing = []
    for row in expect:
        match = next((each for each in extra if _is_same_row(row, each)), None)
        if match is None:
            missing.append(row)
        else:
            extra.remove(match)
    return tuple(missing), tuple(extra)


def _is_same_row(expected: Row, row: Row) -> bool:
    return all(_is_same_value(value, row[name]) for name, value in expected.items())


def _is_same_value(expected: Any, value: Any) -> bool:
    """Whether a value is the one that YAML writes: numbers by their value, times by their text."""
    if expected is None or value is None or isinstance(expected, bool) or isinstance(value, bool):
        return expected is value or (expected == value and type(expected) is type(value))
    if isinstance(value, float) and isinstance(expected, int | float):
        return isclose(value, expected, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(value, int | Decimal) and isinstance(expected, int | float | Decimal):
        return Decimal(str(value)) == Decimal(str(expected))
    if isinstance(value, datetime):
        return _moment(expected) == _moment(value)
    return bool(expected == value or str(expected) == str(value))


def _moment(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return str(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    return (
        datetime(value.year, value.month, value.day).isoformat() if isinstance(value, date) else ""
    )
