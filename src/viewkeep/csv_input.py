"""CSV files of rows and of changes, as values that fit a query; docs/maintain.md describes them.

Files are read a line at a time. What is wrong with a line is an error whose note names the line.
"""

import csv
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

from viewkeep.changes import MisfitError, converter
from viewkeep.errors import SchemaError, ViewkeepError, did_you_mean
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.evaluate.exact_text import read_exactly
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import STRING, Field

Row = tuple[Any, ...]
Read = Callable[[str], Any]
"""From the text of a field to its value."""

STANDARD_INPUT = "-"
HEADER_OF_CHANGES = ("relation", "multiplicity")

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][+-]?[0-9]{1,4})?|[eE][+-][0-9]{1,4})")
_MULTIPLICITY = re.compile(r"[+-]|[+-]?[0-9]{1,18}")
_LONGEST_NUMBER = 1000
_MOST_CHARACTERS = 2**31 - 1


def read_value(text: str) -> Any:
    """The value of a field of unknown type; only texts that are written like numbers are numbers.

    >>> [read_value(each) for each in ("42", "1.50", "007", "Bern", "")]
    [42, Decimal('1.50'), '007', 'Bern', None]
    """
    stripped = text.strip()
    if not stripped:
        return None
    if len(stripped) > _LONGEST_NUMBER:
        return text
    if _INTEGER.fullmatch(stripped):
        return int(stripped)
    return Decimal(stripped) if _DECIMAL.fullmatch(stripped) else text


def read_field(field: Field) -> Read:
    """How the values of a declared column are read, exactly or not at all; an empty one is NULL."""
    read_text = None if field.type == STRING else read_exactly(field.type)
    fit = converter(field.type)

    def read(text: str) -> Any:
        if not text:
            if not field.nullable:
                raise SchemaError(f'column "{field.name}" is empty, but declared not null')
            return None
        try:
            return fit(text if read_text is None else read_text(text))
        except (ValueError, TypeError, ArithmeticError, MisfitError) as error:
            raise SchemaError(f'column "{field.name}" ({field.type}): {error}') from None

    return read


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """What a row of a relation looks like in a file, and which of its columns the query reads."""

    relation: str
    columns: tuple[str, ...]
    readers: tuple[Read, ...]
    used: tuple[int, ...]

    @staticmethod
    def of(query: ConjunctiveQuery, relation: str, tables: Mapping[str, Table]) -> "CsvLayout":
        """The columns of the declared table, else the variables of the relation's first atom."""
        bound = query.columns_of(relation)
        table = tables.get(relation)
        if table is None:
            every = tuple(range(len(bound)))
            return CsvLayout(relation, bound, (read_value,) * len(bound), every)
        used = tuple(table.names.index(column) for column in bound)
        return CsvLayout(relation, table.names, tuple(map(read_field, table.columns)), used)

    def row(self, fields: list[str]) -> Row:
        """The values that the query reads, of fields in the order of the columns."""
        if len(fields) != len(self.columns):
            raise SchemaError(
                f"{_values_of_line(len(fields))}, but {self.relation}({', '.join(self.columns)}) "
                f"has {len(self.columns)}"
            )
        return tuple([self.readers[i](fields[i]) for i in self.used])

    def places(self, header: list[str]) -> list[int] | None:
        """Where a header names the columns that the query reads; None if it is no header of it."""
        own = [self.columns[i] for i in self.used]
        for fold in (str.strip, lambda name: name.strip().casefold()):
            names, folded = [fold(name) for name in header], [fold(name) for name in own]
            if header and len(set(folded)) == len(folded) and set(folded) <= set(names):
                return [names.index(name) for name in folded]
        return None

    def row_at(self, fields: list[str], places: list[int], width: int) -> Row:
        """The values that the query reads, of fields in the order of a header."""
        if len(fields) != width:
            raise SchemaError(f"{_values_of_line(len(fields))}, but the header has {width}")
        pairs = zip(self.used, places, strict=True)
        return tuple([self.readers[i](fields[place]) for i, place in pairs])


