"""Changes of tables that Viewkeep owns: checked against the rows that are there, one commit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.changes import (
    ChangeError,
    Delete,
    Insert,
    Modification,
    RowFormat,
    Update,
    net,
)
from viewkeep.errors import ArgumentError, SchemaError, did_you_mean
from viewkeep.lake.catalog import Catalog, CatalogError, TableDefinition
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_rows
from viewkeep.tables.feed import Feed
from viewkeep.tables.files.key_index import KeyIndex, Places
from viewkeep.tables.files.rewrite import DRIVER_BYTES, MatchedRows, find_rows_by_key, rewrite_files
from viewkeep.tables.files.scans import Scans
from viewkeep.tables.log.delta import ConflictError, LakeTable, Snapshot, StorageError
from viewkeep.tables.log.memory import remembered_logs
from viewkeep.tables.net_changes import take_rows
from viewkeep.tables.table_changes import TableChanges, rows_schema
from viewkeep.tables.user_rows import read_user_rows

TRIES = 20
KINDS = ("inserts", "updates", "deletes", "upserts")


@dataclass(frozen=True)
class UserChanges:
    """Checked rows to insert, to update (keys and some columns) and to delete (keys), and whole
    rows that are one or the other: no other change has their keys."""

    inserts: pa.Table
    updates: pa.Table
    deletes: pa.Table
    upserts: pa.Table | None = None

    def log(self, table: Table) -> Iterator[Modification]:
        """Deletes first, then updates, then inserts; without upserts."""
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
        parts = [self.inserts, self.updates, self.deletes]
        parts += [] if self.upserts is None else [self.upserts]
        return pa.concat_tables([part.select(names) for part in parts])


def user_changes(
    name: str,
    table: Table,
    inserts: Any = None,
    updates: Any = None,
    deletes: Any = None,
    upserts: Any = None,
) -> UserChanges:
    """The changes of a user with declared types and distinct keys; nothing is looked up yet."""
    if upserts is not None and not table.key:
        raise ArgumentError(f'table "{name}" has no key that upserts could name; give inserts')
    changes = UserChanges(
        read_user_rows(name, "inserts", inserts, table, table.names),
        read_user_rows(name, "updates", updates, table, table.key),
        read_user_rows(name, "deletes", deletes, table, table.key),
        None if upserts is None else read_user_rows(name, "upserts", upserts, table, table.names),
    )
    _check_keys_once(name, table, changes)
    changed = [each for each in changes.updates.column_names if each not in table.key]
    if changes.updates.num_rows and not changed:
        raise SchemaError(f'table "{name}", updates: only keys are given; name what changes')
    return changes


def kinds_of_changes(name: str, table: Table, rows: Mapping[str, Any]) -> UserChanges:
    """The changes of a user by their kinds."""
    for kind in rows:
        if kind not in KINDS:
            hint = did_you_mean(str(kind), KINDS)
            raise ArgumentError(f'table "{name}": no "{kind}" ({", ".join(KINDS)}){hint}')
    return user_changes(name, table, **rows)


def changeable_table(catalog: Catalog, name: str) -> TableDefinition:
    """A table that takes changes of users, or why it does not."""
    if name in catalog.views:
        raise CatalogError(f'"{name}" is a view; apply changes to the tables that it reads')
    definition = catalog.table(name)
    if not definition.owned:
        raise CatalogError(
            f'table "{name}" is registered: its own writers change it, and refresh sees that'
        )
    if definition.table.static:
        raise CatalogError(f'table "{name}" is declared static; it takes no changes')
    return definition


def _check_keys_once(name: str, table: Table, changes: UserChanges) -> None:
    """Refuse a row that is named twice by the same kind of change: which one counts is not said."""
    parts = {"inserts": changes.inserts, "updates": changes.updates, "deletes": changes.deletes}
    parts |= {} if changes.upserts is None else {"upserts": changes.upserts}
    indexes = {what: KeyIndex(rows.select(list(table.key))) for what, rows in parts.items()}
    format_ = RowFormat(name, table)
    for what, keys in indexes.items():
        if keys.repeated is not None:
            [again] = to_rows(keys.keys.slice(keys.repeated, 1))
            raise ChangeError(
                f"{format_.place(again)}: the {what} name this key twice; give it once"
            )
    if "upserts" not in indexes:
        return
    upserted = indexes.pop("upserts")
    for what, keys in indexes.items():
        both = np.flatnonzero(upserted.places(keys.keys) >= 0)
        if len(both):
            [again] = to_rows(keys.keys.slice(int(both[0]), 1))
            raise ChangeError(
                f"{format_.place(again)}: the upserts and the {what} name this key; give it once"
            )


def apply_changes(
    scans: Scans,
    definition: TableDefinition,
    table: LakeTable,
    changes: UserChanges,
    driver_bytes: int = DRIVER_BYTES,
    settle: Callable[[], None] = lambda: None,
    notes: Mapping[str, Any] | None = None,
) -> tuple[int, TableChanges]:
    """Commit the changes; the version they are in. After a conflict everything is checked anew.

    `settle` is called before the table is looked at; `notes` stand in the commit.
    """
    keys, noted = changes.keys(definition.table.key), {"apply": True, **(notes or {})}
    for _ in range(TRIES):
        with suppress(ConflictError), remembered_logs(), _conflict_if_newer(table):
            settle()
            return _apply_to_newest(scans, definition, table, changes, keys, driver_bytes, noted)
    raise ConflictError(f'table "{definition.name}": too many processes write it; try again')


@contextmanager
def _conflict_if_newer(table: LakeTable) -> Iterator[None]:
    """A block in which an error of storage is a `ConflictError` if there is a newer version than
    the one that was read: a file that only the older one has may have been vacuumed."""
    try:
        yield
    except ConflictError:
        raise
    except StorageError as error:
        start = table.version()
        with remembered_logs():
            if table.version() == start:
                raise
        raise ConflictError(f"{table.uri}: another process committed first") from error


def _apply_to_newest(
    scans: Scans,
    definition: TableDefinition,
    table: LakeTable,
    changes: UserChanges,
    keys: pa.Table,
    driver_bytes: int,
    notes: Mapping[str, Any],
) -> tuple[int, TableChanges]:
    """The changes against the newest version, in the next one; a `ConflictError` if there is one
    meanwhile."""
    snapshot = table.snapshot()
    check_table_columns(definition, snapshot)
    matches = find_rows_by_key(scans, table, snapshot, keys, driver_bytes)
    net_changes = net_user_changes(definition.name, definition.table, changes, matches)
    if net_changes.is_empty:
        return snapshot.version, net_changes
    version = _commit_user_changes(
        scans, definition, table, snapshot, net_changes, matches, driver_bytes, notes
    )
    return version, net_changes


def check_table_columns(definition: TableDefinition, snapshot: Snapshot) -> None:
    """Refuse a table whose columns another writer has changed: rows would not fit it."""
    declared, there = definition.table.names, [field.name for field in snapshot.fields]
    changed = [*(n for n in there if n not in declared), *(n for n in declared if n not in there)]
    if changed:
        what = "added" if changed[0] in there else "dropped"
        raise SchemaError(
            f'table "{definition.name}": another writer {what} the column "{changed[0]}"; if that '
            "was alter_table, try again, else drop the table (its folder stays) and register it"
        )


def net_user_changes(
    name: str, table: Table, changes: UserChanges, matches: MatchedRows
) -> TableChanges:
    """The net effect of a user's changes on the rows with their keys; an error if they misfit."""
    rows = matches.rows.select(list(table.names)).cast(rows_schema(table))
    net_changes = _net_of_known_kinds(name, table, changes, matches, rows)
    if changes.upserts is None or not changes.upserts.num_rows:
        return net_changes
    return _with_upserts(net_changes, changes.upserts, rows)


