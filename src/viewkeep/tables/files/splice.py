"""Parquet files made of row groups of other files, whose bytes are copied as they are.

A row group is a range of bytes, and so is each of its columns; the footer tells where they begin. A
file of which few row groups change, or few columns, costs the copy of its bytes and the writing of
those few.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from viewkeep.tables.files.thrift import (
    I64,
    LIST,
    STRUCT,
    Fields,
    ThriftError,
    read_list,
    read_number,
    read_struct,
    write_list,
    write_number,
    write_struct,
)

MAGIC = b"PAR1"
COPIED_AT_ONCE = 1 << 24
# Fields of a footer, of a row group in it, of a column of that, and of what is told of the column.
_ROWS, _GROUPS, _ENCRYPTION = 3, 4, 8
_COLUMNS, _GROUP_BYTES, _GROUP_ROWS, _SORTED_BY = 1, 2, 3, 4
_GROUP_OFFSET, _GROUP_SIZE, _ORDINAL = 5, 6, 7
_FILE_PATH, _COLUMN_OFFSET, _ABOUT = 1, 2, 3
_BYTES, _SIZE, _PAGES, _INDEX_PAGE, _DICTIONARY, _BLOOM = 6, 7, 9, 10, 11, (14, 15)
_INTEGERS = ("None", "Int(bitWidth=32, isSigned=true)", "Int(bitWidth=64, isSigned=true)")


ColumnSource = tuple["GroupSource", int, int]
"""A file, and the numbers of a row group and of a column in it."""
Leaves = list[tuple[str, int, int, str, str, int]]
"""The path, levels, stored type, meaning and length of each leaf of a file's columns."""


class SpliceError(ValueError):
    """A file whose row groups cannot be put into another one."""


@dataclass(frozen=True)
class GroupSource:
    """A Parquet file, open without a buffer, and the parts of its footer."""

    file: IO[bytes]
    footer: Fields
    groups: Sequence[Fields]
    end: int
    """Where the footer begins."""

    @staticmethod
    def read(file: IO[bytes]) -> "GroupSource":
        """The parts of a file's footer."""
        file.seek(-8, os.SEEK_END)
        end = file.read(8)
        if end[4:] != MAGIC:
            raise SpliceError("no plain Parquet file")
        length = int.from_bytes(end[:4], "little")
        place = file.seek(-8 - length, os.SEEK_END)
        try:
            footer, _ = read_struct(file.read(length), 0, {_GROUPS: _read_groups})
        except ThriftError as error:
            raise SpliceError(str(error)) from error
        if _ENCRYPTION in footer:
            raise SpliceError("an encrypted file")
        return GroupSource(file, footer, footer[_GROUPS][1], place)


