"""Parts of sources taken into a table: one transaction of it and of what is kept beside it.

start     the versions of all tables, and what was taken in
play      records over the table's rows; those that do not fit are rejected
commit    the table, the list of parts and the quarantine; anew if one of them has moved
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.lake.apply import TRIES, UserChanges
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.intake import (
    FILES,
    QUARANTINE,
    IngestReport,
    Intake,
    Round,
    TakenPart,
    now,
    user_rows,
)
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import MovedTableError
from viewkeep.sources.play import PlayedRecords, play_records
from viewkeep.sources.play_positions import play_positions
from viewkeep.sources.record import Record
from viewkeep.tables.log.delta import ConflictError


@dataclass(frozen=True)
class ReadPart:
    """The records of a part of a file, or of a batch."""

    taken: TakenPart
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Target:
    """A table that takes in records; `has_positions` if they have, so that their order does not
    matter."""

    lake: Lake
    definition: TableDefinition
    has_positions: bool

    def retried(self, run: Callable[["TargetRound"], IngestReport]) -> IngestReport:
        """A round, started anew whenever another process came first."""
        for _ in range(TRIES):
            with suppress(MovedTableError):
                return run(self._start())
        raise ConflictError(
            f'table "{self.definition.name}": too many processes write it; try again'
        )

    def _start(self) -> "TargetRound":
        intake = Intake(self.lake, self.definition)
        places = (intake.positions,) if self.has_positions else ()
        beside = (intake.files, intake.quarantine, *places)
        intake.create(*beside)
        return TargetRound(self, intake, Round(intake, (*beside, self.definition)))


@dataclass(frozen=True)
class TargetRound:
    """One round: what was taken in before it, and what it takes in."""

    target: Target
    intake: Intake
    round: Round

    @property
    def nothing(self) -> IngestReport:
        """The report of a round that takes nothing in."""
        name = self.target.definition.name
        return IngestReport(name, self.round.versions[name])

    def taken(self, names: Sequence[str]) -> dict[str, list[TakenPart]]:
        """The parts that were taken in, by the names of their files."""
        rows = self.round.rows(self.intake.files)
        chosen = rows.filter(pc.is_in(rows["name"], value_set=pa.array(names, pa.string())))
        taken: dict[str, list[TakenPart]] = {}
        for row in chosen.drop_columns(["at"]).to_pylist():
            taken.setdefault(row["name"], []).append(TakenPart(**row))
        return taken

    def take_in(self, parts: Sequence[ReadPart]) -> IngestReport:
        """Commit the records of parts, or raise a `MovedTableError`."""
        if not parts:
            return self.nothing
        played = self._played([each.records for each in parts])
        versions = self.round.commit(self._changes(parts, played))
        return replace(
            self.nothing,
            version=versions[self.target.definition.name],
            files=len(parts),
            records=sum(len(each.records) for each in parts),
            rejected=sum(map(len, played.rejected)),
            skipped=played.skipped,
        )

    def _played(self, files: Sequence[Sequence[Record]]) -> PlayedRecords:
        if not self.target.has_positions:
            return play_records(self.round, self.target.definition, files)
        return play_positions(self.round, self.intake, files, self._origin())

    def _origin(self) -> str:
        """The source whose positions the table has; empty before the first."""
        rows = self.round.rows(self.intake.files)
        origins = pc.unique(rows["origin"].drop_null()).to_pylist()
        return origins[0] if origins else ""

    def _changes(
        self, parts: Sequence[ReadPart], played: PlayedRecords
    ) -> Mapping[str, UserChanges]:
        at, intake = now(), self.intake
        taken = [replace(each.taken, origin=played.origin or None).row(at) for each in parts]
        rejected = [
            (each.taken.name, each.taken.part, record.number, problem, record.text, at)
            for each, problems in zip(parts, played.rejected, strict=True)
            for record, problem in problems
        ]
        return {
            intake.files.name: user_rows(FILES, inserts=taken),
            intake.quarantine.name: user_rows(QUARANTINE, inserts=rejected),
            **played.beside,
            self.target.definition.name: played.changes,
        }
