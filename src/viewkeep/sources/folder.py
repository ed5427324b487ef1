"""Files in a folder: which of them are whole, and which parts were not taken in yet.

A file is identified by its name and content. A file of lines that grew is taken in from its former
end on; a file of the same name with other content is a new file. Files are taken in by the order of
their names. One that is not whole yet holds back those after it, which may change the same rows.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from viewkeep.lake.intake import TakenPart, WaitingFile
from viewkeep.sources.record import printable
from viewkeep.tables.file_marks import FileMark, file_mark
from viewkeep.tables.log.delta import StorageError

CSV, JSON, PARQUET = "CSV", "JSON lines", "Parquet"
KINDS = {".csv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET}
MAGIC = b"PAR1"
ROUND_BYTES = 1024 * 1024
"""About so many bytes of files are taken in at once: a round takes a second or so, and what is
interrupted goes on from where the last one ended."""
_DRAFTS = (".tmp", ".part", ".partial", ".crdownload", "~", ".swp", ".crc")

Marks = dict[str, FileMark]
"""Marks of files of a folder that were taken in as they are."""
FindParts = Callable[[Sequence[str]], Mapping[str, Sequence[TakenPart]]]


@dataclass(frozen=True)
class FoundFile:
    """A file in the folder."""

    name: str
    path: str
    kind: str
    mark: FileMark

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.mark[1]

    @property
    def modified(self) -> int:
        """The time of its last change, in nanoseconds."""
        return self.mark[2]


@dataclass(frozen=True)
class FilePart:
    """What is new in a file: `content` from `start` on."""

    file: FoundFile
    content: bytes
    start: int
    number: int

    @property
    def taken_part(self) -> TakenPart:
        """The row of this part in the list of parts that were taken in."""
        fingerprint = sha256(self.content).hexdigest()
        return TakenPart(
            *(self.file.name, self.number, len(self.content), fingerprint, self.file.modified)
        )


def list_files(folder: str) -> tuple[list[FoundFile], list[WaitingFile]]:
    """The files of a folder by their names, and those of no known format; drafts and hidden files
    are left out.

    A folder that is listed while files come may show a file without those that came just before it.
    So names are listed first: whatever came before the last of them is in the second list.
    """
    try:
        last = max((name for name in os.listdir(folder) if not _is_draft(name)), default="")
        with os.scandir(folder) as entries:
            own = [e for e in entries if e.name <= last and not _is_draft(e.name) and e.is_file()]
        files = [f for e in sorted(own, key=lambda e: e.name) for f in _source_file(e)]
    except OSError as error:
        raise StorageError(f'cannot read the folder "{folder}": {error.strerror}') from None
    waiting = [each for each in map(_unfit_file, files) if each]
    return [each for each in files if not _unfit_file(each)], waiting


def _unfit_file(file: FoundFile) -> WaitingFile | None:
    """A file that waits for another name; None if the name fits."""
    name = printable(file.name)
    if name != file.name:
        return WaitingFile(name, "its name is no text in UTF-8; rename it")
    if not file.kind:
        return WaitingFile(name, f"its name ends in none of {', '.join(KINDS)}")
    return None


def _is_draft(name: str) -> bool:
    return name.startswith((".", "_")) or name.lower().endswith(_DRAFTS)


def _source_file(entry: "os.DirEntry[str]") -> Iterator[FoundFile]:
    kind = KINDS.get(os.path.splitext(entry.name)[1].lower(), "")
    mark = file_mark(entry.path)
    if mark is not None:  # else it is gone meanwhile
        yield FoundFile(entry.name, entry.path, kind, mark)


def new_parts(
    files: Sequence[FoundFile], find_parts: FindParts, finished_files: Marks
) -> Iterator[FilePart | WaitingFile]:
    """What is new in files, one after the other up to `ROUND_BYTES`, or which one has to wait."""
    unseen = [each for each in files if finished_files.get(each.name) != each.mark]
    earlier_parts = find_parts([each.name for each in unseen]) if unseen else {}
    size = 0
    for file in unseen:
        parts = earlier_parts.get(file.name, ())
        if any((part.bytes, part.modified) == (file.size, file.modified) for part in parts):
            finished_files[file.name] = file.mark
            continue
        part = _new_part_of_file(file, parts)
        if part is None:
            finished_files[file.name] = file.mark
            continue
        yield part
        size += len(part.content) if isinstance(part, FilePart) else 0
        if size >= ROUND_BYTES:
            return


def _new_part_of_file(
    file: FoundFile, earlier_parts: Sequence[TakenPart]
) -> FilePart | WaitingFile | None:
    """What is new in a file; None if nothing is."""
    try:
        with open(file.path, "rb") as source:
            content = source.read()
    except OSError as error:
        return WaitingFile(file.name, f"it cannot be read: {error.strerror}")
    if len(content) != file.size or file_mark(file.path) != file.mark:
        return WaitingFile(file.name, "somebody is writing it")
    reason = _reason_to_wait(file.kind, content)
    if reason:
        return WaitingFile(file.name, reason)
    start = max(
        (part.bytes for part in earlier_parts if _is_beginning(file.kind, content, part)), default=0
    )
    number = max((part.part + 1 for part in earlier_parts), default=0)
    return None if start == len(content) else FilePart(file, content, start, number)


def _is_beginning(kind: str, content: bytes, part: TakenPart) -> bool:
    """Whether a part that was taken in is the beginning of a file, or all of it."""
    if len(content) < part.bytes or (kind == PARQUET and len(content) != part.bytes):
        return False
    return sha256(memoryview(content)[: part.bytes]).hexdigest() == part.fingerprint


def _reason_to_wait(kind: str, content: bytes) -> str:
    if not content:
        return "it is empty"
    if kind != PARQUET:
        return "" if content.endswith(b"\n") else "its last line has no end"
    is_whole = len(content) > 2 * len(MAGIC) and content.endswith(MAGIC)
    return "" if is_whole else "it has no Parquet footer"
