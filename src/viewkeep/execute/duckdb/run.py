"""Runs the statements of a delta script in DuckDB: computations into temporary tables, changes of
tables.

What empty diffs leave without rows is not run, so that one script may stand for many kinds of
changes: a refresh costs what the changes at hand need. The report counts the rows of what is read,
which DuckDB knows of its own tables; a view among the sources is computed once more for it.
"""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TypeVar

import duckdb

from viewkeep.diffs.accesses import count_accesses as count_query_accesses
from viewkeep.diffs.model import INSERT
from viewkeep.diffs.prune import prune
from viewkeep.diffs.script import Apply, Compute
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.connection import duckdb_errors
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.prepared import Change, PreparedScript, Query
from viewkeep.execute.errors import RunError
from viewkeep.execute.report import StatementReport
from viewkeep.query.algebra import Leaf, Node, Stored
from viewkeep.query.types.inference import Schema

T = TypeVar("T")


class StatementRunner:
    """One run of a script, statement by statement; `sizes`: whether reports tell what is read."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        prepared: PreparedScript,
        counts_accesses: bool,
        sizes: bool = True,
        open_: Callable[[Iterable[Leaf]], None] = lambda leaves: None,
    ) -> None:
        """`open_` makes relations that a query reads known to DuckDB."""
        self._connection = connection
        self._prepared = prepared
        self._names = prepared.names
        self._counts_accesses, self._has_sizes, self._open = counts_accesses, sizes, open_
        self._rows: dict[str, int] = {}
        self._empty: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._temporary: set[str] = set()

    def count_inputs(self) -> None:
        """Count the rows of the diffs that no statement computes."""
        inputs = self._prepared.inputs
        if inputs:
            with duckdb_errors(f"reading {', '.join(inputs)}"):
                text = statements.counts(map(self._names.stored, inputs))
                counts = dict(self._connection.execute(text).fetchall())
            for number, name in enumerate(inputs):
                self._note_row_count(name, counts[number])

    def compute(self, statement: Compute) -> StatementReport:
        """`name := query`, into a temporary table; none where empty diffs leave no rows."""
        query = self._prepared.query(statement, self._empty)
        rows, seconds = 0, 0.0
        reads: int | None = 0
        if query is not None:
            self._open(query.leaves)
            self._create_empty_diffs(query.diffs)
            rows, seconds = self._timed_statement(
                statement.name, lambda: self._fill_diff(statement, query)
            )
            reads = self._rows_read(query) if self._has_sizes else None
        elif self._counts_accesses:
            self._create_empty_table(statement.name, statement.query.schema)
        accesses = self._query_accesses(statement.query) if self._counts_accesses else None
        self._note_row_count(statement.name, rows)
        return StatementReport(statement.name, "compute", rows, seconds, reads, accesses)

    def apply(self, change: Change) -> StatementReport:
        """Change a cache or the view by a diff, if it has rows."""
        statement, rows, seconds = change.statement, 0, 0.0
        reads = self._rows[statement.diff]
        if reads:
            rows, seconds = self._timed_statement(str(statement), lambda: self._run_change(change))
        accesses = self._apply_accesses(statement, rows) if self._counts_accesses else None
        return StatementReport(
            str(statement), statement.schema.kind, rows, seconds, reads, accesses
        )

    def row_count(self, diff: str) -> int:
        """The number of rows of a base diff, or of a computed one."""
        return self._rows[diff]

    def drop(self) -> None:
        """Remove the temporary tables; an error before has removed them with everything else."""
        for name in self._temporary:
            self._connection.execute(f"DROP TABLE {self._names.stored(name)}")

    def _timed_statement(self, name: str, action: Callable[[], T]) -> tuple[T, float]:
        start = perf_counter()
        with duckdb_errors(name):
            result = action()
        return result, perf_counter() - start

    def _fill_diff(self, statement: Compute, query: Query) -> int:
        relation = self._names.stored(statement.name)
        rows = self._number_of_statement(f"CREATE TEMP TABLE {relation} AS {query.text}")
        self._temporary.add(statement.name)
        return rows

    def _create_empty_diffs(self, diffs: Iterable[Stored]) -> None:
        """Create empty diffs that are read: an aggregate without keys has a row even then."""
        for diff in diffs:
            if not (self._names.is_input(diff.name) or diff.name in self._temporary):
                self._create_empty_table(diff.name, diff.schema)

    def _create_empty_table(self, name: str, schema: Schema) -> None:
        relation = self._names.stored(name)
        self._connection.execute(statements.create_relation(relation, schema, "TEMP TABLE"))
        self._temporary.add(name)

    def _note_row_count(self, name: str, rows: int) -> None:
        self._rows[name] = rows
        if not rows:
            self._empty.add(name)

    def _rows_read(self, query: Query) -> int:
        """The rows of all that it reads; kept relations do not change before all is computed."""
        for relation in query.materialized:
            if relation not in self._sizes:
                self._sizes[relation] = self._number_of_statement(
                    f"SELECT count(*) FROM {relation}"
                )
        return sum(self._rows[diff.name] for diff in query.diffs) + sum(
            self._sizes[relation] for relation in query.materialized
        )

    def _run_change(self, change: Change) -> int:
        several = self._rows[change.statement.diff] > 1
        if several and change.conflicts and self._number_of_statement(change.conflicts):
            raise RunError(f"{change.statement}: two rows of the diff set the same row differently")
        rows = 0
        for text in change.changes:
            rows = self._number_of_statement(text)
        return rows

    def _query_accesses(self, query: Node) -> int:
        """The accesses of what empty diffs leave of a query."""
        pruned = prune(query, self._empty.__contains__)
        if pruned is None:
            return 0

        def size(node: Node) -> int:
            rows = statements.query(node, self._names.resolve)
            return self._number_of_statement(f"SELECT count(*) FROM ({rows})")

        return count_query_accesses(pruned, self._names.is_kept, size)

    def _apply_accesses(self, statement: Apply, rows: int) -> int:
        """A look-up per diff tuple and an access per row changed; an insert looks nothing up."""
        if statement.schema.kind == INSERT or not self._rows[statement.diff]:
            return rows
        ids = ", ".join(map(quote_name, statement.schema.ids)) or "1"
        diff = self._names.stored(statement.diff)
        return rows + self._number_of_statement(
            f"SELECT count(*) FROM (SELECT DISTINCT {ids} FROM {diff})"
        )

    def _number_of_statement(self, text: str) -> int:
        """The one number that a statement answers: a count, or the rows that it changed."""
        row = self._connection.execute(text).fetchone()
        return int(row[0]) if row else 0
