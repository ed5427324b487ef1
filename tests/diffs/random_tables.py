"""Random keyed tables and random batches of changes, for tests that compare views.

Domains are small and skewed, so that joins meet, groups have several rows and some values are
frequent. The same `random.Random` state gives the same data.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from graphlib import TopologicalSorter
from random import Random
from typing import Any

import pyarrow as pa

from tests.changes.memory_table import difference
from viewkeep.changes import ChangeBatch, Key, Row, RowFormat
from viewkeep.query.tables import Reference, Table
from viewkeep.query.types.data_types import Field, Type

Database = dict[str, dict[Key, Row]]
KINDS = ("insert", "delete", "update")
DOMAIN = 6
"""How many values a column has that is not in a key."""
TRIES = 30
"""How often a row or a change that does not fit is drawn anew before it is given up."""


def random_database(
    tables: Mapping[str, Table],
    rng: Random,
    rows: int = 20,
    null_share: float = 0.2,
    foreign_keys: bool = False,
) -> Database:
    """Rows for every table, by key: at most so many, fewer where the keys run out.

    With `foreign_keys`, every reference to one of the tables is either NULL or meets a row.
    """
    draw = _Draw(tables, rng, null_share, foreign_keys, rows)
    for name in _referenced_first(tables):
        for _ in range(rows):
            draw.attempt(partial(draw.insert, name))
    return draw.database


def random_batch(
    database: Mapping[str, Mapping[Key, Row]],
    tables: Mapping[str, Table],
    rng: Random,
    size: int = 10,
    kinds: Collection[str] = KINDS,
    null_share: float = 0.2,
    foreign_keys: bool = False,
) -> dict[str, ChangeBatch]:
    """Changes of these kinds to any of the tables that are not static; a batch for every table.

    Every row is changed at most once, so there are `size` changes in all, fewer where no change
    fits. With `foreign_keys`, references that hold before the batch hold after it.
    """
    rows = max(map(len, database.values()), default=0) + size
    draw = _Draw(tables, rng, null_share, foreign_keys, rows)
    draw.database.update({name: dict(rows) for name, rows in database.items()})
    changing = [name for name, table in tables.items() if not table.static]
    for _ in range(size if changing and kinds else 0):
        draw.attempt(lambda: draw.change(rng.choice(changing), rng.choice(list(kinds))))
    return {
        name: difference(name, table, database[name].values(), draw.database[name].values())
        for name, table in tables.items()
    }


def apply_batches(
    database: Mapping[str, Mapping[Key, Row]], batches: Mapping[str, ChangeBatch]
) -> Database:
    """The database after the batches."""
    return {
        name: batches[name].apply(rows) if name in batches else dict(rows)
        for name, rows in database.items()
    }


def as_arrow(table: Table, rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table with the declared types."""
    rows = list(rows)
    columns = {name: [row[i] for row in rows] for i, name in enumerate(table.names)}
    return diff_as_arrow(table, columns)


def diff_as_arrow(
    table: Table, part: Mapping[str, list[Any]], names: Sequence[str] | None = None
) -> pa.Table:
    """A part of a batch, as `insert_columns` and the like give it; `names` picks and orders.

    >>> parts = Table({"pid": "int", "price": "int"}, key=["pid"])
    >>> diff_as_arrow(parts, {"pid": [1], "price#post": [6]}).column_names
    ['pid', 'price#post']
    """
    fields = {field.name: field for field in table.columns}
    schema = pa.schema(
        [_arrow_field(name, fields[_column(name)]) for name in (part if names is None else names)]
    )
    columns = {
        name: [_arrow_value(each, fields[_column(name)].type) for each in part[name]]
        for name in schema.names
    }
    return pa.table(columns, schema=schema)


def _column(name: str) -> str:
    return name.removesuffix("#pre").removesuffix("#post")


def _arrow_value(value: Any, type_: Type) -> Any:
    """A value as Arrow takes it: a struct by the names of its parts."""
    if value is None or type_.name != "struct":
        return value
    return {part.name: each for part, each in zip(type_.parts, value, strict=True)}


