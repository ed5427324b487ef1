"""New tables: their columns and rows from what a user gives, and keys that are checked first."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes import ChangeError
from viewkeep.errors import SchemaError
from viewkeep.lake.catalog import Catalog, CatalogError, TableDefinition
from viewkeep.lake.lake import Lake
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import (
    Field,
    parse_columns,
)
from viewkeep.tables.arrow_rows import declared_fields, to_rows
from viewkeep.tables.column_names import check_name, check_own_names, check_own_types
from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.files.rewrite import write_files
from viewkeep.tables.files.scans import Scans
from viewkeep.tables.iceberg.place import iceberg_place
from viewkeep.tables.log.delta import DataFile, LakeTable, Snapshot
from viewkeep.tables.relations import StoredRows
from viewkeep.tables.spark_rows import is_spark_frame, is_spark_schema, spark_columns
from viewkeep.tables.user_rows import read_user_rows

Constraints = Mapping[str, Any]
"""Foreign keys, functional dependencies, and whether the table is static."""
Adapt = Callable[[Catalog, TableDefinition], Catalog]
"""The catalog with another definition of a table, and with views that fit it."""


def create_table(
    lake: Lake,
    name: str,
    data: Any,
    key: Sequence[str],
    constraints: Constraints,
    rows: Any,
    if_not_exists: bool = False,
) -> None:
    """Make a table of rows, of a schema, or of a schema and its rows, and define it; with
    `if_not_exists`, one that is defined is left as it is."""
    if if_not_exists and name in lake.catalog.read().tables:
        return
    declared = declared_table(data, key, constraints)
    if not declared.key:
        raise SchemaError(f'table "{name}" needs a key, as in key=["id"]: changes name rows by it')
    check_own_names(f'table "{name}"', declared.names)
    check_own_types(f'table "{name}"', declared.columns)
    location = lake.place(name)
    table = lake.at(location)
    lake.catalog.read().check_free(name)
    if table.exists():
        raise CatalogError(
            f'there is a Delta table in {location} already; register it as "{name}", '
            "or remove the folder"
        )
    if has_rows(data) and rows is not None:
        raise SchemaError(f'table "{name}": with rows=, give its columns and not other rows')
    user_rows = data if has_rows(data) else rows
    files = [] if user_rows is None else write_table(lake.scans, name, declared, user_rows, table)
    table.create(declared.columns, files, {"create": name}, f'Table "{name}"')
    _define_table(lake, TableDefinition(name, declared, location, owned=True), "create_table")


def register_table(
    lake: Lake,
    name: str,
    location: str,
    key: Sequence[str],
    constraints: Constraints,
    adapt: Adapt | None = None,
) -> None:
    """Define an existing table of Delta or Iceberg, which others write; with `adapt`, also in place
    of one that is registered, whose views are adapted."""
    lake.place(name)
    location = iceberg_place(location)
    if adapt is None or name not in lake.catalog.read().entries:
        lake.catalog.read().check_free(name)
    else:
        _replaceable_table(lake.catalog.read(), name)
    table = lake.at(location)
    snapshot = table.snapshot()
    declared = external_table(name, snapshot, key, constraints)
    if declared.key:
        check_keys(name, declared, StoredRows.whole(table, snapshot), lake.scans)
    definition = TableDefinition(name, declared, table.uri, owned=False)
    if adapt is None or name not in lake.catalog.read().entries:
        _define_table(lake, definition, "register_table")
        return

    def adapted(catalog: Catalog) -> Catalog:
        _replaceable_table(catalog, name)
        return adapt(catalog, definition)

    lake.catalog.change(f"register_table {name}", adapted)


def _replaceable_table(catalog: Catalog, name: str) -> TableDefinition:
    if name in catalog.views:
        raise CatalogError(f'there is a view "{name}" already; choose another name')
    definition = catalog.table(name)
    if definition.owned:
        raise CatalogError(
            f'table "{name}" is not registered: Viewkeep writes it; alter_table gives it other '
            "columns, and drop_table forgets it"
        )
    return definition


def external_table(
    name: str, snapshot: Snapshot, key: Sequence[str], constraints: Constraints
) -> Table:
    """An existing Delta table with what a user declares of it."""
    declared = Table({field.name: field for field in snapshot.fields}, key, **constraints)
    for column in declared.names:
        check_name(f'table "{name}"', column)
    return declared


def _define_table(lake: Lake, definition: TableDefinition, what: str) -> None:
    def defined(catalog: Catalog) -> Catalog:
        catalog.check_free(definition.name)
        return catalog.including(definition)

    lake.catalog.change(f"{what} {definition.name}", defined)


def declared_table(data: Any, key: Sequence[str], constraints: Constraints) -> Table:
    """The columns of what a user gives: a schema in any form, or rows that have one."""
    if isinstance(data, Table):
        return data if data.key else Table({f.name: f for f in data.columns}, key, **constraints)
    return Table(_columns_of_data(data), key, **constraints)


def _columns_of_data(data: Any) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        return data
    if isinstance(data, str):
        return {field.name: field for field in parse_columns(data)}
    if is_spark_frame(data) or is_spark_schema(data):
        return spark_columns(data.schema if is_spark_frame(data) else data)
    if hasattr(data, "iterrows"):
        data = pa.Table.from_pandas(data, preserve_index=False)
    if not hasattr(data, "__arrow_c_stream__"):
        raise SchemaError(
            f"{type(data).__name__} has no columns; give a DataFrame, an Arrow table, "
            'or a schema as in {"pid": "int", "price": "double"}'
        )
    return dict(map(_arrow_column, pa.table(data).schema))


def _arrow_column(field: pa.Field) -> tuple[str, Field]:
    kind = pa.timestamp("us", "UTC") if pa.types.is_timestamp(field.type) else field.type
    fields = declared_fields(pa.schema([field.with_type(kind)]))
    if not fields:
        raise SchemaError(
            f'column "{field.name}" has the type {field.type}, which views cannot read; '
            "convert it or leave it out"
        )
    return field.name, fields[0]


def has_rows(data: Any) -> bool:
    """Whether rows were given, and not only columns."""
    return not (isinstance(data, Table | Mapping | str) or is_spark_schema(data))


def write_table(
    scans: Scans, name: str, declared: Table, data: Any, table: LakeTable
) -> list[DataFile]:
    """The rows of a new table in files, with keys that are checked; not committed yet."""
    files = scans.write_frame(name, declared, data, table) if is_spark_frame(data) else None
    if files is not None:
        first_version = Snapshot(table.uri, 0, declared.columns, tuple(files))
        check_keys(name, declared, StoredRows.whole(table, first_version), scans)
        return files
    rows = read_user_rows(name, "rows", data, declared, declared.names)
    _check_new_rows(name, declared, rows)
    return write_files(table, rows)


def check_keys(name: str, declared: Table, rows: StoredRows, scans: Scans) -> None:
    """Refuse rows with keys that stand twice, or NULL where there must be none."""
    again = scans.repeated_key(rows, declared.key)
    if again is not None:
        _refuse_repeated_keys(name, declared, again)
    not_null = [field.name for field in declared.columns if not field.nullable]
    _refuse_null_keys(name, scans.null_columns(rows, not_null))


def _check_new_rows(name: str, declared: Table, rows: pa.Table) -> None:
    keys = KeyIndex(rows.select(list(declared.key)))
    if keys.repeated is not None:
        _refuse_repeated_keys(name, declared, to_rows(keys.keys.slice(keys.repeated, 1))[0])


def _refuse_repeated_keys(name: str, declared: Table, key: tuple[Any, ...]) -> None:
    values = ", ".join(f"{n} = {value!r}" for n, value in zip(declared.key, key, strict=True))
    raise ChangeError(f'table "{name}", key ({values}): two rows have this key; keep one of them')


def _refuse_null_keys(name: str, columns: Sequence[str]) -> None:
    if columns:
        raise ChangeError(
            f'table "{name}": NULL in {", ".join(columns)}; keys and NOT NULL columns need values'
        )
