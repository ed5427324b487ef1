"""Takes files of a folder into a table, each of them exactly once: lists those that are whole,
reads the records of parts that are new, and commits them with the table (`target`)."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from viewkeep.errors import ArgumentError, did_you_mean
from viewkeep.lake.apply import changeable_table
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.intake import IngestReport, WaitingFile
from viewkeep.lake.lake import Lake
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
from viewkeep.sources.record import Record
from viewkeep.sources.target import ReadPart, Target, TargetRound

ReadRecords = Callable[[bytes, int, Table], Iterator[Record]]

CHANGES, DEBEZIUM = "changes", "debezium"
READERS: dict[str, dict[str, ReadRecords]] = {
    CHANGES: {CSV: csv_records, JSON: json_records, PARQUET: parquet_records},
    DEBEZIUM: {JSON: envelope_records},
}
"""How records of each kind are read, by the format of the file."""


def check_records(name: str) -> str:
    """Refuse a name that is no kind of records."""
    if name not in READERS:
        hint = did_you_mean(name, READERS)
        raise ArgumentError(f'records="{name}": expected one of {", ".join(READERS)}{hint}')
    return name


def open_folder(
    lake: Lake, name: str, folder: str | os.PathLike[str], records: str
) -> "FolderSource":
    """A folder of one kind of records as a source of a table."""
    definition = changeable_table(lake.catalog.read(), name)
    place = os.path.abspath(os.path.expanduser(os.fspath(folder)))
    return FolderSource(lake, definition, place, check_records(records))


@dataclass(frozen=True)
class FolderSource:
    """A folder whose files change a table; in `finished_files` nothing is left to take in."""

    lake: Lake
    definition: TableDefinition
    folder: str
    records: str
    finished_files: Marks = field(default_factory=dict)

    @property
    def target(self) -> Target:
        """The table."""
        return Target(self.lake, self.definition, self.records == DEBEZIUM)

    def ingest(self, limit: float = inf) -> IngestReport:
        """Take in all complete files; rounds go on until one takes nothing in, or until so many
        seconds are over: the report tells whether there may be more."""
        start, total = time.monotonic(), IngestReport(self.definition.name, -1)
        while True:
            files, unknown = list_files(self.folder)
            if total.version >= 0 and all(self.finished_files.get(f.name) == f.mark for f in files):
                break
            report = self._round(files)
            total = _sum_of_reports(total, replace(report, waiting=(*report.waiting, *unknown)))
            has_more = report.changed and time.monotonic() - start > limit
            if has_more or not report.changed:
                total = replace(total, has_more=has_more)
                break
        return replace(total, seconds=time.monotonic() - start)

    def _round(self, files: Sequence[FoundFile]) -> IngestReport:
        marks = {each.name: each.mark for each in files}

        def run(round_: TargetRound) -> IngestReport:
            parts, waiting = self._read_parts(round_, files)
            report = round_.take_in(parts)
            self.finished_files.update(
                {each.taken_part.name: marks[each.taken_part.name] for each in parts}
            )
            return replace(report, waiting=waiting)

        return self.target.run_round(run)

    def _read_parts(
        self, round_: TargetRound, files: Sequence[FoundFile]
    ) -> tuple[list[ReadPart], tuple[WaitingFile, ...]]:
        """The parts that can be taken in now, and the files that wait: where the order of records
        matters, one of them holds the others back."""
        readers, parts = READERS[self.records], list[ReadPart]()
        reason = f"{self.records} records are in files of {', '.join(readers)}"
        waiting = [WaitingFile(each.name, reason) for each in files if each.kind not in readers]
        files = [each for each in files if each.kind in readers]
        for each in new_parts(files, round_.earlier_parts, self.finished_files):
            part = _read_part(each, readers, self.definition.table)
            if isinstance(part, ReadPart):
                parts.append(part)
                continue
            waiting.append(part)
            if not self.target.has_positions:
                break
        return parts, tuple(waiting)


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
    return ReadPart(replace(part.taken_part, records=len(records)), records)


def _sum_of_reports(total: IngestReport, report: IngestReport) -> IngestReport:
    """The sum of the counts of two rounds; waiting files are those of the last one."""
    return replace(
        report,
        files=total.files + report.files,
        records=total.records + report.records,
        rejected=total.rejected + report.rejected,
        skipped=total.skipped + report.skipped,
    )
