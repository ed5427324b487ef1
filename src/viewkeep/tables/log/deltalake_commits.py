"""Commits through deltalake: of tables that are not on a local disk, that ask more of writers than
`write_entry` knows, or whose schema changes."""

import time
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from viewkeep.errors import SchemaError
from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import arrow_schema, has_bounds
from viewkeep.tables.column_names import NOT_IN_DELTA
from viewkeep.tables.failures import ConflictError, StorageError, error_text
from viewkeep.tables.log.snapshots import DataFile

CONFIGURATION = {
    # The last commit of a view says what it reflects: it must not expire.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
}
FEED = "delta.enableChangeDataFeed"
"""The property of tables that tell the changed rows of their commits."""
STATISTICS = "delta.dataSkippingStatsColumns"
"""The property that lists the columns with bounds: readers expect them of all others as well."""

Action = AddAction | RemoveAction


def create_by_deltalake(
    uri: str,
    options: dict[str, str] | None,
    fields: Sequence[Field],
    files: Sequence[DataFile],
    properties: CommitProperties,
    description: str,
    feed: bool,
) -> None:
    """Make a table; a `ConflictError` if there is one."""
    try:
        create_table_with_add_actions(
            uri,
            delta_schema(fields),
            [_add_action(each) for each in files],
            mode="error",
            description=description,
            configuration=properties_of(fields, feed),
            storage_options=options,
            commit_properties=properties,
        )
    except DeltaError as error:
        if "already exists" in str(error) or DeltaTable.is_deltatable(uri, options):
            raise ConflictError(f"{uri}: there is a table already") from error
        raise StorageError(f"{uri}: {error_text(error)}") from error


def commit_by_deltalake(
    table: DeltaTable,
    add: Sequence[DataFile],
    remove: Sequence[DataFile],
    properties: CommitProperties,
    schema: Schema | None,
) -> None:
    """Make the version after an open one; with a schema, of the added files only."""
    actions: list[Action] = [
        *(_remove_action(each) for each in remove),
        *(_add_action(each) for each in add),
    ]
    table.create_write_transaction(
        actions,
        "append" if schema is None else "overwrite",
        table.schema() if schema is None else schema,
        commit_properties=properties,
    )


def properties_of(fields: Iterable[Field], feed: bool = False) -> dict[str, str]:
    """The properties of a table with these columns, and perhaps a change data feed."""
    own = {FEED: "true"} if feed else {}
    return {**CONFIGURATION, STATISTICS: ",".join(with_bounds(fields)), **own}


def with_bounds(fields: Iterable[Field]) -> list[str]:
    """The columns whose bounds are kept, quoted."""
    return ["`" + each.name.replace("`", "``") + "`" for each in fields if has_bounds(each.type)]


def is_reordered(new: Schema, old: Schema) -> bool:
    """Whether columns differ in their order only, which deltalake does not take for a new
    schema."""
    names = [[each.name for each in schema.fields] for schema in (new, old)]
    return names[0] != names[1] and sorted(names[0]) == sorted(names[1])


def delta_schema(fields: Iterable[Field], mark: Mapping[str, str] | None = None) -> Schema:
    """The columns as Delta declares them; a mark makes them another schema."""
    fields = tuple(fields)
    for each in fields:
        bad = sorted(set(each.name) & NOT_IN_DELTA)
        if bad:
            raise SchemaError(
                f'column "{each.name}": Delta tables allow no {" ".join(map(repr, bad))} in names; '
                "give it another name, in a view with AS"
            )
    schema = arrow_schema(fields)
    if mark is not None:
        schema = pa.schema([each.with_metadata(mark) for each in schema])
    return Schema.from_arrow(schema)


def _add_action(each: DataFile) -> AddAction:
    return AddAction(each.path, each.size, {}, each.modified, True, each.stats())


def _remove_action(each: DataFile) -> RemoveAction:
    return RemoveAction(each.path, True, int(time.time() * 1000), each.size, {})
