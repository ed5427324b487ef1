"""A change of one row as a source tells it, before anyone has looked at the table's rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeep.errors import SchemaError, did_you_mean
from viewkeep.query.tables import Table

INSERT, UPDATE, DELETE, UPSERT, NOTHING = "insert", "update", "delete", "upsert", "nothing"
OPERATIONS = (INSERT, UPDATE, DELETE, UPSERT)
_SHORT = {"i": INSERT, "u": UPDATE, "d": DELETE}

Position = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """An operation and the values that it names, or the problem with it.

    `number` is its line or row in the file, `text` what stands there. A `position` orders the
    changes of a source, which `origin` names.
    """

    number: int
    text: str
    operation: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    position: Position = ()
    origin: str = ""


def printable(text: str) -> str:
    r"""Text without halves of characters, which bytes that are no text become, and which JSON may
    name: tables hold none.

    >>> printable("a\udcff"), printable("\ud800")
    ('a\\xff', '\\ud800')
    """
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def operation_column(table: Table) -> str:
    """The column of a file that tells what happened: `op`, or `_op` where the table has an `op`.

    >>> operation_column(Table({"id": "int"})), operation_column(Table({"op": "int"}))
    ('op', '_op')
    """
    return "_op" if "op" in map(str.casefold, table.names) else "op"


def read_operation(value: Any) -> str:
    """An operation by its name or first letter.

    >>> read_operation("Insert"), read_operation("d")
    ('insert', 'delete')
    """
    text = value.strip().lower() if isinstance(value, str) else value
    operation = _SHORT.get(text, text) if isinstance(text, str) else None
    if operation not in OPERATIONS:
        hint = did_you_mean(str(value), OPERATIONS)
        raise SchemaError(f"{value!r} is no operation ({', '.join(OPERATIONS)}){hint}")
    return operation


def named_columns(operation: str, names: Iterable[str], table: Table) -> list[str]:
    """The columns that a change is about, of those that a record names; of a delete, the key."""
    names = list(names)
    unknown = [name for name in names if name not in table.names]
    if unknown:
        hint = did_you_mean(unknown[0], table.names)
        raise SchemaError(f'no column "{unknown[0]}" ({", ".join(table.names)}){hint}')
    missing = [name for name in table.key if name not in names]
    if missing:
        raise SchemaError(f"no value for {', '.join(missing)}, which is the key")
    return list(table.key) if operation == DELETE else names
