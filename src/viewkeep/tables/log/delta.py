"""Delta tables through deltalake: snapshots to read, and commits that happen or do not.

A commit names the version it starts from and succeeds only as the next one: whoever comes second
gets a `ConflictError` and looks again. Files are written before the commit that names them, so a
process that dies leaves files that no version knows, and nothing else.

    snapshot   the files of one version, with what the log tells about them
    commit     files added and removed, with Viewkeep's notes in the commit's metadata
    log        the commits between two versions, newest first
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError

from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import declared_fields
from viewkeep.tables.failures import ConflictError as ConflictError
from viewkeep.tables.failures import DamagedLogError as DamagedLogError
from viewkeep.tables.failures import MissingEntryError as MissingEntryError
from viewkeep.tables.failures import StorageError as StorageError
from viewkeep.tables.failures import UnsupportedTableError as UnsupportedTableError
from viewkeep.tables.failures import error_text
from viewkeep.tables.failures import storage_errors as storage_errors
from viewkeep.tables.log import durable
from viewkeep.tables.log.column_mapping import column_mapping
from viewkeep.tables.log.deltalake_commits import (
    FEED,
    STATISTICS,
    commit_by_deltalake,
    create_by_deltalake,
    delta_schema,
    is_reordered,
    properties_of,
    with_bounds,
)
from viewkeep.tables.log.entries import LOG, entry_path
from viewkeep.tables.log.read_log import NOTES as NOTES
from viewkeep.tables.log.read_log import TableLog
from viewkeep.tables.log.read_log import file_system as file_system
from viewkeep.tables.log.snapshots import DataFile as DataFile
from viewkeep.tables.log.snapshots import Snapshot as Snapshot
from viewkeep.tables.log.write_entry import (
    Action,
    TableForm,
    files_changed,
    has_plain_paths,
    is_checkpoint,
    put_entry,
    table_altered,
    table_made,
    table_replaced,
)

CHANGES = "changes"
"""The note of a commit that names its file of changes, or holds few of them itself; None where rows
stay as they are."""

COMMIT = "viewkeepCommit"
"""The key of a commit's own name in its metadata, where deltalake writes the entry."""

Notes = Mapping[str, Any]
WrittenVersion = tuple[Snapshot, bytes]
"""A version that this process has written, and the text of its log entry."""


