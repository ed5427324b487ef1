"""The parts of a batch as columns, ready for Arrow, DuckDB or Spark tables.

Columns are named as in the diffs of a base table (`diffs/model.py`): key columns `x`, values
before the change `x#pre`, values after it `x#post`. Their types are those of the table.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from viewkeep.changes.rows import Row
from viewkeep.query.tables import Table

Columns = dict[str, list[Any]]


def insert_columns(table: Table, inserts: Collection[Row]) -> Columns:
    """New rows: the key and all values after the change."""
    return _keys(table, inserts) | _values(table, inserts, "post", _others(table))


def delete_columns(table: Table, deletes: Collection[Row]) -> Columns:
    """Old rows: the key and all values before the change."""
    return _keys(table, deletes) | _values(table, deletes, "pre", _others(table))


def update_columns(
    table: Table,
    updates: Collection[tuple[Row, Row]],
    before: Iterable[str] | None = None,
    after: Iterable[str] | None = None,
) -> Columns:
    """Updates: the key, and the values before and after of these columns, or of all but the key.

    >>> parts = Table({"pid": "int", "price": "int"}, key=["pid"])
    >>> update_columns(parts, [((1, 5), (1, 6))])
    {'pid': [1], 'price#pre': [5], 'price#post': [6]}
    """
    old, new = [old for old, _ in updates], [new for _, new in updates]
    return {
        **_keys(table, new),
        **_values(table, old, "pre", _others(table) if before is None else before),
        **_values(table, new, "post", _others(table) if after is None else after),
    }


def _others(table: Table) -> Sequence[str]:
    return [name for name in table.names if name not in table.key]


def _keys(table: Table, rows: Collection[Row]) -> Columns:
    return {name: _column(table, rows, name) for name in table.key}


def _values(table: Table, rows: Collection[Row], state: str, names: Iterable[str]) -> Columns:
    return {f"{name}#{state}": _column(table, rows, name) for name in names}


def _column(table: Table, rows: Collection[Row], name: str) -> list[Any]:
    position = table.names.index(name)
    return [row[position] for row in rows]
