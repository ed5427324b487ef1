"""A dictionary of texts in machine code: codes straight from Arrow's buffers, no object for a text.

Texts lie one after another in one block of bytes. A *place* tells where: its number is the code of
the text, for as long as it is kept. A table of hashes finds the place of a text. Texts that are
forgotten leave their places to others, and the bytes are moved together.
"""

import ctypes
import weakref
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from numpy.typing import NDArray

from viewkeep.engine.compiled.emit.tables import CLAIM
from viewkeep.engine.compiled.formats import NULL, PLAIN, Column
from viewkeep.engine.compiled.function import Function, Module
from viewkeep.engine.compiled.llvm import machine
from viewkeep.engine.compiled.memory import words_at

SLOTS, MASK, COUNT, PLACES, USED, ROOM, BYTES, LENGTH, SPACE, FREE, MOST = range(11)
"""Words of a dictionary: table of hashes and its mask, how many texts; places, how many are used,
for how many there is room; bytes, how many are used, how many there are; the first free place, plus
one; how many texts there may be before someone looks which are needed (for single rows)."""

WORDS = 11
_SMALLEST = 16
_AHEAD = 64
"""Texts of a column that are hashed, and fetched from memory, before they are looked up."""

_FREED = -1
"""The length of a text that is not there."""

_HASH = """\
    h = n * -7046029254386353131
    end = p + n
    if n >= 8:
        while p + 8 <= end:
            h = (h ^ word_at(p)) * -4417276706812531889
            h = h ^ (h >> 29)
            p += 8
        if p < end:
            h = (h ^ word_at(end - 8)) * -4417276706812531889
            h = h ^ (h >> 29)
    else:
        while p < end:
            h = (h ^ byte_at(p)) * -8663945395140668459
            h = h ^ (h >> 31)
            p += 1
    h = (h ^ (h >> 32)) * -7046029254386353131
    return h ^ (h >> 29)"""

_SEEK = f"""\
    i = h & d[{MASK}]
    while 1:
        slot = d[{SLOTS}] + i * 16
        if slot[1] == 0:
            return 0
        if slot[0] == h:
            place = d[{PLACES}] + slot[1] * 16 - 16
            if place[1] == n:
                if compare(d[{BYTES}] + place[0], p, n) == 0:
                    return slot[1]
        i = (i + 1) & d[{MASK}]
    return 0"""

_PUT = f"""\
    i = h & d[{MASK}]
    slot = d[{SLOTS}] + i * 16
    while slot[1] != 0:
        i = (i + 1) & d[{MASK}]
        slot = d[{SLOTS}] + i * 16
    slot[0] = h
    slot[1] = number"""

_TABLE = f"""\
    release(d[{SLOTS}])
    d[{SLOTS}] = claim(room * 16)
    d[{MASK}] = room - 1
    for i in range(room):
        slot = d[{SLOTS}] + i * 16
        slot[1] = 0
    for number in range(d[{USED}]):
        place = d[{PLACES}] + number * 16
        if place[1] != {_FREED}:
            put(d, hash_bytes(d[{BYTES}] + place[0], place[1]), number + 1)"""

_ADD = f"""\
    if d[{COUNT}] * 4 >= d[{MASK}] * 3:
        make_table(d, 2 * (d[{MASK}] + 1))
    number = d[{FREE}]
    if number == 0:
        if d[{USED}] == d[{ROOM}]:
            block = claim(d[{ROOM}] * 32)
            move(block, d[{PLACES}], d[{ROOM}] * 16)
            release(d[{PLACES}])
            d[{PLACES}] = block
            d[{ROOM}] = 2 * d[{ROOM}]
        d[{USED}] += 1
        number = d[{USED}]
    else:
        place = d[{PLACES}] + number * 16 - 16
        d[{FREE}] = place[0]
    if d[{LENGTH}] + n > d[{SPACE}]:
        d[{SPACE}] = 2 * (d[{LENGTH}] + n)
        block = claim(d[{SPACE}])
        move(block, d[{BYTES}], d[{LENGTH}])
        release(d[{BYTES}])
        d[{BYTES}] = block
    move(d[{BYTES}] + d[{LENGTH}], p, n)
    place = d[{PLACES}] + number * 16 - 16
    place[0] = d[{LENGTH}]
    place[1] = n
    d[{LENGTH}] += n
    d[{COUNT}] += 1
    put(d, h, number)
    return number"""

_CODE = """\
    h = hash_bytes(p, n)
    number = seek(d, p, n, h)
    if number == 0:
        number = add_text(d, p, n, h)
    return number - 1"""