class CsvFile:
    """The records of a file or of standard input, one at a time, and the line each starts at."""

    def __init__(self, name: str) -> None:
        self.name = "standard input" if name == STANDARD_INPUT else name
        self.line = 0
        self._binary = _open_csv(name)
        self._text = TextIOWrapper(self._binary, encoding="utf-8-sig", newline="")

    @property
    def place(self) -> str:
        """The file and the line, for errors."""
        return f"{self.name} line {self.line}" if self.line else self.name

    @property
    def done(self) -> float | None:
        """How much of the file has been read, from 0 to 1; None where its size is not known."""
        raw = getattr(self._binary, "raw", None)
        try:
            if raw is None or not raw.seekable():
                return None
            size = os.fstat(raw.fileno()).st_size
            return min(raw.tell() / size, 1.0) if size else None
        except (ValueError, OSError):  # closed meanwhile: who draws the progress is another thread
            return None

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Errors say which line they are about."""
        try:
            yield
        except ViewkeepError as error:
            error.add_note(self.place)
            raise

    def records(self) -> Iterator[list[str]]:
        """The fields of every line that is not blank."""
        reader = csv_reader(self._text)
        while True:
            self.line = reader.line_num + 1
            try:
                record = next(reader, None)
            except csv.Error as error:
                raise SchemaError(f"not valid CSV: {error}") from None
            except UnicodeDecodeError:
                raise SchemaError("not text in UTF-8, here or in a line below") from None
            except OSError as error:
                raise ViewkeepError(f"cannot be read: {error.strerror}") from None
            if record is None:
                return
            if record:
                yield record

    def close(self) -> None:
        """Let the file go; standard input stays open."""
        if self._binary is getattr(sys.stdin, "buffer", None):
            self._text.detach()
        else:
            self._text.close()


def csv_reader(lines: Iterable[str]) -> Any:
    """A reader of CSV as all files here have it, with fields of any size."""
    csv.field_size_limit(max(csv.field_size_limit(), _MOST_CHARACTERS))  # one for the process
    return csv.reader(lines, strict=True, skipinitialspace=True)


def read_csv_rows(file: CsvFile, layout: CsvLayout, header: bool | None = None) -> Iterator[Row]:
    """The rows of a relation; whether the first line is a header is found out, or told.

    A header that names the columns says where they are; else columns come in their order.
    """
    records = file.records()
    first = next(records, None)
    if first is None:
        return
    places = None if header is False else layout.places(first)
    if places is not None:
        width = len(first)
        yield from (layout.row_at(fields, places, width) for fields in records)
        return
    if not header:
        yield layout.row(first)
    for number, fields in enumerate(records):
        if number == 0 and header is None and _looks_like_header(first, fields):
            raise SchemaError(
                f"the line before ({', '.join(first)}) looks like a header, but does not name the "
                f"columns of {layout.relation} ({', '.join(layout.columns)}): rename them, or say "
                "--header if it is one and --no-header if it is not"
            )
        yield layout.row(fields)


def read_declared(file: CsvFile, table: Table) -> Iterator[dict[str, Any]]:
    """The rows of a file whose header names some columns of a declared table."""
    records = file.records()
    fields = _declared_header(next(records, []), table)
    readers = [(field.name, read_field(field)) for field in fields]
    for values in records:
        if len(values) != len(readers):
            raise SchemaError(f"{_values_of_line(len(values))}, but the header has {len(readers)}")
        yield {name: read(value) for (name, read), value in zip(readers, values, strict=True)}


def _declared_header(header: list[str], table: Table) -> list[Field]:
    by_name = {field.name.casefold(): field for field in table.columns}
    names = [name.strip() for name in header]
    if not names:
        raise SchemaError("the file is empty: its first line names the columns")
    for number, name in enumerate(names):
        if name.casefold() not in by_name:
            raise SchemaError(
                f'the first line names the columns, and "{name}" is none of them '
                f"({', '.join(table.names)}){did_you_mean(name, table.names)}"
            )
        if name.casefold() in map(str.casefold, names[:number]):
            raise SchemaError(f'the first line names the column "{name}" twice')
    return [by_name[name.casefold()] for name in names]


@dataclass(frozen=True, slots=True)
class RowChange:
    """So many copies of a row more or less; no row if the query does not read the relation."""

    relation: str
    row: Row | None
    multiplicity: int


def read_csv_changes(
    file: CsvFile, layouts: Mapping[str, CsvLayout], others: Mapping[str, Table]
) -> Iterator[RowChange]:
    """The changes of a file: relation, multiplicity, values; `others` are tables not read."""
    for number, (relation, *rest) in enumerate(file.records()):
        if number == 0 and (relation.strip(), *rest[:1]) == HEADER_OF_CHANGES:
            continue
        relation = relation.strip()
        layout = layouts.get(relation)
        if layout is None and relation not in others:
            names = ", ".join(layouts)
            hint = did_you_mean(relation, [*layouts, *others])
            raise SchemaError(f'no relation "{relation}" in the query ({names}){hint}')
        multiplicity = _multiplicity(rest[0].strip() if rest else "")
        yield RowChange(relation, layout.row(rest[1:]) if layout else None, multiplicity)


def _multiplicity(text: str) -> int:
    if not _MULTIPLICITY.fullmatch(text):
        raise SchemaError(
            f'"{text}" is not a multiplicity: expected + or +1 for an insert, - or -1 for a '
            "delete, or another whole number, as in R,+1,..."
        )
    return int(text if text.strip("+-") else f"{text}1")


def _looks_like_header(first: list[str], second: list[str]) -> bool:
    """Whether words stand above numbers: rather the names of columns than a row."""
    above, below = [read_value(each) for each in first], [read_value(each) for each in second]
    return all(isinstance(each, str) for each in above) and any(
        isinstance(each, int | Decimal) for each in below
    )


def _values_of_line(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"


def _open_csv(name: str) -> BinaryIO:
    if name == STANDARD_INPUT:
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except FileNotFoundError:
        raise ViewkeepError(f'there is no file "{name}"') from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ViewkeepError(f'cannot read "{name}": {reason}') from None
