"""Changes of tables that Viewkeep owns: checked against the rows that are there, one commit."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import SparkSession

from viewkeep.changes import (
    ChangeBatch,
    ChangeError,
    Delete,
    Insert,
    Modification,
    RowFormat,
    Update,
    net,
)
from viewkeep.errors import SchemaError
from viewkeep.lake.catalog import TableDefinition
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.delta import ConflictError, LakeTable, Snapshot
from viewkeep.tables.feed import Feed
from viewkeep.tables.key_match import key_tuples, repeated
from viewkeep.tables.rewrite import DRIVER_BYTES, find_rows, rewrite
from viewkeep.tables.table_changes import TableChanges
from viewkeep.tables.user_rows import given_rows

TRIES = 20


@dataclass(frozen=True)
class Given:
    """Checked rows to insert, to update (keys and some columns) and to delete (keys)."""

    inserts: pa.Table
    updates: pa.Table
    deletes: pa.Table

    def log(self, table: Table) -> Iterator[Modification]:
        """Deletes first, then updates, then inserts."""
        for key in to_rows(self.deletes.select(list(table.key))):
            yield Delete(key)
        others = [name for name in self.updates.column_names if name not in table.key]
        keys = to_rows(self.updates.select(list(table.key)))
        for key, values in zip(keys, to_rows(self.updates.select(others)), strict=True):
            yield Update(key, dict(zip(others, values, strict=True)))
        for row in to_rows(self.inserts.select(list(table.names))):
            yield Insert(row)

    def keys(self, key: Sequence[str]) -> pa.Table:
        """All keys that are named."""
        names = list(key)
        return pa.concat_tables(
            [part.select(names) for part in (self.inserts, self.updates, self.deletes)]
        )


def given_changes(
    name: str, table: Table, inserts: Any = None, updates: Any = None, deletes: Any = None
) -> Given:
    """What a user gives, with declared types; nothing is looked up yet."""
    found = Given(
        given_rows(name, "inserts", inserts, table, table.names),
        given_rows(name, "updates", updates, table, table.key),
        given_rows(name, "deletes", deletes, table, table.key),
    )
    _check_once(name, table, found)
    changed = [each for each in found.updates.column_names if each not in table.key]
    if found.updates.num_rows and not changed:
        raise SchemaError(f'table "{name}", updates: only keys are given; name what changes')
    return found


def _check_once(name: str, table: Table, given: Given) -> None:
    """Refuse a row that is named twice by the same kind of change: which one counts is not said."""
    parts = {"inserts": given.inserts, "updates": given.updates, "deletes": given.deletes}
    for what, rows in parts.items():
        again = repeated(key_tuples(rows.select(list(table.key))))
        if again is not None:
            place = RowFormat(name, table).place(again)
            raise ChangeError(f"{place}: the {what} name this key twice; give it once")


def apply_changes(
    spark: SparkSession,
    definition: TableDefinition,
    table: LakeTable,
    given: Given,
    driver_bytes: int = DRIVER_BYTES,
) -> tuple[int, ChangeBatch]:
    """Commit the changes; the version they are in. After a conflict everything is checked anew."""
    for _ in range(TRIES):
        snapshot = table.snapshot()
        _check_columns(definition, snapshot)
        batch = _netted(spark, definition, table, snapshot, given, driver_bytes)
        if batch.is_empty:
            return snapshot.version, batch
        try:
            return _commit(spark, definition, table, snapshot, batch, driver_bytes), batch
        except ConflictError:
            continue
    raise ConflictError(f'table "{definition.name}": too many processes write it; try again')


def _check_columns(definition: TableDefinition, snapshot: Snapshot) -> None:
    """Refuse a table whose columns another writer has changed: rows would not fit it."""
    declared, there = definition.table.names, [field.name for field in snapshot.fields]
    changed = [*(n for n in there if n not in declared), *(n for n in declared if n not in there)]
    if changed:
        what = "added" if changed[0] in there else "dropped"
        raise SchemaError(
            f'table "{definition.name}": another writer {what} the column "{changed[0]}"; drop the '
            "table (its folder stays) and register it as it is now"
        )


def _netted(
    spark: SparkSession,
    definition: TableDefinition,
    table: LakeTable,
    snapshot: Snapshot,
    given: Given,
    driver_bytes: int,
) -> ChangeBatch:
    declared = definition.table
    there = find_rows(spark, table, snapshot, given.keys(declared.key), driver_bytes)
    places = [declared.names.index(name) for name in declared.key]
    rows = to_rows(there.select(list(declared.names)))
    before = {tuple(row[place] for place in places): row for row in rows}
    return net(definition.name, declared, before, given.log(declared))


def _commit(
    spark: SparkSession,
    definition: TableDefinition,
    table: LakeTable,
    snapshot: Snapshot,
    batch: ChangeBatch,
    driver_bytes: int,
) -> int:
    declared = definition.table
    gone = _arrow(declared, [*batch.deletes, *(old for old, _ in batch.updates)])
    came = _arrow(declared, [*batch.inserts, *(new for _, new in batch.updates)])
    keys = gone.select(list(declared.key))
    files = rewrite(spark, table, snapshot, keys, came, driver_bytes)
    notes = Feed(spark, definition.name, declared, table).write(TableChanges.of_batch(batch))
    return table.commit(snapshot.version, files.add, files.remove, {"apply": True, **notes})


def _arrow(declared: Table, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    return to_arrow(declared.columns, list(rows))