_CODE_ALL = f"""\
    first = 0
    while first < count:
        last = first + {_AHEAD}
        if last > count:
            last = count
        for i in range(first, last):
            h = hash_bytes(data + offsets[i], offsets[i + 1] - offsets[i])
            out[i] = h
            prefetch(d[{SLOTS}] + (h & d[{MASK}]) * 16)
        for i in range(first, last):
            slot = d[{SLOTS}] + (out[i] & d[{MASK}]) * 16
            if slot[1] != 0:
                prefetch(d[{PLACES}] + slot[1] * 16 - 16)
        for i in range(first, last):
            p = data + offsets[i]
            n = offsets[i + 1] - offsets[i]
            number = seek(d, p, n, out[i])
            if number == 0:
                number = add_text(d, p, n, out[i])
            out[i] = {PLAIN - 1} + number
        first = last
    return 0"""

_CODE_SINGLE = f"""\
    h = hash_bytes(p, n)
    number = seek(d, p, n, h)
    if number == 0:
        if d[{COUNT}] >= d[{MOST}]:
            return -1
        number = add_text(d, p, n, h)
    return number - 1"""

_FIND = """\
    return seek(d, p, n, hash_bytes(p, n)) - 1"""

_LENGTHS = f"""\
    total = 0
    for i in range(count):
        place = d[{PLACES}] + (codes[i] - {PLAIN}) * 16
        offsets[i] = total
        total += place[1]
    offsets[count] = total
    return total"""

_GATHER = f"""\
    for i in range(count):
        place = d[{PLACES}] + (codes[i] - {PLAIN}) * 16
        move(data + offsets[i], d[{BYTES}] + place[0], place[1])
    return 0"""

_KEEP = f"""\
    total = 0
    for number in range(d[{USED}]):
        place = d[{PLACES}] + number * 16
        if place[1] != {_FREED}:
            if byte_at(used + number) != 0:
                total += place[1]
    space = 2 * total + 64
    block = claim(space)
    length = 0
    d[{FREE}] = 0
    d[{COUNT}] = 0
    number = d[{USED}]
    while number > 0:
        place = d[{PLACES}] + number * 16 - 16
        kept = 0
        if place[1] != {_FREED}:
            kept = byte_at(used + number - 1)
        if kept != 0:
            move(block + length, d[{BYTES}] + place[0], place[1])
            place[0] = length
            length += place[1]
            d[{COUNT}] += 1
        else:
            place[0] = d[{FREE}]
            place[1] = {_FREED}
            d[{FREE}] = number
        number -= 1
    release(d[{BYTES}])
    d[{BYTES}] = block
    d[{LENGTH}] = length
    d[{SPACE}] = space
    room = {_SMALLEST}
    while room * 3 <= d[{COUNT}] * 4:
        room = 2 * room
    make_table(d, 2 * room)
    return d[{COUNT}]"""

_START = f"""\
    d[{SLOTS}] = claim({16 * _SMALLEST})
    d[{MASK}] = {_SMALLEST - 1}
    for i in range({_SMALLEST}):
        slot = d[{SLOTS}] + i * 16
        slot[1] = 0
    d[{PLACES}] = claim({16 * _SMALLEST})
    d[{ROOM}] = {_SMALLEST}
    d[{BYTES}] = claim(64)
    d[{SPACE}] = 64
    return 0"""

_MODULE = Module(
    (
        CLAIM,
        Function("hash_bytes", "p, n", [_HASH], inline=True),
        Function("seek", "d, p, n, h", [_SEEK], inline=True),
        Function("put", "d, h, number", [_PUT]),
        Function("make_table", "d, room", [_TABLE]),
        Function("add_text", "d, p, n, h", [_ADD]),
        Function("code_text", "d, p, n", [_CODE], public=True),
        Function("code_all", "d, offsets, data, count, out", [_CODE_ALL], public=True),
        Function("code_single", "d, p, n", [_CODE_SINGLE], public=True),
        Function("find_text", "d, p, n", [_FIND], public=True),
        Function("lengths", "d, codes, count, offsets", [_LENGTHS], public=True),
        Function("gather", "d, codes, count, offsets, data", [_GATHER], public=True),
        Function("keep", "d, used", [_KEEP], public=True),
        Function("start", "d", [_START], public=True),
    )
)


@cache
def _code() -> machine.MachineCode:
    return machine.load(_MODULE)


@cache
def _function(name: str, arity: int) -> Callable[..., int]:
    return _code().function(name, arity)


