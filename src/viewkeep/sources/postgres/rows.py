"""Rows of PostgreSQL in the types of a lake's table: read as text, column by column; a row with a
value that does not fit is told with the reason."""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]
from psycopg import sql

from viewkeep.changes import MisfitError, column_converter
from viewkeep.csv_input import read_field
from viewkeep.errors import SchemaError
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import BINARY, STRING, TIMESTAMP_NTZ, Field
from viewkeep.sources.postgres.log import TableLog, unread
from viewkeep.sources.postgres.server import Connection, Text, one_row
from viewkeep.sources.postgres.source import SourceColumn, SourceTable
from viewkeep.tables.arrow_rows import arrow_column, arrow_type
from viewkeep.tables.fit import ColumnMisfitError, fit_column
from viewkeep.tables.table_changes import rows_schema

Problems = dict[int, str]
"""What is wrong with rows, by their numbers."""

THERE = "#there"
_BLOCK_BYTES, _MOST_BYTES = 1 << 24, (1 << 31) - 1


@dataclass(frozen=True)
class RejectedRow:
    """A row with a value that does not fit, as text."""

    number: int
    reason: str
    text: str


@dataclass(frozen=True)
class CapturedRows:
    """Rows as they are now, and keys of rows that are gone; `is_whole` if there are no others."""

    rows: pa.Table
    gone: pa.Table
    rejected: tuple[RejectedRow, ...] = ()
    is_whole: bool = False

    @property
    def count(self) -> int:
        """How many rows were read."""
        extra = len(self.rejected) if self.is_whole else 0
        return int(self.rows.num_rows + self.gone.num_rows + extra)


def whole_rows(connection: Connection, source: SourceTable, table: Table) -> CapturedRows:
    """All rows of a table."""
    columns = _columns(source, table)
    select = sql.SQL("SELECT {} FROM ONLY {} AS t").format(_list(columns, "t"), source.identifier)
    texts = _copied(connection, select, [each.name for each in columns])
    rows, rejected = _fitted(texts, table)
    return CapturedRows(rows, _no_keys(table), rejected, is_whole=True)


def changed_rows(
    connection: Connection, source: SourceTable, table: Table, log: TableLog, position: str
) -> CapturedRows | None:
    """The rows of the keys that the log tells after a position; None if it tells none."""
    entries = unread(log, position)
    ask = sql.SQL("SELECT count(*), count(key) {}").format(entries)
    count, with_key = one_row(connection, ask)
    if not count:
        return None
    if with_key < count:
        return whole_rows(connection, source, table)
    columns, names = _columns(source, table), [f"#{each.name}" for each in source.key]
    # Equal keys may be written differently (a change from 1.0 to 1.00): each text is a key.
    keys = [_key_column(number, each) for number, each in enumerate(source.key, 1)]
    same = sql.SQL(" AND ").join(
        sql.SQL('t.{c} = k.{c} AND t.{c}::text = k."#key"[{n}]').format(
            c=sql.Identifier(each.name), n=sql.Literal(number)
        )
        for number, each in enumerate(source.key, 1)
    )
    select = sql.SQL(
        "SELECT (t.tableoid IS NOT NULL)::text, {own}, {columns} FROM "
        '(SELECT key AS "#key", {keys} FROM (SELECT DISTINCT key {entries}) AS l) AS k '
        "LEFT JOIN ONLY {table} AS t ON {same}"
    ).format(
        own=_list(source.key, "k"),
        columns=_list(columns, "t"),
        keys=sql.SQL(", ").join(keys),
        entries=entries,
        table=source.identifier,
        same=same,
    )
    texts = _copied(connection, select, [THERE, *names, *(each.name for each in columns)])
    return _split(texts, source, table)


def _split(texts: pa.Table, source: SourceTable, table: Table) -> CapturedRows:
    """The rows that are there, and the keys of those that are gone or do not fit: what the lake had
    of them is no longer so."""
    there = pc.equal(texts[THERE], "true")
    of_rows, of_gone = texts.filter(there), texts.filter(pc.invert(there))
    rows, rejected = _fitted(of_rows, table)
    misfits = of_rows.take(pa.array([each.number - 1 for each in rejected], pa.int64()))
    both = pa.concat_tables([of_gone, misfits])
    keys, _ = _fitted(pa.table({each.name: both[f"#{each.name}"] for each in source.key}), table)
    return CapturedRows(rows, keys.select(list(table.key)), rejected)


