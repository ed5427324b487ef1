"""DuckDB on the driver: queries, scripts and comparisons in vectors, over the files of the lake."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.script import Script
from viewkeep.execute.backend import Counted, Relations, ScriptRun, Target, WrittenFiles
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.connection import arrow_rows, duckdb_errors, open_connection
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.key_look_ups import KeyLookUps
from viewkeep.execute.duckdb.relations import OpenRelations
from viewkeep.execute.duckdb.script_run import DuckdbRun, PreparedRun, prepare_run
from viewkeep.execute.duckdb.write import write_query
from viewkeep.execute.errors import NeedsSparkError
from viewkeep.execute.few_rows import FewRowsRun, LeftToEngineError, PrunedQueries, is_small
from viewkeep.query.algebra import Node
from viewkeep.query.types.data_types import DOUBLE, FLOAT, Field
from viewkeep.query.verbatim import Query, Verbatim
from viewkeep.tables.arrow_rows import arrow_schema, to_rows
from viewkeep.tables.relations import StoredRows

PREPARED = 1000
"""The most scripts whose texts are kept."""
_SIDE = "viewkeep#side"


class DuckdbBackend:
    """Implements `execute.backend.Backend`."""

    name = "duckdb"

    def __init__(self, few_rows: bool = True) -> None:
        """`few_rows`: scripts over a few thousand rows are run in Python."""
        self._few_rows = few_rows
        self.is_warm = False
        self._prepared: dict[int, PreparedRun] = {}
        self._pruned: dict[int, PrunedQueries] = {}
        self._texts: dict[int, statements.QueryText] = {}

    def write(self, place: str, query: Query, relations: Relations, target: Target) -> WrittenFiles:
        """Write the rows of a query; errors name the place."""
        query = _algebra_of_query(query)
        with open_connection() as connection, duckdb_errors(place):
            text = self._query_text(query).text(OpenRelations(connection, relations).text_of_leaf)
            files = write_query(connection, text, query.schema, target)
        self.is_warm = True
        return WrittenFiles(files)

    @contextmanager
    def run(self, script: Script, relations: Relations) -> Iterator[ScriptRun]:
        """Run a script."""
        with ExitStack() as stack:
            small = self._few_rows_run(script, relations, stack) if self._few_rows else None
            if small is not None:
                yield small
                return
        with open_connection() as connection:
            yield DuckdbRun(connection, self._prepared_script(script), relations)

    def _few_rows_run(
        self, script: Script, relations: Relations, stack: ExitStack
    ) -> FewRowsRun | None:
        """A run in Python, if it can be done there."""
        queries = self._pruned.get(id(script))
        if queries is None or queries.script is not script:
            if len(self._pruned) >= PREPARED:
                self._pruned.clear()
            self._pruned[id(script)] = queries = PrunedQueries(script)
        if not is_small(queries, relations):
            return None
        try:
            return FewRowsRun(queries, relations, KeyLookUps(relations, stack))
        except LeftToEngineError:
            return None

    def _query_text(self, query: Node) -> statements.QueryText:
        """The text of a query, which is made once; a view keeps its query."""
        text = self._texts.get(id(query))
        if text is None or text.node is not query:
            if len(self._texts) >= PREPARED:
                self._texts.clear()
            self._texts[id(query)] = text = statements.QueryText.of(query)
        return text

    def _prepared_script(self, script: Script) -> PreparedRun:
        """The texts of a script, which are made once; a view keeps its scripts."""
        prepared = self._prepared.get(id(script))
        if prepared is None or prepared.script is not script:
            if len(self._prepared) >= PREPARED:
                self._prepared.clear()
            self._prepared[id(script)] = prepared = prepare_run(script)
        return prepared

    def compare(
        self, place: str, query: Query, relations: Relations, table_rows: StoredRows, most: int
    ) -> Counted:
        """Rows that a table lacks (> 0), or has too many of (< 0)."""
        query = _algebra_of_query(query)
        with open_connection() as connection, duckdb_errors(place):
            sources = OpenRelations(connection, relations)
            expected = f"({statements.query(query, sources.of_leaf)})"
            columns = _duckdb_comparable_columns(query.schema)
            sides = [
                f"SELECT {columns}, {sign} AS {quote_name(_SIDE)} FROM {rows}"
                for sign, rows in ((1, expected), (-1, sources.text(table_rows)))
            ]
            names = ", ".join(map(quote_name, query.names))
            differences = arrow_rows(
                connection,
                f"SELECT {names}, sum({quote_name(_SIDE)}) AS {quote_name(_SIDE)} "
                f"FROM ({' UNION ALL '.join(sides)}) GROUP BY {names} "
                f"HAVING sum({quote_name(_SIDE)}) <> 0 LIMIT {most}",
            )
        return {row[:-1]: int(row[-1]) for row in to_rows(differences)}

    def answer(
        self, place: str, query: Query, relations: Relations, order: str | None, most: int | None
    ) -> pa.Table:
        """The first rows of a query, or all of them, in the order of a column."""
        query = _algebra_of_query(query)
        with open_connection() as connection, duckdb_errors(place):
            text = statements.query(query, OpenRelations(connection, relations).text_of_leaf)
            fields = [field for field in query.schema if field.name != order]
            names = ", ".join(quote_name(field.name) for field in fields)
            by_order = "" if order is None else f" ORDER BY {quote_name(order)}"
            limit = "" if most is None else f" LIMIT {most}"
            rows = arrow_rows(connection, f"SELECT {names} FROM ({text}){by_order}{limit}")
        return rows.cast(arrow_schema(fields))


def _algebra_of_query(query: Query) -> Node:
    if isinstance(query, Verbatim):
        raise NeedsSparkError(f"{query.reason}, so it needs Spark")
    return query


def _duckdb_comparable_columns(schema: tuple[Field, ...]) -> str:
    return ", ".join(
        f"{_duckdb_rounded_column(field)} AS {quote_name(field.name)}" for field in schema
    )


def _duckdb_rounded_column(field: Field) -> str:
    """Sums of floats depend on the order of their rows, so floats have nine digits."""
    value = quote_name(field.name)
    if field.type not in (DOUBLE, FLOAT):
        return value
    return f"CAST(format('{{:.9e}}', CAST({value} AS DOUBLE)) AS DOUBLE) + 0.0"
