"""Records played over the rows of a table: their net effect, and those that do not fit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes import (
    ChangeBatch,
    ChangeError,
    Delete,
    Insert,
    Key,
    Modification,
    Play,
    Row,
    RowFormat,
    Update,
)
from viewkeep.errors import SchemaError
from viewkeep.lake.apply import UserChanges
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.intake import IntakeRound, user_rows
from viewkeep.query.tables import Table
from viewkeep.sources.record import DELETE, INSERT, NOTHING, UPDATE, Record
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.table_changes import rows_schema

RejectedRecord = tuple[Record, str]


@dataclass(frozen=True)
class PlayedRecords:
    """Changes that fit the table, and for each file the records that do not, with the reason.

    `skipped` records had nothing to add; `other_changes` are changes of other tables, by name, and
    `origin` is the source of the positions.
    """

    changes: UserChanges
    rejected: tuple[tuple[RejectedRecord, ...], ...]
    skipped: int = 0
    other_changes: Mapping[str, UserChanges] = field(default_factory=dict)
    origin: str = ""


def play_records(
    round_: IntakeRound, definition: TableDefinition, files: Sequence[Sequence[Record]]
) -> PlayedRecords:
    """Play the records of files over the rows that a round starts from, in their order."""
    format_ = RowFormat(definition.name, definition.table)
    keys = [[record_key(format_, record) for record in records] for records in files]
    whole = [key for file_keys in keys for key in file_keys if not isinstance(key, str)]
    play = Play(format_, stored_rows(round_, definition, whole).get)
    rejected = tuple(
        tuple(_play_file(play, records, file_keys))
        for records, file_keys in zip(files, keys, strict=True)
    )
    return PlayedRecords(batch_changes(play.batch()), rejected)


def record_key(format_: RowFormat, record: Record) -> Key | str:
    """The key that a record names, empty for a record of no row; or the problem with it."""
    if record.problem:
        return record.problem
    if record.operation == NOTHING:
        return ()
    try:
        return format_.key(tuple(record.values[name] for name in format_.table.key))
    except SchemaError as error:
        return str(error)


def _play_file(
    play: Play, records: Sequence[Record], keys: Sequence[Key | str]
) -> Iterable[RejectedRecord]:
    for record, key in zip(records, keys, strict=True):
        if isinstance(key, str):
            yield record, key
            continue
        try:
            play.step(modification(record, key, play.row(key)))
        except (ChangeError, SchemaError) as error:
            yield record, str(error)


def modification(record: Record, key: Key, row: Row | None) -> Modification:
    """The change that a record makes; `row` is the one with its key, None if there is none."""
    if record.operation == DELETE:
        return Delete(key)
    if record.operation == INSERT or (record.operation != UPDATE and row is None):
        return Insert(record.values)
    return Update(key, record.values)


def stored_rows(
    round_: IntakeRound, definition: TableDefinition, keys: Iterable[Key]
) -> dict[Key, Row]:
    """The rows of a table that have one of the keys, by key."""
    table = definition.table
    matches = round_.matches(definition, _key_rows(table, list(set(keys))))
    rows = to_rows(matches.rows.select(list(table.names)).cast(rows_schema(table)))
    key_of = RowFormat(definition.name, table).key_of
    return {key_of(row): row for row in rows}


def _key_rows(table: Table, keys: Sequence[Key]) -> pa.Table:
    by_name = {field.name: field for field in table.columns}
    return to_arrow([by_name[name] for name in table.key], keys)


def batch_changes(batch: ChangeBatch) -> UserChanges:
    """The changes of a batch as inserts, updates and deletes."""
    key_of = RowFormat(batch.name, batch.table).key_of
    return user_rows(
        batch.table,
        inserts=list(batch.inserts),
        updates=[new for _, new in batch.updates],
        deletes=[key_of(old) for old in batch.deletes],
    )
