"""From the SQL of a view to its definition and its plan; nothing is read or written but logs."""

import dataclasses
from uuid import uuid4

from viewkeep.diffs.decide import decide
from viewkeep.errors import QueryError
from viewkeep.lake.catalog import Catalog, CatalogError, ViewDefinition
from viewkeep.lake.lake import Lake
from viewkeep.lake.view import STATE, Source, View
from viewkeep.query.algebra import Scan, walk
from viewkeep.query.tables import Table
from viewkeep.sql.parse import parse_view
from viewkeep.tables.column_names import check_own_names


class ViewPlans:
    """The views of a lake with their plans, each made once for a definition and what it reads."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._views: dict[str, View] = {}

    def view(self, definition: ViewDefinition, catalog: Catalog) -> View:
        """A view with its plan: the one made before, if neither it nor its sources changed."""
        sources = {name: self._source(catalog, name) for name in definition.inputs}
        view = self._views.get(definition.name)
        if view is None or (view.definition, view.sources) != (definition, sources):
            node = parse_view(definition.sql, _readable(catalog, definition.name))
            decision = decide(node, definition.strategy, definition.policy, catalog.views)
            view = View(self.lake, definition, node, decision, sources)
            self._views[definition.name] = view
        return view

    def define(
        self, catalog: Catalog, name: str, sql: str, strategy: str, policy: str
    ) -> ViewDefinition:
        """A definition whose SQL and columns are checked, and that closes no cycle of views."""
        location, build = self.lake.place(name), uuid4().hex[:12]
        node = parse_view(sql, _readable(catalog, name))
        inputs = tuple(dict.fromkeys(n.name for n in walk(node) if isinstance(n, Scan)))
        draft = ViewDefinition(
            name, sql, inputs, Table({"none": "int"}), location, strategy, policy, build, True
        )
        catalog.including(draft).order()
        columns = self.view(draft, catalog).layout.declared
        check_own_names(f'view "{name}"', (each.name for each in columns.visible))
        return dataclasses.replace(draft, table=columns, ready=False)

    def replace(self, catalog: Catalog, definition: ViewDefinition) -> Catalog:
        """The catalog with another definition of a view, and the views above it defined anew; an
        error if one of them could not read it any more."""
        changed = {definition.name}
        if catalog.view(definition.name).table == definition.table:
            changed = set()
        catalog = catalog.including(definition)
        for view in catalog.order():
            if not changed & set(view.inputs):
                continue
            try:
                new = self.define(catalog, view.name, view.sql, view.strategy, view.policy)
            except QueryError as error:
                raise QueryError(
                    f'view "{view.name}" reads "{definition.name}", and would break: {error}'
                ) from error
            catalog = catalog.including(dataclasses.replace(new, ready=True))
            changed |= {view.name} if new.table != view.table else set()
        return catalog

    def check_place(self, definition: ViewDefinition) -> None:
        """Refuse to write over a Delta table that is no view."""
        table = self.lake.at(definition.location)
        if table.exists() and STATE not in (table.log(-1)[-1].notes or {}):
            raise CatalogError(
                f"there is a Delta table in {table.uri} already; choose another name for the "
                "view, or remove the folder"
            )

    def _source(self, catalog: Catalog, name: str) -> Source:
        entry = catalog.entries[name]
        return Source(name, entry.table, self.lake.at(entry.location))


def _readable(catalog: Catalog, name: str) -> dict[str, Table]:
    """The tables and views that the SQL of a view may name."""
    return {other: table for other, table in catalog.declared().items() if other != name}
