"""Delta tables through deltalake: snapshots to read, and commits that happen or do not.

A commit names the version it starts from and succeeds only as the next one: whoever comes second
gets a `ConflictError` and looks again. Files are written before the commit that names them, so a
process that dies leaves files that no version knows, and nothing else.

    snapshot   the files of one version, with what the log tells about them
    commit     files added and removed, with Viewkeep's notes in the commit's metadata
    log        the commits between two versions, newest first
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.fs as pafs  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from viewkeep.errors import SchemaError
from viewkeep.query.types.data_types import Field
from viewkeep.tables import durable
from viewkeep.tables.arrow_rows import arrow_schema, declared_fields, has_bounds
from viewkeep.tables.durable import local_path
from viewkeep.tables.entries import (
    Commit,
    check_recent,
    entry_fingerprint,
    entry_path,
    files_fingerprint,
    find_damage,
    read_commit,
)
from viewkeep.tables.failures import ConflictError as ConflictError
from viewkeep.tables.failures import DamagedLogError as DamagedLogError
from viewkeep.tables.failures import MissingEntryError as MissingEntryError
from viewkeep.tables.failures import StorageError as StorageError
from viewkeep.tables.failures import UnsupportedTableError as UnsupportedTableError
from viewkeep.tables.failures import error_text
from viewkeep.tables.failures import storage_errors as storage_errors
from viewkeep.tables.memory import RECENT, log_memory
from viewkeep.tables.protocol import unreadable
from viewkeep.tables.snapshots import DataFile as DataFile
from viewkeep.tables.snapshots import Snapshot as Snapshot
from viewkeep.tables.snapshots import files_of

NOTES = "viewkeep"
"""The key of Viewkeep's notes in the metadata of a commit."""
CHANGES = "changes"
"""The note of a commit that names its file of changes; None where rows stay as they are."""

CONFIGURATION = {
    # The last commit of a view says what it reflects: it must not expire.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
}
STATISTICS = "delta.dataSkippingStatsColumns"
"""The property that lists the columns with bounds: readers expect them of all others as well."""

Notes = Mapping[str, Any]
Action = AddAction | RemoveAction


