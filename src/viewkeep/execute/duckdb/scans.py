"""Files of Delta tables in DuckDB: streamed from Parquet to Parquet, whatever their size."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.execute.backend import Target
from viewkeep.execute.duckdb.connection import arrow_rows, duckdb_errors, open_connection
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.relations import (
    FILE_PLACE,
    ROW_PLACE,
    OpenRelations,
    typical_first,
)
from viewkeep.execute.duckdb.write import write_query
from viewkeep.query.tables import COPY, Table
from viewkeep.query.types.data_types import BIGINT, Field
from viewkeep.tables.arrow_rows import arrow_schema, to_rows
from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.files.look_up import find_places_of_keys
from viewkeep.tables.files.parquet import ROW_GROUP, ParquetFolder
from viewkeep.tables.files.recent_places import RECENT_PLACES
from viewkeep.tables.files.scans import FILE, ROW, SIDE
from viewkeep.tables.files.spliced_rest import may_splice, write_spliced
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import StoredRows

_COPIES = "viewkeep#copies"


class DuckdbScans:
    """Implements `tables.scans.Scans`."""

    def rows_near(self, rows: StoredRows, keys: pa.Table) -> pa.Table:
        """The rows that have one of the keys."""
        with open_connection() as connection, duckdb_errors(rows.table.uri):
            query = _rows_by_keys_sql(connection, rows, keys, "SEMI")
            return arrow_rows(connection, query).cast(arrow_schema(rows.fields))

    def write_without(self, rows: StoredRows, keys: pa.Table) -> list[DataFile]:
        """Write the rows that have none of the keys into a new file of their table."""
        spliced = self._write_spliced_file(rows, keys)
        if spliced is not None:
            return spliced
        fields = rows.fields
        target = Target(
            rows.table,
            [(each.name, each.name) for each in fields],
            group_rows=_row_group_size(rows),
            is_sorted=True,  # as they are
        )
        with open_connection() as connection, duckdb_errors(rows.table.uri):
            return write_query(
                connection, _rows_by_keys_sql(connection, rows, keys, "ANTI"), fields, target
            )

    def _write_spliced_file(self, rows: StoredRows, keys: pa.Table) -> list[DataFile] | None:
        """The same by a copy of most row groups, where the keys are in few of them."""
        if not may_splice(rows, keys.num_rows):
            return None
        places = RECENT_PLACES.get(rows, keys)
        if places is None:
            places = self.row_places(rows, keys)
        numbers, row_numbers = places[FILE].to_numpy(), places[ROW].to_numpy().astype(np.int64)
        return write_spliced(
            rows, [np.sort(row_numbers[numbers == n]) for n in range(len(rows.files))]
        )

    def row_places(self, rows: StoredRows, keys: pa.Table) -> pa.Table:
        """The places of the rows that have one of the keys: `FILE` and `ROW`, and the keys."""
        with open_connection() as connection, duckdb_errors(rows.table.uri):
            relations = OpenRelations(connection, {})
            ordered = typical_first(rows.files)
            files = relations.numbered_files(replace(rows, files=ordered))
            if files is None:
                return _places_in_memory(rows, keys)
            key_rows, same = _keys_and_condition(relations, keys)
            names = [f"stored.{quote_name(each)}" for each in keys.column_names]
            query = (
                f"SELECT {', '.join([*names, FILE_PLACE, ROW_PLACE])} "
                f"FROM {files} AS stored SEMI JOIN {key_rows} AS keys ON {same}"
            )
            places = arrow_rows(connection, query)
        number_by_path = {each.path: number for number, each in enumerate(rows.files)}
        numbers = np.array([number_by_path[each.path] for each in ordered], np.int64)
        files_of_places = pa.array(numbers[places[FILE].to_numpy()])
        return places.set_column(places.column_names.index(FILE), FILE, files_of_places)

    def unpaired(self, old: StoredRows, new: StoredRows, most: int | None) -> pa.Table:
        """The rows of each side that the other one lacks, with copies, and their `SIDE`."""
        names, copies = ", ".join(map(quote_name, new.names)), quote_name(_COPIES)
        limit = "" if most is None else f" LIMIT {most}"
        with open_connection() as connection, duckdb_errors(new.table.uri):
            relations = OpenRelations(connection, {})
            sides = [
                f"SELECT {names}, {sign} AS {copies} FROM {relations.text(rows)}"
                for sign, rows in ((-1, old), (1, new))
            ]
            differences = arrow_rows(
                connection,
                f"SELECT {names}, CAST(sum({copies}) AS BIGINT) AS {copies} "
                f"FROM ({' UNION ALL '.join(sides)}) GROUP BY {names} "
                f"HAVING sum({copies}) <> 0{limit}",
            )
        counts = differences[_COPIES].to_numpy()
        places = np.repeat(np.arange(len(counts)), abs(counts))
        rows = (
            differences.drop_columns([_COPIES])
            .cast(arrow_schema(new.fields))
            .take(pa.array(places))
        )
        sides_of = pa.array(np.where(counts[places] < 0, "old", "new"), pa.string())
        return rows.append_column(SIDE, sides_of)

    def count_copies(self, rows: StoredRows, values: pa.Table) -> pa.Table:
        """The rows that are one of the values, once each, and their number as `COPY`."""
        names = ", ".join(map(quote_name, rows.names))
        with open_connection() as connection, duckdb_errors(rows.table.uri):
            near = _rows_by_keys_sql(connection, rows, values, "SEMI")
            query = f"SELECT {names}, count(*) AS {quote_name(COPY)} FROM ({near}) GROUP BY {names}"
            counts = arrow_rows(connection, query)
        return counts.cast(arrow_schema([*rows.fields, Field(COPY, BIGINT)]))

    def repeated_key(self, rows: StoredRows, key: Sequence[str]) -> tuple[Any, ...] | None:
        """A key that two rows have, if there is one."""
        names = ", ".join(map(quote_name, key))
        with open_connection() as connection, duckdb_errors(rows.table.uri):
            text = OpenRelations(connection, {}).text(rows)
            query = f"SELECT {names} FROM {text} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
            keys = to_rows(arrow_rows(connection, query))
        return keys[0] if keys else None

    def null_columns(self, rows: StoredRows, names: Sequence[str]) -> list[str]:
        """Those of the columns that have a NULL."""
        if not names:
            return []
        flags = ", ".join(f"coalesce(bool_or({quote_name(name)} IS NULL), FALSE)" for name in names)
        with open_connection() as connection, duckdb_errors(rows.table.uri):
            text = OpenRelations(connection, {}).text(rows)
            [null_flags] = connection.execute(f"SELECT {flags} FROM {text}").fetchall()
        return [name for name, has_null in zip(names, null_flags, strict=True) if has_null]

    def write_frame(
        self, name: str, declared: Table, frame: Any, table: LakeTable
    ) -> list[DataFile] | None:
        """None: rows of Spark come to the driver."""
        return None


def _row_group_size(rows: StoredRows) -> int:
    """About how many rows the row groups have that are written anew."""
    if not rows.files:
        return ROW_GROUP
    largest = max(rows.files, key=lambda each: each.rows)
    with ParquetFolder(rows.table).opened(largest) as (_, bounds):
        return min(ROW_GROUP, int(max(np.diff(bounds.starts), default=ROW_GROUP)))


def _rows_by_keys_sql(
    connection: duckdb.DuckDBPyConnection, rows: StoredRows, keys: pa.Table, kind: str
) -> str:
    """The rows that have one of the keys, or none of them; NULL and NaN are values of keys."""
    relations = OpenRelations(connection, {})
    key_rows, same = _keys_and_condition(relations, keys)
    names = ", ".join(f"stored.{quote_name(each.name)}" for each in rows.fields)
    return (
        f"SELECT {names} FROM {relations.text(rows)} AS stored "
        f"{kind} JOIN {key_rows} AS keys ON {same}"
    )


def _keys_and_condition(relations: OpenRelations, keys: pa.Table) -> tuple[str, str]:
    """A name for keys, and whether a stored row has one of them."""
    same = " AND ".join(
        f"stored.{quote_name(name)} IS NOT DISTINCT FROM keys.{quote_name(name)}"
        for name in keys.column_names
    )
    return relations.registered(keys if keys.num_columns else _one_key_row(keys)), same or "TRUE"


def _places_in_memory(rows: StoredRows, keys: pa.Table) -> pa.Table:
    """The places of rows in files that DuckDB does not read in place."""
    places = find_places_of_keys(
        ParquetFolder(rows.table), rows.files, rows.snapshot.fields, KeyIndex(keys)
    )
    numbers = np.repeat(np.arange(len(places)), [len(each) for each, _ in places])
    none = np.zeros(0, np.int64)
    row_numbers = np.concatenate([none, *(each for each, _ in places)])
    own = keys.take(pa.array(np.concatenate([none, *(each for _, each in places)])))
    return own.append_column(FILE, pa.array(numbers)).append_column(ROW, pa.array(row_numbers))


def _one_key_row(keys: pa.Table) -> pa.Table:
    """Keys without columns: there are some, or there are none."""
    return pa.table({"key": pa.nulls(keys.num_rows, pa.int8())})
