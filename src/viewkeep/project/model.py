"""A project as a value: what its files define."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viewkeep.errors import ViewkeepError
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.query.tables import Table
from viewkeep.sql.view_statement import ViewStatement


class ProjectError(ViewkeepError):
    """A file of a project that is not right: the file, the place, and what is expected there."""


@dataclass(frozen=True)
class ProjectTable:
    """A table that the project makes, maybe with first `rows` from a CSV file; or, at a
    `location`, a Delta table that others write, with what is declared of it (`constraints`)."""

    name: str
    file: str
    table: Table | None = None
    rows: Path | None = None
    location: str = ""
    constraints: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProjectView:
    """A view: its query, how it is to be kept, and the file that defines it."""

    name: str
    sql: str
    options: ViewOptions
    file: str
    comment: str = ""
    reads: tuple[str, ...] = ()
    statement: ViewStatement | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Assertion:
    """A query that must give no rows."""

    name: str
    sql: str
    file: str


@dataclass(frozen=True)
class UnitTest:
    """Rows of tables, and those that a view of them must have; `then` are changes of the tables,
    each with the rows that the view must have after them."""

    name: str
    view: str
    file: str
    given: Mapping[str, list[dict[str, object]]] = field(default_factory=dict)
    expect: tuple[dict[str, object], ...] | None = None
    then: tuple["Then", ...] = ()


@dataclass(frozen=True)
class Then:
    """Changes by table, as `Keeper.transaction` takes them, and the rows of the view after them."""

    changes: Mapping[str, Mapping[str, list[dict[str, object]]]]
    expect: tuple[dict[str, object], ...]


@dataclass(frozen=True)
class Project:
    """A folder of definitions; views come after what they read. `notes` tell of files that were
    left out."""

    name: str
    folder: Path
    lake: str
    tables: tuple[ProjectTable, ...] = ()
    views: tuple[ProjectView, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    unit_tests: tuple[UnitTest, ...] = ()
    notes: tuple[str, ...] = ()
