"""Deletion vectors: which rows of a data file are deleted, as the log names them.

A vector stands in the log entry itself, in base 85, or in a file beside the data, which may hold
several: a byte for the version, then of each vector its size, its bytes and their checksum.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote
from uuid import UUID, uuid4

from viewkeep.tables.failures import StorageError
from viewkeep.tables.log.roaring import DamagedBitmapError, RowNumbers, from_bytes, to_bytes

INLINE, BY_UUID, BY_PATH = "i", "u", "p"
PREFIX, SUFFIX = "deletion_vector_", ".bin"
INLINE_BYTES = 2048
"""Vectors of one commit that have fewer bytes together stand in its entry: a file for them would
take longer than all else that a small commit does."""
_VERSION = b"\x01"
_UUID_LENGTH = 20


@dataclass(frozen=True)
class DeletionVector:
    """Where the vector of a file is, how many bytes it has, and how many rows it deletes.

    >>> DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4).path
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    """

    storage: str
    place: str
    size: int
    rows: int
    offset: int | None = None

    @property
    def identity(self) -> str:
        """What tells it from other vectors of the same file."""
        end = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage}{self.place}{end}"

    @property
    def path(self) -> str | None:
        """Its file, below the table's folder or absolute; None if it stands in the log."""
        if self.storage == INLINE:
            return None
        if self.storage == BY_PATH:
            return unquote(self.place)
        prefix, text = self.place[:-_UUID_LENGTH], self.place[-_UUID_LENGTH:]
        name = f"{PREFIX}{UUID(bytes=from_base85(text))}{SUFFIX}"
        return f"{prefix}/{name}" if prefix else name

    def location(self, uri: str) -> str | None:
        """Where its file is."""
        path = self.path
        if path is None or "://" in path or path.startswith("/"):
            return path
        return f"{uri}/{path}"

    def as_json(self) -> dict[str, Any]:
        """The vector as an action of the log names it."""
        storage = {"storageType": self.storage, "pathOrInlineDv": self.place}
        offset = {} if self.offset is None else {"offset": self.offset}
        return {**storage, **offset, "sizeInBytes": self.size, "cardinality": self.rows}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "DeletionVector":
        """The vector of an action."""
        return DeletionVector(
            values["storageType"],
            values["pathOrInlineDv"],
            values["sizeInBytes"],
            values["cardinality"],
            values.get("offset"),
        )

    def read(self, file: bytes) -> RowNumbers:
        """Its rows, from the bytes of its file if it has one; what does not fit is refused."""
        try:
            data = from_base85(self.place) if self.storage == INLINE else self._vector_bytes(file)
            rows = from_bytes(data[: self.size])
        except (DamagedBitmapError, struct.error, ValueError) as error:
            raise StorageError(
                f"a deletion vector cannot be read ({self.identity}): {error}"
            ) from error
        if len(rows) != self.rows:
            raise StorageError(
                f"a deletion vector ({self.identity}) has {len(rows)} rows, and the log says "
                f"{self.rows}"
            )
        return rows

    def _vector_bytes(self, file: bytes) -> bytes:
        start = self.offset or 0
        (size,) = struct.unpack_from(">I", file, start)
        data = file[start + 4 : start + 4 + size]
        (checksum,) = struct.unpack_from(">I", file, start + 4 + size)
        if size != self.size or zlib.crc32(data) != checksum:
            raise DamagedBitmapError("its bytes are not those that were written")
        return data


def pack_vectors(vectors: Sequence[RowNumbers]) -> tuple[list[DeletionVector], bytes | None]:
    """Vectors as the log names them, and the bytes of the file that holds them; None if they are
    small enough to stand in the log."""
    texts = [to_bytes(each) for each in vectors]
    if sum(map(len, texts)) <= INLINE_BYTES:
        pairs = zip(texts, vectors, strict=True)
        return [DeletionVector(INLINE, to_base85(t), len(t), len(v)) for t, v in pairs], None
    file, described, place = bytearray(_VERSION), [], to_base85(uuid4().bytes)
    for text, rows in zip(texts, vectors, strict=True):
        described.append(DeletionVector(BY_UUID, place, len(text), len(rows), len(file)))
        file += struct.pack(">I", len(text)) + text + struct.pack(">I", zlib.crc32(text))
    return described, bytes(file)


# --- base 85, as ZeroMQ writes it (rfc.zeromq.org/spec/32) ---------------------------------------

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}


def to_base85(data: bytes) -> str:
    """Bytes in base 85; filled up with zeros to whole groups of four.

    >>> to_base85(UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61").bytes)
    '^-aqEH.-t@S}K{vb[*k^'
    """
    filled = data + bytes(-len(data) % 4)
    digits = []
    for (number,) in struct.iter_unpack(">I", filled):
        digits += [_DIGITS[number // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(digits)


def from_base85(text: str) -> bytes:
    """The bytes of a text in base 85."""
    if len(text) % 5 or not set(text) <= _VALUES.keys():
        raise DamagedBitmapError("it is no text in base 85")
    numbers = []
    for start in range(0, len(text), 5):
        number = 0
        for digit in text[start : start + 5]:
            number = number * 85 + _VALUES[digit]
        numbers.append(number)
    return struct.pack(f">{len(numbers)}I", *numbers)
