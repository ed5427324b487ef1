"""Relations of a lake as DuckDB reads them: Parquet files in place, Arrow tables as they are."""

from collections.abc import Iterable, Iterator, Mapping

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.execute.backend import Relations, Source
from viewkeep.execute.duckdb.dialect.text import quote
from viewkeep.execute.duckdb.file_schemas import FILE_SCHEMAS
from viewkeep.execute.duckdb.statements import typed
from viewkeep.query.algebra import Leaf, Scan
from viewkeep.query.tables import COPY
from viewkeep.query.types.data_types import Field
from viewkeep.tables.files.parquet import Folder
from viewkeep.tables.log.delta import StorageError
from viewkeep.tables.log.durable import local_path
from viewkeep.tables.relations import NumberedRows, OverlaidRows, Relation, StoredRows


class RelationNames(Mapping[Source, str]):
    """The names that relations have in every run, so that the text of a script is made once."""

    def __getitem__(self, source: Source) -> str:
        name = source if isinstance(source, str) else " ".join(source)
        return f"temp.{quote(f'viewkeep relation {name}')}"

    def __iter__(self) -> Iterator[Source]:
        return iter(())

    def __len__(self) -> int:
        return 0


class OpenRelations:
    """The relations of one run, as views and registered rows of its connection."""

    names = RelationNames()

    def __init__(self, connection: duckdb.DuckDBPyConnection, relations: Relations) -> None:
        self._connection, self._relations = connection, relations
        self._opened: set[Source] = set()
        self._registered = 0

    def of_leaf(self, leaf: Leaf) -> str:
        """The relation of a leaf of a query, opened."""
        self.open([_source(leaf)])
        return self.names[_source(leaf)]

    def text_of_leaf(self, leaf: Leaf) -> str:
        """The text of the relation of a leaf, for a query that is run once."""
        return self.text(self._relations[_source(leaf)])

    def open_leaves(self, leaves: Iterable[Leaf]) -> None:
        """Make what a query reads known to DuckDB."""
        self.open(map(_source, leaves))

    def open(self, sources: Iterable[Source]) -> None:
        """Make relations known to DuckDB, once."""
        for source in sources:
            if source not in self._opened:
                text = self.text(self._relations[source])
                self._connection.execute(f"CREATE TEMP VIEW {self.names[source]} AS FROM {text}")
                self._opened.add(source)

    def text(self, relation: Relation) -> str:
        """The DuckDB text of a relation."""
        match relation:
            case StoredRows():
                return self._stored(relation)
            case OverlaidRows():
                return self._overlaid(relation)
            case NumberedRows():
                return self._numbered(relation)
        return self.registered(relation)

    def registered(self, rows: pa.Table) -> str:
        """A name for rows in memory."""
        self._registered += 1
        name = f"viewkeep rows {self._registered}"
        self._connection.register(name, rows)
        return quote(name)

    def _stored(self, rows: StoredRows) -> str:
        fields = {field.name: field for field in rows.snapshot.fields}
        columns = ", ".join(_column(fields[old], new) for new, old in rows.names.items())
        return f"(SELECT {columns} FROM {self._files(rows)})"

    def _files(self, rows: StoredRows) -> str:
        """The files, read in place where DuckDB can and their columns are those of the table."""
        folder = local_path(rows.table.uri)
        places = [each.location(folder or "") for each in rows.files]
        if folder is None or not places or rows.snapshot.partitions or _have_wildcards(places):
            return self.registered(Folder(rows.table).read(rows.files, rows.snapshot.fields))
        try:
            schemas = set(FILE_SCHEMAS.get(places))
        except FileNotFoundError as error:
            raise StorageError(
                f"{rows.snapshot.uri}: files of version {rows.snapshot.version} are gone, probably "
                f"vacuumed; repair the views that need this version ({error})"
            ) from error
        names = {name for schema in schemas for name, _ in schema}
        if not {field.name for field in rows.snapshot.fields} <= names:  # added after all files
            return self.registered(Folder(rows.table).read(rows.files, rows.snapshot.fields))
        # Files of one schema need not all be opened before a query is planned.
        options = f"hive_partitioning = false, union_by_name = {str(len(schemas) > 1).lower()}"
        return f"read_parquet([{', '.join(map(_text, places))}], {options})"

    def _numbered(self, rows: NumberedRows) -> str:
        """DuckDB filters by columns before it numbers, and numbers nothing that is not read."""
        names = ", ".join(map(quote, rows.base.names))
        number = f"row_number() OVER (PARTITION BY {names}) AS {quote(COPY)}"
        return f"(SELECT {names}, {number} FROM {self._stored(rows.base)})"

    def _overlaid(self, rows: OverlaidRows) -> str:
        base, live, covered = map(self.text, (rows.base, rows.live, rows.covered))
        same = " AND ".join(
            f"base.{quote(name)} IS NOT DISTINCT FROM covered.{quote(name)}"
            for name in rows.covered.column_names
        )
        names = ", ".join(map(quote, rows.base.names))
        return (
            f"(SELECT {names} FROM {base} AS base "
            f"ANTI JOIN {covered} AS covered ON {same or 'TRUE'} "
            f"UNION ALL SELECT {names} FROM {live})"
        )


def _source(leaf: Leaf) -> Source:
    return (leaf.name, leaf.state) if isinstance(leaf, Scan) else leaf.name


def _have_wildcards(places: list[str]) -> bool:
    return any(set("*?[]{}") & set(place) for place in places)


def _column(field: Field, name: str) -> str:
    return f"{typed(quote(field.name), field.type)} AS {quote(name)}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
