"""Records with positions, played over the rows of a table in whatever order they come.

For each key the position of its last change is stored. Records hold whole rows, so one that is not
later than the stored position has no effect. Any order of records, with any repetition, leads to
the rows of the greatest positions.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from viewkeep.changes import ChangeError, Key, Play, RowFormat
from viewkeep.errors import SchemaError
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.intake import Intake, IntakeRound, user_rows
from viewkeep.sources.play import (
    PlayedRecords,
    RejectedRecord,
    batch_changes,
    modification,
    record_key,
    stored_rows,
)
from viewkeep.sources.record import DELETE, NOTHING, Position, Record


def play_positions(
    round_: IntakeRound, intake: Intake, files: Sequence[Sequence[Record]], origin: str
) -> PlayedRecords:
    """Play the records of files over the rows that a round starts from."""
    definition = intake.definition
    format_ = RowFormat(definition.name, definition.table)
    keys = [[record_key(format_, record) for record in records] for records in files]
    whole = {key for file_keys in keys for key in file_keys if isinstance(key, tuple) and key}
    stored_positions = _stored_positions(round_, intake.positions, whole)
    play = Play(format_, stored_rows(round_, definition, whole).get)
    player = _Player(play, stored_positions, origin)
    rejected = tuple(
        tuple(player.play_file(records, file_keys))
        for records, file_keys in zip(files, keys, strict=True)
    )
    position_rows = [(*key, json.dumps(at)) for key, at in player.new_positions.items()]
    table = intake.positions.table
    places = user_rows(
        table,
        inserts=[row for row in position_rows if row[:-1] not in stored_positions],
        updates=[row for row in position_rows if row[:-1] in stored_positions],
    )
    other_changes = {intake.positions.name: places}
    return PlayedRecords(
        batch_changes(play.batch()), rejected, player.skipped, other_changes, player.origin
    )


def _stored_positions(
    round_: IntakeRound, definition: TableDefinition, keys: set[Key]
) -> dict[Key, Position]:
    rows = stored_rows(round_, definition, keys)
    return {key: tuple(json.loads(row[-1])) for key, row in rows.items()}


@dataclass
class _Player:
    """Plays records one by one; `new_positions` are the positions of the keys that they changed."""

    play: Play
    stored_positions: dict[Key, Position]
    origin: str
    new_positions: dict[Key, Position] = field(default_factory=dict)
    skipped: int = 0

    def play_file(
        self, records: Sequence[Record], keys: Sequence[Key | str]
    ) -> Iterator[RejectedRecord]:
        """Play the records of a file; returns those that do not fit, with the reason."""
        for record, key in zip(records, keys, strict=True):
            try:
                self._step(record, key)
            except (ChangeError, SchemaError) as error:
                yield record, str(error)

    def _step(self, record: Record, key: Key | str) -> None:
        if record.operation == NOTHING:
            self.skipped += 1
            return
        if isinstance(key, str):
            raise SchemaError(key)
        if self.origin not in ("", record.origin):
            raise SchemaError(
                f'its position is of another source ("{record.origin}"); this table has changes '
                f'of "{self.origin}"'
            )
        if self._is_old(key, record.position):
            self.skipped += 1
            return
        row = self.play.row(key)
        if record.operation != DELETE or row is not None:
            self.play.step(modification(record, key, row))
        self.new_positions[key], self.origin = record.position, record.origin

    def _is_old(self, key: Key, position: Position) -> bool:
        last = self.new_positions.get(key) or self.stored_positions.get(key)
        try:
            return last is not None and position <= last
        except TypeError:
            raise SchemaError(f"its position {position} is not of the kind of {last}") from None
