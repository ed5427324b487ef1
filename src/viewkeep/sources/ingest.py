"""Takes files of a folder into a table, each of them exactly once.

    list      files that are whole, and parts of them that were not taken in
    read      records of them; those that cannot be read are rejected
    play      records over the table's rows, in their order; those that do not fit are rejected
    commit    the table, the list of files and the quarantine, in one transaction

If one of the tables has moved meanwhile, the round starts anew.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.errors import ArgumentError, did_you_mean
from viewkeep.lake.apply import TRIES
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.intake import (
    FILES,
    QUARANTINE,
    IngestReport,
    Intake,
    Round,
    TakenPart,
    WaitingFile,
    now,
    user_rows,
)
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import MovedTableError
from viewkeep.query.tables import Table
from viewkeep.sources.debezium import envelope_records
from viewkeep.sources.flat_records import (
    UnfinishedFileError,
    csv_records,
    json_records,
    parquet_records,
)
from viewkeep.sources.folder import (
    CSV,
    JSON,
    PARQUET,
    FilePart,
    FoundFile,
    Marks,
    list_files,
    new_parts,
)
from viewkeep.sources.play import PlayedRecords, play_records
from viewkeep.sources.play_positions import play_positions
from viewkeep.sources.record import Record
from viewkeep.tables.log.delta import ConflictError

ReadRecords = Callable[[bytes, int, Table], Iterator[Record]]

CHANGES, DEBEZIUM = "changes", "debezium"
READERS: dict[str, dict[str, ReadRecords]] = {
    CHANGES: {CSV: csv_records, JSON: json_records, PARQUET: parquet_records},
    DEBEZIUM: {JSON: envelope_records},
}
"""How records of each kind are read, by the format of the file."""


def check_records(name: str) -> str:
    """A kind of records, or what there is instead."""
    if name not in READERS:
        hint = did_you_mean(name, READERS)
        raise ArgumentError(f'records="{name}": expected one of {", ".join(READERS)}{hint}')
    return name


@dataclass(frozen=True)
class ReadPart:
    """The records of what is new in a file."""

    file: FoundFile
    taken: TakenPart
    records: tuple[Record, ...]


@dataclass(frozen=True)
class FolderSource:
    """A folder whose files change a table; `seen` are files that need not be looked at again."""

    lake: Lake
    definition: TableDefinition
    folder: str
    records: str
    seen: Marks = field(default_factory=dict)

    def ingest(self) -> IngestReport:
        """Take in what is there and whole."""
        begun, total = time.monotonic(), IngestReport(self.definition.name, -1)
        while True:
            files, unknown = list_files(self.folder)
            if total.version >= 0 and all(self.seen.get(f.name) == f.mark for f in files):
                break
            report = self._settled_round(files)
            total = _sum(total, replace(report, waiting=(*report.waiting, *unknown)))
            if not report.changed:
                break
        return replace(total, seconds=time.monotonic() - begun)

    def _settled_round(self, files: Sequence[FoundFile]) -> IngestReport:
        for _ in range(TRIES):
            with suppress(MovedTableError):
                return self._round(files)
        raise ConflictError(
            f'table "{self.definition.name}": too many processes write it; try again'
        )

    def _round(self, files: Sequence[FoundFile]) -> IngestReport:
        intake = Intake(self.lake, self.definition)
        beside = (intake.files, intake.quarantine, intake.positions)[: 3 if self._has_places else 2]
        intake.create(*beside)
        round_ = Round(intake, (*beside, self.definition))
        parts, waiting = self._read(round_, intake, files)
        version = round_.versions[self.definition.name]
        report = IngestReport(self.definition.name, version, waiting=waiting)
        if not parts:
            return report
        played = self._played(round_, intake, [each.records for each in parts])
        versions = round_.commit(self._changes(intake, parts, played))
        self.seen.update({each.file.name: each.file.mark for each in parts})
        return replace(
            report,
            version=versions[self.definition.name],
            files=len(parts),
            records=sum(len(each.records) for each in parts),
            rejected=sum(map(len, played.rejected)),
            skipped=played.skipped,
        )

    @property
    def _has_places(self) -> bool:
        """Whether records have positions, so that their order does not matter."""
        return self.records == DEBEZIUM

    def _played(
        self, round_: Round, intake: Intake, files: Sequence[Sequence[Record]]
    ) -> PlayedRecords:
        if not self._has_places:
            return play_records(round_, self.definition, files)
        return play_positions(round_, intake, files, _origin(round_, intake))

    def _read(
        self, round_: Round, intake: Intake, files: Sequence[FoundFile]
    ) -> tuple[list[ReadPart], tuple[WaitingFile, ...]]:
        """The parts that can be taken in now, and the files that wait: where the order of records
        matters, one of them holds the others back."""
        readers, parts = READERS[self.records], list[ReadPart]()
        reason = f"{self.records} records are in files of {', '.join(readers)}"
        waiting = [WaitingFile(each.name, reason) for each in files if each.kind not in readers]
        files = [each for each in files if each.kind in readers]
        for each in new_parts(files, lambda names: _taken(round_, intake, names), self.seen):
            read = _read_part(each, readers, self.definition.table)
            if isinstance(read, ReadPart):
                parts.append(read)
                continue
            waiting.append(read)
            if not self._has_places:
                break
        return parts, tuple(waiting)

    def _changes(
        self, intake: Intake, parts: Sequence[ReadPart], played: PlayedRecords
    ) -> Mapping[str, Any]:
        at = now()
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
            self.definition.name: played.changes,
        }


def _read_part(
    part: FilePart | WaitingFile, readers: Mapping[str, ReadRecords], table: Table
) -> ReadPart | WaitingFile:
    """The records of a part; or the file waits, if they do not come to an end."""
    if isinstance(part, WaitingFile):
        return part
    try:
        records = tuple(readers[part.file.kind](part.content, part.start, table))
    except UnfinishedFileError as error:
        return WaitingFile(part.file.name, str(error))
    return ReadPart(part.file, replace(part.taken, records=len(records)), records)


def _taken(round_: Round, intake: Intake, names: Sequence[str]) -> dict[str, list[TakenPart]]:
    """The parts of files that were taken in, by name."""
    rows = round_.rows(intake.files)
    chosen = rows.filter(pc.is_in(rows["name"], value_set=pa.array(names, pa.string())))
    taken: dict[str, list[TakenPart]] = {}
    for row in chosen.drop_columns(["at"]).to_pylist():
        taken.setdefault(row["name"], []).append(TakenPart(**row))
    return taken


def _origin(round_: Round, intake: Intake) -> str:
    """The source whose positions the table has; empty before the first."""
    origins = pc.unique(round_.rows(intake.files)["origin"].drop_null()).to_pylist()
    return origins[0] if origins else ""


def _sum(total: IngestReport, report: IngestReport) -> IngestReport:
    """Both rounds as one; what waits is what still did at the last."""
    return replace(
        report,
        files=total.files + report.files,
        records=total.records + report.records,
        rejected=total.rejected + report.rejected,
        skipped=total.skipped + report.skipped,
    )
