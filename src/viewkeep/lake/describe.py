"""The definitions of a catalog as values that know nothing of how they are kept."""

from dataclasses import replace

from viewkeep.errors import ViewkeepError
from viewkeep.lake import TableDescription, ViewDescription
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition, typed_columns
from viewkeep.lake.lake import Lake


def describe_table(lake: Lake, catalog: Catalog, definition: TableDefinition) -> TableDescription:
    """A table with what its log tells; what is wrong with it is told, not raised."""
    table = definition.table
    declared = TableDescription(
        definition.name,
        definition.owned,
        definition.location,
        typed_columns(table),
        table.key,
        tuple(map(str, table.foreign_keys)),
        tuple(map(str, table.fds)),
        table.static,
        tuple(catalog.readers(definition.name)),
    )
    try:
        snapshot = lake.at(definition.location).snapshot()
    except ViewkeepError as error:
        return replace(declared, problem=str(error))
    counted = all(each.rows >= 0 for each in snapshot.files)
    rows = snapshot.rows if counted else None
    return replace(declared, version=snapshot.version, rows=rows, size=snapshot.size)


def describe_view(catalog: Catalog, definition: ViewDefinition) -> ViewDescription:
    """A view as it is defined; what only Viewkeep sees is left out."""
    shown = {field.name for field in definition.table.visible}
    return ViewDescription(
        definition.name,
        definition.sql,
        definition.location,
        definition.inputs,
        tuple(catalog.readers(definition.name)),
        {n: kind for n, kind in typed_columns(definition.table).items() if n in shown},
        definition.table.key if shown.issuperset(definition.table.key) else (),
        definition.strategy,
        definition.policy,
        definition.ready,
    )