class LakeTable:
    """A Delta table in its folder; every call reads the log, but inside of `remembered_logs`."""

    def __init__(
        self, uri: str, options: Mapping[str, str] | None = None, is_durable: bool = True
    ) -> None:
        self.uri = uri.rstrip("/")
        self.options = dict(options or {}) or None
        self._local, self._is_durable = local_path(self.uri), is_durable

    def exists(self) -> bool:
        """Whether there is a Delta table."""
        with storage_errors(self.uri):
            return DeltaTable.is_deltatable(self.uri, self.options)

    def is_writable(self) -> bool:
        """Whether deltalake can commit: it needs the newest entry, not only a checkpoint of it."""
        return self._entry(self.version()) is not None

    def version(self) -> int:
        """The newest version."""
        newest: int = self._once("version", None, self._newest)
        return newest

    def _newest(self) -> int:
        """The version that was read last, if its entry is the same and has no successor."""
        last = RECENT.last_version(self.uri)
        if self._local is not None and last is not None:
            text = self._entry(last)
            is_same = text is not None and RECENT.get(self.uri, last, entry_fingerprint(text))
            if is_same and not os.path.exists(entry_path(self._local, last + 1)):
                return last
        return self._open(None).version()

    def identity(self, version: int) -> str:
        """What tells a table from one that was made anew in the same place."""
        text = self._entry(version) if self._local is not None else None
        snapshot = RECENT.get(self.uri, version, entry_fingerprint(text)) if text else None
        if snapshot is not None:
            return snapshot.identity
        table = self._open(version)
        with storage_errors(self.uri):
            return str(table.metadata().id)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version, or the newest one; refused where it cannot be read correctly."""
        at = self.version() if version is None else version
        snapshot: Snapshot = self._once("snapshot", at, lambda: self._recent_snapshot(at))
        return snapshot

    def _recent_snapshot(self, version: int) -> Snapshot:
        text = self._entry(version) if self._local is not None and version >= 0 else None
        if text is None:
            return self._snapshot(version)
        fingerprint = entry_fingerprint(text)
        snapshot = RECENT.get(self.uri, version, fingerprint)
        if snapshot is None:
            snapshot = self._snapshot(version)
            RECENT.add(snapshot, fingerprint)
        return snapshot

    def _snapshot(self, version: int | None) -> Snapshot:
        table = self._open(version)
        with storage_errors(self.uri):
            problem = unreadable(table)
            if problem:
                raise UnsupportedTableError(f"{self.uri}: {problem}")
            schema = pa.schema(table.schema())
            fields = declared_fields(schema)
            unknown = [each for each in schema if each.name not in {f.name for f in fields}]
            if unknown:
                raise UnsupportedTableError(
                    f'{self.uri}: column "{unknown[0].name}" has the type {unknown[0].type}, '
                    "which cannot be read here; drop it, or give it another type"
                )
            about = table.metadata()
            partitions, identity = tuple(about.partition_columns), str(about.id)
            files = files_of(table)
            return Snapshot(self.uri, table.version(), fields, files, partitions, identity)

    def create(
        self, fields: Iterable[Field], files: Iterable[DataFile], notes: Notes, description: str
    ) -> None:
        """Make the table; a `ConflictError` if there is one."""
        fields, files = tuple(fields), tuple(files)
        self._prepare(files, notes)
        with storage_errors(self.uri):
            try:
                create_table_with_add_actions(
                    self.uri,
                    _delta_schema(fields),
                    [_add(each) for each in files],
                    mode="error",
                    description=description,
                    configuration={**CONFIGURATION, STATISTICS: ",".join(_with_bounds(fields))},
                    storage_options=self.options,
                    commit_properties=_properties(notes),
                )
            except DeltaError as error:
                if "already exists" in str(error) or self.exists():
                    raise ConflictError(f"{self.uri}: there is a table already") from error
                raise StorageError(f"{self.uri}: {error_text(error)}") from error
        self._settle(0)

    def commit(
        self,
        start: int,
        add: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
        notes: Notes | None = None,
    ) -> int:
        """Make the next version after `start`, or raise a `ConflictError`."""
        table = self._open(start)
        self._prepare(add, notes or {})
        actions: list[Action] = [*(_remove(each) for each in remove), *(_add(each) for each in add)]
        return self._write(table, actions, "append", table.schema(), notes)

    def replace(
        self, start: int, fields: Iterable[Field], files: Iterable[DataFile], notes: Notes
    ) -> int:
        """Make the next version after `start` of these files only, with these columns."""
        fields, files = tuple(fields), tuple(files)
        self._prepare(files, notes)
        new = _with_bounds(fields)
        old = self._open(start).metadata().configuration.get(STATISTICS, "").split(",")
        # At no moment may a column be listed that a file has no bounds for.
        both = [each for each in new if each in old]
        start = self._list_bounds(start, old, both)
        actions: list[Action] = [_add(each) for each in files]
        table = self._open(start)
        schema = _delta_schema(fields)
        if _is_reordered(schema, table.schema()):
            schema = _delta_schema(fields, {"viewkeep.after": str(start)})
        made = self._write(table, actions, "overwrite", schema, notes)
        with suppress(StorageError):  # it has happened; without bounds it is only slower
            self._list_bounds(made, both, new)
        return made

    def _list_bounds(self, start: int, old: Sequence[str], new: Sequence[str]) -> int:
        """Change which columns have bounds in the log, after `start`; the version of that."""
        if set(old) == set(new):
            return start
        with storage_errors(self.uri):
            self._open(start).alter.set_table_properties(
                {STATISTICS: ",".join(new)}, commit_properties=_properties({})
            )
        self._settle(start + 1)
        return start + 1

    def become(self, files: Sequence[DataFile], notes: Notes) -> int:
        """Make a next version of exactly these files, whatever the newest version holds."""
        newest = self.snapshot()
        paths = {each.path for each in files}
        leftover = [each for each in newest.files if each.path not in paths]
        return self.commit(
            newest.version, [f for f in files if f.path not in newest.by_path], leftover, notes
        )

    def log(self, after: int, until: int | None = None) -> list[Commit]:
        """The commits after a version up to another one, newest first."""
        newest = self.version() if until is None else until
        return [self._read_commit(version) for version in range(newest, after, -1)]

    def _read_commit(self, version: int) -> Commit:
        """The entry of one version, from its file: `DeltaTable.history` numbers entries wrongly
        when others commit at the same time."""
        text = self._entry(version)
        if text is None:
            raise MissingEntryError(f"{self.uri}: the log entry of version {version} is missing")
        return read_commit(entry_path(self.uri, version), version, text, NOTES)

    def _entry(self, version: int) -> bytes | None:
        """The text of an entry; None if it is not there."""
        text: bytes | None = self._once("entry", version, lambda: self._read_entry(version))
        return text

    def _read_entry(self, version: int) -> bytes | None:
        files, base = file_system(self)
        path = entry_path(base, version)
        with storage_errors(path):
            try:
                with files.open_input_stream(path) as source:
                    return bytes(source.read())
            except FileNotFoundError:
                return None

    def fingerprint(self, version: int) -> str:
        """What tells a version from one with the same number in another history of the table,
        as a backup that was put back begins one."""
        text = self._entry(version)
        if text is not None:
            return entry_fingerprint(text)
        snapshot = self.snapshot(version)
        return files_fingerprint(snapshot.identity, ((f.path, f.size) for f in snapshot.files))

    def has_fingerprint(self, version: int, expected: str) -> bool | None:
        """Whether a version is the one that was seen; None if nothing is left that tells."""
        if expected.startswith("files:"):
            snapshot = self.snapshot(version)
            files = ((f.path, f.size) for f in snapshot.files)
            return files_fingerprint(snapshot.identity, files) == expected
        text = self._entry(version)
        return None if text is None else entry_fingerprint(text) == expected

    def _prepare(self, add: Iterable[DataFile], notes: Notes) -> None:
        """Files that a commit will name are there, and on the disk."""
        if self._local is None:
            return
        paths = [each.location(self._local) for each in add]
        paths += [f"{self._local}/{notes[CHANGES]}"] if notes.get(CHANGES) else []
        if not self._is_durable:
            durable.check_there(paths)
        elif paths:
            durable.sync_data(self._local, paths)

    def _settle(self, version: int) -> None:
        """A commit that has happened is on the disk."""
        self._forget()
        if self._local is None or not self._is_durable:
            return
        durable.sync_commit(self._local, version)
        if version == 0:
            durable.sync_new(self._local)

    def _write(
        self,
        table: DeltaTable,
        actions: list[Action],
        mode: str,
        schema: Schema,
        notes: Notes | None,
    ) -> int:
        start = table.version()
        with storage_errors(self.uri):
            try:
                table.create_write_transaction(
                    actions, mode, schema, commit_properties=_properties(notes or {})
                )
            except CommitFailedError as error:
                self._forget()
                if self.version() == start:  # nobody came first: a full disk, a missing right
                    raise StorageError(f"{self.uri}: {error}") from error
                raise
        self._settle(start + 1)
        return start + 1

    def _once(self, what: str, version: int | None, read: Callable[[], Any]) -> Any:
        """What was read of the log, read once where logs are remembered."""
        memory, key = log_memory(), (what, self.uri, version)
        if memory is None:
            return read()
        if key not in memory:
            memory[key] = read()
        return memory[key]

    def _forget(self) -> None:
        """After a commit the log is another one."""
        memory = log_memory()
        if memory is not None:
            memory.forget(self.uri)

    def _open(self, version: int | None) -> DeltaTable:
        table: DeltaTable = self._once("table", version, lambda: self._open_anew(version))
        memory = log_memory()
        if version is None and memory is not None:
            memory["table", self.uri, table.version()] = table
        return table

    def _open_anew(self, version: int | None) -> DeltaTable:
        try:
            return self._opened(version)
        except StorageError as error:
            newest = self._opened(None).version()
            if version is None or 0 <= version <= newest:
                raise
            raise StorageError(
                f"{self.uri}: there is no version {version}, the newest is {newest}"
            ) from error

    def _opened(self, version: int | None) -> DeltaTable:
        try:
            with storage_errors(self.uri):
                table = DeltaTable(self.uri, version=version, storage_options=self.options)
        except StorageError:
            if self._local is not None:
                find_damage(self._local)
            raise
        if self._local is not None:
            check_recent(self._local, table.version())
        return table


def _properties(notes: Notes) -> CommitProperties:
    # Without retries: a retry would commit after whatever came between.
    return CommitProperties(custom_metadata={NOTES: notes} if notes else None, max_commit_retries=0)


def _with_bounds(fields: Iterable[Field]) -> list[str]:
    return ["`" + each.name.replace("`", "``") + "`" for each in fields if has_bounds(each.type)]


def _is_reordered(new: Schema, old: Schema) -> bool:
    """deltalake does not take another order of the same columns for another schema."""
    names = [[each.name for each in schema.fields] for schema in (new, old)]
    return names[0] != names[1] and sorted(names[0]) == sorted(names[1])


def _delta_schema(fields: Iterable[Field], mark: Mapping[str, str] | None = None) -> Schema:
    fields = tuple(fields)
    for each in fields:
        bad = sorted(set(each.name) & set(" ,;{}()\n\t="))
        if bad:
            raise SchemaError(
                f'column "{each.name}": Delta tables allow no {" ".join(map(repr, bad))} in names; '
                "give it another name, in a view with AS"
            )
    schema = arrow_schema(fields)
    if mark is not None:
        schema = pa.schema([each.with_metadata(mark) for each in schema])
    return Schema.from_arrow(schema)


def file_system(table: LakeTable) -> tuple[pafs.FileSystem, str]:
    """How Arrow reaches the files of a table, and the table's folder there."""
    if "://" not in table.uri or table.uri.startswith("file://"):
        return pafs.LocalFileSystem(), table.uri.removeprefix("file://")
    handler = DeltaStorageHandler(table.uri, table.options)
    return pafs.PyFileSystem(handler), ""


def _add(each: DataFile) -> AddAction:
    return AddAction(each.path, each.size, {}, each.modified, True, each.stats())


def _remove(each: DataFile) -> RemoveAction:
    return RemoveAction(each.path, True, int(time.time() * 1000), each.size, {})
