"""Definitions of tables that follow their columns.

Writers of registered tables add, widen, rename and drop columns without asking: the catalog takes
that over when a refresh or a new view reads the table. Of tables that Viewkeep owns only
`alter_table` changes columns; a process that died between its commit to the table and the one to
the catalog has its work finished by the next that reads the table.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from viewkeep.errors import SchemaError, ViewkeepError
from viewkeep.lake import Pins
from viewkeep.lake.catalog import Catalog, TableDefinition, typed_columns
from viewkeep.lake.lake import Lake
from viewkeep.lake.views.adapt_views import adapt_views
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field
from viewkeep.sql.definitions import tables_named
from viewkeep.tables.column_names import check_name
from viewkeep.tables.log.delta import LakeTable, StorageError
from viewkeep.tables.log.memory import remembered_logs

ALTERED = "altered"
"""The note of a commit that changes the columns of a table: its definition after that."""


def follow_tables(plans: ViewPlans, catalog: Catalog, versions: Pins) -> Catalog:
    """The catalog with the columns that tables have at these versions."""
    for name, version in versions.items():
        definition = catalog.tables.get(name)
        if definition is not None:
            now = _followed_definition(plans.lake.at(definition.location), definition, version)
            catalog = catalog if now == definition else adapt_views(plans, catalog, now)
    return catalog


def define_followed_tables(plans: ViewPlans, catalog: Catalog, versions: Pins) -> bool:
    """Commit the same, where that is another catalog; whether it was."""
    if follow_tables(plans, catalog, versions) is catalog:
        return False

    def followed(now: Catalog) -> Catalog:
        # Versions that were pinned before the catalog was read would bring old columns back.
        with remembered_logs():
            return follow_tables(plans, now, newest_versions(plans.lake, now, versions))

    plans.lake.catalog.change(f"follow {', '.join(versions)}", followed)
    return True


def follow_named_tables(plans: ViewPlans, sql: str, commit: bool) -> Catalog:
    """The catalog with the columns that the tables which a query names have now, committed or
    not."""
    catalog = plans.lake.catalog.read()
    try:
        lower_names = {each.lower() for each in tables_named(sql)}
    except ViewkeepError:  # whoever reads the query tells what is wrong
        return catalog
    names = [each for each in catalog.tables if each.lower() in lower_names]
    versions = newest_versions(plans.lake, catalog, names)
    if not commit:
        return follow_tables(plans, catalog, versions)
    is_changed = define_followed_tables(plans, catalog, versions)
    return plans.lake.catalog.read() if is_changed else catalog


def newest_versions(lake: Lake, catalog: Catalog, names: Iterable[str]) -> dict[str, int]:
    """The newest versions of those tables among some names that can be read."""
    versions: dict[str, int] = {}
    for name in names:
        if name in catalog.tables:
            with suppress(StorageError):
                versions[name] = lake.at(catalog.tables[name].location).version()
    return versions


def _followed_definition(
    table: LakeTable, definition: TableDefinition, version: int
) -> TableDefinition:
    """The definition of a table at a version; as it was, where it cannot be followed."""
    try:
        fields = table.fields(version)
        if definition.owned:
            return _altered_definition(table, definition, fields, version)
        followed = _followed_table(definition, fields)
        columns = [list(typed_columns(each).items()) for each in (followed, definition.table)]
        return definition if columns[0] == columns[1] else replace(definition, table=followed)
    except (SchemaError, StorageError):  # a refresh tells what is wrong
        return definition


def _followed_table(definition: TableDefinition, fields: Iterable[Field]) -> Table:
    """A registered table with the columns that its writers have given it, but those that SQL could
    not name; an error if it has lost its key."""
    declared, columns = definition.table, dict[str, Field]()
    for field in fields:
        with suppress(SchemaError):
            check_name(definition.name, field.name)
            columns[field.name] = field
    return Table(
        columns,
        declared.key,
        [each for each in declared.foreign_keys if set(each.columns) <= set(columns)],
        [each for each in declared.fds if {*each.determinant, *each.dependent} <= set(columns)],
        declared.static,
    )


def _altered_definition(
    table: LakeTable, definition: TableDefinition, fields: Iterable[Field], version: int
) -> TableDefinition:
    """The definition that the last `alter_table` gave a table, if its columns are not the declared
    ones."""
    columns = [(field.name, field.type) for field in fields]
    if columns == [(field.name, field.type) for field in definition.table.columns]:
        return definition
    for each in range(version, 0, -1):
        if table.has_text(each, '"metaData"'):
            [commit] = table.log(each - 1, each)
            altered = (commit.notes or {}).get(ALTERED)
            if altered is None:
                break
            values = {**altered, "location": definition.location, "owned": True}
            return TableDefinition.from_json(definition.name, values)
    return definition
