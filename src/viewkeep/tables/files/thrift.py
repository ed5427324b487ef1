"""Thrift's compact protocol, as far as footers of Parquet files need it.

A struct is read as its fields with the bytes of their values, and written from such fields, so that
what nobody looks into stays as it is. Every byte is looked at once.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

I64, BINARY, LIST, STRUCT = 6, 8, 9, 12
_BOOLEANS = (1, 2)
_FIXED = {3: 1, 7: 8, 13: 16}
_INTEGERS = (4, 5, I64)
_SET = 10
_LONG_LIST = 15

Fields = dict[int, tuple[int, Any]]
"""By ID, the type of a field, and the bytes of its value or what a reader made of it."""
Reader = Callable[[bytes, int], tuple[Any, int]]
"""From bytes and a place, a value and the place behind it."""
_NO_READERS: Mapping[int, Reader] = MappingProxyType({})


class ThriftError(ValueError):
    """Bytes that are not what was expected."""


def read_struct(
    data: bytes, start: int, readers: Mapping[int, Reader] = _NO_READERS
) -> tuple[Fields, int]:
    """The fields of a struct, and the place behind it; some have a reader of their own."""
    fields: Fields = {}
    number, place = 0, start
    while head := data[place]:
        kind, place = head & 15, place + 1
        if head >> 4:
            number += head >> 4
        else:
            number, place = _read_signed(data, place)
        if number in readers:
            value, place = readers[number](data, place)
            fields[number] = kind, value
        else:
            end = _skip_field(data, place, kind)
            fields[number] = kind, data[place:end]
            place = end
    return fields, place + 1


def read_list(data: bytes, place: int, reader: Reader) -> tuple[list[Any], int]:
    """The elements of a list, and the place behind it."""
    _, count, place = _list_header(data, place)
    elements = []
    for _ in range(count):
        element, place = reader(data, place)
        elements.append(element)
    return elements, place


def write_struct(fields: Iterable[tuple[int, tuple[int, bytes]]]) -> bytes:
    """A struct with these fields, in ascending order of their IDs.

    >>> fields = {1: (I64, write_number(-3)), 40: (BINARY, b"\\x01!")}
    >>> read_struct(write_struct(fields.items()), 0) == (fields, 7)
    True
    """
    parts: list[bytes] = []
    last = 0
    for number, (kind, value) in fields:
        step, last = number - last, number
        is_short = 0 < step < 16
        head = bytes([step << 4 | kind]) if is_short else bytes([kind]) + write_number(number)
        parts += [head, value]
    return b"".join((*parts, b"\0"))


def write_list(kind: int, elements: list[bytes]) -> bytes:
    """A list of these elements."""
    count = len(elements)
    if count < _LONG_LIST:
        return b"".join((bytes([count << 4 | kind]), *elements))
    return b"".join((bytes([_LONG_LIST << 4 | kind]), _unsigned_bytes(count), *elements))


def read_number(value: bytes) -> int:
    """An integer.

    >>> read_number(write_number(-70000))
    -70000
    """
    return _read_signed(value, 0)[0]


def write_number(value: int) -> bytes:
    """The bytes of an integer."""
    return _unsigned_bytes(value << 1 ^ value >> 63)


def _skip_field(data: bytes, place: int, kind: int) -> int:
    """The place behind a value of a field."""
    if kind in _INTEGERS:
        while data[place] > 127:
            place += 1
        return place + 1
    if kind in _BOOLEANS:
        return place
    if kind == BINARY:
        length, place = _read_unsigned(data, place)
        return place + length
    if kind == STRUCT:
        return _skip_struct(data, place)
    if kind in (LIST, _SET):
        return _skip_list(data, place)
    if kind in _FIXED:
        return place + _FIXED[kind]
    raise ThriftError(f"a value of type {kind} at byte {place}")


def _skip_struct(data: bytes, place: int) -> int:
    while head := data[place]:
        place += 1
        if not head >> 4:
            _, place = _read_unsigned(data, place)
        place = _skip_field(data, place, head & 15)
    return place + 1


def _skip_list(data: bytes, place: int) -> int:
    kind, count, place = _list_header(data, place)
    if kind in _BOOLEANS:
        return place + count
    for _ in range(count):
        place = _skip_field(data, place, kind)
    return place


def _list_header(data: bytes, place: int) -> tuple[int, int, int]:
    head = data[place]
    if head >> 4 < _LONG_LIST:
        return head & 15, head >> 4, place + 1
    count, place = _read_unsigned(data, place + 1)
    return head & 15, count, place


def _read_signed(data: bytes, place: int) -> tuple[int, int]:
    number, place = _read_unsigned(data, place)
    return number >> 1 ^ -(number & 1), place


def _read_unsigned(data: bytes, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[place]
        place += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, place
        shift += 7


def _unsigned_bytes(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)
