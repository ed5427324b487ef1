"""What changed in a table between two of its versions.

Three ways, the first that applies: the changes that Viewkeep wrote down with its own commits, the
change data feed that other writers kept, and the difference of the two versions by key, of which
only the files that they do not share are read.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable

from viewkeep.changes import ChangeError
from viewkeep.errors import SchemaError, ViewkeepError
from viewkeep.query.tables import COPY, HIDDEN, Table
from viewkeep.query.types.data_types import STRING, Field
from viewkeep.query.types.widening import is_widening
from viewkeep.tables.arrow_rows import arrow_schema, has_bounds
from viewkeep.tables.change_data import read_change_data
from viewkeep.tables.copies import net_copies, numbered_changes
from viewkeep.tables.files.key_index import KeyIndex, Places
from viewkeep.tables.files.key_match import may_hold
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.scans import SIDE, Scans
from viewkeep.tables.files.stored_columns import conform
from viewkeep.tables.log.delta import CHANGES as CHANGES
from viewkeep.tables.log.delta import (
    DataFile,
    LakeTable,
    MissingEntryError,
    Snapshot,
    StorageError,
    storage_errors,
)
from viewkeep.tables.log.entries import Commit
from viewkeep.tables.log.memory import log_memory
from viewkeep.tables.net_changes import changes_between, checked_keys, compose_changes, net_feed
from viewkeep.tables.relations import StoredRows
from viewkeep.tables.row_differences import Mask
from viewkeep.tables.table_changes import TableChanges, rows_schema

COUNT = "changed_rows"
LOST = "lost_columns"
"""The note of a commit after which columns are gone, or have wider types: these, by name."""
MOST_CHANGES = 2_000_000
"""More changes than these are never brought in one by one."""
MOST_REMEMBERED = 100_000
"""More changes than these are read anew for every view: they would fill the memory."""
INLINE_BYTES = 2048
"""Changes of fewer bytes stand in the log entry itself: a file for them would take longer than
all else that a small commit does."""
INLINE, FED = "arrow", "feed"
FOLDER = "_changes"
"""Folders with this mark are no data to Delta, and its own vacuum leaves them alone."""
KIND = "#kind"
HARMLESS = frozenset(
    {
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
        "SET TBLPROPERTIES",
        "CREATE TABLE",
        "ADD CONSTRAINT",
    }
)
"""Operations that change no rows."""


class TooManyChangesError(ViewkeepError):
    """So many changes that views are better computed anew."""


class UnclearChangesError(ViewkeepError):
    """The changes since a version cannot be determined: views have to be computed anew."""


@dataclass(frozen=True)
class Feed:
    """A table whose changes are read.

    Copies of rows without a key have the numbers that they have in the table or, where nobody
    compares them with it, not `exact_copies`, any that tell the changed ones apart.
    """

    scans: Scans
    name: str
    declared: Table
    table: LakeTable
    exact_copies: bool = True

    def count(self, since: int, until: int) -> int | None:
        """How many changes were written down, without reading them; None if that is not known."""
        commits = self._commits_between(since, until)
        if commits is None or not all(map(_has_change_file, commits)):
            return self._count_appended(since, until) if self.declared.numbers_copies else None
        return sum(int((each.notes or {}).get(COUNT, 0)) for each in commits)

    def changes(self, since: int, until: int, most: int = MOST_CHANGES) -> TableChanges:
        """The net changes from one version to a later one; an error if they are more than `most`,
        which would be too many for the driver. All views of a round read them once."""
        if since == until:
            return TableChanges.none(self.name, self.declared)
        if since > until:
            raise StorageError(
                f'table "{self.name}" is at version {until}, but was seen at {since}: '
                "it was made anew; repair the views that read it"
            )
        memory = log_memory()
        if memory is None:
            return self._net_feed_changes(since, until, most)
        about = (self.declared.names, self.declared.numbers_copies and self.exact_copies)
        key = "changes", self.table.uri, (since, until, *about)
        if key in memory and (memory[key].name, memory[key].table) == (self.name, self.declared):
            remembered_changes: TableChanges = memory[key]
            return remembered_changes
        changes = self._net_feed_changes(since, until, most)
        if changes.size <= MOST_REMEMBERED:
            memory[key] = changes
        return changes

    def _net_feed_changes(self, since: int, until: int, most: int) -> TableChanges:
        if self.declared.numbers_copies:
            return self._copy_changes(since, until, most)
        commits = self._commits_between(since, until)
        if commits is not None and all(map(_has_change_file, commits)):
            with suppress(StorageError):  # a vacuum of another engine takes files of feeds
                changes = self._read_change_files(commits[::-1])
                return changes.effective() if self._leaves_columns_out(until) else changes
        if not any(map(_is_computed_anew, commits or ())) and self.table.has_change_feed(
            since, until
        ):
            # Parts of it are gone, or a key stood twice for a while: the versions may still do.
            with suppress(StorageError, ChangeError):
                return self._changes_of_change_feed(since, until, most)
        return self._difference(since, until, most)

    def _leaves_columns_out(self, version: int) -> bool:
        """Whether a version has columns that are not declared: an update of these is none."""
        names = set(self.declared.names)
        fields = self.table.fields(version)
        return any(f.name not in names and not f.name.startswith(HIDDEN) for f in fields)

    def _commits_between(self, since: int, until: int) -> list[Commit] | None:
        try:
            return self.table.log(since, until)
        except MissingEntryError:  # it was cleaned up; the versions may still be there
            return None

    # --- written down by Viewkeep ---------------------------------------------------------------

    def _read_change_files(self, commits: Sequence[Commit]) -> TableChanges:
        for commit in commits:
            lost = (commit.notes or {}).get(LOST, {})
            for each in self.declared.columns:
                if lost.get(each.name, str(each.type)) != str(each.type):
                    raise UnclearChangesError(
                        f'table "{self.name}": version {commit.version} altered "{each.name}"'
                    )
        places = [(each.notes or {}).get(CHANGES) for each in commits]
        changes = [self.read(place) for place in places if place]
        return compose_changes(self.name, self.declared, changes)

    def write(self, changes: TableChanges) -> dict[str, Any]:
        """Write changes down; the notes that tell of them in the commit."""
        if changes.is_empty:
            return {CHANGES: None, COUNT: 0}
        steps = _steps_table(changes)
        if steps.nbytes <= INLINE_BYTES:
            return {CHANGES: {INLINE: _inline_text(steps)}, COUNT: changes.size}
        file = ParquetFolder(self.table).write(steps, f"{FOLDER}/changes")
        return {CHANGES: file.path, COUNT: changes.size}

    def read(self, place: str | Mapping[str, str]) -> TableChanges:
        """Changes that were written down, in a file or in the commit itself."""
        if not isinstance(place, str) and FED in place:
            return read_change_data(self.table, self.name, self.declared, place[FED])
        if isinstance(place, str):
            steps = ParquetFolder(self.table).read_path(place, self._feed_fields)
        else:
            steps = _inline_steps(place[INLINE], arrow_schema(self._feed_fields))
        kind, columns = steps[KIND], steps.drop_columns([KIND])
        width = len(self.declared.columns)

        def rows(state: slice, *kinds: str) -> pa.Table:
            chosen = columns.select(columns.column_names[state])
            chosen = chosen.filter(pc.is_in(kind, pa.array(kinds)))
            return pa.Table.from_arrays(chosen.columns, schema=rows_schema(self.declared))

        old, new = slice(width), slice(width, None)
        return TableChanges(
            self.name,
            self.declared,
            inserts=rows(new, "insert"),
            deletes=rows(old, "delete"),
            before=rows(old, "update"),
            after=rows(new, "update"),
        )

    @property
    def _feed_fields(self) -> Sequence[Field]:
        return [
            Field(KIND, STRING),
            *(Field(f"{f.name}#pre", f.type) for f in self.declared.columns),
            *(Field(f"{f.name}#post", f.type) for f in self.declared.columns),
        ]

    # --- the change data feed -------------------------------------------------------------------

    def _changes_of_change_feed(self, since: int, until: int, most: int) -> TableChanges:
        """The feed, netted: the first row before and the last row after, for each key."""
        feed = self._read_feed(since, until, most)
        rows, is_old = self._feed_rows(feed)
        commits = feed["_commit_version"].cast(pa.int64()).to_numpy()
        return net_feed(self.name, self.declared, rows, is_old, commits)

    def _feed_rows(self, feed: pa.Table) -> tuple[pa.Table, Mask]:
        """The rows of a feed, and a mask of the old ones among them."""
        fields = [each for each in self.declared.columns if each.name != COPY]
        rows = feed.select([each.name for each in fields]).cast(arrow_schema(fields))
        kinds = feed["_change_type"].cast(pa.string())
        is_old: Mask = pc.is_in(kinds, pa.array(["delete", "update_preimage"])).to_numpy()
        return rows, is_old

    def _read_feed(self, since: int, until: int, most: int) -> pa.Table:
        with storage_errors(self.table.uri):
            table = DeltaTable(self.table.uri, storage_options=self.table.options)
            feed = table.load_cdf(starting_version=since + 1, ending_version=until)
            reader = pa.RecordBatchReader.from_stream(feed)
            batches: list[pa.RecordBatch] = []
            for batch in reader:
                batches.append(batch)
                self._check_change_count(sum(each.num_rows for each in batches), most)
            return pa.Table.from_batches(batches, reader.schema)

    def _check_change_count(self, rows: int, most: int) -> None:
        """An update has two rows, the old and the new one."""
        if rows > 2 * most:
            raise TooManyChangesError(f"more than {most:,} changes of {self.name}")

    # --- the difference of two versions ---------------------------------------------------------

    def _difference(self, since: int, until: int, most: int) -> TableChanges:
        unpaired = self.unpaired(since, until, most)
        rows = unpaired.select(list(self.declared.names)).cast(rows_schema(self.declared))
        news = rows.filter(pc.equal(unpaired[SIDE], "new"))
        olds = rows.filter(pc.equal(unpaired[SIDE], "old"))
        checked_keys(self.name, self.declared, news)
        try:
            checked_keys(self.name, self.declared, olds)
        except ChangeError as error:
            raise UnclearChangesError(f"version {since}, which was seen: {error}") from error
        return changes_between(self.name, self.declared, olds, news)

    def unpaired(self, since: int, until: int, most: int = MOST_CHANGES) -> pa.Table:
        """The rows of either version that the other one lacks."""
        old, new = self.table.snapshot(since), self.table.snapshot(until)
        check_declared_columns(self.name, self.declared, new)
        self._check_same_columns(old, new)
        old, new = self._with_declared_columns(old), self._with_declared_columns(new)
        old_files = [each for each in old.files if each.identity not in new.identities]
        new_files = [each for each in new.files if each.identity not in old.identities]
        is_long = (
            any(e.rows < 0 for e in (*old_files, *new_files))
            or _rows_in_files(old_files) + _rows_in_files(new_files) > 2 * most
        )
        unpaired = self.scans.unpaired(
            self._rows_of_files(old, old_files),
            self._rows_of_files(new, new_files),
            2 * most + 1 if is_long else None,
        )
        self._check_change_count(unpaired.num_rows, most)
        return unpaired

    def _check_same_columns(self, old: Snapshot, new: Snapshot) -> None:
        """Refuse versions between which a column was dropped, and made anew under its name: files
        that both have tell other values of it."""
        for field in self.declared.columns:
            if field.name != COPY and _stored_field(old, field) != _stored_field(new, field):
                raise UnclearChangesError(
                    f'table "{self.name}": the column "{field.name}" of version {new.version} is '
                    f"another one than that of version {old.version}"
                )

    def _with_declared_columns(self, snapshot: Snapshot) -> Snapshot:
        """A version as it is read with the columns of today: those that it does not have yet are
        NULL, and values of narrower types are widened."""
        there = {each.name: each for each in snapshot.fields}
        fields = [each for each in self.declared.columns if each.name != COPY]
        if all(each.name in there and there[each.name].type == each.type for each in fields):
            return snapshot
        for each in fields:
            old = there.get(each.name, each)
            if old.type != each.type and not is_widening(old.type, each.type):
                raise UnclearChangesError(
                    f'table "{self.name}": column "{each.name}" of version {snapshot.version} is '
                    f"{old.type}"
                )
        return replace(snapshot, fields=tuple(replace(e, nullable=True) for e in fields))

    def _rows_of_files(self, snapshot: Snapshot, files: Sequence[DataFile]) -> StoredRows:
        names = {name: name for name in self.declared.stored_names}
        return StoredRows(self.table, snapshot, files, names)

    # --- rows without a key ---------------------------------------------------------------------

    def _count_appended(self, since: int, until: int) -> int | None:
        """The rows of new files, if no file is gone."""
        old, new = self.table.snapshot(since), self.table.snapshot(until)
        counts = [each.rows for each in new.files if each.identity not in old.identities]
        is_known = all(count >= 0 for count in counts)
        return sum(counts) if is_known and old.identities <= new.identities else None

    def _copy_changes(self, since: int, until: int, most: int) -> TableChanges:
        """The copies that came or went; of tables that only grow, old files are not read unless
        copies are compared with those in the table."""
        unpaired = self._unpaired_feed(since, until, most)
        if unpaired is None:
            unpaired = self.unpaired(since, until, most)
        counts = None
        if self.exact_copies:
            counts = self._copies_before(since, unpaired.select(list(self.declared.stored_names)))
        return numbered_changes(self.name, self.declared, unpaired, counts)

    def _unpaired_feed(self, since: int, until: int, most: int) -> pa.Table | None:
        """The change data feed after equal old and new rows cancel; None if there is no feed."""
        if self.table.has_change_feed(since, until):
            with suppress(StorageError):  # parts of it are gone
                return net_copies(*self._feed_rows(self._read_feed(since, until, most)))
        return None

    def _copies_before(self, since: int, rows: pa.Table) -> Places:
        """How often each row stands in a version."""
        snapshot, index = self.table.snapshot(since), KeyIndex(rows)
        values = rows.filter(pa.array(index.own_places == np.arange(rows.num_rows)))
        fields = {each.name: each for each in self.declared.columns}
        bounded = values.select([n for n in values.column_names if has_bounds(fields[n].type)])
        files = [e for e in snapshot.files if not bounded.num_columns or may_hold(e, bounded)]
        counts = np.zeros(rows.num_rows, np.int64)
        if files and values.num_rows:
            counted = self.scans.count_copies(self._rows_of_files(snapshot, files), values)
            counts[index.places(counted)] = counted[COPY].to_numpy()
        return counts[index.own_places]


def change_file(commit: Commit) -> str | None:
    """The file that holds the changes of a commit, where Viewkeep has written one for them."""
    place = (commit.notes or {}).get(CHANGES)
    return place if isinstance(place, str) else None


def fed_notes(fed: DataFile | None, count: int) -> dict[str, Any]:
    """The notes of a commit whose changes a file of the change data feed tells."""
    return {CHANGES: None if fed is None else {FED: fed.path}, COUNT: count}


def _rows_in_files(files: Iterable[DataFile]) -> int:
    return sum(each.rows for each in files)


def _stored_field(snapshot: Snapshot, field: Field) -> tuple[Field, int | None]:
    """A column as the files of a version have it, and its number there."""
    if snapshot.mapping is None:
        return field, None
    return snapshot.mapping.stored_field(field), snapshot.mapping.stored(field.name).number


def check_declared_columns(name: str, declared: Table, snapshot: Snapshot) -> None:
    """Refuse a version whose columns are not those that were declared."""
    there = {each.name: each.type for each in snapshot.fields}
    for column in declared.columns:
        if column.name == COPY:
            continue
        if column.name not in there:
            raise SchemaError(
                f'table "{name}", version {snapshot.version}: column "{column.name}" is gone; '
                "bring it back, or register the table as it is, with replace=True"
            )
        if there[column.name] != column.type:
            raise SchemaError(
                f'table "{name}", version {snapshot.version}: column "{column.name}" is '
                f"{there[column.name]} now, and was {column.type}; register the table as it is, "
                "with replace=True"
            )


def _has_change_file(commit: Commit) -> bool:
    if commit.notes is not None and CHANGES in commit.notes:
        return True
    return commit.operation in HARMLESS


def _is_computed_anew(commit: Commit) -> bool:
    """Whether Viewkeep has replaced all rows, so that a feed would tell them all."""
    return commit.notes is not None and CHANGES not in commit.notes


def _steps_table(changes: TableChanges) -> pa.Table:
    """Rows before (`x#pre`) and after (`x#post`) side by side, with the kind of change."""
    counts = {
        "delete": changes.deletes.num_rows,
        "update": changes.after.num_rows,
        "insert": changes.inserts.num_rows,
    }
    kinds = pa.chunked_array([pa.repeat(kind, count) for kind, count in counts.items()])
    old = [changes.deletes, changes.before, _rows_of_nulls(changes.table, counts["insert"])]
    new = [_rows_of_nulls(changes.table, counts["delete"]), changes.after, changes.inserts]
    before, after = pa.concat_tables(old), pa.concat_tables(new)
    names = [f"{name}#{state}" for state in ("pre", "post") for name in changes.table.names]
    return pa.Table.from_arrays([kinds, *before.columns, *after.columns], [KIND, *names])


def _inline_text(steps: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, steps.schema) as writer:
        writer.write_table(steps.combine_chunks())
    return b64encode(sink.getvalue()).decode("ascii")


def _inline_steps(text: str, schema: pa.Schema) -> pa.Table:
    """Steps as they were written down; columns that the table has got since are NULL."""
    with pa.ipc.open_stream(b64decode(text)) as reader:
        steps = reader.read_all()
    return conform(steps, schema, DataFile("", 0, 0))


def _rows_of_nulls(table: Table, count: int) -> pa.Table:
    schema = rows_schema(table)
    return pa.Table.from_arrays([pa.nulls(count, each.type) for each in schema], schema=schema)
