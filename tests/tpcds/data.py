"""Small tables for one query after a template of TPC-DS, in which it finds rows, and changes.

A column has the values that the query compares it with, and few others; foreign keys mostly meet.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from sqlglot import exp, parse_one

from tests.changes.memory_table import difference
from viewkeep.changes import ChangeBatch, Key, Row, RowFormat
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field

DIMENSION, FACT = 5, 14
"""Rows of tables with a key of one column, and of the others."""
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)


def compared_values(sql: str) -> dict[str, list[Any]]:
    """The literals that a query compares columns with, by the names of the columns."""
    values: dict[str, list[Any]] = {}
    for node in parse_one(sql, dialect="spark").find_all(*_COMPARED):
        names = [column.name.lower() for column in node.find_all(exp.Column)]
        for literal in node.find_all(exp.Literal):
            for name in names:
                values.setdefault(name, []).append(literal.this)
    return values


class Data:
    """The tables of a query and their next changes."""

    def __init__(self, sql: str, tables: Mapping[str, Table], seed: int) -> None:
        self.tables, self._rng = tables, Random(seed)
        self._compared = compared_values(sql)
        self.database: dict[str, dict[Key, Row]] = {name: {} for name in tables}
        for name, table in tables.items():
            for number in range(DIMENSION if len(table.key) == 1 else FACT):
                self._put(name, self._row(name, number))

    def change(self, count: int) -> dict[str, ChangeBatch]:
        """So many changes of any of the tables; the database has them already."""
        before = {name: list(rows.values()) for name, rows in self.database.items()}
        for _ in range(count):
            name = self._rng.choice(list(self.tables))
            rows = self.database[name]
            kind = self._rng.choice(["insert", "delete", "update", "update"])
            if kind == "insert" or not rows:
                self._put(name, self._row(name, self._rng.randrange(100)))
            elif kind == "delete":
                del rows[self._rng.choice(list(rows))]
            else:
                self._put(name, self._changed(name, self._rng.choice(list(rows.values()))))
        return {
            name: difference(name, table, before[name], list(self.database[name].values()))
            for name, table in self.tables.items()
        }

    def _put(self, name: str, row: Row) -> None:
        self.database[name][RowFormat(name, self.tables[name]).key_of(row)] = row

    def _row(self, name: str, number: int) -> Row:
        table = self.tables[name]
        own = table.key[0] if len(table.key) == 1 else None
        return tuple(number if f.name == own else self._value(table, f) for f in table.columns)

    def _changed(self, name: str, row: Row) -> Row:
        table = self.tables[name]
        others = [f.name for f in table.columns if f.name not in table.key]
        chosen = self._rng.sample(others, min(2, len(others)))
        fields = zip(table.columns, row, strict=True)
        return tuple(self._value(table, f) if f.name in chosen else old for f, old in fields)

    def _value(self, table: Table, column: Field) -> Any:
        rng = self._rng
        if column.nullable and rng.random() < 0.08:
            return None
        if any(column.name in reference.columns for reference in table.foreign_keys):
            return rng.randrange(DIMENSION)
        return rng.choice(list(self._domain(column)))

    def _domain(self, column: Field) -> Iterator[Any]:
        compared = [_typed(column, text) for text in self._compared.get(column.name.lower(), ())]
        yield from (value for value in compared if value is not None)
        yield from (_typed(column, text) for text in _OTHERS[column.type.name])


_OTHERS = {
    "int": ["1", "2", "3"],
    "string": ["a", "b"],
    "decimal": ["1.50", "20.00", "100.25"],
    "date": ["2000-08-20"],
}


def _typed(column: Field, text: str) -> Any:
    """A literal as a value of the column; None where it is none."""
    try:
        match column.type.name:
            case "int":
                return int(text)
            case "decimal":
                value = Decimal(text).quantize(Decimal(1).scaleb(-(column.type.scale or 0)))
                return (
                    value if len(value.as_tuple().digits) <= (column.type.precision or 0) else None
                )
            case "date":
                return date.fromisoformat(text) + timedelta(days=1)
    except (ValueError, ArithmeticError):
        return None
    return text
