"""What happened to a table or view, version by version, for whoever follows it.

Rows are told with the columns that SQL sees. Equal rows count: a reader that takes `before` out of
a bag and puts `after` into it, from an empty bag on, holds the rows of each version in turn.
"""

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.changes import ChangeError
from viewkeep.errors import QueryError, SchemaError
from viewkeep.lake.catalog import TableDefinition, ViewDefinition
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import Transactions
from viewkeep.lake.views.stored_view import STATE
from viewkeep.query.tables import HIDDEN, Table
from viewkeep.query.types.widening import is_widening
from viewkeep.tables.feed import (
    CHANGES,
    HARMLESS,
    LOST,
    Feed,
    TooManyChangesError,
    UnclearChangesError,
)
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.scans import SIDE
from viewkeep.tables.log.delta import LakeTable, MissingEntryError, Snapshot, StorageError
from viewkeep.tables.log.entries import Commit
from viewkeep.tables.log.memory import remembered_logs
from viewkeep.tables.row_differences import differing_rows
from viewkeep.tables.table_changes import TableChanges, rows_schema

OPERATION, VERSION, BEFORE, AFTER = "operation", "version", "before", "after"
BEGINNING = -1
"""The version before the first one: an empty table."""


def changes_since(lake: Lake, name: str, since: int | None, until: int | None) -> pa.Table:
    """The changes of a table or view in all versions after one up to another, oldest first.

    Every row has its `operation` (insert, update or delete), its `version`, and the row `before`
    and `after` it, NULL where there is none.
    """
    with lake.marked(), remembered_logs():
        return _changes_of_entry(lake, lake.catalog.read().readable(name), since, until)


def _changes_of_entry(
    lake: Lake, entry: TableDefinition | ViewDefinition, since: int | None, until: int | None
) -> pa.Table:
    table = lake.at(entry.location)
    newest = newest_version(lake, entry)
    last = newest if until is None else until
    first = BEGINNING if since is None else since
    for version in (first, last):
        if not BEGINNING <= version <= newest:
            raise QueryError(
                f'"{entry.name}" has no version {version}; the newest is {newest}, '
                f"and {BEGINNING} stands for the empty table before the first one"
            )
    history = _ChangeHistory(lake, entry, table)
    parts = [history.version_changes(version) for version in range(last, first, -1)]
    return pa.concat_tables([history.schema.empty_table(), *reversed(parts)])


def newest_version(lake: Lake, entry: TableDefinition | ViewDefinition) -> int:
    """The newest version of a table or view; one of a transaction that is not done yet is none."""
    if isinstance(entry, TableDefinition):
        return Transactions(lake).visible_version(entry)
    return lake.at(entry.location).version()


