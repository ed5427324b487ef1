"""Records with positions, played over the rows of a table in whatever order they come.

Of each key the position of its last change is kept: a record that is not later than that has been
seen, or is of no consequence any more, since records tell whole rows. So any order, with any
repetition, gives the rows of the greatest positions.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from viewkeep.changes import ChangeError, Key, Play, RowFormat
from viewkeep.errors import SchemaError
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.intake import Intake, Round, user_rows
from viewkeep.sources.play import (
    PlayedRecords,
    Rejected,
    batch_changes,
    modification,
    record_key,
    stored_rows,
)
from viewkeep.sources.record import DELETE, NOTHING, Position, Record


def play_positions(
    round_: Round, intake: Intake, files: Sequence[Sequence[Record]], origin: str
) -> PlayedRecords:
    """Play the records of files over the rows that a round starts from."""
    definition = intake.definition
    format_ = RowFormat(definition.name, definition.table)
    keys = [[record_key(format_, record) for record in records] for records in files]
    whole = {key for of_file in keys for key in of_file if isinstance(key, tuple) and key}
    stored = _stored_positions(round_, intake.positions, whole)
    play = Play(format_, stored_rows(round_, definition, whole).get)
    player = _Player(play, stored, origin)
    rejected = tuple(
        tuple(player.rejected(records, of_file))
        for records, of_file in zip(files, keys, strict=True)
    )
    moved = [(*key, json.dumps(at)) for key, at in player.moved.items()]
    table = intake.positions.table
    places = user_rows(
        table,
        inserts=[row for row in moved if row[:-1] not in stored],
        updates=[row for row in moved if row[:-1] in stored],
    )
    beside = {intake.positions.name: places}
    return PlayedRecords(
        batch_changes(play.batch()), rejected, player.skipped, beside, player.origin
    )


def _stored_positions(
    round_: Round, definition: TableDefinition, keys: set[Key]
) -> dict[Key, Position]:
    rows = stored_rows(round_, definition, keys)
    return {key: tuple(json.loads(row[-1])) for key, row in rows.items()}


@dataclass
class _Player:
    """Plays records one by one; `moved` are the positions of the keys that they changed."""

    play: Play
    stored: dict[Key, Position]
    origin: str
    moved: dict[Key, Position] = field(default_factory=dict)
    skipped: int = 0

    def rejected(self, records: Sequence[Record], keys: Sequence[Key | str]) -> Iterator[Rejected]:
        """Play records; those that do not fit, with the reason."""
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
        self.moved[key], self.origin = record.position, record.origin

    def _is_old(self, key: Key, position: Position) -> bool:
        last = self.moved.get(key) or self.stored.get(key)
        try:
            return last is not None and position <= last
        except TypeError:
            raise SchemaError(f"its position {position} is not of the kind of {last}") from None
