"""The rows of a version of a table or view."""

from dataclasses import replace

from viewkeep.errors import QueryError
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition
from viewkeep.lake.changes_since import newest_version
from viewkeep.lake.lake import Lake
from viewkeep.lake.views.status import Plan
from viewkeep.query.tables import HIDDEN
from viewkeep.tables.relations import StoredRows


def entry_rows(lake: Lake, name: str, version: int | None, plan: Plan) -> StoredRows:
    """A table or view at a version, by default the newest, with the columns that SQL sees."""
    catalog = lake.catalog.read()
    entry = catalog.readable(name)
    table = lake.at(entry.location)
    if version is None:
        version = _newest_readable(lake, catalog, entry, plan)
    if not 0 <= version <= table.version():
        raise QueryError(f'"{name}" has no version {version}; the newest is {table.version()}')
    rows = StoredRows.whole(table, table.snapshot(version))
    if isinstance(entry, ViewDefinition):
        visible = [each for each in rows.names if not each.startswith(HIDDEN)]
    else:
        visible = [field.name for field in entry.table.visible]
    return replace(rows, names={each: each for each in visible})


def _newest_readable(
    lake: Lake, catalog: Catalog, entry: TableDefinition | ViewDefinition, plan: Plan
) -> int:
    """The newest version; of a view, one that only refreshes made."""
    if isinstance(entry, ViewDefinition):
        return plan(entry, catalog).stored().newest
    return newest_version(lake, entry)
