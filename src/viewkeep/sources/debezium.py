"""Envelopes of Debezium in JSON: rows before and after, an operation, and the source's position.

    {"op": "u", "before": {...}, "after": {...}, "source": {"connector": "postgresql", "lsn": 7}}

They may stand in `{"schema": ..., "payload": ...}`, and that in the `{"key": ..., "value": ...}` of
a message. A message without a value is a tombstone: it says nothing that the delete before it has
not said.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from viewkeep.errors import SchemaError
from viewkeep.query.tables import Table
from viewkeep.sources.debezium_values import ColumnSchema, value_reader
from viewkeep.sources.flat_records import file_lines, file_text
from viewkeep.sources.json_values import json_line
from viewkeep.sources.record import (
    DELETE,
    NOTHING,
    UPSERT,
    Position,
    Record,
    named_columns,
    printable,
)

Json = Mapping[str, Any]

UNAVAILABLE = "__debezium_unavailable_value"
"""Stands for a large value that did not change, which PostgreSQL does not tell."""
_ORIGIN = ("connector", "name", "db", "schema", "table")


@dataclass(frozen=True)
class Envelope:
    """The payload of an envelope; `key` is the key of the message, if it has one."""

    body: Json
    key: Json = field(default_factory=dict)
    schemas: Mapping[str, ColumnSchema] = field(default_factory=dict)


def envelope_records(content: bytes, start: int, table: Table) -> Iterator[Record]:
    """The records of a file of JSON lines, each an envelope, after its first `start` bytes."""
    for number, line in file_lines(content, start):
        yield envelope_record(number, line, table)


def envelope_record(number: int, line: str, table: Table) -> Record:
    """An envelope as a change of its row."""
    text = printable(line)
    try:
        envelope = unwrap(json_line(line))
        if envelope is None:
            return Record(number, text, NOTHING)
        operation = _envelope_operation(envelope.body.get("op"))
        if operation == NOTHING:
            return Record(number, text, NOTHING)
        source = _nested_object(envelope.body, "source")
        values = _envelope_values(envelope, operation, table)
        position_and_origin = (position_of(source), origin_of(source))
        return Record(number, text, operation, values, "", *position_and_origin)
    except SchemaError as error:
        return Record(number, text, problem=str(error))


def message_text(key: str | bytes | None, value: str | bytes | None) -> str:
    """A message of Kafka as a line: its key and value, each of which is JSON or nothing."""
    both = {"key": key, "value": value}
    texts = {n: file_text(each) if isinstance(each, bytes) else each for n, each in both.items()}
    return json.dumps(texts)


def unwrap(document: Any) -> Envelope | None:
    """The envelope in a message; None if it is a tombstone."""
    key: Json = {}
    if isinstance(document, dict) and "value" in document and not {"op", "payload"} & set(document):
        with suppress(SchemaError):  # a key that is no object: rows tell theirs
            key, _ = _payload_and_schema(_parse_text(document.get("key")))
        document = _parse_text(document["value"])
    body, schema = _payload_and_schema(document)
    if document is None or document.get("payload", body) is None:
        return None
    if "op" not in body:
        raise SchemaError('no "op": it is no envelope of Debezium')
    return Envelope(body, key, _column_schemas(schema))


def _parse_text(value: Any) -> Any:
    """Kafka's keys and values may be JSON in text."""
    return json_line(value) if type(value) is str else value


def _payload_and_schema(document: Any) -> tuple[Json, Json]:
    """The payload and the schema; of a plain document, itself and none."""
    if document is None:
        return {}, {}
    if not isinstance(document, dict):
        raise SchemaError("expected an object: it is no envelope of Debezium")
    if "payload" not in document:
        return document, {}
    payload, schema = document["payload"], document.get("schema")
    if not isinstance(payload, dict | None):
        raise SchemaError('"payload" is no object')
    return payload or {}, schema if isinstance(schema, dict) else {}


