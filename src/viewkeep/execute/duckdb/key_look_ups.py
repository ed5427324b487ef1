"""Rows of relations by their keys, for scripts that are run row by row."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.execute.backend import Relations, Source, Target
from viewkeep.execute.duckdb.connection import arrow_rows, duckdb_errors, open_connection
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.relations import OpenRelations
from viewkeep.execute.duckdb.write import write_query
from viewkeep.query.types.inference import Schema
from viewkeep.tables.files.scans import FILE, ROW
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import OverlaidRows


class KeyLookUps:
    """Implements `execute.few_rows.RowsEngine`; a connection is opened when it is first used."""

    def __init__(self, relations: Relations, stack: ExitStack) -> None:
        self._relations, self._stack = relations, stack

    @cached_property
    def _open_relations(self) -> OpenRelations:
        return OpenRelations(self._stack.enter_context(open_connection()), self._relations)

    def look_up(self, source: Source, names: Sequence[str], keys: pa.Table, most: int) -> pa.Table:
        """Columns of the rows of a relation that have one of some keys: at most so many."""
        rows = self._placed_rows(source, keys)
        is_placed = rows is not None
        if rows is None:
            self._open_relations.open([source])
            rows = self._open_relations.names[source]
        matches = self._rows_with_keys(rows, names, keys, most, is_placed)
        if is_placed and isinstance(source, str) and matches.num_rows < most:
            self._open_relations.remember_places(source, keys, matches)
        return matches.select(list(names))

    def _placed_rows(self, source: Source, keys: pa.Table) -> str | None:
        """Stored rows that may have one of the keys, with their places, which those who change kept
        relations ask for."""
        near = None
        if self._open_relations.may_be_marked(source):
            near = self._open_relations.near(source, keys)
        return near or (self._open_relations.placed(source) if isinstance(source, str) else None)

    def _rows_with_keys(
        self, rows: str, names: Sequence[str], keys: pa.Table, most: int, placed: bool
    ) -> pa.Table:
        same = " AND ".join(
            f"stored.{quote_name(each)} {_sql_equality_of_keys(keys[each])} keys.{quote_name(each)}"
            for each in keys.column_names
        )
        read = [*names, *((FILE, ROW) if placed else ())]
        columns = ", ".join(f"stored.{quote_name(each)}" for each in read)
        with duckdb_errors("looking rows up"):
            return arrow_rows(
                self._open_relations.connection,
                f"SELECT {columns} FROM {rows} AS stored "
                f"SEMI JOIN {self._open_relations.registered(keys)} AS keys ON {same} LIMIT {most}",
            )

    def write(self, relation: OverlaidRows, fields: Schema, target: Target) -> list[DataFile]:
        """Write a relation whose rows were changed."""
        with duckdb_errors(f"writing {target.table.uri}"):
            text = f"FROM {self._open_relations.text(relation)}"
            return write_query(self._open_relations.connection, text, fields, target)


def _sql_equality_of_keys(values: pa.ChunkedArray) -> str:
    """Scans filter by =, which will do if no key is NULL."""
    return "IS NOT DISTINCT FROM" if values.null_count else "="
