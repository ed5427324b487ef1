"""Files in a folder: which of them are whole, and which parts were not taken in yet.

A file is known by its name and content. One of lines that grew is taken in from where it ended; one
of the same name with other content is a new one. Files are taken in the order of their names, and
one that is not whole yet holds those after it back: they may change what it brings.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from viewkeep.lake.intake import TakenPart, WaitingFile
from viewkeep.tables.file_marks import FileMark, file_mark
from viewkeep.tables.log.delta import StorageError

CSV, JSON, PARQUET = "CSV", "JSON lines", "Parquet"
KINDS = {".csv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET}
MAGIC = b"PAR1"
ROUND_BYTES = 64 * 1024 * 1024
"""About so many bytes of files are taken in at once."""
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
    def taken(self) -> TakenPart:
        """The part as it is noted."""
        fingerprint = sha256(self.content).hexdigest()
        return TakenPart(
            *(self.file.name, self.number, len(self.content), fingerprint, self.file.modified)
        )


def list_files(folder: str) -> tuple[list[FoundFile], list[WaitingFile]]:
    """The files of a folder by their names, and those of no known format; drafts and hidden files
    are left out."""
    try:
        with os.scandir(folder) as entries:
            listed = sorted((e for e in entries if e.is_file()), key=lambda e: e.name)
            files = [f for e in listed if not _is_draft(e.name) for f in _source_file(e)]
    except OSError as error:
        raise StorageError(f'cannot read the folder "{folder}": {error.strerror}') from None
    reason = f"its name ends in none of {', '.join(KINDS)}"
    waiting = [WaitingFile(each.name, reason) for each in files if not each.kind]
    return [each for each in files if each.kind], waiting


def _is_draft(name: str) -> bool:
    return name.startswith((".", "_")) or name.lower().endswith(_DRAFTS)


def _source_file(entry: "os.DirEntry[str]") -> Iterator[FoundFile]:
    kind = KINDS.get(os.path.splitext(entry.name)[1].lower(), "")
    mark = file_mark(entry.path)
    if mark is not None:  # else it is gone meanwhile
        yield FoundFile(entry.name, entry.path, kind, mark)


def new_parts(
    files: Sequence[FoundFile], find_parts: FindParts, seen: Marks
) -> Iterator[FilePart | WaitingFile]:
    """What is new in files, one after the other up to `ROUND_BYTES`, or which one has to wait."""
    unseen = [each for each in files if seen.get(each.name) != each.mark]
    taken = find_parts([each.name for each in unseen]) if unseen else {}
    size = 0
    for file in unseen:
        parts = taken.get(file.name, ())
        if any((part.bytes, part.modified) == (file.size, file.modified) for part in parts):
            seen[file.name] = file.mark
            continue
        part = _new_part(file, parts)
        if part is None:
            seen[file.name] = file.mark
            continue
        yield part
        size += len(part.content) if isinstance(part, FilePart) else 0
        if size >= ROUND_BYTES:
            return


def _new_part(file: FoundFile, taken: Sequence[TakenPart]) -> FilePart | WaitingFile | None:
    """What is new in a file; None if nothing is."""
    try:
        with open(file.path, "rb") as source:
            content = source.read()
    except OSError as error:
        return WaitingFile(file.name, f"it cannot be read: {error.strerror}")
    if len(content) != file.size or file_mark(file.path) != file.mark:
        return WaitingFile(file.name, "somebody is writing it")
    reason = _unfinished(file.kind, content)
    if reason:
        return WaitingFile(file.name, reason)
    start = max((part.bytes for part in taken if _begins(file.kind, content, part)), default=0)
    number = max((part.part + 1 for part in taken), default=0)
    return None if start == len(content) else FilePart(file, content, start, number)


def _begins(kind: str, content: bytes, part: TakenPart) -> bool:
    """Whether a part that was taken in is the beginning of a file, or all of it."""
    if len(content) < part.bytes or (kind == PARQUET and len(content) != part.bytes):
        return False
    return sha256(memoryview(content)[: part.bytes]).hexdigest() == part.fingerprint


def _unfinished(kind: str, content: bytes) -> str:
    if not content:
        return "it is empty"
    if kind != PARQUET:
        return "" if content.endswith(b"\n") else "its last line has no end"
    is_whole = len(content) > 2 * len(MAGIC) and content.endswith(MAGIC)
    return "" if is_whole else "it has no Parquet footer"