class Splice:
    """A file whose row groups stay, and that gets those of others; its schema is that of theirs."""

    def __init__(self, file: IO[bytes], is_new: bool = False) -> None:
        """`file` is open without a buffer, to be read and written; a new one is empty."""
        self._sink, self._place = file, len(MAGIC)
        self._groups: list[bytes] = []
        self._rows = 0
        self._range: tuple[IO[bytes], int, int] | None = None
        if is_new:
            file.write(MAGIC)
        else:
            self._keep_groups(GroupSource.read(file))

    def _keep_groups(self, own: GroupSource) -> None:
        self._place = own.end
        self._sink.truncate(own.end)
        self._sink.seek(own.end)
        for group in own.groups:
            columns = [_column_bytes(each[_ABOUT][1]) for each in group[_COLUMNS][1]]
            self._add_group(group, columns)

    def add(self, source: GroupSource, numbers: Iterable[int]) -> None:
        """Copy row groups of a file; indexes of pages and filters, which stand apart from them, are
        left out."""
        for number in numbers:
            group = source.groups[number]
            self._add_group(
                group, [self._copy_column_pages(source, each) for each in group[_COLUMNS][1]]
            )
        self._copy_range()

    def add_columns(self, sources: Sequence[ColumnSource]) -> None:
        """A row group of columns of several files, one behind the other: who reads a part of a file
        takes the row groups whose middle is in it."""
        columns = [file.groups[group][_COLUMNS][1][column] for file, group, column in sources]
        about = [each[_ABOUT][1] for each in columns]
        group = dict(sources[0][0].groups[sources[0][1]])
        group.pop(_SORTED_BY, None)
        for name, part in ((_GROUP_BYTES, _BYTES), (_GROUP_SIZE, _SIZE)):
            group[name] = I64, write_number(sum(read_number(each[part][1]) for each in about))
        self._add_group(
            group,
            [
                self._copy_column_pages(file, column)
                for (file, _, _), column in zip(sources, columns, strict=True)
            ],
        )
        self._copy_range()

    def _add_group(self, group: Fields, columns: list[bytes]) -> None:
        fields = {**group, _COLUMNS: (LIST, write_list(STRUCT, columns))}
        self._groups.append(_struct_bytes(fields, _GROUP_OFFSET, _ORDINAL))
        self._rows += read_number(group[_GROUP_ROWS][1])

    def finish(self, source: GroupSource) -> None:
        """Write the footer, with the schema and the notes of a source."""
        footer = dict(source.footer)
        footer[_ROWS] = I64, write_number(self._rows)
        footer[_GROUPS] = LIST, write_list(STRUCT, self._groups)
        text = _struct_bytes(footer)
        self._sink.write(b"".join((text, len(text).to_bytes(4, "little"), MAGIC)))

    def _copy_column_pages(self, source: GroupSource, column: Fields) -> bytes:
        """Copy the pages of a column; what is told of it, with the place where they are now."""
        if _FILE_PATH in column or _ABOUT not in column:
            raise SpliceError("columns in another file")
        about = dict(column[_ABOUT][1])
        pages = read_number(about[_PAGES][1])
        dictionary = read_number(about[_DICTIONARY][1]) if _DICTIONARY in about else 0
        start = dictionary if 0 < dictionary < pages else pages
        about[_PAGES] = I64, write_number(pages - start + self._place)
        if start == dictionary:
            about[_DICTIONARY] = I64, write_number(self._place)
        self._extend_range(source.file, start, read_number(about[_SIZE][1]))
        return _column_bytes(about)

    def _extend_range(self, file: IO[bytes], start: int, size: int) -> None:
        """Bytes that follow each other are copied at once."""
        last = self._range
        if last is not None and last[0] is file and last[2] == start:
            self._range = file, last[1], start + size
        else:
            self._copy_range()
            self._range = file, start, start + size
        self._place += size

    def _copy_range(self) -> None:
        if self._range is not None:
            _copy_bytes(*self._range, self._sink)
            self._range = None


def _read_groups(data: bytes, place: int) -> tuple[list[Fields], int]:
    return read_list(data, place, _read_group)


def _read_group(data: bytes, place: int) -> tuple[Fields, int]:
    return read_struct(data, place, {_COLUMNS: _read_columns})


def _read_columns(data: bytes, place: int) -> tuple[list[Fields], int]:
    return read_list(data, place, _read_column)


def _read_column(data: bytes, place: int) -> tuple[Fields, int]:
    return read_struct(data, place, {_ABOUT: read_struct})


def _column_bytes(about: Fields) -> bytes:
    about_bytes = STRUCT, _struct_bytes(about, _INDEX_PAGE, *_BLOOM)
    return write_struct([(_COLUMN_OFFSET, (I64, write_number(0))), (_ABOUT, about_bytes)])


def _struct_bytes(fields: Fields, *but: int) -> bytes:
    return write_struct(each for each in sorted(fields.items()) if each[0] not in but)


def _copy_bytes(file: IO[bytes], start: int, end: int, sink: IO[bytes]) -> None:
    """Bytes of a file to the end of another one, by the system where it can."""
    copy = getattr(os, "copy_file_range", None)
    while start < end:
        size = min(end - start, COPIED_AT_ONCE)
        try:
            if copy is None:
                raise OSError
            copied = copy(file.fileno(), sink.fileno(), size, start)
        except OSError:  # systems that cannot, and files of two file systems
            file.seek(start)
            copied = sink.write(file.read(size))
        if not copied:
            raise SpliceError("a file that is shorter than its footer tells")
        start += copied


def leaf_columns(schema: Any) -> Leaves:
    """What the bytes of row groups mean: equal for files whose row groups go into one file."""
    columns = [schema.column(place) for place in range(len(schema))]
    return [
        (
            each.path,
            each.max_definition_level,
            each.max_repetition_level,
            each.physical_type,
            _logical_type(each),
            each.length,
        )
        for each in columns
    ]


def _logical_type(column: Any) -> str:
    """Integers of their own width are what they are, whether a file tells so or not."""
    type_name = str(column.logical_type)
    return (
        "" if type_name in _INTEGERS and column.physical_type in ("INT32", "INT64") else type_name
    )
