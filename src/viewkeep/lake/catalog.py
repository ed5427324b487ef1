"""The definitions of a lake: its tables and views, in a Delta table of their own.

Every change of the definitions is one commit, so the catalog has a history, and two processes
never both define something. `_viewkeep/catalog.json` is a copy for people to read.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from viewkeep.errors import QueryError, ViewkeepError, did_you_mean
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import STRING, Field
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.file_marks import file_mark
from viewkeep.tables.files.parquet import Folder
from viewkeep.tables.log.delta import ConflictError, LakeTable, Snapshot, StorageError
from viewkeep.tables.log.memory import remembered_logs
from viewkeep.tables.places import absolute_location, former_lake, stored_location

TRIES = 20
DEFINITIONS = 4096
"""So many definitions are remembered by their texts, which rarely change."""
T = TypeVar("T")
_FIELDS = tuple(Field(name, STRING, nullable=False) for name in ("kind", "name", "definition"))


class CatalogError(ViewkeepError):
    """A name that is not defined, is defined already, or is needed by others."""


@dataclass(frozen=True)
class TableDefinition:
    """A base table: its columns, where it is, and whether Viewkeep writes it."""

    name: str
    table: Table
    location: str
    owned: bool

    def as_json(self) -> dict[str, Any]:
        """The definition as JSON values."""
        return {
            "location": self.location,
            "owned": self.owned,
            **_table_as_json(self.table),
        }

    @staticmethod
    def from_json(name: str, values: Mapping[str, Any]) -> "TableDefinition":
        """The definition of JSON values."""
        return TableDefinition(name, _table_from_json(values), values["location"], values["owned"])


@dataclass(frozen=True)
class ViewDefinition:
    """A view: its SQL, what it reads, and its columns as a table that other views may read.

    `build` is new whenever the definition is. `ready` is false from the moment a name is taken
    until the view is there for the first time. `functions` and `aggregates` are those of the
    session that the user declares deterministic, `types` those that Spark gave to expressions that
    only it computes. With `feed`, its table has a change data feed; `lag` is how far watchers let
    it fall behind. `layout` is how changed rows are stored (`views.row_layout`).
    """

    name: str
    sql: str
    inputs: tuple[str, ...]
    table: Table
    location: str
    strategy: str = "auto"
    policy: str = "auto"
    build: str = ""
    ready: bool = False
    functions: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    feed: bool = False
    lag: str = ""
    layout: str = "auto"

    def as_json(self) -> dict[str, Any]:
        """The definition as JSON values."""
        return {
            "sql": self.sql,
            "inputs": list(self.inputs),
            "location": self.location,
            "strategy": self.strategy,
            "policy": self.policy,
            "build": self.build,
            "ready": self.ready,
            "functions": list(self.functions),
            "aggregates": list(self.aggregates),
            "types": dict(self.types),
            "feed": self.feed,
            "lag": self.lag,
            "layout": self.layout,
            **_table_as_json(self.table),
        }

    @staticmethod
    def from_json(name: str, values: Mapping[str, Any]) -> "ViewDefinition":
        """The definition of JSON values."""
        return ViewDefinition(
            name,
            values["sql"],
            tuple(values["inputs"]),
            _table_from_json(values, nullable_key=True),
            values["location"],
            values["strategy"],
            values["policy"],
            values["build"],
            values["ready"],
            tuple(values.get("functions", ())),
            tuple(values.get("aggregates", ())),
            tuple(values.get("types", {}).items()),
            values.get("feed", False),
            values.get("lag", ""),
            values.get("layout", "auto"),
        )


Definition = TableDefinition | ViewDefinition


@dataclass(frozen=True)
class Catalog:
    """All definitions, at one version of the catalog."""

    version: int = 0
    entries: Mapping[str, Definition] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, TableDefinition]:
        """The base tables."""
        return {n: d for n, d in self.entries.items() if isinstance(d, TableDefinition)}

    @property
    def views(self) -> dict[str, ViewDefinition]:
        """The views, also those that are not ready."""
        return {n: d for n, d in self.entries.items() if isinstance(d, ViewDefinition)}

    def declared(self) -> dict[str, Table]:
        """What SQL can name: tables and views that are ready, with their columns."""
        return {
            name: each.table
            for name, each in self.entries.items()
            if isinstance(each, TableDefinition) or each.ready
        }

    def table(self, name: str) -> TableDefinition:
        """A table, or an error that names the nearest one."""
        return self._get(name, self.tables, "table")

    def view(self, name: str) -> ViewDefinition:
        """A view, or an error that names the nearest one."""
        return self._get(name, self.views, "view")

    def finished_view(self, name: str) -> ViewDefinition:
        """A view that is there, and not only defined."""
        view = self.view(name)
        if not view.ready:
            raise CatalogError(f'view "{name}" was never finished; create it again, or drop it')
        return view

    def readable(self, name: str) -> Definition:
        """A table, or a view that is there."""
        return self.tables.get(name) or self.finished_view(name)

    @staticmethod
    def _get(name: str, entries: Mapping[str, T], what: str) -> T:
        if name not in entries:
            hint = did_you_mean(str(name), entries)
            listed = ", ".join(entries) or "none yet"
            raise CatalogError(f'there is no {what} "{name}" in this lake ({listed}){hint}')
        return entries[name]

    def check_free(self, name: str) -> None:
        """Refuse a name that something has; SQL does not tell upper from lower case."""
        for other in self.entries:
            if other.lower() == name.lower():
                what = "table" if other in self.tables else "view"
                raise CatalogError(f'there is a {what} "{other}" already; choose another name')

    def readers(self, name: str) -> list[str]:
        """The views that read a table or view."""
        return [view.name for view in self.views.values() if name in view.inputs]

    def order(self, names: Iterable[str] | None = None) -> list[ViewDefinition]:
        """The views that are ready, each after the views it reads; with those below `names`."""
        views = {name: each for name, each in self.views.items() if each.ready}
        graph = {name: [i for i in each.inputs if i in views] for name, each in views.items()}
        try:
            ordered = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            raise CatalogError(f"views read each other: {' -> '.join(error.args[1])}") from None
        if names is not None:
            needed = self._below(names, graph)
            ordered = [name for name in ordered if name in needed]
        return [views[name] for name in ordered]

    def _below(self, names: Iterable[str], graph: Mapping[str, list[str]]) -> set[str]:
        needed: set[str] = set()
        todo = [self.finished_view(name).name for name in names]
        while todo:
            name = todo.pop()
            needed.add(name)
            todo += [each for each in graph[name] if each not in needed]
        return needed

    def above(self, name: str) -> list[ViewDefinition]:
        """The views that are ready and read a view, or one that reads it, in their order."""
        readers: dict[str, ViewDefinition] = {}
        for each in self.order():
            if {name, *readers} & set(each.inputs):
                readers[each.name] = each
        return list(readers.values())

    def check_unread(self, name: str) -> None:
        """Refuse to drop what views read."""
        readers = self.readers(name)
        if readers:
            raise CatalogError(f'"{name}" is read by {", ".join(readers)}; drop these views first')

    def including(self, definition: Definition) -> "Catalog":
        """With a definition, in place of one of the same name."""
        return replace(self, entries={**self.entries, definition.name: definition})

    def excluding(self, name: str) -> "Catalog":
        """Without a definition."""
        return replace(self, entries={n: d for n, d in self.entries.items() if n != name})

    def taking(self, view: ViewDefinition, unfinished: ViewDefinition | None) -> "Catalog":
        """With an unfinished view, in place of the unfinished one that the caller has seen; a
        name that another process has taken since is refused."""
        if unfinished is None or self.views.get(view.name) != unfinished:
            self.check_free(view.name)
        return self.including(view)

    def finishing(self, view: ViewDefinition) -> "Catalog":
        """With a view that is there now, if nobody has defined it anew since."""
        if self.entries.get(view.name) != view:
            raise CatalogError(f'view "{view.name}": another process defines it as well')
        return self.including(replace(view, ready=True))

    def giving_up(self, view: ViewDefinition) -> "Catalog":
        """Without a view that could not be finished, if nobody has defined it anew since."""
        return self.excluding(view.name) if self.entries.get(view.name) == view else self


_RECENT: dict[str, tuple[tuple[Any, ...], Catalog]] = {}
"""The catalogs that this process has read last, each with the version, the files and their marks on
the disk: as long as these are the same, definitions are not read again."""
LAKES = 16
"""So many of them are kept."""


class CatalogStore:
    """The catalog of a lake, where it is kept."""

    def __init__(self, table: LakeTable, lake: str) -> None:
        self._table, self._lake = table, lake
        self._copy = LakeTable(table.uri.rpartition("/")[0], table.options)

    def exists(self) -> bool:
        """Whether the lake has a catalog."""
        return self._table.exists()

    def create(self) -> None:
        """An empty catalog, unless there is one."""
        try:
            self._table.create(_FIELDS, [], {"change": "init"}, "The definitions of this lake")
        except ConflictError:
            return

    def read(self) -> Catalog:
        """The newest definitions, also where other logs are remembered."""
        with remembered_logs():
            snapshot = self._table.snapshot()
        marks = [file_mark(each.location(self._table.uri)) for each in snapshot.files]
        form = self._lake, snapshot.version, snapshot.identity, snapshot.identities, marks
        recent = _RECENT.get(self._table.uri)
        if recent is not None and recent[0] == form and None not in marks:
            return recent[1]
        catalog = self._read(snapshot)
        if len(_RECENT) >= LAKES:
            _RECENT.clear()
        _RECENT[self._table.uri] = form, catalog
        return catalog

    def _read(self, snapshot: Snapshot) -> Catalog:
        rows = to_rows(Folder(self._table).read(snapshot.files, _FIELDS))
        try:
            definitions = self._placed([_entry(*row) for row in rows])
        except (KeyError, ValueError, TypeError) as error:
            raise StorageError(f"{self._table.uri}: the catalog is damaged: {error!r}") from error
        return Catalog(snapshot.version, {each.name: each for each in definitions})

    def _placed(self, definitions: Sequence[Definition]) -> list[Definition]:
        """Definitions with the locations that they have now."""
        own = [e for e in definitions if isinstance(e, ViewDefinition) or e.owned]
        former = former_lake((each.name, each.location) for each in own)

        def place(each: Definition) -> str:
            if former is not None and each in own:
                return f"{self._lake}/{each.name}"
            if former is not None and each.location.startswith(f"{former}/"):
                return f"{self._lake}/{each.location.removeprefix(f'{former}/')}"
            return absolute_location(self._lake, each.location)

        return [replace(each, location=place(each)) for each in definitions]

    def _stored(self, catalog: Catalog) -> Catalog:
        """The catalog as it is kept."""
        entries = {
            name: replace(each, location=stored_location(self._lake, each.location))
            for name, each in catalog.entries.items()
        }
        return replace(catalog, entries=entries)

    def change(self, what: str, changed: Callable[[Catalog], Catalog]) -> Catalog:
        """Commit what a function makes of the newest catalog; after a conflict, ask it again."""
        for _ in range(TRIES):
            catalog = changed(self.read())
            try:
                return self._write(catalog, what)
            except ConflictError:
                continue
        raise ConflictError(f"{self._table.uri}: too many processes define things; try again")

    def _write(self, catalog: Catalog, what: str) -> Catalog:
        stored = self._stored(catalog)
        rows = [
            (
                "table" if isinstance(each, TableDefinition) else "view",
                each.name,
                json.dumps(each.as_json()),
            )
            for each in stored.entries.values()
        ]
        old = self._table.snapshot(catalog.version).files
        new = Folder(self._table).write(to_arrow(_FIELDS, rows))
        version = self._table.commit(catalog.version, [new], old, {"change": what})
        # The copy is not worth a failure: the change has happened.
        with suppress(StorageError):
            Folder(self._copy).write_text("catalog.json", _for_people(rows))
        return replace(catalog, version=version)


def _for_people(rows: Iterable[tuple[str, str, str]]) -> str:
    """The definitions by kind, as indented JSON."""
    parts: dict[str, list[str]] = {"table": [], "view": []}
    for kind, name, definition in rows:
        parts[kind].append(f"    {json.dumps(name)}: {_indented(definition)}")
    return (
        "{\n"
        + ",\n".join(f'  "{kind}s": {_braced(listed)}' for kind, listed in parts.items())
        + "\n}\n"
    )


def _braced(listed: Sequence[str]) -> str:
    return "{\n" + ",\n".join(listed) + "\n  }" if listed else "{}"


@lru_cache(DEFINITIONS)
def _indented(definition: str) -> str:
    return json.dumps(json.loads(definition), indent=2).replace("\n", "\n    ")


@lru_cache(DEFINITIONS)
def _entry(kind: str, name: str, definition: str) -> Definition:
    values = json.loads(definition)
    if kind == "table":
        return TableDefinition.from_json(name, values)
    return ViewDefinition.from_json(name, values)


def typed_columns(table: Table) -> dict[str, str]:
    """The columns of a table with their types, as they are declared."""
    return {f.name: f"{f.type}{'' if f.nullable else ' not null'}" for f in table.columns}


def _table_as_json(table: Table) -> dict[str, Any]:
    return {
        "columns": typed_columns(table),
        "key": list(table.key),
        "foreign_keys": [str(each) for each in table.foreign_keys],
        "fds": [str(each) for each in table.fds],
        "static": table.static,
    }


def _table_from_json(values: Mapping[str, Any], nullable_key: bool = False) -> Table:
    about = (values["key"], values["foreign_keys"], values["fds"], values["static"])
    try:
        return Table(values["columns"], *about, nullable_key=nullable_key)
    except QueryError as error:
        raise ValueError(str(error)) from error
