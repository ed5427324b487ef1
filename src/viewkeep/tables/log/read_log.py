"""The log of a Delta table as it is read: versions, the files of one, entries and what tells one
history from another.

Every call reads the log, but inside of `remembered_logs`; what this process has read or written
last is remembered by the entries themselves.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.fs as pafs  # type: ignore[import-untyped]
from deltalake import DeltaTable

from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import declared_fields
from viewkeep.tables.failures import (
    MissingEntryError,
    StorageError,
    UnsupportedTableError,
    storage_errors,
)
from viewkeep.tables.log.column_mapping import column_mapping
from viewkeep.tables.log.deltalake_commits import (
    FEED,
    properties_of,
)
from viewkeep.tables.log.durable import local_path
from viewkeep.tables.log.entries import (
    LOG,
    Commit,
    check_recent,
    entry_fingerprint,
    entry_path,
    files_fingerprint,
    find_damage,
    read_commit,
    read_entry,
    recent_entries,
)
from viewkeep.tables.log.memory import RECENT, log_memory
from viewkeep.tables.log.protocol import (
    has_plain_feed,
    may_have_vectors,
    refused_feature,
    unreadable,
)
from viewkeep.tables.log.replay import (
    Vectors,
    entry_versions,
    first_checkpoint,
    last_checkpoint,
    replay_vectors,
)
from viewkeep.tables.log.snapshots import Snapshot, files_of
from viewkeep.tables.log.store_files import StoreFiles
from viewkeep.tables.log.write_entry import (
    is_plain_version,
)
from viewkeep.tables.secrets import note_credentials

TYPE_CHANGES = "delta.typeChanges"
"""What the log tells of a column whose type was widened."""
NOTES = "viewkeep"
"""The key of Viewkeep's notes in the metadata of a commit."""


