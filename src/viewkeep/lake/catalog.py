"""The definitions of a lake: its tables and views, by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from viewkeep.errors import QueryError, ViewkeepError, did_you_mean
from viewkeep.query.tables import Table

T = TypeVar("T")
_LISTED = 20
"""The most names that an error lists."""


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
    it fall behind. `layout` is how changed rows are stored (`views.row_layout`). `shares` are the
    parts of tables that are expected to change between refreshes; where the strategy is left open,
    `chosen` is the one that was found best for them, if not IDs, and `chosen_why` tells why;
    `expected` are, for each table, the changes that were expected and the seconds that they take.
    `project` is the project of files that defines it, if one does. `text` is the newest text of the
    query, where it is another than `sql`, which the rows and caches were planned from. `sees` are
    the columns that it was defined over, with their types, of tables that have others now
    (`views.seen_columns`).
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
    shares: tuple[tuple[str, float], ...] = ()
    chosen: str = ""
    chosen_why: str = ""
    project: str = ""
    expected: tuple[tuple[str, int, float], ...] = ()
    text: str = ""
    sees: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()

    @property
    def newest_sql(self) -> str:
        """The query as it was last written."""
        return self.text or self.sql

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
            "shares": dict(self.shares),
            "chosen": self.chosen,
            "chosen_why": self.chosen_why,
            "project": self.project,
            "expected": [list(each) for each in self.expected],
            "text": self.text,
            **({"sees": {n: dict(columns) for n, columns in self.sees}} if self.sees else {}),
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
            tuple(values.get("shares", {}).items()),
            values.get("chosen", ""),
            values.get("chosen_why", ""),
            values.get("project", ""),
            tuple((name, count, cost) for name, count, cost in values.get("expected", ())),
            values.get("text", ""),
            tuple((n, tuple(columns.items())) for n, columns in values.get("sees", {}).items()),
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
        entry = self._get(name, self.entries, "table or view")
        return entry if isinstance(entry, TableDefinition) else self.finished_view(name)

    def _get(self, name: str, entries: Mapping[str, T], what: str) -> T:
        if name not in entries:
            other = self.entries.get(name)
            kind = "table" if isinstance(other, TableDefinition) else "view"
            hint = did_you_mean(str(name), entries) if other is None else f"; it is a {kind}"
            first, more = [*entries][:_LISTED], len(entries) - _LISTED
            existing = ", ".join(first) + (f" and {more} more" if more > 0 else "") or "none yet"
            raise CatalogError(f'there is no {what} "{name}" in this lake ({existing}){hint}')
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
            below = self._below(names, graph)
            ordered = [name for name in ordered if name in below]
        return [views[name] for name in ordered]

    def _below(self, names: Iterable[str], graph: Mapping[str, list[str]]) -> set[str]:
        below: set[str] = set()
        todo = [self.finished_view(name).name for name in names]
        while todo:
            name = todo.pop()
            below.add(name)
            todo += [each for each in graph[name] if each not in below]
        return below

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
