"""Rows of a DuckDB query as Parquet files of a table.

They are sorted by what is looked up only where the target asks for it: DuckDB finds keys by reading
a column in vectors, which takes less time than sorting would save. Caches of numbers are not
compressed: they would become a third smaller, and take nearly twice as long to look keys up.
"""

import time
from collections.abc import Iterable
from uuid import uuid4

import duckdb

from viewkeep.execute.backend import Target
from viewkeep.execute.duckdb.connection import arrow_rows
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.query.types.data_types import DATE, DOUBLE, FLOAT, INTEGRAL, TIMESTAMP, Field
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.parquet import ROW_GROUP, ParquetFolder
from viewkeep.tables.log.delta import StorageError
from viewkeep.tables.log.durable import local_path
from viewkeep.tables.log.snapshots import DataFile

VIEW_GROUP = 32 * 1024
"""Rows of a row group of a view: those that have no changed row are copied, not written anew."""
_NUMBERS = (*INTEGRAL, FLOAT, DOUBLE, DATE)


def write_query(
    connection: duckdb.DuckDBPyConnection, query: str, fields: Iterable[Field], target: Target
) -> list[DataFile]:
    """Write the rows of a query, whose columns have these names and types; none, if it has none."""
    types = {field.name: field for field in fields}
    columns = ", ".join(
        _stored_column_sql(types[stored], public) for public, stored in target.columns
    )
    text = f"SELECT {columns} FROM ({query}) AS rows"
    if target.is_sorted and target.order and not target.is_quick:
        text += f" ORDER BY {', '.join(f'rows.{quote_name(name)}' for name in target.order)}"
    folder = local_path(target.table.uri)
    if folder is None:
        rows = arrow_rows(connection, text)
        schema = arrow_schema([_renamed_field(types[old], new) for new, old in target.columns])
        return [ParquetFolder(target.table).write(rows.cast(schema))] if rows.num_rows else []
    column_types = [types[stored].type for _, stored in target.columns]
    is_cache = target.group_rows is not None and not target.is_sorted
    is_plain = is_cache and all(each in _NUMBERS for each in column_types)
    return _copy_to_parquet(
        connection, text, target, folder, "uncompressed" if is_plain else "snappy"
    )


def _copy_to_parquet(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    target: Target,
    folder: str,
    compression: str,
) -> list[DataFile]:
    name = f"duckdb-{int(time.time())}-{uuid4()}"
    files = ParquetFolder(target.table)
    files.make(name)
    place = f"{folder}/{name}/part-0.parquet".replace("'", "''")
    group = target.group_rows if target.is_sorted and not target.is_quick else None
    is_view = target.group_rows is None or target.is_quick
    group = group or (VIEW_GROUP if is_view else ROW_GROUP)
    options = f"FORMAT parquet, ROW_GROUP_SIZE {group}, COMPRESSION {compression}"
    try:
        connection.execute(f"COPY ({text}) TO '{place}' ({options})")
    except duckdb.IOException as error:
        raise StorageError(f"{target.table.uri}: {error}") from error
    return files.described(name)


def _renamed_field(field: Field, name: str) -> Field:
    return Field(name, field.type)


def _stored_column_sql(field: Field, public: str) -> str:
    """A column as Delta stores it: moments are in UTC."""
    value = quote_name(field.name)
    if field.type == TIMESTAMP:
        value = f"CAST({value} AS TIMESTAMPTZ)"
    return f"{value} AS {quote_name(public)}"