@dataclass
class _Draw:
    """A database under construction, and what its next change may be."""

    tables: Mapping[str, Table]
    rng: Random
    null_share: float
    foreign_keys: bool
    rows: int
    database: Database = field(init=False)
    touched: set[tuple[str, Key]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.database = {name: {} for name in self.tables}
        self.key_of = {name: RowFormat(name, table).key_of for name, table in self.tables.items()}

    def attempt(self, change: Callable[[], bool]) -> None:
        any(change() for _ in range(TRIES))

    def change(self, name: str, kind: str) -> bool:
        if kind == "insert":
            return self.insert(name)
        untouched = [key for key in self.database[name] if (name, key) not in self.touched]
        if not untouched:
            return False
        key = self.rng.choice(untouched)
        return self.delete(name, key) if kind == "delete" else self.update(name, key)

    def insert(self, name: str) -> bool:
        row = self._with_references(name, tuple(self._values(name)), self.tables[name].names)
        key = self.key_of[name](row)
        free = key not in self.database[name] and (name, key) not in self.touched
        return free and self._set(name, key, row)

    def update(self, name: str, key: Key) -> bool:
        table, old = self.tables[name], self.database[name][key]
        others = [column for column in table.names if column not in table.key]
        if not others:
            return False
        changed = self.rng.sample(others, self.rng.randint(1, min(3, len(others))))
        drawn = zip(table.names, self._values(name), old, strict=True)
        row = tuple(new if column in changed else old for column, new, old in drawn)
        row = self._with_references(name, row, changed)
        return row != old and self._set(name, key, row)

    def delete(self, name: str, key: Key) -> bool:
        return self._set(name, key, None)

    def _set(self, name: str, key: Key, row: Row | None) -> bool:
        old = self.database[name].pop(key, None)
        if row is not None:
            self.database[name][key] = row
        if self.foreign_keys and not self._references_hold(name, row, old):
            self.database[name].pop(key, None)
            if old is not None:
                self.database[name][key] = old
            return False
        self.touched.add((name, key))
        return True

    def _values(self, name: str) -> list[Any]:
        table = self.tables[name]
        # A key over several columns needs fewer values of each.
        in_key = 2 + int((2 * self.rows) ** (1 / len(table.key)))
        return [
            self._value(column, in_key if column.name in table.key else DOMAIN)
            for column in table.columns
        ]

    def _value(self, column: Field, domain: int) -> Any:
        if column.nullable and self.rng.random() < self.null_share:
            return None
        # The smaller of two draws: low values are frequent, high ones rare.
        return value_of(column.type, min(self.rng.randrange(domain), self.rng.randrange(domain)))

    def _with_references(self, name: str, row: Row, columns: Collection[str]) -> Row:
        """The row with foreign keys, among these columns, that mostly meet a row."""
        table, values = self.tables[name], dict(zip(self.tables[name].names, row, strict=True))
        for reference in self._references(name) if self.foreign_keys else ():
            targets = self._targets(reference)
            null = any(values[column] is None for column in reference.columns)
            if targets and not null and set(reference.columns) <= set(columns):
                values.update(zip(reference.columns, self.rng.choice(targets), strict=True))
        return tuple(values[column] for column in table.names)

    def _references_hold(self, name: str, new: Row | None, old: Row | None) -> bool:
        outgoing = [(name, reference) for reference in self._references(name)]
        incoming = [
            (other, reference)
            for other in self.tables
            for reference in self._references(other)
            if reference.table == name
        ]
        own = all(self._meets(table, r, [new]) for table, r in outgoing if new is not None)
        return own and all(
            self._meets(table, r, self.database[table].values())
            for table, r in incoming
            if old is not None
        )

    def _meets(self, name: str, reference: Reference, rows: Iterable[Row | None]) -> bool:
        targets = set(self._targets(reference))
        places = [self.tables[name].names.index(column) for column in reference.columns]
        values = (tuple(row[i] for i in places) for row in rows if row is not None)
        return all(None in value or value in targets for value in values)

    def _targets(self, reference: Reference) -> list[Row]:
        table = self.tables[reference.table]
        names = reference.referenced_columns or table.key
        places = [table.names.index(column) for column in names]
        return [tuple(row[i] for i in places) for row in self.database[reference.table].values()]

    def _references(self, name: str) -> list[Reference]:
        return [r for r in self.tables[name].foreign_keys if r.table in self.tables]


def _referenced_first(tables: Mapping[str, Table]) -> list[str]:
    order: TopologicalSorter[str] = TopologicalSorter()
    for name, table in tables.items():
        others = {reference.table for reference in table.foreign_keys}
        order.add(name, *sorted(others & set(tables) - {name}))
    return list(order.static_order())


def value_of(type_: Type, index: int) -> Any:
    """The value of a type with this number, from 0; equal numbers give equal values."""
    match type_.name:
        case "tinyint":
            return index % 128 - 1
        case "smallint" | "int" | "bigint":
            return index - 1
        case "decimal":
            return Decimal((index - 2) * 5 ** (type_.scale or 0)).scaleb(-(type_.scale or 0))
        case "float" | "double":
            return (index - 2) * 0.25
        case "string":
            return chr(ord("a") + (index - 1) % 26) * -(-index // 26)
        case "binary":
            return index.to_bytes(2, "big")
        case "boolean":
            return bool(index % 2)
        case "date":
            return date(2024, 2, 28) + timedelta(days=index)
        case "timestamp" | "timestamp_ntz":
            return datetime(2024, 2, 28, 22) + timedelta(hours=index)
        case "array":
            return tuple(value_of(type_.parts[0].type, i + 1) for i in range(index))
        case "struct":  # in one of four a part is NULL
            parts = enumerate(type_.parts)
            return tuple(
                None if (index + i) % 4 == 3 else value_of(p.type, index) for i, p in parts
            )
    raise AssertionError(f"no values for {type_}")


_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ntz": pa.timestamp("us"),
}


def _arrow_field(name: str, column: Field) -> pa.Field:
    kind = column.type
    return pa.field(name, _arrow_type(kind), nullable=column.nullable)


def _arrow_type(kind: Type) -> pa.DataType:
    if kind.name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name == "array":
        return pa.list_(_arrow_type(kind.parts[0].type))
    if kind.name == "struct":
        return pa.struct([_arrow_field(part.name, part) for part in kind.parts])
    return _ARROW[kind.name]
