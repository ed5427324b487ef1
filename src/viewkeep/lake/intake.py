"""What a table has taken in from sources, in tables of its own that change with it.

<lake>/_viewkeep/sources/<table>/<identity>/files        files and batches, each taken in once
<lake>/_viewkeep/sources/<table>/<identity>/quarantine   records that do not fit, and why
<lake>/_viewkeep/sources/<table>/<identity>/positions    where in its source each key changed last

Every round is one transaction of these and the table itself: what is noted as taken in is in the
table, also after a crash. A table that is made anew under an old name has another identity.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.lake.apply import UserChanges, changeable_table
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.lake import OWN, Lake
from viewkeep.lake.transactions import Transactions
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import STRING, Field
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.rewrite import MatchedRows, find_rows_by_key
from viewkeep.tables.log.delta import ConflictError, LakeTable, Snapshot
from viewkeep.tables.log.durable import local_path
from viewkeep.tables.log.memory import remembered_logs
from viewkeep.tables.table_changes import rows_schema

Row = tuple[Any, ...]

FILES = Table(
    {
        "name": "string",
        "part": "bigint",
        "bytes": "bigint",
        "fingerprint": "string",
        "modified": "bigint",
        "records": "bigint",
        "origin": "string",
        "at": "timestamp",
    },
    key=["name", "part"],
)
"""A file that grew is taken in in several parts; `bytes` and `fingerprint` are those up to the end
of a part, `modified` is the file's time in nanoseconds, and `origin` the database whose positions
it has."""
QUARANTINE = Table(
    {
        "name": "string",
        "part": "bigint",
        "record": "bigint",
        "reason": "string",
        "text": "string",
        "at": "timestamp",
    },
    key=["name", "part", "record"],
)
POSITION = "#position"


@dataclass(frozen=True)
class WaitingFile:
    """A file that is not taken in yet, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class IngestReport:
    """What was taken in: files, and their records.

    Of the records, `rejected` are in quarantine and `skipped` had nothing to add: duplicates, late
    ones and tombstones. `version` is that of the table after it. With `has_more`, files may be left
    that nobody has looked at yet.
    """

    table: str
    version: int
    files: int = 0
    records: int = 0
    rejected: int = 0
    skipped: int = 0
    waiting: tuple[WaitingFile, ...] = ()
    seconds: float = 0.0
    error: str = ""
    has_more: bool = False

    @property
    def changed(self) -> bool:
        """Whether anything was taken in."""
        return self.files > 0


@dataclass(frozen=True)
class CaptureReport:
    """What was taken in from a table of a database.

    Of the `rows` that changed there, `rejected` are in quarantine. `is_whole` if all rows were
    read, and not those that the log names. `left_out` are columns that the lake's table has not.
    """

    table: str
    version: int
    rows: int = 0
    rejected: int = 0
    is_whole: bool = False
    changed: bool = False
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class TakenPart:
    """A part of a file, or a batch of a stream, that was taken in."""

    name: str
    part: int
    bytes: int = 0
    fingerprint: str = ""
    modified: int = 0
    records: int = 0
    origin: str | None = None

    @property
    def place(self) -> tuple[str, int]:
        """Its file or stream, and its number there."""
        return self.name, self.part

    def row(self, at: datetime) -> Row:
        """The part as a row of `FILES`."""
        return (*astuple(self), at)


