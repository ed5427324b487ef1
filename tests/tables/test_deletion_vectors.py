"""Deletion vectors: bytes of Delta's protocol, written and read; all kinds of containers."""

import random
import struct
from dataclasses import replace

import numpy as np
import pytest

from viewkeep import ViewkeepError
from viewkeep.tables.log.deletion_vectors import (
    DeletionVector,
    from_base85,
    pack_vectors,
    to_base85,
)
from viewkeep.tables.log.roaring import NATIVE, PORTABLE, from_bytes, to_bytes


def random_rows(rng: random.Random) -> set[int]:
    """Rows in lists, in full and half full containers, and beyond 32 bits."""
    rows: set[int] = set()
    for _ in range(rng.randrange(5)):
        start = rng.choice([0, 65_535, 65_536, 1 << 20, (1 << 32) - 3, 1 << 33])
        width, count = rng.choice([(9, 5), (70_000, 50), (70_000, 30_000), (65_536, 65_536)])
        rows |= {start + each for each in rng.sample(range(width), min(width, count))}
    return rows


@pytest.mark.parametrize("seed", range(25))
def test_rows_come_back(seed: int) -> None:
    rows = sorted(random_rows(random.Random(seed)))
    assert from_bytes(to_bytes(np.array(rows, np.int64))).tolist() == rows


def test_a_vector_of_another_writer() -> None:
    """The rows of the example in Delta's protocol."""
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    rows = DeletionVector("i", text, 44, 6).read(b"")
    assert rows.tolist() == [3, 4, 7, 11, 18, 29]
    assert to_base85(from_base85("HelloWorld")) == "HelloWorld"


def runs(spans: list[tuple[int, list[tuple[int, int]]]]) -> bytes:
    """A bitmap of containers of runs, as other writers make them."""
    flags = np.packbits(np.ones(len(spans), np.uint8), bitorder="little").tobytes()
    about = [(high, sum(n for _, n in each) - 1) for high, each in spans]
    containers = [
        struct.pack("<H", len(each)) + b"".join(struct.pack("<HH", a, n - 1) for a, n in each)
        for _, each in spans
    ]
    starts = 4 + len(flags) + 8 * len(spans) + np.cumsum([0, *map(len, containers[:-1])])
    offsets = starts.astype("<u4").tobytes() if len(spans) >= 4 else b""
    header = struct.pack("<I", 12347 | (len(spans) - 1) << 16) + flags
    return (
        header
        + b"".join(struct.pack("<HH", *each) for each in about)
        + offsets
        + b"".join(containers)
    )


@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_runs(count: int) -> None:
    """With few containers there are no offsets."""
    spans = [(2 * high, [(high, 3), (100, 1), (60_000, 5_536)]) for high in range(count)]
    expected = [
        (high << 16) + start + i for high, each in spans for start, n in each for i in range(n)
    ]
    bitmap = runs(spans)
    portable = struct.pack("<IQI", PORTABLE, 1, 0) + bitmap
    native = struct.pack("<III", NATIVE, 1, len(bitmap)) + bitmap
    assert from_bytes(portable).tolist() == from_bytes(native).tolist() == expected


def test_small_vectors_stand_in_the_log() -> None:
    described, file = pack_vectors([np.array([1, 5]), np.array([70_000])])
    assert file is None
    assert [each.path for each in described] == [None, None]
    assert [each.read(b"").tolist() for each in described] == [[1, 5], [70_000]]
    again = [DeletionVector.from_json(each.as_json()) for each in described]
    assert again == described


def test_large_vectors_share_a_file() -> None:
    vectors = [np.arange(0, 9000, 2), np.arange(5, 8000, 5), np.array([4])]
    described, file = pack_vectors(vectors)
    assert file is not None
    assert len({each.path for each in described}) == 1
    assert len({each.identity for each in described}) == 3
    for each, rows in zip(described, vectors, strict=True):
        assert DeletionVector.from_json(each.as_json()).read(file).tolist() == rows.tolist()


def test_damage_is_told() -> None:
    described, file = pack_vectors([np.arange(0, 9000, 2)])
    assert file is not None
    other = bytearray(file)
    other[100] ^= 1
    for bad in (bytes(other), file[:50], b""):
        with pytest.raises(ViewkeepError, match="deletion vector"):
            described[0].read(bad)
    [small], _ = pack_vectors([np.array([1, 2])])
    for bad_one in (
        replace(small, rows=3),
        DeletionVector("i", "~~~~~", 4, 1),
        DeletionVector("i", to_base85(b"\x01\x02\x03\x04"), 4, 1),
    ):
        with pytest.raises(ViewkeepError, match="deletion vector"):
            bad_one.read(b"")