def _with_upserts(changes: TableChanges, upserts: pa.Table, rows: pa.Table) -> TableChanges:
    """With whole rows that stand for those of `rows` that have their keys, or are new."""
    table = changes.table
    upserts = upserts.select(list(table.names)).cast(rows_schema(table))
    key = list(table.key)
    places = KeyIndex(rows.select(key)).places(upserts.select(key))
    is_there = pa.array(places >= 0)
    updates = TableChanges(
        changes.name,
        table,
        pa.concat_tables([changes.inserts, upserts.filter(pc.invert(is_there))]),
        changes.deletes,
        rows.take(pa.array(places[places >= 0])),
        upserts.filter(is_there),
    ).effective()
    return replace(
        updates,
        before=pa.concat_tables([changes.before, updates.before]),
        after=pa.concat_tables([changes.after, updates.after]),
    )


def _net_of_known_kinds(
    name: str, table: Table, changes: UserChanges, matches: MatchedRows, rows: pa.Table
) -> TableChanges:
    """The net effect of all but the upserts, whose keys come last."""
    count = matches.keys.keys.num_rows
    if matches.keys.repeated is not None or np.bincount(matches.places, minlength=1).max() > 1:
        return _net_changes_by_row(name, table, changes, rows)
    places = np.full(count, -1, np.int64)
    places[matches.places] = np.arange(rows.num_rows)
    counts = [part.num_rows for part in (changes.inserts, changes.updates, changes.deletes)]
    inserts, updates, deletes, _ = np.split(places, np.cumsum(counts))
    wrong = _first_misfit_change(table, changes, inserts, updates, deletes)
    if wrong is not None:
        return _net_changes_by_row(name, table, wrong, rows)
    before = take_rows(rows, updates)
    after = _updated_rows(before, changes.updates, table)
    net_changes = TableChanges(
        name, table, changes.inserts, take_rows(rows, deletes), before, after
    )
    return net_changes.effective([n for n in changes.updates.column_names if n not in table.key])