class LakeTable(TableLog):
    """A Delta table in its folder, with the commits that change it."""

    def create(
        self,
        fields: Iterable[Field],
        files: Iterable[DataFile],
        notes: Notes,
        description: str,
        feed: bool = False,
        has_vectors: bool = False,
    ) -> None:
        """Make the table, with a change data feed or without, and with files that may have deletion
        vectors or not; a `ConflictError` if there is one."""
        fields, files = tuple(fields), tuple(files)
        new_version = self._create_plain(fields, files, notes, description, feed, has_vectors)
        if new_version is None:
            self._refuse_vectors(has_vectors)
            self._sync(self._named_files(files, notes))
            commit = uuid4().hex
            properties = _commit_properties(notes, commit)
            try:
                with storage_errors(self.uri):
                    create_by_deltalake(
                        self.uri, self.options, fields, files, properties, description, feed
                    )
            except StorageError:
                if not self._has_commit(0, commit):
                    raise
        self._settle_commit(0, new_version)

    def _create_plain(
        self,
        fields: Sequence[Field],
        files: Sequence[DataFile],
        notes: Notes,
        description: str,
        feed: bool,
        has_vectors: bool,
    ) -> WrittenVersion | None:
        """Write the first entry; None if that is left to deltalake."""
        if self._local is None or not has_plain_paths(files):
            return None
        if self.exists():
            raise ConflictError(f"{self.uri}: there is a table already")
        schema, properties = delta_schema(fields), properties_of(fields, feed)
        with storage_errors(self.uri):
            os.makedirs(f"{self._local}/{LOG}", exist_ok=True)
            there = declared_fields(pa.schema(schema))
        form = TableForm(schema.to_json(), description, properties, has_vectors)
        file_paths = self._named_files(files, notes)
        try:
            text = self._put_entry(0, table_made(form, files, notes), file_paths)
        except FileExistsError as error:
            raise ConflictError(f"{self.uri}: there is a table already") from error
        snapshot = Snapshot(self.uri, 0, there, tuple(files), (), form.identity)
        snapshot = replace(snapshot, is_plain=True, has_feed=feed, has_vectors=has_vectors)
        return None if text is None else (snapshot, text)

    def _refuse_vectors(self, has_vectors: bool) -> None:
        """deltalake writes no deletion vectors."""
        if has_vectors:
            raise StorageError(
                f"{self.uri}: deletion vectors are written on local disks that have hard links, to "
                'tables that nobody has given other properties; use the layout "copy-on-write"'
            )

    def commit(
        self,
        start: int,
        add: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
        notes: Notes | None = None,
        fed: Sequence[DataFile] = (),
    ) -> int:
        """Make the next version after `start`, or raise a `ConflictError`; `fed` are files that
        tell its changed rows (`feeds`)."""
        return self._write(start, add, remove, notes or {}, fed=fed)

    def feeds(self, snapshot: Snapshot) -> bool:
        """Whether the next commit can have a change data feed: deltalake cannot write one."""
        return self._local is not None and snapshot.has_feed and snapshot.is_plain

    def replace(
        self,
        start: int,
        fields: Iterable[Field],
        files: Iterable[DataFile],
        notes: Notes,
        feed: bool = False,
        has_vectors: bool = False,
    ) -> int:
        """Make the next version after `start` of these files only, with these columns, with a
        change data feed or without; with `has_vectors`, files may have deletion vectors then."""
        fields, files = tuple(fields), tuple(files)
        durable.check_there(self._named_files(files, notes))
        if self._has_feed(start) != feed:
            start = self._set_property(start, FEED, str(feed).lower())
        old_version = self._plain_snapshot(start)
        if old_version is not None:
            has_form = old_version.has_vectors or not has_vectors
            if old_version.fields == fields and has_form:
                return self._write(start, files, old_version.files, notes)
            if old_version.has_vectors or has_vectors:
                return self._replace_form(old_version, fields, files, notes)
        self._refuse_vectors(has_vectors)
        new = with_bounds(fields)
        old = self._open_delta_table(start).metadata().configuration.get(STATISTICS, "").split(",")
        # At no moment may a column be listed that a file has no bounds for.
        both = [each for each in new if each in old]
        start = self._list_bounds(start, old, both)
        schema = delta_schema(fields)
        if is_reordered(schema, self._open_delta_table(start).schema()):
            schema = delta_schema(fields, {"viewkeep.after": str(start)})
        version = self._write(start, files, (), notes, schema)
        with suppress(StorageError):  # it has happened; without bounds it is only slower
            self._list_bounds(version, both, new)
        return version

    def _replace_form(
        self, old: Snapshot, fields: Sequence[Field], files: Sequence[DataFile], notes: Notes
    ) -> int:
        """Make the next version of these files only, with these columns and deletion vectors."""
        form = self._form_with_columns(old, fields, has_vectors=True)
        actions = table_replaced(form, files, old.files, notes)
        version = self._put_form(old, form, actions, files, notes)
        self._refuse_vectors(version is None)
        return old.version + 1

    def _form_with_columns(
        self, old: Snapshot, fields: Sequence[Field], has_vectors: bool
    ) -> TableForm:
        table = self._open_delta_table(old.version)
        metadata = table.metadata()
        properties = properties_of(fields, old.has_feed)
        return TableForm(
            *(delta_schema(fields).to_json(), metadata.description, properties),
            has_vectors=has_vectors,
            identity=old.identity,
            created=metadata.created_time or 0,
            features=frozenset(table.protocol().writer_features or ()),
        )

    def _put_form(
        self,
        old: Snapshot,
        form: TableForm,
        actions: Sequence[Action],
        files: Sequence[DataFile],
        notes: Notes,
    ) -> int | None:
        """Write the entry of a version with another form, of these files; None where the file
        system has no links."""
        text = self._put(old.version + 1, actions, self._named_files(files, notes))
        if text is None:
            return None
        there = declared_fields(pa.schema(Schema.from_json(form.schema)))
        new = replace(old, version=old.version + 1, fields=there, files=tuple(files))
        self._settle_commit(new.version, (replace(new, has_vectors=form.has_vectors), text))
        return new.version

    def alter(
        self, start: int, fields: Sequence[Field], files: Sequence[DataFile] | None, notes: Notes
    ) -> int:
        """Make the next version after `start` with other columns, of files that have the same rows;
        without files, of those that are there, and with columns that they do not have yet."""
        old = self._plain_snapshot(start)
        if old is not None:
            new_names = {each.name for each in fields} - {each.name for each in old.fields}
            kept = [each.with_null_columns(new_names) for each in old.files]
            form = self._form_with_columns(old, fields, old.has_vectors)
            add, remove = (kept, ()) if files is None else (files, old.files)
            version = self._put_form(old, form, table_altered(form, add, remove, notes), add, notes)
            if version is not None:
                return version
        if files is not None:
            return self.replace(start, fields, files, notes, self._has_feed(start))
        return self._add_columns(start, fields, notes)

    def _add_columns(self, start: int, fields: Sequence[Field], notes: Notes) -> int:
        """Make the next version after `start` through deltalake, with columns that are NULL."""
        table = self._open_delta_table(start)
        with storage_errors(self.uri):
            names = {each.name for each in table.schema().fields}
            new = [each for each in delta_schema(fields).fields if each.name not in names]
            table.alter.add_columns(new, commit_properties=_commit_properties(notes, uuid4().hex))
        self._settle_commit(start + 1)
        return start + 1

    def _put(
        self, version: int, actions: Sequence[Action], file_paths: Sequence[str]
    ) -> bytes | None:
        """Write an entry that names files; None where the file system has no links."""
        try:
            text = self._put_entry(version, actions, file_paths)
        except FileExistsError as error:
            self._forget()
            raise ConflictError(f"{self.uri}: another process committed first") from error
        assert self._local is not None
        if text is not None and not os.path.exists(entry_path(self._local, version - 1)):
            # The name was free since its entry was cleaned up: the log is far ahead.
            os.unlink(entry_path(self._local, version))
            self._forget()
            raise ConflictError(f"{self.uri}: other processes committed first")
        return text

    def _list_bounds(self, start: int, old: Sequence[str], new: Sequence[str]) -> int:
        """Change which columns have bounds in the log, after `start`; the version of that."""
        return (
            start if set(old) == set(new) else self._set_property(start, STATISTICS, ",".join(new))
        )

    def _has_feed(self, version: int) -> bool:
        plain = self._plain_snapshot(version)
        if plain is not None:
            return plain.has_feed
        return self._open_delta_table(version).metadata().configuration.get(FEED) == "true"

    def _set_property(self, start: int, name: str, value: str) -> int:
        with storage_errors(self.uri):
            self._open_delta_table(start).alter.set_table_properties(
                {name: value}, commit_properties=_commit_properties({}, uuid4().hex)
            )
        self._settle_commit(start + 1)
        return start + 1

    def become(self, files: Sequence[DataFile], notes: Notes, start: int | None = None) -> int:
        """Make the next version after `start` of exactly these files, whatever it holds; without a
        start, after the newest."""
        newest = self.snapshot(start)
        identities = {each.identity for each in files}
        leftover = [each for each in newest.files if each.identity not in identities]
        new = [each for each in files if each.identity not in newest.identities]
        return self.commit(newest.version, new, leftover, notes)

    def _put_entry(
        self, version: int, actions: Sequence[Action], file_paths: Sequence[str]
    ) -> bytes | None:
        assert self._local is not None
        return put_entry(self._local, version, actions, lambda draft: self._sync(file_paths, draft))

    def _named_files(self, add: Iterable[DataFile], notes: Notes) -> list[str]:
        """The local files that a commit will name: of data, of deletion vectors, of changes."""
        if self._local is None:
            return []
        paths = [each.location(self._local) for each in add]
        vectors = [f.vector.location(self._local) for f in add if f.vector is not None]
        paths += [each for each in vectors if each is not None]
        changes = notes.get(CHANGES)
        return [*paths, f"{self._local}/{changes}"] if isinstance(changes, str) else paths

    def _sync(self, file_paths: Sequence[str], draft: str | None = None) -> None:
        """Check that the files which a commit will name exist, and flush them and the entry's draft
        to disk."""
        if self._local is None or not self._is_durable:
            durable.check_there(file_paths)
        else:
            durable.sync_data(self._local, file_paths, draft)

    def _settle_commit(self, version: int, new_version: WrittenVersion | None = None) -> None:
        """Flush a commit to disk, and remember its version if this process wrote the entry."""
        self._forget()
        if self._local is not None and self._is_durable:
            durable.sync_commit(self._local, version, new_version is not None)
            if version == 0:
                durable.sync_new(self._local)
        if new_version is not None:
            self._remember(*new_version)

    def _write(
        self,
        start: int,
        add: Sequence[DataFile],
        remove: Sequence[DataFile],
        notes: Notes,
        schema: Schema | None = None,
        fed: Sequence[DataFile] = (),
    ) -> int:
        """Make the next version after `start`; with a schema, of the added files only."""
        new_version = self._write_plain(start, add, remove, notes, fed) if schema is None else None
        if new_version is None:
            self._refuse_vectors(any(each.vector is not None for each in (*add, *remove)))
            self._sync(self._named_files((*add, *fed), notes))
            self._write_by_deltalake(start, add, remove, notes, schema)
        elif is_checkpoint(start + 1):
            with suppress(StorageError), storage_errors(self.uri):  # the commit has happened
                DeltaTable(self.uri, start + 1, self.options).create_checkpoint()
        self._settle_commit(start + 1, new_version)
        return start + 1

    def _write_plain(
        self,
        start: int,
        add: Sequence[DataFile],
        remove: Sequence[DataFile],
        notes: Notes,
        fed: Sequence[DataFile],
    ) -> WrittenVersion | None:
        """Write the entry of the next version; None if that is left to deltalake, which writes
        checkpoints with its entries but knows no changed rows and no deletion vectors."""
        old = self._plain_snapshot(start)
        if self._local is None or old is None or not has_plain_paths((*add, *remove)):
            return None
        if is_checkpoint(start + 1) and not (fed or old.has_vectors):
            return None
        removed_paths = {each.path for each in remove}
        remaining = tuple(each for each in old.files if each.path not in removed_paths)
        mode = "Append" if remaining or not removed_paths else "Overwrite"
        actions = files_changed(add, remove, mode, notes, fed)
        text = self._put(start + 1, actions, self._named_files((*add, *fed), notes))
        new = replace(old, version=start + 1, files=(*remaining, *add))
        return None if text is None else (new, text)

    def _write_by_deltalake(
        self,
        start: int,
        add: Sequence[DataFile],
        remove: Sequence[DataFile],
        notes: Notes,
        schema: Schema | None,
    ) -> None:
        table = self._open_delta_table(start)
        with storage_errors(self.uri):
            if column_mapping(table) is not None:
                raise UnsupportedTableError(
                    f"{self.uri}: the table uses columnMapping, and files with other names than "
                    "its columns' are not written here; copy it into a table without"
                )
            commit = uuid4().hex
            try:
                commit_by_deltalake(table, add, remove, _commit_properties(notes, commit), schema)
            except (DeltaError, OSError) as error:
                self._forget()
                if self._has_commit(start + 1, commit):
                    return
                if isinstance(error, CommitFailedError) and self.version() == start:
                    # Nobody came first: a full disk, a missing right.
                    raise StorageError(f"{self.uri}: {error_text(error)}") from error
                raise

    def _has_commit(self, version: int, commit: str) -> bool:
        """Whether a commit that failed has happened: if the answer of a store is lost, the request
        is sent again, and finds the entry that it has written itself."""
        try:
            text = self._read_entry(version)
        except StorageError:
            return False
        return text is not None and commit.encode() in text


def _commit_properties(notes: Notes, commit: str) -> CommitProperties:
    metadata = {COMMIT: commit, **({NOTES: notes} if notes else {})}
    # Without retries: a retry would commit after whatever came between.
    return CommitProperties(custom_metadata=metadata, max_commit_retries=0)
