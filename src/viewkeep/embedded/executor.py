"""Runs delta scripts in DuckDB: computations into temporary tables, then all changes at once.

    create   the caches and the view, from their definitions over the tables as they are now
    run      one refresh: every Compute in order, then every Apply, in one transaction
    read     the view as its definition asked for it

`sources` says where relations are: a base table by (name, "pre") and (name, "post"), everything
else (base diffs, caches, the view) by its name. Its values are DuckDB's text for a relation, with
names quoted. What is not given is looked for under its own name, but for tables before the
changes: there is no name that they would have of their own.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import duckdb

from viewkeep.diffs.accesses import count_accesses as count_query_accesses
from viewkeep.diffs.model import DELETE, INSERT
from viewkeep.diffs.script import Apply, Compute, Materialized, Script, Statement
from viewkeep.diffs.sql_text import Leaf
from viewkeep.embedded import statements
from viewkeep.embedded.statements import quote
from viewkeep.errors import ViewkeepError
from viewkeep.query.algebra import Node, Scan

Sources = Mapping[tuple[str, str] | str, str]
T = TypeVar("T")

_TEMPORARY = "viewkeep "
"""What the names of temporary tables start with, so that they hide no table of the user's."""


class RunError(ViewkeepError):
    """A statement of a script that failed; nothing was changed."""


@dataclass(frozen=True)
class StatementReport:
    """What one statement did.

    `rows` are those a query produced, or those of the target that were changed. `accesses` are
    index look-ups and tuple accesses (id_based_ivm, appendix A), where they were counted.
    """

    name: str
    kind: str
    rows: int
    seconds: float
    accesses: int | None = None


@dataclass(frozen=True)
class RunReport:
    """What a refresh did, statement by statement."""

    statements: tuple[StatementReport, ...]
    seconds: float

    @property
    def accesses(self) -> int | None:
        """The accesses of all statements, where they were counted."""
        counts = [each.accesses for each in self.statements]
        return None if None in counts else sum(count or 0 for count in counts)


def create(connection: duckdb.DuckDBPyConnection, script: Script, sources: Sources) -> None:
    """Create the caches and the view, filled, in one transaction."""
    names = _Names(script, sources)
    with _transaction(connection):
        for kept in script.materialized:
            relation = names.stored(kept.name)
            with _named(f"CREATE {kept.name}"):
                connection.execute(statements.create_table(relation, kept.definition.schema))
                rows = statements.query(kept.definition, names.resolve)
                connection.execute(f"INSERT INTO {relation} {rows}")


def run(
    connection: duckdb.DuckDBPyConnection,
    script: Script,
    sources: Sources,
    count_accesses: bool = False,
) -> RunReport:
    """Refresh the caches and the view; an error leaves everything as it was."""
    start = perf_counter()
    refresh = _Refresh(connection, script, _Names(script, sources), count_accesses)
    with _transaction(connection):
        computed = [refresh.compute(statement) for statement in script.computes()]
        applied = [refresh.apply(statement) for statement in script.applies()]
        refresh.drop()
    return RunReport((*computed, *applied), perf_counter() - start)


def read(
    connection: duckdb.DuckDBPyConnection, script: Script, sources: Sources | None = None
) -> duckdb.DuckDBPyRelation:
    """The view with the columns that its definition asked for, under the user's names."""
    columns = ", ".join(f"{quote(stored)} AS {quote(name)}" for name, stored in script.visible)
    view = _Names(script, sources or {}).stored(script.view.name)
    return connection.sql(f"SELECT {columns} FROM {view}")


class _Names:
    """Where the relations of a script are."""

    def __init__(self, script: Script, sources: Sources) -> None:
        self._sources = sources
        self._computed = {statement.name for statement in script.computes()}
        self._kept = {kept.name for kept in script.materialized}

    def resolve(self, leaf: Leaf) -> str:
        """The relation of a leaf."""
        if isinstance(leaf, Scan):
            return self._table(leaf)
        return self.stored(leaf.name)

    def stored(self, name: str) -> str:
        """The relation of a diff, a cache or the view."""
        if name in self._computed:
            return f"temp.{quote(_TEMPORARY + name)}"
        return self._sources.get(name, quote(name))

    def is_kept(self, leaf: Leaf) -> bool:
        """Whether reading it costs accesses: tables, caches and the view do, diffs do not."""
        return isinstance(leaf, Scan) or leaf.name in self._kept

    def _table(self, scan: Scan) -> str:
        relation = self._sources.get((scan.name, scan.state))
        if relation is None and scan.state != "post":
            raise RunError(
                f'no relation for table "{scan.name}" as it was before the changes; '
                f"give sources[({scan.name!r}, {scan.state!r})]"
            )
        return relation or quote(scan.name)


