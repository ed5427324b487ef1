"""Parts of sources taken into a table, in one transaction with the list of parts and quarantine.

start     the versions of all tables, and what was taken in
play      records over the table's rows; those that do not fit are rejected
commit    the table, the list of parts and the quarantine; again after a conflict
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
    IntakeRound,
    TakenPart,
    now,
    user_rows,
)
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import MovedTableError
from viewkeep.sources.play import PlayedRecords, play_records
from viewkeep.sources.play_positions import play_positions
from viewkeep.sources.record import Record, printable
from viewkeep.tables.log.delta import ConflictError


@dataclass(frozen=True)
class ReadPart:
    """The records of a part of a file, or of a batch."""

    taken_part: TakenPart
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Target:
    """A table that takes in records. Where records have positions, their order does not matter."""

    lake: Lake
    definition: TableDefinition
    has_positions: bool

    def run_round(self, run: Callable[["TargetRound"], IngestReport]) -> IngestReport:
        """Run a round; when another process commits first, run it again on the new versions."""
        for _ in range(TRIES):
            with suppress(MovedTableError):
                return run(self._start_round())
        raise ConflictError(
            f'table "{self.definition.name}": too many processes write it; try again'
        )

    def _start_round(self) -> "TargetRound":
        intake = Intake(self.lake, self.definition)
        places = (intake.positions,) if self.has_positions else ()
        side_tables = (intake.files, intake.quarantine, *places)
        intake.create(*side_tables)
        return TargetRound(self, intake, IntakeRound(intake, (*side_tables, self.definition)))


@dataclass(frozen=True)
class TargetRound:
    """One try to take parts in: the versions that it starts from, and its transaction."""

    target: Target
    intake: Intake
    round: IntakeRound

    @property
    def empty_report(self) -> IngestReport:
        """The report of a round that takes nothing in."""
        name = self.target.definition.name
        return IngestReport(name, self.round.versions[name])

    def earlier_parts(self, names: Sequence[str]) -> dict[str, list[TakenPart]]:
        """The parts of some files that earlier rounds took in, by file."""
        rows = self.round.rows(self.intake.files)
        matches = rows.filter(pc.is_in(rows["name"], value_set=pa.array(names, pa.string())))
        parts: dict[str, list[TakenPart]] = {}
        for row in matches.drop_columns(["at"]).to_pylist():
            parts.setdefault(row["name"], []).append(TakenPart(**row))
        return parts

    def take_in(self, parts: Sequence[ReadPart]) -> IngestReport:
        """Commit the records of parts, or raise a `MovedTableError`."""
        if not parts:
            return self.empty_report
        outcome = self._play_files([each.records for each in parts])
        versions = self.round.commit(self._changes(parts, outcome))
        return replace(
            self.empty_report,
            version=versions[self.target.definition.name],
            files=len(parts),
            records=sum(len(each.records) for each in parts),
            rejected=sum(map(len, outcome.rejected)),
            skipped=outcome.skipped,
        )

    def _play_files(self, files: Sequence[Sequence[Record]]) -> PlayedRecords:
        if not self.target.has_positions:
            return play_records(self.round, self.target.definition, files)
        return play_positions(self.round, self.intake, files, self._position_source())

    def _position_source(self) -> str:
        """The source whose positions the table has; empty before the first."""
        rows = self.round.rows(self.intake.files)
        origins = pc.unique(rows["origin"].drop_null()).to_pylist()
        return origins[0] if origins else ""

    def _changes(
        self, parts: Sequence[ReadPart], outcome: PlayedRecords
    ) -> Mapping[str, UserChanges]:
        at, intake = now(), self.intake
        part_rows = [
            replace(each.taken_part, origin=outcome.origin or None).row(at) for each in parts
        ]
        quarantine_rows = [
            (*each.taken_part.place, record.number, printable(problem), record.text, at)
            for each, problems in zip(parts, outcome.rejected, strict=True)
            for record, problem in problems
        ]
        return {
            intake.files.name: user_rows(FILES, inserts=part_rows),
            intake.quarantine.name: user_rows(QUARANTINE, inserts=quarantine_rows),
            **outcome.other_changes,
            self.target.definition.name: outcome.changes,
        }
