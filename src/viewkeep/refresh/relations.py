"""The relations that the queries of a view read, by their names in its script."""

from collections.abc import Mapping
from typing import Any

from viewkeep.execute.backend import Source
from viewkeep.lake.views.view import View
from viewkeep.tables.relations import Relation, StoredRows


class ViewRelations(dict[Source, Relation]):
    """Relations by name; those of tables are opened when they are asked for."""

    def __init__(self, view: View, versions: Mapping[tuple[str, str], int]) -> None:
        super().__init__()
        self._view, self._versions = view, dict(versions)

    def __missing__(self, source: Any) -> StoredRows:
        if source not in self._versions:
            raise KeyError(source)
        table = self._view.sources[source[0]].table
        self[source] = rows = StoredRows.whole(table, table.snapshot(self._versions[source]))
        return rows

    def __contains__(self, source: object) -> bool:
        return super().__contains__(source) or source in self._versions
