"""Small tables for one query after a template of TPC-DS, in which it finds rows, and changes.

A column has the values that the query compares it with, and few others; foreign keys mostly meet.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.optimizer.simplify import simplify

from tests.changes.memory_table import difference
from viewkeep.changes import ChangeBatch, Key, Row, RowFormat
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field

DIMENSION, FACT = 5, 14
"""Rows of tables with a key of one column, and of the others."""
COMPARED = 0.85
"""How often a column has one of the values that the query compares it with."""
FOLLOWING = {"d_month_seq": ("d_year", "d_moy"), "d_week_seq": ("d_date",)}
"""Columns with one value for one of others: scalar subqueries ask for that."""
WHOLE = ("d_date",)
"""Columns without NULLs: windows are ordered by them, and two of those would tie."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like)
_STRICT = (exp.NEQ, exp.GT, exp.LT)


def compared_values(sql: str) -> dict[str, list[str]]:
    """The values that a query compares columns with, by the names of the columns."""
    tree, values = parse_one(sql, dialect="spark"), dict[str, list[str]]()
    sources = {
        alias.alias.lower(): alias.this.name.lower()
        for alias in tree.find_all(exp.Alias)
        if isinstance(alias.this, exp.Column)
    }
    for node in tree.find_all(*_COMPARISONS):
        operands = [each for each in node.iter_expressions() if not each.find(exp.Select)]
        texts = list(_texts(node, operands))
        for column in (c for each in operands for c in each.find_all(exp.Column)):
            name = column.name.lower()
            for each in {name, sources.get(name, name)}:
                values.setdefault(each, []).extend(texts)
    return values


def _texts(node: exp.Expression, operands: Iterable[exp.Expression]) -> Iterator[str]:
    """The values of constant operands, and two that are as far apart as `column - 53` says."""
    for operand in operands:
        if operand.find(exp.Column):
            step = operand.expression if isinstance(operand, exp.Add | exp.Sub) else None
            if isinstance(step, exp.Literal) and isinstance(node, exp.EQ):
                yield from ("1", str(1 + int(step.this)))
            continue
        for literal in simplify(operand.copy(), dialect="spark").find_all(exp.Literal):
            text = f"-{literal.this}" if isinstance(literal.parent, exp.Neg) else literal.this
            yield text.replace("%", "") if isinstance(node, exp.Like) else text
            if isinstance(node, _STRICT) and literal.is_int:
                yield from (str(int(text) + 1), str(int(text) - 1))


class Data:
    """The tables of a query and their next changes."""

    def __init__(
        self,
        sql: str,
        tables: Mapping[str, Table],
        seed: int,
        facts: int = FACT,
        compared: float = COMPARED,
    ) -> None:
        self.tables, self._rng, self._share = tables, Random(seed), compared
        self._compared = compared_values(sql)
        self.database: dict[str, dict[Key, Row]] = {name: {} for name in tables}
        for name, table in tables.items():
            for number in range(DIMENSION if len(table.key) == 1 else facts):
                self._put(name, self._row(name, number))

    def change(self, count: int) -> dict[str, ChangeBatch]:
        """So many changes of any of the tables; the database has them already."""
        before = self._rows()
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
        return self._since(before)

    def insert(self, count: int) -> dict[str, ChangeBatch]:
        """So many new rows of each table, where their keys are new."""
        before = self._rows()
        for name in self.tables:
            for _ in range(count):
                self._put(name, self._row(name, self._rng.randrange(100)))
        return self._since(before)

    def update(self, columns: Mapping[str, Iterable[frozenset[str]]]) -> dict[str, ChangeBatch]:
        """Other values in each of these sets of columns, of a row of its own or of one again."""
        before = self._rows()
        for name, sets in columns.items():
            for changed in sets:
                rows = self.database[name]
                if rows:
                    row = self._rng.choice(list(rows.values()))
                    self._put(name, self._redrawn(name, row, changed))
        return self._since(before)

    def delete(self, share: float) -> dict[str, ChangeBatch]:
        """Without this share of the rows of each table."""
        before = self._rows()
        for rows in self.database.values():
            for key in self._rng.sample(list(rows), round(len(rows) * share)):
                del rows[key]
        return self._since(before)

    def _rows(self) -> dict[str, list[Row]]:
        return {name: list(rows.values()) for name, rows in self.database.items()}

    def _since(self, before: Mapping[str, list[Row]]) -> dict[str, ChangeBatch]:
        return {
            name: difference(name, table, before[name], list(self.database[name].values()))
            for name, table in self.tables.items()
        }

    def _put(self, name: str, row: Row) -> None:
        self.database[name][RowFormat(name, self.tables[name]).key_of(row)] = row

    def _row(self, name: str, number: int) -> Row:
        table = self.tables[name]
        own = table.key[0] if len(table.key) == 1 else None
        row = tuple(number if f.name == own else self._value(table, f) for f in table.columns)
        return self._followed(table, row)

    def _changed(self, name: str, row: Row) -> Row:
        table = self.tables[name]
        others = [f.name for f in table.columns if f.name not in table.key]
        return self._redrawn(name, row, self._rng.sample(others, min(2, len(others))))

    def _redrawn(self, name: str, row: Row, columns: Iterable[str]) -> Row:
        table, chosen = self.tables[name], frozenset(columns)
        fields = zip(table.columns, row, strict=True)
        new = tuple(self._value(table, f) if f.name in chosen else old for f, old in fields)
        return self._followed(table, new)

    def _followed(self, table: Table, row: Row) -> Row:
        """The row with the values that follow from others."""
        values = dict(zip(table.names, row, strict=True))
        for column in table.columns:
            if set(FOLLOWING.get(column.name, "?")) <= values.keys():
                others = [values[name] for name in FOLLOWING[column.name]]
                domain = [*self._compared_values(column), *self._others(column)]
                values[column.name] = Random(str(others)).choice(domain)
        return tuple(values.values())

    def _value(self, table: Table, column: Field) -> Any:
        rng = self._rng
        if column.nullable and column.name not in WHOLE and rng.random() < 0.08:
            return None
        if column.name.endswith("_sk"):
            return rng.randrange(DIMENSION)
        compared = self._compared_values(column)
        if compared and rng.random() < self._share:
            return rng.choice(compared)
        return rng.choice(self._others(column))

    def _compared_values(self, column: Field) -> list[Any]:
        texts = self._compared.get(column.name.lower(), ())
        values = [value for text in texts if (value := _typed(column, text)) is not None]
        if column.type.name != "date":
            return values
        return [value + timedelta(days=days) for value in values for days in (-1, 0, 1)]

    def _others(self, column: Field) -> list[Any]:
        named = (texts for part, texts in _NAMED.items() if part in column.name)
        return [_typed(column, text) for text in next(named, _OTHERS[column.type.name])]


_NAMED = {
    "return_quantity": ["1", "2"],
    "on_hand": ["1", "1", "60"],
    "_quantity": ["5", "7"],
    "sr_ticket_number": list("123456"),
    "cr_order_number": list("123456"),
    "wr_order_number": list("123456"),
    "_number": list("123456789"),
}
"""By part of a name: more is sold than comes back, and not of every order."""

_OTHERS = {
    "int": ["1", "2", "3"],
    "string": ["a", "b"],
    "decimal": ["1.50", "20.00", "100.25"],
    "date": ["2000-08-20", "2000-08-27", "2001-09-03"],
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
                return date.fromisoformat(text)
    except (ValueError, ArithmeticError):
        return None
    return text
