"""The rows of a version of a table or view."""

from dataclasses import replace

from viewkeep.errors import QueryError
from viewkeep.lake.catalog import TableDefinition, ViewDefinition
from viewkeep.lake.changes_since import newest_version
from viewkeep.lake.lake import Lake
from viewkeep.lake.views.stored_view import stored_view
from viewkeep.query.tables import HIDDEN
from viewkeep.tables.relations import StoredRows


def entry_rows(lake: Lake, name: str, version: int | None) -> StoredRows:
    """A table or view at a version, by default the newest, with the columns that it has then."""
    entry = lake.catalog.read().readable(name)
    table = lake.at(entry.location)
    if version is None:
        version = _newest_readable(lake, entry)
    if not 0 <= version <= table.version():
        raise QueryError(f'"{name}" has no version {version}; the newest is {table.version()}')
    rows = StoredRows.whole(table, table.snapshot(version))
    visible = [each for each in rows.names if not each.startswith(HIDDEN)]
    return replace(rows, names={each: each for each in visible})


def _newest_readable(lake: Lake, entry: TableDefinition | ViewDefinition) -> int:
    """The newest version; of a view, one that only refreshes made."""
    if isinstance(entry, ViewDefinition):
        return stored_view(entry.name, lake.at(entry.location)).newest
    return newest_version(lake, entry)