class _Refresh:
    """One run of a script."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        script: Script,
        names: _Names,
        counted: bool,
    ) -> None:
        self._connection = connection
        self._names = names
        self._kept = {kept.name: kept for kept in script.materialized}
        self._counted = counted
        self._temporary: list[str] = []

    def compute(self, statement: Compute) -> StatementReport:
        """`name := query`, into a temporary table."""
        rows, seconds = self._timed(statement, lambda: self._fill(statement))
        accesses = self._query_accesses(statement.query) if self._counted else None
        return StatementReport(statement.name, "compute", rows, seconds, accesses)

    def apply(self, statement: Apply) -> StatementReport:
        """Change a cache or the view by a diff."""
        kept = self._kept.get(statement.target)
        if kept is None:
            raise RunError(f'{statement}: there is no cache or view "{statement.target}"')
        rows, seconds = self._timed(statement, lambda: self._change(statement, kept))
        accesses = self._apply_accesses(statement, rows) if self._counted else None
        return StatementReport(str(statement), statement.schema.kind, rows, seconds, accesses)

    def drop(self) -> None:
        """Remove the temporary tables; an error before has removed them with everything else."""
        for relation in self._temporary:
            self._connection.execute(f"DROP TABLE {relation}")

    def _timed(self, statement: Statement, action: Callable[[], T]) -> tuple[T, float]:
        start = perf_counter()
        with _named(statement.name if isinstance(statement, Compute) else str(statement)):
            result = action()
        return result, perf_counter() - start

    def _fill(self, statement: Compute) -> int:
        relation = self._names.stored(statement.name)
        rows = statements.query(statement.query, self._names.resolve)
        self._connection.execute(
            statements.create_table(relation, statement.query.schema, "TEMP TABLE")
        )
        self._temporary.append(relation)
        return self._number(f"INSERT INTO {relation} {rows}")

    def _change(self, statement: Apply, kept: Materialized) -> int:
        diff, target = self._names.stored(statement.diff), self._names.stored(kept.name)
        self._check_effective(statement, diff, kept)
        rows = 0
        for text in statements.changes(diff, target, statement.schema, kept):
            rows = self._number(text)
        return rows

    def _check_effective(self, statement: Apply, diff: str, kept: Materialized) -> None:
        """Which of two different values a row gets would depend on the order of the diff's rows."""
        schema = statement.schema
        ids = kept.ids if schema.kind == INSERT else schema.ids
        if schema.kind == DELETE or not (ids or schema.changed or schema.after):
            return
        if self._connection.execute(statements.conflicts(diff, schema, ids)).fetchone():
            raise RunError(f"{statement}: two rows of the diff set the same row differently")

    def _query_accesses(self, query: Node) -> int:
        def size(node: Node) -> int:
            rows = statements.query(node, self._names.resolve)
            return self._number(f"SELECT count(*) FROM ({rows})")

        return count_query_accesses(query, self._names.is_kept, size)

    def _apply_accesses(self, statement: Apply, rows: int) -> int:
        """A look-up per diff tuple and an access per row changed; an insert looks nothing up."""
        if statement.schema.kind == INSERT:
            return rows
        ids = ", ".join(map(quote, statement.schema.ids)) or "1"
        diff = self._names.stored(statement.diff)
        return rows + self._number(f"SELECT count(*) FROM (SELECT DISTINCT {ids} FROM {diff})")

    def _number(self, text: str) -> int:
        """The one number that a statement answers: a count, or the rows that it changed."""
        row = self._connection.execute(text).fetchone()
        return int(row[0]) if row else 0


@contextmanager
def _transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    if _in_transaction(connection):  # DuckDB has no nested ones, and an error would end this one
        raise RunError("the connection is inside a transaction; commit it first")
    connection.begin()
    try:
        yield
        with _named("COMMIT"):
            connection.commit()
    except BaseException:
        with suppress(duckdb.TransactionException):  # a commit that failed has rolled back
            connection.rollback()
        raise


def _in_transaction(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether two statements share a transaction, as they only do inside an explicit one."""
    first, second = (connection.execute("SELECT txid_current()").fetchone() for _ in range(2))
    return first == second


@contextmanager
def _named(statement: str) -> Iterator[None]:
    """Errors of DuckDB with the statement's name."""
    try:
        yield
    except duckdb.Error as error:
        raise RunError(f"{statement}: {error}") from error
