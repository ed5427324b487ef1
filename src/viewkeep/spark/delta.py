"""Delta tables through deltalake: snapshots to read, and commits that happen or do not.

A commit names the version it starts from and succeeds only as the next one: whoever comes second
gets a `ConflictError` and looks again. Files are written before the commit that names them, so a
process that dies leaves files that no version knows, and nothing else.

    snapshot   the files of one version, with what the log tells about them
    commit     files added and removed, with Viewkeep's notes in the commit's metadata
    log        the commits between two versions, newest first
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.fs as pafs  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from viewkeep.errors import SchemaError, ViewkeepError
from viewkeep.query.types import Field
from viewkeep.spark.protocol import unreadable
from viewkeep.spark.rows import arrow_schema, declared_fields, has_bounds

NOTES = "viewkeep"
"""The key of Viewkeep's notes in the metadata of a commit."""

CONFIGURATION = {
    # The last commit of a view says what it reflects: it must not expire.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
}
STATISTICS = "delta.dataSkippingStatsColumns"
"""The property that lists the columns with bounds: readers expect them of all others as well."""

Notes = Mapping[str, Any]
Action = AddAction | RemoveAction


class StorageError(ViewkeepError):
    """A table that cannot be read or written; what was committed before is still there."""


class ConflictError(StorageError):
    """Another process committed first; nothing was changed."""


class UnsupportedTableError(StorageError):
    """A table that uses something of Delta which cannot be read correctly here."""


@dataclass(frozen=True)
class DataFile:
    """A file of a table: its path below the table's folder, and bounds of its columns."""

    path: str
    size: int
    rows: int
    partition: Mapping[str, Any] = field(default_factory=dict)
    least: Mapping[str, Any] = field(default_factory=dict)
    greatest: Mapping[str, Any] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    modified: int = field(default_factory=lambda: int(time.time() * 1000))

    def location(self, uri: str) -> str:
        """Where it is; paths in the log are encoded, and may lead out of the table's folder.

        >>> DataFile("day=a%20b/1.parquet", 0, 0).location("/lake/parts")
        '/lake/parts/day=a b/1.parquet'
        """
        path = unquote(self.path)
        return path if "://" in path or path.startswith("/") else f"{uri}/{path}"

    def stats(self) -> str:
        """The statistics as Delta writes them."""
        said = {
            "numRecords": self.rows,
            "minValues": {name: _plain(value) for name, value in self.least.items()},
            "maxValues": {name: _plain(value) for name, value in self.greatest.items()},
            "nullCount": dict(self.nulls),
        }
        return json.dumps(said)


@dataclass(frozen=True)
class Snapshot:
    """One version of a table."""

    uri: str
    version: int
    fields: tuple[Field, ...]
    files: tuple[DataFile, ...]
    partitions: tuple[str, ...] = ()
    identity: str = ""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(each.rows for each in self.files)

    @property
    def size(self) -> int:
        """How many bytes its files have."""
        return sum(each.size for each in self.files)

    @cached_property
    def by_path(self) -> dict[str, DataFile]:
        """The files by their paths."""
        return {each.path: each for each in self.files}


@dataclass(frozen=True)
class Commit:
    """One entry of a table's log; `notes` are Viewkeep's, None in the commits of others."""

    version: int
    timestamp: int
    operation: str
    notes: Notes | None


