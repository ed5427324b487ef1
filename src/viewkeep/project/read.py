"""From a folder to a `Project`: its settings, its SQL files, its tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.project.files import (
    checked_mapping,
    checked_names,
    file_errors,
    read_text,
    read_toml,
    relative_name,
)
from viewkeep.project.model import (
    Assertion,
    Project,
    ProjectError,
    ProjectTable,
    ProjectView,
    UnitTest,
)
from viewkeep.project.pipeline import Pipeline, find_pipeline
from viewkeep.project.unit_tests import read_unit_tests
from viewkeep.sql.definitions import TextStatement, read_definitions, tables_named
from viewkeep.sql.schema import read_schema

SETTINGS = "viewkeep.toml"
TESTS, ROWS, LAKE = "tests", "data", "lake"
"""The folders of tests, of first rows, and of the lake if no other is named."""
OPTIONS = ("strategy", "policy", "lag", "layout")
"""What properties and comments of a view may say, as `'viewkeep.policy' = 'strict'`."""
_PREFIX = "viewkeep."
_TOP = ("name", "lake", "sql", "defaults", "tables")
_TABLE = ("location", "key", "foreign_keys", "fds", "static")


def read_project(folder: Path, lake: str | None = None) -> Project:
    """The project in a folder; `lake` is another place for its tables and views."""
    folder = folder.absolute()
    settings, pipeline = _settings(folder), find_pipeline(folder)
    if settings is None and pipeline is None:
        raise ProjectError(
            f"{folder}: no {SETTINGS} here, and no pipeline of Spark (spark-pipeline.yml); "
            "`viewkeep new PATH` makes a project"
        )
    settings = settings or {}
    files = pipeline.sql_files if pipeline is not None else _sql_files(folder, settings)
    name = _text_setting(settings, "name", pipeline.name if pipeline else folder.name)
    defaults = _options(checked_mapping(settings.get("defaults", {}), "[defaults]"), SETTINGS)
    base = replace(ViewOptions(feed=True, project=name), **defaults)
    statements = [(each, part) for each in files for part in _statements(each, folder)]
    names = pipeline or Pipeline(name)
    own_tables = _tables(statements, folder, settings)
    views = [
        _view(part, relative_name(file, folder), base, names)
        for file, part in statements
        if part.view is not None and not part.is_setting
    ]
    notes = [
        f"{relative_name(file, folder)}: SET is left out"
        for file, part in statements
        if part.is_setting
    ]
    assertions, unit_tests = _tests(folder)
    return Project(
        name,
        folder,
        lake or _lake_place(folder, settings),
        tuple(own_tables),
        tuple(_in_order(views)),
        tuple(assertions),
        tuple(unit_tests),
        (*(pipeline.notes if pipeline else ()), *dict.fromkeys(notes)),
    )


def read_lake_place(folder: Path) -> str:
    """Where the tables and views of a project are, whatever else is in its files."""
    return _lake_place(folder, _settings(folder) or {})


def _settings(folder: Path) -> dict[str, Any] | None:
    path = folder / SETTINGS
    if not path.is_file():
        return None
    settings = read_toml(path, folder)
    checked_names(settings, _TOP, SETTINGS)
    return settings


def _text_setting(settings: Mapping[str, Any], name: str, default: str) -> str:
    value = settings.get(name, default)
    if not isinstance(value, str) or not value.strip():
        raise ProjectError(f"{SETTINGS}: {name} is a text, not {value!r}")
    return value


def _lake_place(folder: Path, settings: Mapping[str, Any]) -> str:
    place = _text_setting(settings, "lake", LAKE)
    return place if "://" in place else str(folder / Path(place).expanduser())


def _sql_files(folder: Path, settings: Mapping[str, Any]) -> list[Path]:
    """The SQL files of a project: all but those of tests, or those that settings name."""
    patterns = settings.get("sql", ["**/*.sql"])
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        raise ProjectError(f'{SETTINGS}: sql is a list of files, as ["views/*.sql"]')
    found = {path for each in patterns for path in _matches(folder, each)}
    others = (folder / TESTS, Path(_lake_place(folder, settings)))
    return sorted(path for path in found if not any(map(path.is_relative_to, others)))


def _matches(folder: Path, pattern: str) -> Iterable[Path]:
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise ProjectError(f'{SETTINGS}: sql = "{pattern}" leads out of the project')
    return (path for path in folder.glob(pattern) if path.is_file())


def _statements(path: Path, folder: Path) -> list[TextStatement]:
    with file_errors(relative_name(path, folder)):
        return read_definitions(read_text(path, folder))


# --- tables ---------------------------------------------------------------------------------------


def _tables(
    statements: Sequence[tuple[Path, TextStatement]], folder: Path, settings: Mapping[str, Any]
) -> list[ProjectTable]:
    """Tables of CREATE TABLE statements, which may refer to each other, and those of settings."""
    declared = [(path, part) for path, part in statements if part.view is None]
    files = {part.table.lower(): relative_name(path, folder) for path, part in declared}
    with file_errors(", ".join(dict.fromkeys(files.values()))):
        tables = read_schema(";\n".join(part.text.strip() for _, part in declared))
    own = [
        ProjectTable(name, files[name.lower()], table, _rows_file(folder, name))
        for name, table in tables.items()
    ]
    return [*own, *_settings_tables(folder, settings)]


def _settings_tables(folder: Path, settings: Mapping[str, Any]) -> Iterable[ProjectTable]:
    tables = checked_mapping(settings.get("tables", {}), f"{SETTINGS}: [tables]")
    for name, value in tables.items():
        place = f"{SETTINGS}: [tables.{name}]"
        about = checked_mapping(value, place)
        checked_names(about, _TABLE, place)
        location = about.pop("location", None)
        if not isinstance(location, str):
            raise ProjectError(f"{place}: location is missing; CREATE TABLE makes tables")
        if "://" not in location:
            location = str(folder / Path(location).expanduser())
        yield ProjectTable(name, SETTINGS, location=location, constraints=about)


def _rows_file(folder: Path, name: str) -> Path | None:
    path = folder / ROWS / f"{name}.csv"
    return path if path.parent == folder / ROWS and path.is_file() else None


# --- views ----------------------------------------------------------------------------------------


def _view(part: TextStatement, file: str, base: ViewOptions, names: Pipeline) -> ProjectView:
    assert part.view is not None
    statement = part.view
    if statement.name is None:
        raise ProjectError(
            f"{file}: a project has CREATE TABLE and CREATE MATERIALIZED VIEW statements; "
            f"queries that must give no rows belong to {TESTS}/"
        )
    own = {
        name.removeprefix(_PREFIX): value
        for name, value in statement.properties
        if name.startswith(_PREFIX)
    }
    with file_errors(file):
        options = replace(base, **_options({**own, **dict(part.options)}, file))
        sql = names.without_prefixes(statement.query.strip())
        reads = tuple(tables_named(sql))
    name = names.own_name(statement.name)
    return ProjectView(name, sql, options, file, statement.comment, reads, statement)


def _options(values: Mapping[str, Any], place: str) -> dict[str, Any]:
    checked_names(dict(values), OPTIONS, place)
    return {name: str(value) for name, value in values.items()}


def _in_order(views: Sequence[ProjectView]) -> list[ProjectView]:
    """Views after those that they read."""
    by_name: dict[str, ProjectView] = {}
    for each in views:
        other = by_name.setdefault(each.name.lower(), each)
        if other is not each:
            files = " and ".join(dict.fromkeys((other.file, each.file)))
            raise ProjectError(f'view "{each.name}" is defined twice, in {files}')
    graph = {
        name: [read.lower() for read in each.reads if read.lower() in by_name]
        for name, each in by_name.items()
    }
    try:
        return [by_name[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        raise ProjectError(f"views read each other: {' -> '.join(error.args[1])}") from None


# --- tests ----------------------------------------------------------------------------------------


def _tests(folder: Path) -> tuple[list[Assertion], list[UnitTest]]:
    assertions: list[Assertion] = []
    for path in sorted((folder / TESTS).glob("**/*.sql")):
        file, parts = relative_name(path, folder), _statements(path, folder)
        for number, part in enumerate(parts, 1):
            name = path.stem if len(parts) == 1 else f"{path.stem} {number}"
            assertions.append(Assertion(name, part.text, file))
    paths = [path for end in ("yml", "yaml") for path in (folder / TESTS).glob(f"**/*.{end}")]
    unit_tests = [each for path in sorted(paths) for each in read_unit_tests(path, folder)]
    return assertions, unit_tests