class Texts:
    """Texts and their codes; the memory goes with the object."""

    def __init__(self) -> None:
        self.words = np.zeros(WORDS, np.int64)
        self.address: int = self.words.ctypes.data
        _function("start", 1)(self.address)
        self._finalizer = weakref.finalize(self, _free, self.words)

    def __len__(self) -> int:
        return int(self.words[COUNT])

    @property
    def places(self) -> int:
        """How many places there are, also free ones."""
        return int(self.words[USED])

    def code(self, text: str) -> int | None:
        """The code of a text, a new one if need be; None for one that is no UTF-8."""
        return self._with_bytes("code_text", text)

    def find(self, text: str) -> int | None:
        """The code of a text, None if it is not there."""
        return self._with_bytes("find_text", text)

    def _with_bytes(self, name: str, text: str) -> int | None:
        try:
            content = text.encode()
        except UnicodeEncodeError:
            return None
        place = ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0
        number = _function(name, 3)(self.address, place, len(content))
        return PLAIN + number if number >= 0 else None

    def code_column(self, offsets: Column, data: int) -> Column:
        """The codes of texts that lie between offsets from an address."""
        codes = np.empty(len(offsets) - 1, np.int64)
        _function("code_all", 5)(
            self.address, offsets.ctypes.data, data, len(codes), codes.ctypes.data
        )
        return codes

    def code_list(self, values: list[str | None]) -> Column | None:
        """The codes of texts and nulls; None where one is no UTF-8."""
        try:
            return self.code_arrow(pa.array(values, pa.large_string()))
        except (pa.ArrowException, UnicodeEncodeError):
            return None

    def code_arrow(self, column: Any) -> Column:
        """The codes of an Arrow array of texts."""
        if not pa.types.is_large_string(column.type):
            column = column.cast(pa.large_string())
        if column.null_count:
            codes = np.full(len(column), NULL, np.int64)
            codes[column.is_valid().to_numpy(zero_copy_only=False)] = self.code_arrow(
                column.drop_null()
            )
            return codes
        if not len(column):
            return np.empty(0, np.int64)
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        return self.code_column(np.ascontiguousarray(ends), data.address if data else 0)

    def arrow(self, codes: Column) -> Any:
        """The texts of codes, none of which is NULL, as an Arrow array."""
        offsets, data = self.buffers(codes)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        column = pa.Array.from_buffers(pa.large_string(), len(codes), buffers)
        return column.cast(pa.string()) if offsets[-1] < 2**31 else column

    def buffers(self, codes: Column) -> tuple[Column, NDArray[np.uint8]]:
        """The texts of codes as Arrow has them: offsets and bytes."""
        codes, offsets = np.ascontiguousarray(codes), np.zeros(len(codes) + 1, np.int64)
        total = _function("lengths", 4)(
            self.address, codes.ctypes.data, len(codes), offsets.ctypes.data
        )
        data = np.empty(max(total, 1), np.uint8)
        _function("gather", 5)(
            self.address, codes.ctypes.data, len(codes), offsets.ctypes.data, data.ctypes.data
        )
        return offsets, data

    def values(self, codes: Column) -> list[str]:
        """The texts of codes."""
        offsets, data = self.buffers(codes)
        content, ends = data.tobytes(), offsets.tolist()
        return [content[a:b].decode() for a, b in pairwise(ends)]

    @staticmethod
    def single_address() -> int:
        """The address of the function that codes the texts of single rows: -1 where someone must
        look first which texts are needed."""
        return _code().address("code_single")

    def allow(self, more: int) -> None:
        """So many new texts may come with single rows before someone looks."""
        self.words[MOST] = len(self) + more

    def keep(self, used: NDArray[np.bool_]) -> None:
        """Forget the texts at all other places."""
        marks = np.ascontiguousarray(used[: self.places], np.uint8)
        _function("keep", 2)(self.address, marks.ctypes.data)

    def __reduce__(self) -> tuple[Callable[..., "Texts"], tuple[Any, ...]]:
        places = words_at(int(self.words[PLACES]), 2 * self.places).copy()
        data = ctypes.string_at(int(self.words[BYTES]), int(self.words[LENGTH]))
        return _restored, (places, data)


def _restored(places: Column, data: bytes) -> Texts:
    """A dictionary with these places and bytes."""
    texts = Texts()
    words, room = texts.words, max(len(places) // 2, _SMALLEST)
    for place, size in ((PLACES, 16 * room), (BYTES, len(data) + 64)):
        _release(int(words[place]))
        words[place] = _allocate(size)
    ctypes.memmove(int(words[PLACES]), places.ctypes.data, 8 * len(places))
    ctypes.memmove(int(words[BYTES]), data, len(data))
    words[USED], words[ROOM], words[SPACE] = len(places) // 2, room, len(data) + 64
    texts.keep(np.ones(texts.places, np.bool_))
    return texts


_library = ctypes.CDLL(None)
_release, _allocate = _library.free, _library.malloc
_release.argtypes, _release.restype = [ctypes.c_void_p], None
_allocate.argtypes, _allocate.restype = [ctypes.c_size_t], ctypes.c_void_p


def _free(words: Column) -> None:
    for place in (SLOTS, PLACES, BYTES):
        _release(int(words[place]))