class Intake:
    """The tables beside a table that takes in changes from sources."""

    def __init__(self, lake: Lake, definition: TableDefinition) -> None:
        self.lake, self.definition = lake, definition
        table = lake.at(definition.location)
        base = f"{lake.uri}/{OWN}/sources/{definition.name}/{table.identity(table.version())}"
        self.files = self._table_beside(base, "files", FILES)
        self.quarantine = self._table_beside(base, "quarantine", QUARANTINE)
        self.positions = self._table_beside(base, "positions", _position_table(definition.table))

    def _table_beside(self, base: str, what: str, table: Table) -> TableDefinition:
        return TableDefinition(f"{self.definition.name}/{what}", table, f"{base}/{what}", True)

    @property
    def all_tables(self) -> tuple[TableDefinition, ...]:
        """These tables, also those that are not there."""
        return self.files, self.quarantine, self.positions

    def create(self, *definitions: TableDefinition) -> None:
        """Make tables that are not there yet."""
        for each in definitions:
            table = self.lake.at(each.location)
            if not table.exists():
                with suppress(ConflictError):  # another process was first
                    table.create(each.table.columns, [], {"create": each.name}, each.name)

    def exists(self, definition: TableDefinition) -> bool:
        """Whether one of the tables was made."""
        return self.lake.at(definition.location).exists()

    def rows(self, definition: TableDefinition) -> pa.Table:
        """All rows of one of the tables that are decided on."""
        if not self.exists(definition):
            return rows_schema(definition.table).empty_table()
        table, version = self._visible_table(definition)
        snapshot = table.snapshot(version)
        return ParquetFolder(table).read(snapshot.files, snapshot.fields)

    def count(self, definition: TableDefinition) -> int:
        """How many rows one of the tables has."""
        if not self.exists(definition):
            return 0
        table, version = self._visible_table(definition)
        return table.snapshot(version).rows

    def _visible_table(self, definition: TableDefinition) -> tuple[LakeTable, int]:
        table = self.lake.at(definition.location)
        return table, Transactions(self.lake).visible_version(definition)

    def quarantined(self) -> pa.Table:
        """The records in quarantine."""
        return self.rows(self.quarantine)

    def clear_quarantine(self) -> int:
        """Forget the records in quarantine; how many there were."""
        if not self.exists(self.quarantine):
            return 0
        keys = to_rows(self.quarantined().select(list(QUARANTINE.key)))
        Transactions(self.lake).run([(self.quarantine, user_rows(QUARANTINE, deletes=keys))])
        return len(keys)


def intake_of(lake: Lake, name: str) -> Intake:
    """The intake of a table that takes changes."""
    return Intake(lake, changeable_table(lake.catalog.read(), name))


def count_quarantined(lake: Lake, definition: TableDefinition) -> int:
    """How many records of sources did not fit a table."""
    if not definition.owned or not has_sources(lake, definition.name):
        return 0
    intake = Intake(lake, definition)
    return intake.count(intake.quarantine)


def has_sources(lake: Lake, name: str) -> bool:
    """Whether a table may have taken something in; False saves a look at logs."""
    place = local_path(lake.uri)
    return place is None or os.path.isdir(f"{place}/{OWN}/sources/{name}")


def _position_table(table: Table) -> Table:
    keys = {field.name: field for field in _key_fields(table)}
    return Table({**keys, POSITION: Field(POSITION, STRING, nullable=False)}, table.key)


class IntakeRound:
    """The versions of a table and of those beside it that one round of an intake starts from."""

    def __init__(self, intake: Intake, tables: Sequence[TableDefinition]) -> None:
        self._lake, self._tables = intake.lake, tables
        self._transactions = Transactions(intake.lake)
        self._snapshots: dict[str, Snapshot] = {}
        with remembered_logs():
            for each in tables:
                table = self._lake.at(each.location)
                self._transactions.settle(each, table)
                self._snapshots[each.name] = table.snapshot()

    @cached_property
    def versions(self) -> dict[str, int]:
        """The version of each table."""
        return {name: each.version for name, each in self._snapshots.items()}

    def matches(self, definition: TableDefinition, keys: pa.Table) -> MatchedRows:
        """The rows of a table that have one of the keys."""
        table, snapshot = self._lake.at(definition.location), self._snapshots[definition.name]
        return find_rows_by_key(self._lake.scans, table, snapshot, keys, self._lake.driver_bytes)

    def rows(self, definition: TableDefinition) -> pa.Table:
        """All rows of a table."""
        table, snapshot = self._lake.at(definition.location), self._snapshots[definition.name]
        return ParquetFolder(table).read(snapshot.files, snapshot.fields)

    def commit(self, changes: Mapping[str, UserChanges]) -> dict[str, int]:
        """Change the tables, in their order, all or none; a `MovedTableError` if one has moved."""
        table_changes = [
            (each, changes[each.name]) for each in self._tables if each.name in changes
        ]
        with self._lake.marked():
            new_versions = self._transactions.run(table_changes, self.versions)
        return {**self.versions, **new_versions}


def user_rows(table: Table, **kinds: Sequence[Row]) -> UserChanges:
    """Changes of rows that fit a table already."""
    whole, parts = list(table.columns), {}
    for kind, fields in (("inserts", whole), ("updates", whole), ("deletes", _key_fields(table))):
        parts[kind] = to_arrow(fields, kinds.get(kind, ()))
    return UserChanges(**parts)


def _key_fields(table: Table) -> list[Field]:
    by_name = {field.name: field for field in table.columns}
    return [by_name[name] for name in table.key]


def now() -> datetime:
    """This moment as rows have it: in UTC, without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)