def _net_changes_by_row(
    name: str, table: Table, changes: UserChanges, rows: pa.Table
) -> TableChanges:
    """One change after the other, where several name one key, or one does not fit."""
    format_ = RowFormat(name, table)
    before = {format_.key_of(row): row for row in to_rows(rows)}
    return TableChanges.of_batch(net(name, table, before, changes.log(table)))


def _first_misfit_change(
    table: Table, changes: UserChanges, inserts: Places, updates: Places, deletes: Places
) -> UserChanges | None:
    """The first misfit: a delete or update whose row is not there, an insert whose row is."""
    none = UserChanges(
        *(part.slice(0, 0) for part in (changes.inserts, changes.updates, changes.deletes))
    )
    if (deletes < 0).any():
        return replace(none, deletes=changes.deletes.slice(int(np.argmax(deletes < 0)), 1))
    if (updates < 0).any():
        return replace(none, updates=changes.updates.slice(int(np.argmax(updates < 0)), 1))
    if (inserts >= 0).any():
        return replace(none, inserts=changes.inserts.slice(int(np.argmax(inserts >= 0)), 1))
    return None


def _updated_rows(before: pa.Table, updates: pa.Table, table: Table) -> pa.Table:
    set_columns = [name for name in updates.column_names if name not in table.key]
    columns = [updates[name] if name in set_columns else before[name] for name in table.names]
    return pa.Table.from_arrays(columns, schema=rows_schema(table))


def _commit_user_changes(
    scans: Scans,
    definition: TableDefinition,
    table: LakeTable,
    snapshot: Snapshot,
    changes: TableChanges,
    matches: MatchedRows,
    driver_bytes: int,
    notes: Mapping[str, Any],
) -> int:
    declared = definition.table
    keys = changes.old_rows.select(list(declared.key))
    files = rewrite_files(scans, table, snapshot, keys, changes.new_rows, driver_bytes, matches)
    change_notes = Feed(scans, definition.name, declared, table).write(changes)
    return table.commit(snapshot.version, files.add, files.remove, {**notes, **change_notes})
