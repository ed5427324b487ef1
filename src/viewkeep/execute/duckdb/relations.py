"""Relations of a lake as DuckDB reads them: Parquet files in place, Arrow tables as they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import log

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.execute.backend import Relations, Source, source_of
from viewkeep.execute.duckdb.dialect.text import quote_name, type_name
from viewkeep.execute.duckdb.file_schemas import FILE_SCHEMAS
from viewkeep.execute.duckdb.statements import typed_value
from viewkeep.query.algebra import Leaf
from viewkeep.query.tables import COPY
from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import arrow_schema, has_bounds
from viewkeep.tables.files.key_match import may_hold
from viewkeep.tables.files.look_up import count_near, look_up_places
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.recent_places import RECENT_PLACES
from viewkeep.tables.files.scans import FILE, ROW
from viewkeep.tables.log.column_mapping import ColumnMapping
from viewkeep.tables.log.delta import StorageError
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import NumberedRows, OverlaidRows, Relation, StoredRows

FILE_PLACE = f"CAST(file_index AS BIGINT) AS {quote_name(FILE)}"
ROW_PLACE = f"file_row_number AS {quote_name(ROW)}"
_FILE, _ROW = "viewkeep#file", "viewkeep#row"
NEAR_SHARE = 0.25
"""Row groups that may hold some keys are read one by one if they have at most this share of the
rows: DuckDB reads several times as many in that time."""


class RelationNames(Mapping[Source, str]):
    """The names that relations have in every run, so that the text of a script is made once."""

    def __getitem__(self, source: Source) -> str:
        name = source if isinstance(source, str) else " ".join(source)
        return f"temp.{quote_name(f'viewkeep relation {name}')}"

    def __iter__(self) -> Iterator[Source]:
        return iter(())

    def __len__(self) -> int:
        return 0


class OpenRelations:
    """The relations of one run, as views and registered rows of its connection."""

    names = RelationNames()

    def __init__(self, connection: duckdb.DuckDBPyConnection, relations: Relations) -> None:
        self.connection, self._relations = connection, relations
        self._open_sources: set[Source] = set()
        self._registered = 0

    def of_leaf(self, leaf: Leaf) -> str:
        """The relation of a leaf of a query, opened."""
        self.open([source_of(leaf)])
        return self.names[source_of(leaf)]

    def text_of_leaf(self, leaf: Leaf) -> str:
        """The text of the relation of a leaf, for a query that is run once."""
        return self.text(self._relations[source_of(leaf)])

    def open_leaves(self, leaves: Iterable[Leaf]) -> None:
        """Make what a query reads known to DuckDB."""
        self.open(map(source_of, leaves))

    def open(self, sources: Iterable[Source]) -> None:
        """Make relations known to DuckDB, once."""
        for source in sources:
            if source not in self._open_sources:
                text = self.text(self._relations[source])
                self.connection.execute(f"CREATE TEMP VIEW {self.names[source]} AS FROM {text}")
                self._open_sources.add(source)

    def text(self, relation: Relation) -> str:
        """The DuckDB text of a relation."""
        match relation:
            case StoredRows():
                return self._stored_rows_text(relation)
            case OverlaidRows():
                return self._overlaid_rows_text(relation)
            case NumberedRows():
                return self._numbered_rows_text(relation)
        return self.registered(relation)

    def may_be_marked(self, source: Source) -> bool:
        """Whether a relation is stored in sorted files, in which changed rows are marked."""
        rows = self._relations[source]
        return isinstance(rows, StoredRows) and rows.snapshot.has_vectors

    def near(self, source: Source, keys: pa.Table) -> str | None:
        """Stored rows that may have one of the keys, read by their row groups, with their places;
        None where DuckDB had better read all of them."""
        rows = self._relations[source]
        assert isinstance(rows, StoredRows)
        fields = {field.name: field for field in rows.snapshot.fields}
        own = [fields[rows.names[name]] for name in keys.column_names]
        if not all(has_bounds(field.type) for field in own):
            return None
        stored = keys.rename_columns([field.name for field in own]).cast(_nullable_schema(own))
        ordered = typical_first(rows.files)
        near_files = [number for number, each in enumerate(ordered) if may_hold(each, stored)]
        files, folder = [ordered[number] for number in near_files], ParquetFolder(rows.table)
        if count_near(folder, files, stored) > NEAR_SHARE * sum(f.rows for f in rows.files):
            return None
        matches = look_up_places(folder, files, rows.snapshot.fields, [stored])
        numbers = np.array(near_files, np.int64)[matches[FILE].to_numpy()]
        matches = matches.set_column(
            matches.column_names.index(FILE), FILE, pa.array(numbers, pa.int64())
        )
        places = f"{quote_name(FILE)}, {quote_name(ROW)}"
        return f"(SELECT {_stored_columns_sql(rows)}, {places} FROM {self.registered(matches)})"

    def placed(self, source: Source) -> str | None:
        """Stored rows with their places, `FILE` and `ROW`; None where DuckDB does not tell them."""
        rows = self._relations[source]
        if not isinstance(rows, StoredRows):
            return None
        text = self._numbered_live_rows(_in_typical_order(rows))
        if text is None:
            return None
        return f"(SELECT {_stored_columns_sql(rows)}, {FILE_PLACE}, {ROW_PLACE} FROM {text})"

    def remember_places(self, source: Source, keys: pa.Table, matches: pa.Table) -> None:
        """Remember where the rows are that have one of the keys, as `near` or `placed` tells."""
        rows = self._relations[source]
        assert isinstance(rows, StoredRows)
        stored = [rows.names[name] for name in keys.column_names]
        places = matches.select([*keys.column_names, FILE, ROW]).rename_columns(
            [*stored, FILE, ROW]
        )
        RECENT_PLACES.add(_in_typical_order(rows), keys.rename_columns(stored), places)

    def registered(self, rows: pa.Table) -> str:
        """A name for rows in memory."""
        self._registered += 1
        name = f"viewkeep rows {self._registered}"
        self.connection.register(name, rows)
        return quote_name(name)

    def _stored_rows_text(self, rows: StoredRows) -> str:
        columns = _stored_columns_sql(rows)
        whole = [each for each in rows.files if each.vector is None]
        marked = [each for each in rows.files if each.vector is not None]
        if not marked:
            return f"(SELECT {columns} FROM {self._files_text(rows)})"
        parts = (
            [f"SELECT {columns} FROM {self._files_text(replace(rows, files=whole))}"]
            if whole
            else []
        )
        parts.append(f"SELECT {columns} FROM {self._live_rows_text(replace(rows, files=marked))}")
        return f"({' UNION ALL '.join(parts)})"

    def _live_rows_text(self, rows: StoredRows) -> str:
        """Files without the rows in their deletion vectors."""
        return self._numbered_live_rows(_in_typical_order(rows)) or self._rows_in_memory(rows)

    def _numbered_live_rows(self, rows: StoredRows) -> str | None:
        """Files with numbers of files and rows, without the rows in their deletion vectors: DuckDB
        looks keys up before it looks at numbers. None if it cannot read the files in place."""
        text = self.numbered_files(rows)
        if text is None or all(each.vector is None for each in rows.files):
            return text
        folder = ParquetFolder(rows.table)
        deleted = [folder.deleted_rows(each) for each in rows.files]
        numbers = np.repeat(np.arange(len(deleted)), [len(each) for each in deleted])
        deleted_rows = pa.table({_FILE: numbers, _ROW: np.concatenate(deleted)})
        return (
            f"{text} AS stored ANTI JOIN {self.registered(deleted_rows)} AS deleted "
            f"ON stored.file_row_number = deleted.{quote_name(_ROW)} "
            f"AND stored.file_index = deleted.{quote_name(_FILE)}"
        )

    def _files_text(self, rows: StoredRows) -> str:
        return self._files_in_place(rows) or self._rows_in_memory(rows)

    def numbered_files(self, rows: StoredRows) -> str | None:
        """Files with numbers of files and rows, also of deleted rows; None if DuckDB cannot read
        them in place."""
        if {"file_row_number", "file_index"} & {f.name.lower() for f in rows.snapshot.fields}:
            return None
        return self._files_in_place(rows, ", file_row_number = true", keeps_order=True)

    def _rows_in_memory(self, rows: StoredRows) -> str:
        return self.registered(ParquetFolder(rows.table).read(rows.files, rows.snapshot.fields))

    def _files_in_place(
        self, rows: StoredRows, more: str = "", keeps_order: bool = False
    ) -> str | None:
        """The files, if DuckDB can read them in place and their columns are those of the table."""
        folder = rows.table.folder
        files = rows.files if keeps_order else typical_first(rows.files)
        places = [each.location(folder or "") for each in files]
        if (
            folder is None
            or not places
            or rows.snapshot.partitions
            or _paths_have_wildcards(places)
        ):
            return None
        mapping = rows.snapshot.mapping
        if mapping is not None:
            columns = _mapped_columns_sql(mapping, rows.snapshot.fields)
            return columns and _read_parquet_sql(places, f"schema = {columns}{more}")
        try:
            schemas = set(FILE_SCHEMAS.get(places))
        except FileNotFoundError as error:
            raise StorageError(
                f"{rows.snapshot.uri}: files of version {rows.snapshot.version} are gone, probably "
                f"vacuumed; repair the views that need this version ({error})"
            ) from error
        names = {name for schema in schemas for name, _ in schema}
        added = [field for field in rows.snapshot.fields if field.name not in names]
        if {field.name.lower() for field in added} & {name.lower() for name in names}:
            return None
        # Files of one schema need not all be opened before a query is planned.
        options = f"union_by_name = {str(len(schemas) > 1).lower()}{more}"
        return _with_null_columns(_read_parquet_sql(places, options), added, bool(more))

    def _numbered_rows_text(self, rows: NumberedRows) -> str:
        """DuckDB filters by columns before it numbers, and numbers nothing that is not read."""
        names = ", ".join(map(quote_name, rows.base.names))
        number = f"row_number() OVER (PARTITION BY {names}) AS {quote_name(COPY)}"
        return f"(SELECT {names}, {number} FROM {self._stored_rows_text(rows.base)})"

    def _overlaid_rows_text(self, rows: OverlaidRows) -> str:
        base, live, covered = map(self.text, (rows.base, rows.live, rows.covered))
        same = " AND ".join(
            f"base.{quote_name(name)} IS NOT DISTINCT FROM covered.{quote_name(name)}"
            for name in rows.covered.column_names
        )
        names = ", ".join(map(quote_name, rows.base.names))
        return (
            f"(SELECT {names} FROM {base} AS base "
            f"ANTI JOIN {covered} AS covered ON {same or 'TRUE'} "
            f"UNION ALL SELECT {names} FROM {live})"
        )


def typical_first(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """Files in an order that tells DuckDB about how many rows they have: it opens the first one
    only, and takes the others to be like it. Before a large file, a small one would make joins
    begin with it.

    >>> files = [DataFile("small", 1, 10), DataFile("large", 9, 9000), DataFile("middle", 1, 80)]
    >>> [each.path for each in typical_first(files)]
    ['large', 'small', 'middle']
    """
    if len(files) < 2:
        return tuple(files)
    mean = max(1.0, sum(each.rows for each in files) / len(files))
    first = min(files, key=lambda each: abs(log(max(1, each.rows) / mean)))
    return (first, *(each for each in files if each is not first))


def _in_typical_order(rows: StoredRows) -> StoredRows:
    return replace(rows, files=typical_first(rows.files))


def _nullable_schema(fields: Iterable[Field]) -> pa.Schema:
    return pa.schema([each.with_nullable(True) for each in arrow_schema(fields)])


def _paths_have_wildcards(places: list[str]) -> bool:
    return any(set("*?[]{}") & set(place) for place in places)


def _stored_columns_sql(rows: StoredRows) -> str:
    """The columns of stored rows under the names of the relation."""
    fields = {field.name: field for field in rows.snapshot.fields}
    return ", ".join(_renamed_column_sql(fields[old], new) for new, old in rows.names.items())


def _renamed_column_sql(field: Field, name: str) -> str:
    return f"{typed_value(quote_name(field.name), field.type)} AS {quote_name(name)}"


def _read_parquet_sql(places: Iterable[str], options: str) -> str:
    files = ", ".join(map(_text_literal, places))
    return f"read_parquet([{files}], hive_partitioning = false, {options})"


def _with_null_columns(text: str, fields: Sequence[Field], is_numbered: bool) -> str:
    """Files with columns that none of them has: they were added to the table later."""
    if not fields:
        return text
    nulls = [f"CAST(NULL AS {type_name(f.type)}) AS {quote_name(f.name)}" for f in fields]
    columns = ["*", *(["file_index"] if is_numbered else []), *nulls]
    return f"(SELECT {', '.join(columns)} FROM {text})"


def _mapped_columns_sql(mapping: ColumnMapping, fields: Sequence[Field]) -> str | None:
    """The columns of files for DuckDB, by their names or numbers there; None if it cannot name
    them anew, as parts of values."""
    if mapping.renames_parts(fields):
        return None
    columns = []
    for each in fields:
        stored = mapping.stored(each.name)
        place = str(stored.number) if mapping.by_number else _text_literal(stored.name)
        form = f"name: {_text_literal(each.name)}, type: {_text_literal(type_name(each.type))}"
        columns.append(f"{place}: {{{form}, default_value: NULL}}")
    return f"MAP {{{', '.join(columns)}}}"


def _text_literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
