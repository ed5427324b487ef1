"""Sets of row numbers as Delta stores them: arrays of roaring bitmaps, in bytes.

A bitmap holds numbers of 32 bits by their upper 16: a container is a list of the lower halves, a
bitmap of all 65,536, or a list of runs (github.com/RoaringBitmap/RoaringFormatSpec). An array has a
bitmap for each upper 32 bits. Written are lists and bitmaps, read are all kinds of containers, and
both forms of the array (Delta's protocol, "Deletion Vector Format").
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

RowNumbers = npt.NDArray[np.int64]
"""Places of rows in a file, ascending."""

PORTABLE, NATIVE = 1681511377, 1681511376
"""The magic numbers of the two forms of an array."""
_NO_RUNS, _RUNS = 12346, 12347
_LISTED = 4096
"""The most numbers of a container that is a list."""
_FEW = 4
"""A bitmap with runs has no offsets if it has fewer containers."""


class DamagedBitmapError(ValueError):
    """Bytes that are no array of roaring bitmaps."""


def to_bytes(rows: RowNumbers) -> bytes:
    """An array of bitmaps with these numbers, which ascend.

    >>> from_bytes(to_bytes(np.array([3, 4, 1 << 33]))).tolist()
    [3, 4, 8589934592]
    """
    parts = list(_rows_by_upper_part(rows, 32))
    header = struct.pack("<IQ", PORTABLE, len(parts))
    bitmaps = (struct.pack("<I", high) + _bitmap_bytes(low) for high, low in parts)
    return b"".join([header, *bitmaps])


def from_bytes(data: bytes) -> RowNumbers:
    """The numbers of an array of bitmaps."""
    reader = _BitmapReader(data)
    try:
        match reader.number("<I"):
            case magic if magic == PORTABLE:
                keys = (reader.number("<I") for _ in range(reader.number("<Q")))
                parts = [(key << 32) + reader.bitmap() for key in keys]
            case magic if magic == NATIVE:
                parts = [(key << 32) + reader.sized() for key in range(reader.number("<I"))]
            case magic:
                raise DamagedBitmapError(f"it begins with {magic}")
    except (struct.error, ValueError, OverflowError) as error:
        raise DamagedBitmapError(str(error)) from error
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _rows_by_upper_part(rows: RowNumbers, bits: int) -> Iterator[tuple[int, RowNumbers]]:
    """Numbers by their upper part, without it."""
    highs = rows >> bits
    starts = np.flatnonzero(np.diff(highs, prepend=-1))
    ends = np.append(starts, len(rows))[1:]
    for start, end in zip(starts, ends, strict=True):
        yield int(highs[start]), rows[start:end] & ((1 << bits) - 1)


def _bitmap_bytes(rows: RowNumbers) -> bytes:
    parts = list(_rows_by_upper_part(rows, 16))
    containers = [_container_bytes(low) for _, low in parts]
    headers = [number for high, low in parts for number in (high, len(low) - 1)]
    lengths = [len(each) for each in containers]
    offsets = 8 + 8 * len(parts) + np.cumsum([0, *lengths[:-1]])
    return b"".join(
        [
            struct.pack("<II", _NO_RUNS, len(parts)),
            np.array(headers, "<u2").tobytes(),
            offsets.astype("<u4").tobytes(),
            *containers,
        ]
    )


def _container_bytes(low: RowNumbers) -> bytes:
    if len(low) <= _LISTED:
        return low.astype("<u2").tobytes()
    bits = np.zeros(1 << 16, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()


@dataclass
class _BitmapReader:
    """Bytes that are read one part after the other."""

    data: bytes
    place: int = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self.data, self.place)
        self.place += struct.calcsize(form)
        return int(value)

    def array(self, count: int, form: str = "<u2") -> npt.NDArray[Any]:
        values = np.frombuffer(self.data, form, count, self.place)
        self.place += values.nbytes
        return values

    def sized(self) -> RowNumbers:
        """A bitmap after the number of its bytes."""
        end = self.number("<I") + self.place
        rows = self.bitmap()
        self.place = end
        return rows

    def bitmap(self) -> RowNumbers:
        cookie = self.number("<I")
        if cookie == _NO_RUNS:
            count = self.number("<I")
            has_runs = np.zeros(count, np.uint8)
        elif cookie & 0xFFFF == _RUNS:
            count = (cookie >> 16) + 1
            flags = self.array(-(-count // 8), "u1")
            has_runs = np.unpackbits(flags, count=count, bitorder="little")
        else:
            raise DamagedBitmapError(f"a bitmap begins with {cookie}")
        headers = self.array(2 * count).astype(np.int64).reshape(count, 2)
        if cookie == _NO_RUNS or count >= _FEW:
            self.array(count, "<u4")
        parts = [
            (int(high) << 16) + self._read_container(int(less) + 1, bool(runs))
            for (high, less), runs in zip(headers, has_runs, strict=True)
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _read_container(self, count: int, has_runs: bool) -> RowNumbers:
        if has_runs:
            runs = self.array(2 * self.number("<H")).astype(np.int64).reshape(-1, 2)
            spans = [np.arange(start, start + less + 1) for start, less in runs]
            return np.concatenate([np.zeros(0, np.int64), *spans])
        if count <= _LISTED:
            return self.array(count).astype(np.int64)
        bits = np.unpackbits(self.array(1 << 13, "u1"), bitorder="little")
        return np.flatnonzero(bits).astype(np.int64)