class TableLog:
    """The log of a Delta table in its folder."""

    def __init__(
        self, uri: str, options: Mapping[str, str] | None = None, is_durable: bool = True
    ) -> None:
        self.uri = uri.rstrip("/")
        self.options = dict(options or {}) or None
        self._local, self._is_durable = local_path(self.uri), is_durable
        self.folder = self._local
        note_credentials(self.options)

    def exists(self) -> bool:
        """Whether there is a Delta table."""
        if self._local is not None:
            last = RECENT.last_version(self.uri)
            versions = (0,) if last is None else (0, last)
            if any(os.path.exists(entry_path(self._local, each)) for each in versions):
                return True
            if not os.path.exists(f"{self._local}/{LOG}"):
                return False
        with storage_errors(self.uri):
            return DeltaTable.is_deltatable(self.uri, self.options)

    def is_writable(self) -> bool:
        """Whether deltalake can commit: it needs the newest entry, not only a checkpoint of it."""
        return self._entry_text(self.version()) is not None

    def version(self) -> int:
        """The newest version."""
        newest: int = self._read_once("version", None, self._newest_version)
        return newest

    def _newest_version(self) -> int:
        """The version that was read last, if its entry is the same and has no successor, and those
        before it are as they were seen."""
        last = RECENT.last_version(self.uri)
        if self._local is not None and last is not None:
            text = self._entry_text(last)
            is_same = text is not None and RECENT.get(self.uri, last, entry_fingerprint(text))
            is_last = is_same and not os.path.exists(entry_path(self._local, last + 1))
            if is_last and RECENT.has_seen(self.uri, recent_entries(self._local, last)):
                return last
        return self._open_delta_table(None).version()

    def identity(self, version: int) -> str:
        """What tells a table from one that was made anew in the same place."""
        text = self._entry_text(version) if self._local is not None else None
        snapshot = RECENT.get(self.uri, version, entry_fingerprint(text)) if text else None
        if snapshot is not None:
            return snapshot.identity
        table = self._open_delta_table(version)
        with storage_errors(self.uri):
            return str(table.metadata().id)

    def fields(self, version: int) -> tuple[Field, ...]:
        """The columns of a version; its files are not looked at."""
        text = self._entry_text(version) if self._local is not None else None
        snapshot = RECENT.get(self.uri, version, entry_fingerprint(text)) if text else None
        if snapshot is not None:
            return snapshot.fields
        table = self._open_delta_table(version)
        with storage_errors(self.uri):
            return declared_fields(pa.schema(table.schema()))

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version, or the newest one; refused where it cannot be read correctly."""
        at = self.version() if version is None else version
        snapshot: Snapshot = self._read_once("snapshot", at, lambda: self._recent_snapshot(at))
        return snapshot

    def _recent_snapshot(self, version: int) -> Snapshot:
        text = self._entry_text(version) if self._local is not None and version >= 0 else None
        if text is None:
            return self._read_snapshot(version)
        fingerprint = entry_fingerprint(text)
        snapshot = RECENT.get(self.uri, version, fingerprint)
        if snapshot is None:
            snapshot = self._read_snapshot(version)
            RECENT.add(snapshot, fingerprint)
        return snapshot

    def _read_snapshot(self, version: int | None) -> Snapshot:
        table = self._open_delta_table(version)
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
            metadata = table.metadata()
            partitions, identity = tuple(metadata.partition_columns), str(metadata.id)
            has_vectors, mapping = may_have_vectors(table), column_mapping(table)
            vectors = self._vectors_of_version(table.version()) if has_vectors else {}
            files = files_of(table, vectors, mapping)
            plain = is_plain_version(table, properties_of(fields))
            at = table.version()
            is_widened = f'"{TYPE_CHANGES}"' in table.schema().to_json()
            has_feed = metadata.configuration.get(FEED) == "true"
            form = (plain, has_feed, has_vectors, mapping, is_widened)
            return Snapshot(self.uri, at, fields, files, partitions, identity, *form)

    def _vectors_of_version(self, version: int) -> Vectors:
        """The deletion vectors of a version."""
        return replay_vectors(*file_system(self), version, self._entry_text)

    def has_change_feed(self, since: int, until: int) -> bool:
        """Whether two versions have a change data feed that deltalake reads right."""
        with storage_errors(self.uri):
            old, new = (
                DeltaTable(self.uri, version=version, storage_options=self.options)
                for version in (since, until)
            )
            has_same_columns = old.schema() == new.schema()
            return has_same_columns and has_plain_feed(old) and has_plain_feed(new)

    def log(self, after: int, until: int | None = None) -> list[Commit]:
        """The commits after a version up to another one, newest first."""
        newest = self.version() if until is None else until
        return [self._commit(version) for version in range(newest, after, -1)]

    def _commit(self, version: int) -> Commit:
        commit: Commit = self._read_once("commit", version, lambda: self._read_commit(version))
        return commit

    def _read_commit(self, version: int) -> Commit:
        """The entry of one version, from its file: `DeltaTable.history` numbers entries wrongly
        when others commit at the same time."""
        text = self._entry_text(version)
        if text is None:
            raise MissingEntryError(f"{self.uri}: the log entry of version {version} is missing")
        return read_commit(entry_path(self.uri, version), version, text, NOTES)

    def next_entry(self, missing: int, newest: int) -> int:
        """The first entry of a log whose beginning was cleaned up, `missing` among it."""
        files, base = file_system(self)
        entries = entry_versions(files, base)
        first = newest
        while first - 1 in entries:
            first -= 1
        if first <= missing:
            raise MissingEntryError(f"{self.uri}: the log entry of version {missing} is missing")
        return first

    def _entry_text(self, version: int) -> bytes | None:
        """The text of an entry; None if it is not there."""
        text: bytes | None = self._read_once("entry", version, lambda: self._read_entry(version))
        return text

    def _read_entry(self, version: int) -> bytes | None:
        if self._local is not None:
            return read_entry(self._local, version)
        files, base = file_system(self)
        path = entry_path(base, version)
        with storage_errors(path):
            try:
                with files.open_input_stream(path) as source:
                    return bytes(source.read())
            except FileNotFoundError:
                return None

    def has_text(self, version: int, text: str) -> bool:
        """Whether the entry of a version has a text somewhere."""
        return text.encode() in (self._entry_text(version) or b"")

    def fingerprint(self, version: int) -> str:
        """What tells a version from one with the same number in another history of the table,
        as a backup that was put back begins one."""
        text = self._entry_text(version)
        if text is not None:
            return entry_fingerprint(text)
        snapshot = self.snapshot(version)
        return files_fingerprint(snapshot.identity, ((f.identity, f.size) for f in snapshot.files))

    def has_fingerprint(self, version: int, expected: str) -> bool | None:
        """Whether a version is the one that was seen; None if nothing is left that tells."""
        if expected.startswith("files:"):
            snapshot = self.snapshot(version)
            files = ((f.identity, f.size) for f in snapshot.files)
            return files_fingerprint(snapshot.identity, files) == expected
        text = self._entry_text(version)
        return None if text is None else entry_fingerprint(text) == expected

    def _plain_snapshot(self, version: int) -> Snapshot | None:
        """A version whose entry is there now, if it asks nothing of writers."""
        text = self._read_entry(version) if self._local is not None else None
        if text is None:
            return None
        snapshot = RECENT.get(self.uri, version, entry_fingerprint(text))
        with suppress(StorageError):
            snapshot = snapshot or self._recent_snapshot(version)
        return snapshot if snapshot is not None and snapshot.is_plain else None

    def _read_once(self, what: str, version: int | None, read: Callable[[], Any]) -> Any:
        """Read a part of the log, once within a block of `remembered_logs`."""
        memory, key = log_memory(), (what, self.uri, version)
        if memory is None:
            return read()
        if key not in memory:
            memory[key] = read()
        return memory[key]

    def _forget(self) -> None:
        """Forget what was read of the log, since a commit has changed it."""
        memory = log_memory()
        if memory is not None:
            memory.forget(self.uri)

    def _remember(self, snapshot: Snapshot, text: bytes) -> None:
        """A version that this process has just made need not be read."""
        RECENT.add(snapshot, entry_fingerprint(text))
        memory, version = log_memory(), snapshot.version
        if self._local is not None:
            RECENT.see(self.uri, recent_entries(self._local, version, 1))
        if memory is not None:
            memory["version", self.uri, None] = version
            memory["entry", self.uri, version] = text
            memory["snapshot", self.uri, version] = snapshot

    def _open_delta_table(self, version: int | None) -> DeltaTable:
        table: DeltaTable = self._read_once("table", version, lambda: self._open_anew(version))
        memory = log_memory()
        if version is None and memory is not None:
            memory["table", self.uri, table.version()] = table
        return table

    def _open_anew(self, version: int | None) -> DeltaTable:
        try:
            return self._delta_table_at(version)
        except StorageError as error:
            newest = self._delta_table_at(None).version()
            if version is not None and 0 <= version <= newest:
                self._refuse_cleaned(version, newest, error)
            if version is None or 0 <= version <= newest:
                raise
            raise StorageError(
                f"{self.uri}: there is no version {version}, the newest is {newest}"
            ) from error

    def _refuse_cleaned(self, version: int, newest: int, error: StorageError) -> None:
        """Tell that a version is gone with the beginning of the log, if that is so."""
        files, base = file_system(self)
        if self._entry_text(0) is None and last_checkpoint(files, base, version)[0] < 0:
            first = first_checkpoint(files, base)
            raise MissingEntryError(
                f"{self.uri}: version {version} is gone, its log was cleaned up; the oldest that "
                f"can be read is {first}, the newest {newest}"
            ) from error

    def _delta_table_at(self, version: int | None) -> DeltaTable:
        try:
            with storage_errors(self.uri):
                table = DeltaTable(self.uri, version=version, storage_options=self.options)
        except StorageError as error:
            refusal = refused_feature(str(error))
            if refusal:
                raise UnsupportedTableError(f"{self.uri}: {refusal}") from error
            if self._local is not None:
                find_damage(self._local)
            raise
        if self._local is not None:
            check_recent(self._local, table.version())
            RECENT.see_log(self.uri, recent_entries(self._local, table.version()))
        return table


_LOCAL = pafs.LocalFileSystem()


def file_system(table: TableLog) -> tuple[pafs.FileSystem, str]:
    """How Arrow reaches the files of a table, and the table's folder there."""
    if table.folder is not None:
        return _LOCAL, table.folder
    return pafs.PyFileSystem(StoreFiles(table.uri, table.options)), ""
