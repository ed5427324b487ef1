"""Rows of files by key, on the driver: only row groups whose bounds allow a key are read."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TypeVar

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.key_index import KeyIndex, Places
from viewkeep.tables.files.key_match import near_rows
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.scans import FILE, ROW
from viewkeep.tables.files.stored_columns import conform, file_names
from viewkeep.tables.log.delta import DataFile
from viewkeep.tables.log.roaring import RowNumbers

T = TypeVar("T")
U = TypeVar("U")
_NO_ROWS = np.zeros(0, np.int64)


def look_up(
    folder: ParquetFolder,
    files: Sequence[DataFile],
    fields: Sequence[Field],
    keys: Sequence[pa.Table],
) -> pa.Table:
    """Rows that may have a key of one of the tables of keys; several files at a time."""
    return look_up_places(folder, files, fields, keys).drop_columns([FILE, ROW])


def look_up_places(
    folder: ParquetFolder,
    files: Sequence[DataFile],
    fields: Sequence[Field],
    keys: Sequence[pa.Table],
) -> pa.Table:
    """The same with the places of the rows: the number of the file, `FILE`, and `ROW` in it."""
    schema = arrow_schema(fields)
    parts = parallel(lambda file: _rows_near_keys(folder, *file, schema, keys), [*enumerate(files)])
    return pa.concat_tables([_with_places(schema.empty_table(), 0, _NO_ROWS), *parts])


def _rows_near_keys(
    folder: ParquetFolder,
    number: int,
    each: DataFile,
    schema: pa.Schema,
    keys: Sequence[pa.Table],
) -> pa.Table:
    """The rows of a file that may have a key: key columns are read first, other columns only if
    rows match."""
    columns = list(dict.fromkeys(name for some in keys for name in some.column_names))
    typed = pa.schema([schema.field(name) for name in columns])
    parts = [_with_places(schema.empty_table(), number, _NO_ROWS)]
    with folder.opened(each) as (file, bounds):
        names = file_names(each, file.schema_arrow)
        file_columns = [names[name] for name in columns if name in names]
        own = [names[name] for name in schema.names if name in names]
        for groups in bounds.portions([_as_stored(some, names) for some in keys]):
            rows = conform(file.read_row_groups(groups, file_columns), typed, each)
            near = reduce(pc.or_, (near_rows(rows, some) for some in keys))
            if each.vector is not None:
                near = pc.and_(near, folder.live_rows(each, bounds.places(groups)))
            if pc.any(near, min_count=0).as_py():
                rest = conform(file.read_row_groups(groups, own), schema, each)
                parts.append(_with_places(rest, number, bounds.places(groups)).filter(near))
    return pa.concat_tables(parts)


def _with_places(rows: pa.Table, number: int, places: RowNumbers) -> pa.Table:
    files = pa.array(np.full(len(places), number, np.int64))
    return rows.append_column(FILE, files).append_column(ROW, pa.array(places))


def _as_stored(keys: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The columns of keys that a file has, under their names in it."""
    own = [name for name in keys.column_names if name in names]
    if own == keys.column_names and all(name == names[name] for name in own):
        return keys
    return keys.select(own).rename_columns([names[name] for name in own])


def count_near(folder: ParquetFolder, files: Sequence[DataFile], keys: pa.Table) -> int:
    """How many rows of files are in row groups that may have one of the keys."""
    rows = 0
    for each in files:
        with folder.opened(each) as (file, bounds):
            rows += bounds.rows_near([_as_stored(keys, file_names(each, file.schema_arrow))])
    return rows


def find_places(
    folder: ParquetFolder, files: Sequence[DataFile], fields: Sequence[Field], keys: pa.Table
) -> list[RowNumbers]:
    """For each file, the places of the rows that have one of the keys, also of deleted rows."""
    return [rows for rows, _ in find_places_of_keys(folder, files, fields, KeyIndex(keys))]


def find_places_of_keys(
    folder: ParquetFolder, files: Sequence[DataFile], fields: Sequence[Field], index: KeyIndex
) -> list[tuple[RowNumbers, Places]]:
    """The same, and for each of these rows the place of its key among the keys."""
    names = set(index.keys.column_names)
    schema = arrow_schema([each for each in fields if each.name in names])
    return parallel(lambda each: _row_numbers_of_keys(folder, each, schema, index), files)


def _row_numbers_of_keys(
    folder: ParquetFolder, each: DataFile, schema: pa.Schema, keys: KeyIndex
) -> tuple[RowNumbers, Places]:
    row_numbers, key_places = [_NO_ROWS], [_NO_ROWS]
    with folder.opened(each) as (file, bounds):
        names = file_names(each, file.schema_arrow)
        own = [names[name] for name in schema.names if name in names]
        for groups in bounds.portions([_as_stored(keys.keys, names)]):
            rows = conform(file.read_row_groups(groups, own), schema, each)
            places = keys.places(rows)
            row_numbers.append(bounds.places(groups)[places >= 0])
            key_places.append(places[places >= 0])
    return np.concatenate(row_numbers), np.concatenate(key_places)


def parallel(function: Callable[[T], U], values: Sequence[T]) -> list[U]:
    """A function of several values at a time: Arrow works without Python's lock."""
    if len(values) < 2:
        return [function(each) for each in values]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, values))