def _columns(source: SourceTable, table: Table) -> list[SourceColumn]:
    by_name = {each.name: each for each in source.columns}
    return [by_name[name] for name in table.names]


def _list(columns: Sequence[SourceColumn], of: str) -> Text:
    return sql.SQL(", ").join(each.text(of) for each in columns)


def _key_column(number: int, column: SourceColumn) -> Text:
    return sql.SQL("key[{}]::{} AS {}").format(
        sql.Literal(number), sql.SQL(column.cast), sql.Identifier(column.name)
    )


def _no_keys(table: Table) -> pa.Table:
    return rows_schema(table).empty_table().select(list(table.key))


def _copied(connection: Connection, select: Text, names: Sequence[str]) -> pa.Table:
    """The rows of a query as text; what is not quoted is NULL."""
    buffer = io.BytesIO()
    copy = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)").format(select)
    with connection.cursor() as cursor, cursor.copy(copy) as stream:
        for data in stream:
            buffer.write(data)
    if not buffer.tell():
        return pa.schema([(name, pa.string()) for name in names]).empty_table()
    try:
        return _parsed(buffer, names, _BLOCK_BYTES)
    except pa.ArrowInvalid:  # Arrow refuses rows that are larger than a block
        return _parsed(buffer, names, min(buffer.tell(), _MOST_BYTES))


def _parsed(buffer: io.BytesIO, names: Sequence[str], block_bytes: int) -> pa.Table:
    return pa_csv.read_csv(
        pa.py_buffer(buffer.getbuffer()),
        pa_csv.ReadOptions(column_names=list(names), block_size=block_bytes),
        pa_csv.ParseOptions(newlines_in_values=True),
        pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


# --- values ---------------------------------------------------------------------------------------


def _fitted(texts: pa.Table, table: Table) -> tuple[pa.Table, tuple[RejectedRow, ...]]:
    """Columns of text in the types of the table, without the rows that do not fit."""
    columns, problems = {}, Problems()
    for field in table.columns:
        if field.name in texts.column_names:
            column = texts[field.name]
            columns[field.name], found = _fitted_column(column, field, field.name in table.key)
            problems = {**found, **problems}
    rows = pa.table(columns)
    if not problems:
        return rows, ()
    keep = np.ones(texts.num_rows, bool)
    keep[list(problems)] = False
    shown = [texts[name] for name in columns]
    rejected = tuple(
        RejectedRow(row + 1, problems[row], json.dumps([each[row].as_py() for each in shown]))
        for row in sorted(problems)
    )
    return rows.filter(pa.array(keep)), rejected


def _fitted_column(
    texts: pa.ChunkedArray, field: Field, in_key: bool
) -> tuple[pa.ChunkedArray, Problems]:
    """A column in its type, at once where Arrow reads all of it, else value by value."""
    try:
        if not field.type.parts and field.type != BINARY:
            return fit_column(texts.cast(arrow_type(field.type)), field, in_key), {}
    except (pa.ArrowException, ColumnMisfitError):
        pass  # which value it is, is found below
    read, fit = _reader(field), column_converter(field, in_key)
    values, problems = list[Any](), Problems()
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(fit(None if text is None else read(text)))
        except (SchemaError, MisfitError, ValueError) as error:
            place = f'column "{field.name}" ({field.type}): '
            problems[row] = f"{place}{str(error).removeprefix(place)}"
            values.append(None)
    return pa.chunked_array([arrow_column(field.type, values)]), problems


def _reader(field: Field) -> Callable[[str], Any]:
    if field.type == STRING:
        return str
    if field.type == BINARY:
        return bytes.fromhex
    if field.type.parts:
        return json.loads
    if field.type == TIMESTAMP_NTZ:
        return lambda text: pa.scalar(text).cast(pa.timestamp("us")).as_py()
    return read_field(field)