class LakeTable:
    """A Delta table in its folder; nothing is cached, every call reads the log."""

    def __init__(self, uri: str, options: Mapping[str, str] | None = None) -> None:
        self.uri = uri.rstrip("/")
        self.options = dict(options or {}) or None

    def exists(self) -> bool:
        """Whether there is a Delta table."""
        with told(self.uri):
            return DeltaTable.is_deltatable(self.uri, self.options)

    def version(self) -> int:
        """The newest version."""
        return self._open(None).version()

    def identity(self, version: int) -> str:
        """What tells a table from one that was made anew in the same place."""
        table = self._open(version)
        with told(self.uri):
            return str(table.metadata().id)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version, or the newest one; refused where it cannot be read correctly."""
        table = self._open(version)
        with told(self.uri):
            problem = unreadable(table)
            if problem:
                raise UnsupportedTableError(f"{self.uri}: {problem}")
            fields = declared_fields(pa.schema(table.schema()))
            about = table.metadata()
            partitions, identity = tuple(about.partition_columns), str(about.id)
            files = _files(table)
            return Snapshot(self.uri, table.version(), fields, files, partitions, identity)

    def create(
        self, fields: Iterable[Field], files: Iterable[DataFile], notes: Notes, description: str
    ) -> None:
        """Make the table; a `ConflictError` if there is one."""
        fields = tuple(fields)
        with told(self.uri):
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
                raise StorageError(f"{self.uri}: {_said(error)}") from error

    def commit(
        self,
        start: int,
        add: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
        notes: Notes | None = None,
    ) -> int:
        """Make the next version after `start`, or raise a `ConflictError`."""
        table = self._open(start)
        actions: list[Action] = [*(_remove(each) for each in remove), *(_add(each) for each in add)]
        return self._write(table, actions, "append", table.schema(), notes)

    def replace(
        self, start: int, fields: Iterable[Field], files: Iterable[DataFile], notes: Notes
    ) -> int:
        """Make the next version after `start` of these files only, with these columns."""
        fields = tuple(fields)
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
        with told(self.uri):
            self._open(start).alter.set_table_properties(
                {STATISTICS: ",".join(new)}, commit_properties=_properties({})
            )
        return start + 1

    def become(self, wanted: Sequence[DataFile], notes: Notes) -> int:
        """Make a next version of exactly these files, whatever the newest version holds."""
        newest = self.snapshot()
        paths = {each.path for each in wanted}
        gone = [each for each in newest.files if each.path not in paths]
        return self.commit(
            newest.version, [f for f in wanted if f.path not in newest.by_path], gone, notes
        )

    def log(self, after: int, until: int | None = None) -> list[Commit]:
        """The commits after a version up to another one, newest first."""
        newest = self.version() if until is None else until
        return [self._read_commit(version) for version in range(newest, after, -1)]

    def _read_commit(self, version: int) -> Commit:
        """The entry of one version, from its file: `DeltaTable.history` numbers entries wrongly
        when others commit at the same time."""
        files, base = file_system(self)
        path = f"{base}/_delta_log/{version:020d}.json"
        try:
            with told(path), files.open_input_stream(path) as source:
                text = source.read().decode()
            return _commit(version, text)
        except (StorageError, ValueError, KeyError, AttributeError) as error:
            raise StorageError(
                f"{self.uri}: the log entry of version {version} is missing or damaged: {error}"
            ) from error

    def _write(
        self,
        table: DeltaTable,
        actions: list[Action],
        mode: str,
        schema: Schema,
        notes: Notes | None,
    ) -> int:
        start = table.version()
        with told(self.uri):
            try:
                table.create_write_transaction(
                    actions, mode, schema, commit_properties=_properties(notes or {})
                )
            except CommitFailedError as error:
                if self.version() == start:  # nobody came first: a full disk, a missing right
                    raise StorageError(f"{self.uri}: {error}") from error
                raise
        return start + 1

    def _open(self, version: int | None) -> DeltaTable:
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
        with told(self.uri):
            return DeltaTable(self.uri, version=version, storage_options=self.options)


@contextmanager
def told(place: str) -> Iterator[None]:
    """Errors of storage with the place where they happened."""
    try:
        yield
    except CommitFailedError as error:
        raise ConflictError(f"{place}: another process committed first") from error
    except TableNotFoundError as error:
        raise StorageError(f"{place}: there is no Delta table") from error
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise StorageError(f"{place}: {_said(error)}") from error


def _said(error: Exception) -> str:
    """What an error says, without the places in the library that may follow."""
    return str(error).partition("\n   0: ")[0]


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
    found = arrow_schema(fields)
    if mark is not None:
        found = pa.schema([each.with_metadata(mark) for each in found])
    return Schema.from_arrow(found)


def _files(table: DeltaTable) -> tuple[DataFile, ...]:
    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return tuple(_file(row) for row in rows)


def _file(row: Mapping[str, Any]) -> DataFile:
    def part(prefix: str) -> dict[str, Any]:
        return {n.removeprefix(prefix): v for n, v in row.items() if n.startswith(prefix)}

    def known(prefix: str) -> dict[str, Any]:
        return {name: value for name, value in part(prefix).items() if value is not None}

    return DataFile(
        row["path"],
        row["size_bytes"],
        row["num_records"] if row["num_records"] is not None else -1,
        part("partition."),
        known("min."),
        known("max."),
        known("null_count."),
        row["modification_time"],
    )


def file_system(table: LakeTable) -> tuple[pafs.FileSystem, str]:
    """How Arrow reaches the files of a table, and the table's folder there."""
    if "://" not in table.uri or table.uri.startswith("file://"):
        return pafs.LocalFileSystem(), table.uri.removeprefix("file://")
    handler = DeltaStorageHandler(table.uri, table.options)
    return pafs.PyFileSystem(handler), ""


def _commit(version: int, text: str) -> Commit:
    """The information about a commit, which stands on a line of its own among the actions."""
    found = (json.loads(line) for line in text.splitlines() if '"commitInfo"' in line)
    entry: dict[str, Any] = next((e["commitInfo"] for e in found if "commitInfo" in e), {})
    return Commit(version, entry.get("timestamp", 0), entry.get("operation", ""), entry.get(NOTES))


def _add(each: DataFile) -> AddAction:
    return AddAction(each.path, each.size, {}, each.modified, True, each.stats())


def _remove(each: DataFile) -> RemoveAction:
    return RemoveAction(each.path, True, int(time.time() * 1000), each.size, {})


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