class _ChangeHistory:
    """The versions of one table or view, read newest first, so that an error names the first
    version that a reader can start from."""

    def __init__(
        self, lake: Lake, entry: TableDefinition | ViewDefinition, table: LakeTable
    ) -> None:
        self._entry, self._table = entry, table
        visible = {field.name: replace(field, nullable=True) for field in entry.table.visible}
        self._visible = Table(visible)
        self._keyed = Feed(lake.scans, entry.name, entry.table, table)
        self._bags = Feed(lake.scans, entry.name, self._visible, table)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the changes."""
        row = pa.struct(list(rows_schema(self._visible)))
        kinds = {OPERATION: pa.string(), VERSION: pa.int64(), BEFORE: row, AFTER: row}
        return pa.schema(list(kinds.items()))

    def version_changes(self, version: int) -> pa.Table:
        """The changes of one version."""
        try:
            return self._change_rows(self._changes_of_version(version), version)
        except TooManyChangesError as error:
            problem = f"{error} in version {version}, too many to be told one by one"
        except (StorageError, SchemaError) as error:
            cause = str(error).partition(";")[0]  # its advice is for those who refresh
            problem = f"what version {version} changed cannot be told: {cause}"
        name, rows_advice = self._entry.name, ""
        if self._commit_of_version(version) is not None:
            rows_advice = f'read("{name}", version={version}) gives its rows, and '
        raise StorageError(
            f'"{name}": {problem}; {rows_advice}changes("{name}", since={version}) gives what came '
            "after it"
        )

    def _changes_of_version(self, version: int) -> TableChanges:
        if version == 0:
            return replace(self._no_changes, inserts=self._all_rows(self._table.snapshot(0)))
        commit = self._commit_of_version(version)
        lost = {} if commit is None else (commit.notes or {}).get(LOST, {})
        gone = [each for each, kind in lost.items() if not kind]
        if gone:
            raise SchemaError(f"columns are gone since then: {', '.join(gone)}")
        is_noted = commit is not None and commit.notes is not None and CHANGES in commit.notes
        if commit is not None and not is_noted and commit.operation in HARMLESS:
            return self._no_changes
        has_columns = is_noted or self._has_same_columns(version)
        if self._entry.table.key and has_columns and self._has_this_definition(commit):
            with suppress(ChangeError, UnclearChangesError):  # a key stands twice
                return self._keyed.changes(version - 1, version)
        return self._bag_changes(version)

    def _commit_of_version(self, version: int) -> Commit | None:
        """The log entry; None where only a checkpoint is left."""
        try:
            [commit] = self._table.log(version - 1, version)
        except MissingEntryError:
            return None
        return commit

    def _has_this_definition(self, commit: Commit | None) -> bool:
        """Whether a commit noted the changes of a view under its present definition."""
        if isinstance(self._entry, TableDefinition) or commit is None:
            return True
        state = (commit.notes or {}).get(STATE)
        return state is None or state["build"] == self._entry.build

    def _has_same_columns(self, version: int) -> bool:
        """Whether a version and the one before it both have all columns of today, and the key."""
        declared_columns = {(field.name, field.type) for field in self._entry.table.columns}
        both = (self._table.snapshot(each) for each in (version - 1, version))
        return all(declared_columns <= {(f.name, f.type) for f in each.fields} for each in both)

    def _bag_changes(self, version: int) -> TableChanges:
        """The rows that one of two versions lacks; which of them were updated is not known."""
        for each in (version - 1, version):
            self._check_old_columns(self._table.snapshot(each))
        unpaired = self._bags.unpaired(version - 1, version)
        rows = unpaired.select(list(self._visible.names)).cast(rows_schema(self._visible))
        old, new = (rows.filter(pc.equal(unpaired[SIDE], side)) for side in ("old", "new"))
        return replace(self._no_changes, deletes=old, inserts=new)

    def _check_old_columns(self, snapshot: Snapshot) -> None:
        """Refuse a version whose rows have no place among those of today."""
        now = {field.name: field.type for field in self._visible.columns}
        is_view = not isinstance(self._entry, TableDefinition)  # columns come by another query
        if is_view and not now.keys() <= {field.name for field in snapshot.fields}:
            raise SchemaError(f"version {snapshot.version} has other columns")
        for field in snapshot.fields:
            kind = field.type if field.name.startswith(HIDDEN) else now.get(field.name)
            if kind is None or (kind != field.type and not is_widening(field.type, kind)):
                raise SchemaError(f"version {snapshot.version} has other columns")

    def _all_rows(self, snapshot: Snapshot) -> pa.Table:
        self._check_old_columns(snapshot)
        return ParquetFolder(self._table).read(snapshot.files, self._visible.columns)

    @property
    def _no_changes(self) -> TableChanges:
        return TableChanges.none(self._entry.name, self._visible)

    # --- as one table ---------------------------------------------------------------------------

    def _change_rows(self, changes: TableChanges, version: int) -> pa.Table:
        names, schema = list(self._visible.names), rows_schema(self._visible)
        old, before, after, new = (
            rows.select(names).cast(schema)
            for rows in (changes.deletes, changes.before, changes.after, changes.inserts)
        )
        differs = pa.array(differing_rows(before, after, names))
        before, after = before.filter(differs), after.filter(differs)
        parts = [
            self._operation_rows("delete", version, _row_structs(old), _null_structs(old)),
            self._operation_rows("update", version, _row_structs(before), _row_structs(after)),
            self._operation_rows("insert", version, _null_structs(new), _row_structs(new)),
        ]
        return pa.concat_tables(parts)

    def _operation_rows(
        self, operation: str, version: int, before: pa.Array, after: pa.Array
    ) -> pa.Table:
        count = len(after)
        versions = pa.repeat(pa.scalar(version, pa.int64()), count)
        columns = [pa.repeat(operation, count), versions, before, after]
        return pa.Table.from_arrays(columns, schema=self.schema)


def _row_structs(rows: pa.Table) -> pa.ChunkedArray:
    return rows.to_struct_array()


def _null_structs(rows: pa.Table) -> pa.Array:
    return pa.nulls(rows.num_rows, pa.struct(list(rows.schema)))