def _column_schemas(schema: Json) -> dict[str, ColumnSchema]:
    """What the schema of an envelope tells of the columns of its rows."""
    try:
        parts = {each.get("field"): each for each in schema.get("fields") or ()}
        row = parts.get("after") or parts.get("before") or {}
        return {each["field"]: ColumnSchema.of(each) for each in row.get("fields") or ()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SchemaError(f'"schema" cannot be read: {error!r}') from None


def _envelope_operation(name: Any) -> str:
    match name:
        case "c" | "r" | "u":
            return UPSERT
        case "d":
            return DELETE
        case "m":  # a message of the source, about no row
            return NOTHING
        case "t":
            raise SchemaError("the table was truncated at its source; delete the rows by hand")
    raise SchemaError(f'"op" is {name!r}, none of c, r, u, d, t and m')


def _nested_object(body: Json, name: str) -> Json:
    value = body.get(name)
    if not isinstance(value, dict):
        raise SchemaError(f'no "{name}", which an envelope needs')
    return value


def _envelope_values(envelope: Envelope, operation: str, table: Table) -> dict[str, Any]:
    """The key of a deleted row, else all columns of a row but unavailable ones."""
    if operation == DELETE:
        row = envelope.body.get("before") or envelope.key
        if not row or not isinstance(row, dict):
            raise SchemaError('no "before" and no key: which row is gone is not told')
    else:
        row = _nested_object(envelope.body, "after")
        missing = [name for name in table.names if name not in row]
        if missing:
            raise SchemaError(f'"after" has no value for {", ".join(missing)}')
    fields = {each.name: each for each in table.columns}
    names = [name for name in row if operation != DELETE or name in table.key]
    columns = named_columns(operation, names, table)
    untold = [name for name in table.key if row[name] == UNAVAILABLE]
    if untold:
        raise SchemaError(f"no value for {', '.join(untold)}, which is the key")
    return {
        name: value_reader(fields[name], envelope.schemas.get(name))(row[name])
        for name in columns
        if row[name] != UNAVAILABLE
    }


# --- positions ------------------------------------------------------------------------------------


def position_of(source: Json) -> Position:
    """Where in its source a change happened: later changes of a row have greater positions.

    >>> position_of({"connector": "postgresql", "lsn": 24023128})
    (24023128,)
    >>> position_of({"connector": "mysql", "file": "bin.000003", "pos": 154, "row": 0})
    (3, 154, 0)
    """
    try:
        if source.get("lsn") is not None:  # PostgreSQL
            return (int(source["lsn"]),)
        if source.get("file") and source.get("pos") is not None:  # MySQL, MariaDB
            number = str(source["file"]).rpartition(".")[2]
            return (int(number), int(source["pos"]), int(source.get("row") or 0))
        if source.get("commit_lsn"):  # SQL Server: hexadecimal numbers of one width
            change_lsn = source.get("change_lsn") or ""
            return (
                str(source["commit_lsn"]),
                str(change_lsn),
                int(source.get("event_serial_no") or 0),
            )
        if source.get("scn"):  # Oracle
            return (int(source["scn"]), str(source.get("rs_id") or ""), int(source.get("ssn") or 0))
        if source.get("ord") is not None:  # MongoDB
            return (int(source["ts_ms"]), int(source["ord"]))
    except (ValueError, TypeError, KeyError) as error:
        raise SchemaError(f'"source" has a position that cannot be read: {error}') from None
    raise SchemaError(
        '"source" has no position: expected lsn, file and pos, commit_lsn, scn, or ts_ms and ord'
    )


def origin_of(source: Json) -> str:
    """The table whose positions these are.

    >>> origin_of({"connector": "mysql", "name": "shop", "db": "inventory", "table": "orders"})
    'mysql shop inventory orders'
    """
    return printable(" ".join(str(source[name]) for name in _ORIGIN if source.get(name)))
