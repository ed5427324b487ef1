"""Records of change files: an operation beside the values of a row, in CSV, JSON lines or Parquet.

op,pid,price          {"op": "insert", "pid": 1, "price": 10}
insert,1,10           {"op": "delete", "pid": 1}
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from viewkeep.csv_input import Read, csv_reader, read_field
from viewkeep.errors import SchemaError
from viewkeep.query.tables import Table
from viewkeep.sources.json_values import json_line, json_reader
from viewkeep.sources.record import (
    Record,
    named_columns,
    operation_column,
    printable,
    read_operation,
)

BOM = b"\xef\xbb\xbf"


class UnfinishedFileError(Exception):
    """A file whose last record is not whole yet."""


def csv_records(content: bytes, start: int, table: Table) -> Iterator[Record]:
    """The records of a CSV file after its first `start` bytes; its first line names the columns."""
    header_line, _, _ = content.partition(b"\n")
    names, misread = _header_names(file_text(header_line.removeprefix(BOM)).rstrip("\r"), table)
    column, readers = operation_column(table), {f.name: read_field(f) for f in table.columns}
    begin = max(start, len(header_line) + 1)
    first = content[:begin].count(b"\n")
    for number, fields, problem in _csv_lines(file_text(content[begin:]), first):
        problem = misread or problem
        if problem or len(fields) != len(names):
            problem = problem or f"{len(fields)} values, but the header has {len(names)}"
            yield Record(number, _values_text(fields), problem=problem)
            continue
        values = dict(zip(names, fields, strict=True))
        yield _record_of_values(number, _values_text(values), values, table, readers, column)


def _header_names(line: str, table: Table) -> tuple[list[str], str]:
    """The columns that a header names, and what is wrong with it."""
    try:
        names: list[str] = next(csv_reader([line]), [])
    except csv.Error as error:
        return [], f"its header is not valid CSV: {error}"
    names = _declared_names([name.strip() for name in names], table)
    twice = sorted({name for name in names if names.count(name) > 1})
    return names, f"its header names {', '.join(twice)} twice" if twice else ""


def _declared_names(header: Sequence[str], table: Table) -> list[str]:
    """The names of a header as the table spells them; what is none of its columns stays."""
    column_names = {name.casefold(): name for name in (*table.names, operation_column(table))}
    return [column_names.get(name.casefold(), name) for name in header]


def _csv_lines(text: str, first: int) -> Iterator[tuple[int, list[str], str]]:
    """The line, the fields and the problem of each record that is not blank."""
    reader = csv_reader(io.StringIO(text, newline=""))
    while True:
        number = first + reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise UnfinishedFileError("it ends inside of quotes") from None
            yield number, [], f"not valid CSV: {error}"
            continue
        if fields is None:
            return
        if fields:
            yield number, fields, ""


def json_records(content: bytes, start: int, table: Table) -> Iterator[Record]:
    """The records of a file of JSON lines after its first `start` bytes."""
    column, readers = operation_column(table), {f.name: json_reader(f) for f in table.columns}
    for number, line in file_lines(content, start):
        try:
            document = json_line(line)
            if not isinstance(document, dict):
                raise SchemaError("expected an object, as in " + _EXAMPLE)
        except SchemaError as error:
            yield Record(number, printable(line), problem=str(error))
            continue
        yield _record_of_values(number, printable(line), document, table, readers, column)


_EXAMPLE = '{"op": "insert", "id": 1}'


def parquet_records(content: bytes, start: int, table: Table) -> Iterator[Record]:
    """The records of a Parquet file, whose values have types of their own."""
    assert start == 0, "a Parquet file does not grow"
    try:
        rows = pq.read_table(io.BytesIO(content))
    except (OSError, pa.ArrowException) as error:
        yield Record(0, "", problem=f"not a Parquet file: {error}")
        return
    yield from row_records(rows, table)


def row_records(rows: pa.Table, table: Table) -> Iterator[Record]:
    """The records of an Arrow table with a column of operations."""
    column, readers = operation_column(table), dict.fromkeys(table.names, _as_it_is)
    names = _declared_names(rows.column_names, table)
    for number, row in enumerate(rows.rename_columns(names).to_pylist(), 1):
        yield _record_of_values(number, _values_text(row), row, table, readers, column)


def _as_it_is(value: Any) -> Any:
    return value


def _record_of_values(
    number: int,
    text: str,
    values: Mapping[str, Any],
    table: Table,
    readers: Mapping[str, Callable[[Any], Any] | Read],
    column: str,
) -> Record:
    """The record of values by name, of which one, in `column`, tells the operation."""
    try:
        if column not in values:
            raise SchemaError(f'no "{column}", which tells what happened')
        operation = read_operation(values[column])
        names = named_columns(operation, (name for name in values if name != column), table)
        return Record(number, text, operation, {n: readers[n](values[n]) for n in names})
    except SchemaError as error:
        return Record(number, text, problem=str(error))


def file_lines(content: bytes, start: int) -> Iterator[tuple[int, str]]:
    """The lines after the first `start` bytes that are not blank, by their numbers."""
    first = content[:start].count(b"\n")
    text = file_text(content[start:] if start else content.removeprefix(BOM))
    for number, line in enumerate(text.split("\n"), first + 1):
        if line.strip():
            yield number, line


# --- text -----------------------------------------------------------------------------------------


def file_text(content: bytes) -> str:
    """The text of bytes; bytes that are none become surrogates, which no value may have."""
    return content.decode("utf-8", "surrogateescape")


def _values_text(values: Any) -> str:
    return printable(json.dumps(values, ensure_ascii=False, default=str))
