"""The relations that the queries of a view read, by their names in its script."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from viewkeep.execute.backend import Source
from viewkeep.lake.views.clock import clock_rows
from viewkeep.lake.views.view import View
from viewkeep.query.clock import CLOCK
from viewkeep.tables.relations import NumberedRows, Relation, StoredRows
from viewkeep.tables.table_changes import TableChanges


class ViewRelations(dict[Source, Relation]):
    """Relations by name; those of tables are opened when they are asked for: as the plan of the
    view reads them or, with `plain`, as its SQL does. `changes` lead from versions before to
    versions after."""

    def __init__(
        self,
        view: View,
        versions: Mapping[tuple[str, str], int],
        plain: bool = False,
        changes: Mapping[str, TableChanges] | None = None,
    ) -> None:
        super().__init__()
        self._view, self._versions, self._changes = view, dict(versions), changes or {}
        self._numbered = {} if plain else view.numbered
        if view.clock is not None:
            self[CLOCK, "post"] = clock_rows(view.clock)

    def __missing__(self, source: Any) -> Relation:
        if source not in self._versions:
            raise KeyError(source)
        name = source[0]
        table = self._view.sources[name].table
        snapshot = table.snapshot(self._versions[source])
        changes = self._changes.get(name) if source[1] == "post" else None
        self[source] = replace(StoredRows.whole(table, snapshot), changes=changes)
        if name in self._numbered:
            names = {each: each for each in self._numbered[name].stored_names}
            self[source] = NumberedRows(StoredRows(table, snapshot, snapshot.files, names))
        return self[source]

    def __contains__(self, source: object) -> bool:
        return super().__contains__(source) or source in self._versions
