"""Histories of a database: its states, one after the other, with a refresh after each.

Tables start empty or empty themselves, keys change, rows come back, and rows come that join with
nothing; every step changes other tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tests.changes.memory_table import difference
from tests.diffs.random_tables import Database, apply_batches, random_batch, random_database
from viewkeep.changes import ChangeBatch, Row, RowFormat
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import STRING, Field

ROWS = 6
"""The most rows of a table at the start."""
FAR = 70
"""Keys from here on are referred to by nothing."""


@dataclass(frozen=True)
class History:
    """The states of a database; every one but the first is reached by changes."""

    tables: Mapping[str, Table]
    states: tuple[Database, ...]

    def batches(self, number: int) -> dict[str, ChangeBatch]:
        """The changes that lead to a state, table by table."""
        before, after = self.states[number - 1], self.states[number]
        return {
            name: difference(name, table, before[name].values(), after[name].values())
            for name, table in self.tables.items()
        }

    def only(self, names: Sequence[str]) -> "History":
        """The history of some of the tables."""
        tables = {name: table for name, table in self.tables.items() if name in names}
        return History(tables, tuple({n: state[n] for n in tables} for state in self.states))

    def __str__(self) -> str:
        lines = ["at first:"]
        lines += [f"  {n}: {list(rows.values())}" for n, rows in self.states[0].items() if rows]
        for number in range(1, len(self.states)):
            lines.append(f"refresh {number} after:")
            for name, batch in self.batches(number).items():
                lines += [f"  insert into {name}: {row}" for row in batch.inserts]
                lines += [f"  delete from {name}: {row}" for row in batch.deletes]
                lines += [f"  update {name}: {old} -> {new}" for old, new in batch.updates]
        return "\n".join(lines)


def random_history(tables: Mapping[str, Table], rng: Random, steps: int) -> History:
    """A first state, and so many others."""
    first = random_database(tables, rng, rows=rng.randint(1, ROWS))
    for name in first:
        if rng.random() < 0.25:
            first[name] = {}
    states = [first]
    for _ in range(steps):
        states.append(_next(states, tables, rng))
    return History(tables, tuple(states))


def _next(states: Sequence[Database], tables: Mapping[str, Table], rng: Random) -> Database:
    """The state after changes of one, two or all tables."""
    count = rng.choice([1, 1, 1, 2, 2, len(tables)])
    changing = {name: tables[name] for name in rng.sample(list(tables), count)}
    now = dict(states[-1])
    if rng.random() < 0.07 and len(states) > 1:
        return {**now, **{name: dict(rng.choice(states)[name]) for name in changing}}
    for name, table in changing.items():
        now[name] = _changed(name, table, now, rng)
    return now


def _changed(name: str, table: Table, now: Database, rng: Random) -> dict[Row, Row]:
    rows = dict(now[name])
    match rng.randrange(10):
        case 0:
            return {}
        case 1:
            return dict(random_database({name: table}, rng, rows=rng.randint(1, ROWS))[name]) | rows
        case 2 if rows:
            return _other_keys(name, table, rows, rng)
        case 3:
            return rows | _alone(name, table, rng)
        case 4 if rows:
            return _with_null(name, table, rows, rng)
    kinds = rng.choice([["insert", "delete", "update"], ["insert"], ["update"], ["delete"]])
    batch = random_batch({name: rows}, {name: table}, rng, rng.randint(1, 4), kinds)
    return apply_batches({name: rows}, batch)[name]


def _other_keys(name: str, table: Table, rows: Mapping[Row, Row], rng: Random) -> dict[Row, Row]:
    """Rows that get keys of other rows, which are free or become so."""
    format_ = RowFormat(name, table)
    chosen = rng.sample(list(rows), rng.randint(1, min(2, len(rows))))
    drawn = random_database({name: table}, rng, rows=len(chosen) * 2)[name]
    changed = {key: row for key, row in rows.items() if key not in chosen}
    for old, donor in zip(chosen, drawn.values(), strict=False):
        values = dict(zip(table.names, rows[old], strict=True))
        values.update({k: v for k, v in zip(table.names, donor, strict=True) if k in table.key})
        row = tuple(values.values())
        changed.setdefault(format_.key_of(row), row)
    return changed


def _alone(name: str, table: Table, rng: Random) -> dict[Row, Row]:
    """A row whose key and references are those of no other row."""
    [row] = random_database({name: table}, rng, rows=1)[name].values()
    references = {column for each in table.foreign_keys for column in each.columns}
    values = [
        _far(column, rng) if column.name in references or column.name in table.key else value
        for column, value in zip(table.columns, row, strict=True)
    ]
    return {RowFormat(name, table).key_of(tuple(values)): tuple(values)}


def _far(column: Field, rng: Random) -> object:
    number = FAR + rng.randrange(5)
    return f"far{number}" if column.type == STRING else number


def _with_null(name: str, table: Table, rows: Mapping[Row, Row], rng: Random) -> dict[Row, Row]:
    """A row that loses one of its values, which may be its group or its partner in a join."""
    free = [c.name for c in table.columns if c.nullable and c.name not in table.key]
    if not free:
        return dict(rows)
    key, column = rng.choice(list(rows)), rng.choice(free)
    place = table.names.index(column)
    row = rows[key]
    return {**rows, key: (*row[:place], None, *row[place + 1 :])}
