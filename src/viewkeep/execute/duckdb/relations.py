"""Relations of a lake as DuckDB reads them: Parquet files in place, Arrow tables as they are."""

from collections.abc import Mapping

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.execute.backend import Relations, Source
from viewkeep.execute.duckdb.statements import quote, typed
from viewkeep.query.algebra import Leaf, Scan
from viewkeep.query.types.data_types import Field
from viewkeep.tables.delta import StorageError
from viewkeep.tables.durable import local_path
from viewkeep.tables.parquet import Folder
from viewkeep.tables.relations import OverlaidRows, Relation, StoredRows


class SqlRelations(Mapping[Source, str]):
    """The DuckDB text of each relation, made when it is asked for."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, relations: Relations) -> None:
        self._connection, self._relations = connection, relations
        self._texts: dict[Source, str] = {}

    def __getitem__(self, source: Source) -> str:
        if source not in self._texts:
            self._texts[source] = self.text(self._relations[source])
        return self._texts[source]

    def __contains__(self, source: object) -> bool:
        return source in self._relations

    def __iter__(self):  # type: ignore[no-untyped-def]  # a Mapping wants it, nobody uses it
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    def of_leaf(self, leaf: Leaf) -> str:
        """The relation of a leaf of a query."""
        return self[(leaf.name, leaf.state) if isinstance(leaf, Scan) else leaf.name]

    def text(self, relation: Relation) -> str:
        """The DuckDB text of a relation."""
        match relation:
            case StoredRows():
                return self._stored(relation)
            case OverlaidRows():
                return self._overlaid(relation)
        return self.registered(relation)

    def registered(self, rows: pa.Table) -> str:
        """A name for rows in memory."""
        name = f"viewkeep rows {len(self._texts)} {id(rows)}"
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
        options = f"hive_partitioning = false, union_by_name = {str(len(places) > 1).lower()}"
        text = f"read_parquet([{', '.join(map(_text, places))}], {options})"
        try:
            found = self._connection.execute(f"DESCRIBE SELECT * FROM {text}").fetchall()
        except duckdb.IOException as error:
            raise StorageError(
                f"{rows.snapshot.uri}: files of version {rows.snapshot.version} are gone, probably "
                f"vacuumed; repair the views that need this version ({error})"
            ) from error
        missing = {field.name for field in rows.snapshot.fields} - {row[0] for row in found}
        if missing:  # columns that were added after the files were written
            return self.registered(Folder(rows.table).read(rows.files, rows.snapshot.fields))
        return text

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


def _have_wildcards(places: list[str]) -> bool:
    return any(set("*?[]{}") & set(place) for place in places)


def _column(field: Field, name: str) -> str:
    return f"{typed(quote(field.name), field.type)} AS {quote(name)}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
